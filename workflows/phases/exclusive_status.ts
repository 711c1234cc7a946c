import { ApiError } from "../../core/api/api_error.ts";
import { checkKind, type Kind } from "../../core/api/kind.ts";
import type { KubernetesObject } from "../../core/api/object.ts";
import { keyOf, keyText } from "../../core/api/object_key.ts";
import { checkOptions, type OptionRules } from "../../core/api/options.ts";
import { compareResourceVersions } from "../../core/api/resource_version.ts";
import type { Client } from "../../core/client/client.ts";
import { jsonEquals } from "../../core/patch/json_value.ts";

/** Somebody else has written the status that only one writer may write. */
export class StatusTamperedError extends Error {
  /**
   * Says whose status it is.
   *
   * @param key The object.
   */
  constructor(key: string) {
    super(
      `Cannot write the status of ${key}: another writer has changed it: received a status that we did not write`,
    );
    this.name = "StatusTamperedError";
  }
}

/** An object with a status. */
export type WithStatus = KubernetesObject & { status?: unknown };

/** What is remembered of an object. */
interface Written {
  /** The status that we wrote, as JSON. */
  readonly status: string;
  /** What the server has instead, if somebody has changed it, as JSON. */
  readonly found?: string | undefined;
  /** The resourceVersion that it was written at, or found at first. */
  readonly version: string;
}

/** How often a write is tried again when only other parts have changed. */
const ATTEMPTS = 3;

/**
 * How many objects are remembered. The memory of one that has vanished without a
 * word goes in time; one that is forgotten too early costs a conflict.
 */
const MOST_REMEMBERED = 100_000;

/** What {@linkcode ExclusiveStatus} works with. */
export interface ExclusiveStatusOptions<P extends WithStatus> {
  /**
   * Told of each status that was written, and what was there before. What it
   * throws is dropped: a listener must not stop a rollout.
   *
   * @default {nobody}
   */
  readonly onChange?: ((object: P, previous: unknown) => void) | undefined;
  /**
   * Whether a status that was found is a legitimate successor of ours, as when
   * another replica has led meanwhile; any other is undone.
   *
   * @default {it always is}
   */
  readonly succeeds?: ((found: unknown, ours: unknown) => boolean) | undefined;
}

const RULES: OptionRules<ExclusiveStatusOptions<never>> = {
  onChange: "function?",
  succeeds: "function?",
};

/**
 * Writes statuses that nobody else may write, as the memory of a state machine
 * needs it: one PUT for each change, none where nothing changed, and never over
 * a change of somebody else's.
 *
 * The last status written is remembered by uid, so that a pass which is given an
 * older copy of the object still goes on from what was written, and a re-created
 * object never inherits the status of a dead one.
 *
 * @typeParam P The type of the objects.
 */
export class ExclusiveStatus<P extends WithStatus> {
  readonly #kind: Kind<P>;
  readonly #options: ExclusiveStatusOptions<P>;
  readonly #written: Map<string, Written> = new Map();

  /**
   * Makes a writer that has written nothing yet.
   *
   * @param kind The kind of the objects.
   * @param options Whom to tell.
   * @throws {TypeError} If the kind is none, or an option is unknown or no
   * function.
   */
  constructor(kind: Kind<P>, options: ExclusiveStatusOptions<P> = {}) {
    checkKind(kind, "an ExclusiveStatus");
    checkOptions(options, RULES, "an ExclusiveStatus");
    this.#kind = kind;
    this.#options = options;
  }

  /** How many objects are remembered. */
  get size(): number {
    return this.#written.size;
  }

  /**
   * Gives an object the status to go on from. An object that is older than our
   * last write gets what we wrote; one that was never seen before keeps its own.
   *
   * @returns Whether somebody else has changed the status: the object has ours
   * again, which the next write restores.
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
    if (succeeds(object.status, ours)) {
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

  /** The status of an object as it was last written, as a copy. */
  last(object: P): unknown {
    const written = this.#written.get(uidOf(object));
    return written === undefined ? undefined : parse(written.status);
  }

  /** Whether a write would change what the server has. */
  isChanged(object: P): boolean {
    const status = plain(object.status);
    return !jsonEquals(this.#onServer(object) ?? null, status ?? null);
  }

  /**
   * Writes the status of an object, unless it is what was written last. The
   * object takes on the new resourceVersion, so that it can be written again.
   *
   * @returns Whether anything was written.
   * @throws {StatusTamperedError} If somebody else wrote the status; the next
   * pass, which sees what they wrote, begins with {@linkcode adopt}.
   * @throws {ApiError} If the object is gone or the server refuses the write.
   */
  async write(
    object: P,
    client: Client,
    options: { readonly signal?: AbortSignal | undefined } = {},
  ): Promise<boolean> {
    if (!this.isChanged(object)) return false;
    const previous = this.#onServer(object);
    let { metadata } = object;
    for (let attempt = 1;; attempt++) {
      try {
        const body = { ...object, metadata };
        const stored = await client.status.replace(this.#kind, body, options);
        // The pass has seen this generation, and speaks of no newer one.
        const { generation } = object.metadata;
        object.metadata = { ...stored.metadata, generation };
        break;
      } catch (error) {
        if (!ApiError.is(error) || !error.isConflict || attempt === ATTEMPTS) {
          throw error;
        }
        metadata = await this.#rebase(object, { client, previous, ...options });
      }
    }
    this.#remember(object);
    try {
      this.#options.onChange?.(object, previous);
    } catch {
      // See ExclusiveStatusOptions.onChange.
    }
    return true;
  }

  /** Forgets an object that is gone. */
  forget(object: P): void {
    this.#written.delete(uidOf(object));
  }

  /** What the server has, as far as is known. */
  #onServer(object: P): unknown {
    const written = this.#written.get(uidOf(object));
    const known = written?.found ?? written?.status;
    return known === undefined ? undefined : parse(known);
  }

  /** The newest metadata of the object, if its status is still ours. */
  async #rebase(
    object: P,
    { client, previous, signal }: {
      readonly client: Client;
      readonly previous: unknown;
      readonly signal?: AbortSignal | undefined;
    },
  ): Promise<P["metadata"]> {
    const latest = await client.get(this.#kind, keyOf(object), { signal });
    const same = latest.metadata.uid === object.metadata.uid &&
      jsonEquals(latest.status ?? null, previous ?? null);
    if (!same) throw new StatusTamperedError(keyText(keyOf(object)));
    return latest.metadata;
  }

  #remember(object: P): void {
    const uid = uidOf(object);
    this.#written.delete(uid);
    this.#written.set(uid, {
      status: JSON.stringify(object.status ?? null),
      version: object.metadata.resourceVersion ?? "",
    });
    if (this.#written.size <= MOST_REMEMBERED) return;
    const [oldest = uid] = this.#written.keys();
    this.#written.delete(oldest);
  }
}

function uidOf(object: KubernetesObject): string {
  return object.metadata.uid ?? keyText(keyOf(object));
}

function parse(text: string): unknown {
  return JSON.parse(text) ?? undefined;
}

/** A value as it is on the wire. */
function plain(value: unknown): unknown {
  return value === undefined ? undefined : JSON.parse(JSON.stringify(value));
}
