import { attempt, immediate } from "../../core/callback.ts";
import type { Kind } from "../../core/api/kind.ts";
import type { KubernetesObject } from "../../core/api/object.ts";
import { keyOf, keyText } from "../../core/api/object_key.ts";
import { compareResourceVersions } from "../../core/api/resource_version.ts";
import type { Client } from "../../core/client/client.ts";
import { retryOnConflict } from "../../core/client/retry_on_conflict.ts";
import { LatestMap } from "../../core/controller/latest_map.ts";
import { jsonEquals } from "../../core/patch/json_value.ts";

export class StatusTamperedError extends Error {
  override readonly name = "StatusTamperedError";

  constructor(key: string) {
    super(`Cannot write the status of ${key}: another writer has changed it`);
  }
}

export type WithStatus = KubernetesObject & { status?: unknown };

/** Last written status of an object. */
interface Written {
  readonly status: string;
  /** Status on the server, as JSON, if another writer has changed it. */
  readonly found?: string | undefined;
  /**
   * resourceVersion that the last write returned, or that of the first read if
   * nothing was written.
   */
  readonly version: string;
}

/**
 * Minimum number of objects, those written last, that are remembered. Objects
 * whose deletion was missed are removed in time; removing one too early costs a
 * conflict.
 */
const MIN_REMEMBERED = 50_000;

export interface ExclusiveStatusOptions<P extends WithStatus> {
  /**
   * Callback for each written status, with the previous one. Errors that it
   * throws are ignored: they must not stop a rollout.
   */
  readonly onChange?: ((object: P, previous: unknown) => void) | undefined;
  /**
   * Whether a status from the server is a valid successor of the last written
   * one, for example of another replica that was the leader; any other is
   * reverted. By default every status is valid.
   */
  readonly succeeds?: ((found: unknown, ours: unknown) => boolean) | undefined;
}

/**
 * Writer of statuses that no other writer may change, because they are the
 * memory of a state machine. It sends one PUT for each change, none without a
 * change, and never overwrites changes of others.
 *
 * The last written status is remembered by uid. A run that gets an older copy
 * of the object continues from the written status, and a recreated object never
 * gets the status of its predecessor.
 */
export class ExclusiveStatus<P extends WithStatus> {
  readonly #kind: Kind<P>;
  readonly #options: ExclusiveStatusOptions<P>;
  readonly #written: LatestMap<Written> = new LatestMap(MIN_REMEMBERED);

  constructor(kind: Kind<P>, options: ExclusiveStatusOptions<P> = {}) {
    this.#kind = kind;
    this.#options = options;
  }

  get size(): number {
    return this.#written.size;
  }

  /**
   * Sets the status from which a run continues. An object that is older than
   * the last write gets the written status; a new object keeps its own.
   *
   * @returns Whether another writer has changed the status. The object then has
   * the written status, which the next write restores.
   */
  adopt(object: P): boolean {
    const written = this.#written.get(uidOf(object));
    if (written === undefined) {
      this.#remember(object);
      return false;
    }
    const { resourceVersion = "" } = object.metadata;
    const ours = parse(written.status);
    if (compareResourceVersions(resourceVersion, written.version) < 0) {
      object.status = ours;
      return false;
    }
    if (jsonEquals(object.status ?? null, ours ?? null)) return false;
    const { succeeds = () => true } = this.#options;
    if (immediate(succeeds(object.status, ours), "succeeds()")) {
      this.#remember(object);
      return false;
    }
    this.#written.set(uidOf(object), {
      status: written.status,
      found: JSON.stringify(object.status ?? null),
      version: resourceVersion,
    });
    object.status = ours;
    return true;
  }

  /** Copy of the last written status of an object. */
  last(object: P): unknown {
    const written = this.#written.get(uidOf(object));
    return written === undefined ? undefined : parse(written.status);
  }

  /** Whether a write would change the status on the server. */
  isChanged(object: P): boolean {
    const status = plain(object.status);
    return !jsonEquals(this.#onServer(object) ?? null, status ?? null);
  }

  /**
   * Writes the status of an object, unless it has not changed. The object gets
   * the new resourceVersion, so that it can be written again.
   *
   * @returns Whether anything was written.
   * @throws {StatusTamperedError} If another writer has changed the status; the
   * next run starts with {@linkcode ExclusiveStatus.adopt}.
   * @throws {ApiError} If the object was deleted or the server refuses the
   * write.
   */
  async write(
    object: P,
    client: Client,
    options: { readonly signal?: AbortSignal | undefined } = {},
  ): Promise<boolean> {
    if (!this.isChanged(object)) return false;
    const previous = this.#onServer(object);
    await retryOnConflict(object, {
      attempts: 3,
      send: async ({ metadata }) => {
        const body = { ...object, metadata };
        const stored = await client.status.replace(this.#kind, body, options);
        // The run was given this generation, and reports no newer one.
        const { generation } = object.metadata;
        object.metadata = { ...stored.metadata, generation };
      },
      read: async () => {
        const latest = await client.get(this.#kind, keyOf(object), options);
        const same = latest.metadata.uid === object.metadata.uid &&
          jsonEquals(latest.status ?? null, previous ?? null);
        if (!same) throw new StatusTamperedError(keyText(keyOf(object)));
        return latest;
      },
    });
    this.#remember(object);
    // See ExclusiveStatusOptions.onChange.
    attempt(() => this.#options.onChange?.(object, previous));
    return true;
  }

  forget(object: P): void {
    this.#written.delete(uidOf(object));
  }

  #onServer(object: P): unknown {
    const written = this.#written.get(uidOf(object));
    const known = written?.found ?? written?.status;
    return known === undefined ? undefined : parse(known);
  }

  #remember(object: P): void {
    this.#written.set(uidOf(object), {
      status: JSON.stringify(object.status ?? null),
      version: object.metadata.resourceVersion ?? "",
    });
  }
}

function uidOf(object: KubernetesObject): string {
  return object.metadata.uid ?? keyText(keyOf(object));
}

function parse(text: string): unknown {
  return JSON.parse(text) ?? undefined;
}

/** Converts a value to JSON values, as it is sent. */
function plain(value: unknown): unknown {
  return value === undefined ? undefined : JSON.parse(JSON.stringify(value));
}
