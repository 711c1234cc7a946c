import { ApiError } from "../../core/api/api_error.ts";
import {
  checkKind,
  type Kind,
  kindText,
  parseApiVersion,
} from "../../core/api/kind.ts";
import type { DeepPartial, ObjectMeta } from "../../core/api/object.ts";
import { keyOf, keyText } from "../../core/api/object_key.ts";
import {
  checkOptions,
  checkParts,
  type OptionRules,
} from "../../core/api/options.ts";
import { immediate } from "../../core/callback.ts";
import { type Clock, sleep, systemClock } from "../../core/clock.ts";
import { retryOnConflict } from "../../core/client/retry_on_conflict.ts";
import {
  checkIntegers,
  isJsonObject,
  jsonEquals,
} from "../../core/patch/json_value.ts";
import { diffMergePatch } from "../../core/patch/merge_patch.ts";
import {
  compareConditions,
  type Condition,
  type Conditioned,
  conditionsIn,
  findCondition,
  removeCondition,
  sameState,
} from "./condition.ts";
import type { Client } from "../../core/client/client.ts";
import type { Context } from "../../core/controller/context.ts";

/** Options of a {@linkcode SharedStatus}. */
export interface SharedStatusOptions<P extends Conditioned> {
  /**
   * Access to the object for reads and writes; see {@linkcode accessByContext}
   * and {@linkcode accessByClient}.
   */
  readonly access: {
    /** Reads the object from the server. */
    read(): Promise<P>;
    /**
     * Writes one part of the object with a JSON merge patch.
     *
     * @param body The patch; for the status part only its `status` counts.
     * @param part The part of the object.
     */
    patch(body: object, part: "object" | "status"): Promise<P>;
    /** Signal that ends the pauses between two attempts; none by default. */
    readonly signal?: AbortSignal | undefined;
  };
  /**
   * Condition types that only this controller writes, so that its values win.
   *
   * @default {[]}
   */
  readonly owned?: readonly string[] | undefined;
  /**
   * Whether the values of this controller win for every type.
   *
   * @default {false}
   */
  readonly force?: boolean | undefined;
  /**
   * Clock for the pauses between two attempts.
   *
   * @default {systemClock}
   */
  readonly clock?: Clock | undefined;
  /**
   * Generator of random numbers from 0 to below 1, for the length of pauses.
   *
   * @default {Math.random}
   */
  readonly random?: (() => number) | undefined;
}

/** Shortest pause between two attempts of a write that conflicts with others. */
const MIN_PAUSE_MS = 100;

type Json = Record<string, unknown>;

type StatusPart = "conditions" | "rest";

const ACCESS_PARTS: OptionRules<SharedStatusOptions<never>["access"]> = {
  read: "function",
  patch: "function",
  signal: "signal?",
};
const RULES: OptionRules<SharedStatusOptions<never>> = {
  access: "object",
  owned: "strings?",
  force: "boolean?",
  clock: "clock?",
  random: "function?",
};

/**
 * Writer of one object for one run, beside other writers of the same object: it
 * sends only what the run has changed.
 *
 * A write sends no request if nothing changed, one if only the status did, and
 * otherwise up to three:
 * 1. the conditions, merged with those of other writers by condition type;
 * 2. metadata and spec, even if the conditions could not be written; finalizers
 *    are added and removed one by one, so that those of others stay;
 * 3. the rest of the status, including `observedGeneration`, if the conditions
 *    were written: a generation does not count as observed before they are.
 *
 * Only the object that the run was given is written, never a recreated one. The
 * conditions keep the generation of the run, although the object may be newer.
 * The object that is passed in is not updated from the responses.
 *
 * The rules are those of Flux' patch helper and serial patcher.
 *
 * @typeParam P The type of the object.
 *
 * @example Write a change once
 * ```ts
 * import {
 *   type Conditioned,
 *   setCondition,
 *   SharedStatus,
 * } from "@coracle/operator/workflows";
 *
 * const object: Conditioned = { metadata: { name: "web", generation: 1 } };
 * const sent: object[] = [];
 * const status = new SharedStatus(object, {
 *   access: {
 *     read: () => Promise.resolve({ metadata: { name: "web" } }),
 *     patch(body) {
 *       sent.push(body);
 *       return Promise.resolve(object);
 *     },
 *   },
 * });
 * const ready = { type: "Ready", status: "True", reason: "Done" } as const;
 * object.status = { conditions: setCondition([], ready, { now: Date.now() }) };
 * await status.write(object);
 * await status.write(object);
 * if (sent.length !== 1) throw new Error("Unexpected requests");
 * ```
 */
export class SharedStatus<P extends Conditioned> {
  readonly #options: SharedStatusOptions<P>;
  /**
   * The object as it was read or last written, from which changes are computed.
   */
  #base: P;
  /** Newest known state, with the changes of other writers. */
  #latest: P;

  /**
   * Creates a writer for one run.
   *
   * @param object The object as the run has read it; copied.
   * @param options How the object is read and written.
   * @throws {TypeError} If an option is unknown, missing or of another type.
   */
  constructor(object: P, options: SharedStatusOptions<P>) {
    checkOptions(options, RULES, "a SharedStatus");
    checkParts(options.access, ACCESS_PARTS, "a SharedStatus, access");
    this.#base = onWire(object);
    this.#latest = this.#base;
    this.#options = options;
  }

  /** The object as it was read or last written. */
  get base(): P {
    return onWire(this.#base);
  }

  /**
   * Writes the changes since the last write.
   *
   * @param object The current object of the run.
   * @param options `observed` sets `status.observedGeneration` to the
   * generation of the object, also in the object itself (false by default).
   * @returns Whether anything was sent.
   * @throws {TypeError} If it is another object than before.
   * @throws {ConditionConflictError} If another writer has changed the same
   * condition to a different value.
   * @throws {ApiError} If the server refuses a write.
   * @throws {AggregateError} If several parts could not be written; the next
   * call writes them again.
   */
  async write(
    object: P,
    options: { readonly observed?: boolean | undefined } = {},
  ): Promise<boolean> {
    const before = this.#base;
    checkSame(before, object);
    const { generation } = object.metadata;
    if (options.observed && generation !== undefined) {
      object.status = { ...object.status, observedGeneration: generation };
    }
    const after = onWire(object);
    const failures: unknown[] = [];
    let sent = false;
    const attempt = async (write: () => Promise<boolean>) => {
      try {
        sent = await write() || sent;
        return true;
      } catch (error) {
        failures.push(error);
        return false;
      }
    };
    const fields = diffMergePatch(withoutStatus(before), withoutStatus(after));
    const writeStatus = (...parts: readonly StatusPart[]) =>
      attempt(() => this.#writeStatus(before, after, parts));
    if (isEmpty(fields)) await writeStatus("conditions", "rest");
    else {
      const hasConditions = await writeStatus("conditions");
      await attempt(() => this.#writeObject(before, after, fields as Json));
      if (hasConditions) await writeStatus("rest");
    }
    if (failures.length === 1) throw failures[0];
    if (failures.length > 1) {
      const key = keyText(keyOf(object));
      const texts = failures.map((error) => (error as Error).message);
      throw new AggregateError(
        failures,
        `Cannot write ${key}: several parts failed: received ${
          texts.join("; ")
        }`,
      );
    }
    this.#base = after;
    return sent;
  }

  async #writeStatus(
    before: P,
    after: P,
    parts: readonly StatusPart[],
  ): Promise<boolean> {
    const { owned, force } = this.#options;
    const old = conditionsIn(before.status);
    const wanted = conditionsIn(after.status);
    const rest = parts.includes("rest")
      ? diffMergePatch(withoutConditions(before), withoutConditions(after))
      : {};
    const hasChanged = parts.includes("conditions") &&
      !jsonEquals(old, wanted);
    if (!hasChanged && isEmpty(rest)) return false;
    return await this.#writeLocked("status", (latest) => {
      const there = conditionsIn(latest.status);
      const conditions = hasChanged
        ? rebaseConditions(old, wanted, { latest: there, owned, force })
        : there;
      const status = {
        ...rest as Json,
        ...(!jsonEquals(there, conditions) && { conditions }),
      };
      return isEmpty(status) ? undefined : { status };
    });
  }

  async #writeObject(
    before: P,
    after: P,
    fields: Json & { readonly metadata?: Json },
  ): Promise<boolean> {
    if (fields.metadata === undefined || !("finalizers" in fields.metadata)) {
      await this.#send(fields, "object");
      return true;
    }
    const { finalizers: old = [] } = before.metadata;
    const { finalizers: wanted = [] } = after.metadata;
    return await this.#writeLocked("object", (latest) => {
      const { finalizers: there = [] } = latest.metadata;
      const finalizers = there
        .filter((name) => wanted.includes(name) || !old.includes(name))
        .concat(wanted.filter((name) => !there.includes(name)));
      return { ...fields, metadata: { ...fields.metadata, finalizers } };
    });
  }

  /** Sends a patch without optimistic locking. */
  async #send(
    body: Json & { readonly metadata?: Json },
    part: "object" | "status",
  ): Promise<void> {
    const { uid } = this.#base.metadata;
    const metadata = { ...body.metadata, ...(uid !== undefined && { uid }) };
    const patch = { ...body, metadata };
    // Lists are sent as a whole, with the entries of others.
    checkIntegers(`write ${keyText(keyOf(this.#base))}`, patch);
    this.#latest = await this.#options.access.patch(patch, part);
  }

  /**
   * Sends a patch with optimistic locking, and retries conflicts. The first
   * attempt uses the known state, which saves a read if there is no other
   * writer. Status patches need the lock even if nothing is merged, because the
   * server ignores their uid.
   */
  async #writeLocked(
    part: "object" | "status",
    make: (latest: P) => Json & { readonly metadata?: Json } | undefined,
  ): Promise<boolean> {
    const { access, clock = systemClock, random = Math.random } = this.#options;
    const { signal } = access;
    this.#checkIncarnation(this.#latest);
    return await retryOnConflict(this.#latest, {
      send: async (latest) => {
        const body = make(latest);
        if (body === undefined) return false;
        const { resourceVersion } = latest.metadata;
        const metadata = { ...body.metadata, resourceVersion };
        await this.#send({ ...body, metadata }, part);
        return true;
      },
      read: async () => {
        this.#latest = await access.read();
        this.#checkIncarnation(this.#latest);
        return this.#latest;
      },
      pause: () =>
        sleep(MIN_PAUSE_MS * (1 + immediate(random(), "random()")), {
          clock,
          signal,
        }),
    }) ?? false;
  }

  /** Checks that the object was not deleted and recreated. */
  #checkIncarnation(latest: P): void {
    const { uid, name } = this.#base.metadata;
    if (uid === undefined || latest.metadata.uid === uid) return;
    throw new ApiError(
      `Cannot write ${
        keyText(keyOf(latest))
      }: it was deleted and created again: received uid ${latest.metadata.uid} in place of ${uid}`,
      { status: 404, reason: "NotFound", details: { name } },
    );
  }
}

/** Copies an object as it is sent, without undefined fields. */
function onWire<T>(object: T): T {
  return JSON.parse(JSON.stringify(object)) as T;
}

function checkSame(before: Conditioned, after: Conditioned): void {
  const [old, given] = [before, after].map((object) => {
    const { apiVersion = "", kind = "" } = object;
    const name = kindText({ ...parseApiVersion(apiVersion), kind });
    return `${name} ${keyText(keyOf(object))}`;
  });
  if (old === given) return;
  throw new TypeError(
    `Cannot write ${old}: it must be the object that was read: received ${given}`,
  );
}

function withoutStatus(
  object: Conditioned,
): Json & { metadata: ObjectMeta } {
  const { status: _, ...rest } = object;
  return rest;
}

function withoutConditions(object: Conditioned): Json {
  // A user may have edited the status, so that it is no object.
  if (!isJsonObject(object.status)) return {};
  const { conditions: _, ...rest } = object.status;
  return rest;
}

function isEmpty(patch: unknown): boolean {
  return isJsonObject(patch) && Object.keys(patch).length === 0;
}

/**
 * Creates the access of a {@linkcode SharedStatus} to the primary of a run. Its
 * writes are visible in the controller's cache immediately, and cause no
 * further run.
 */
export function accessByContext<P extends Conditioned>(
  kind: Kind<P>,
  ctx: Context<P>,
): ConstructorParameters<typeof SharedStatus<P>>[1]["access"] {
  return {
    read: () => ctx.client.get(kind, ctx.key, { signal: ctx.signal }),
    patch: (body, part) =>
      // Not matched against the cache, which may be older than the last read.
      ctx.patch(kind, ctx.key, body as DeepPartial<P>, {
        type: "merge",
        match: false,
        ...(part === "status" && { subresource: part }),
      }),
    signal: ctx.signal,
  };
}

const CLIENT_PARTS: OptionRules<Pick<Client, "get" | "patch">> = {
  get: "function",
  patch: "function",
};
const CLIENT_RULES: OptionRules<Parameters<typeof accessByClient>[2]> = {
  client: "object",
  fieldManager: "manager?",
  signal: "signal?",
};

/**
 * Creates the access of a {@linkcode SharedStatus} to an object outside of a
 * run.
 *
 * @param kind The kind of the object.
 * @param object The object.
 * @param options The client; `fieldManager` defaults to that of the client;
 * `signal` aborts the requests.
 * @throws {TypeError} If an option is unknown, missing or of another type.
 */
export function accessByClient<P extends Conditioned>(
  kind: Kind<P>,
  object: P,
  options: {
    readonly client: Client;
    readonly fieldManager?: string | undefined;
    readonly signal?: AbortSignal | undefined;
  },
): ConstructorParameters<typeof SharedStatus<P>>[1]["access"] {
  checkKind(kind, "accessByClient()");
  checkOptions(options, CLIENT_RULES, "accessByClient()");
  const { client, fieldManager, signal } = options;
  checkParts(client, CLIENT_PARTS, "accessByClient(), client");
  const key = keyOf(object);
  return {
    read: () => client.get(kind, key, { signal }),
    patch(body, part) {
      const writer = part === "status" ? client.status : client;
      return writer.patch(kind, key, body as DeepPartial<P>, {
        type: "merge",
        fieldManager,
        signal,
      });
    },
    signal,
  };
}

interface RebaseOptions {
  /** Current conditions on the server. */
  readonly latest: readonly Condition[];
  readonly owned?: readonly string[] | undefined;
  readonly force?: boolean | undefined;
}

/** Error for a condition that another writer has changed as well. */
export class ConditionConflictError extends Error {
  /** Type of the condition that two writers want to set. */
  readonly conditionType: string;

  /**
   * Creates the error.
   *
   * @param conditionType The type of the condition.
   * @param why The change by the other writer.
   */
  constructor(conditionType: string, why: string) {
    super(
      `Cannot merge the condition "${conditionType}": another writer ${why}`,
    );
    this.name = "ConditionConflictError";
    this.conditionType = conditionType;
  }
}

/**
 * Applies the changes from `before` to `after` to the `latest` list, which
 * other writers may have changed: a three-way merge by condition type.
 *
 * Conditions that were not changed are preserved. A condition that already has
 * the desired value keeps its transition time.
 *
 * @throws {ConditionConflictError} If another writer has changed the same
 * condition to a different value, and it is not owned.
 */
export function rebaseConditions(
  before: readonly Condition[],
  after: readonly Condition[],
  options: RebaseOptions,
): Condition[] {
  const { latest, owned = [], force = false } = options;
  let result = [...latest];
  const types = new Set([...after, ...before].map(({ type }) => type));
  for (const type of types) {
    const [old, wanted, there] = [before, after, latest].map((list) =>
      findCondition(list, type)
    );
    if (wanted !== undefined && isSame(old, wanted)) continue;
    const isOurs = force || owned.includes(type);
    const hasChanged = wanted === undefined
      ? there !== undefined && !sameState(there, old!)
      : !isSame(there, old);
    if (hasChanged && !isOurs) {
      // Another writer may have made the same change.
      if (wanted && there && sameState(there, wanted)) continue;
      throw new ConditionConflictError(
        type,
        there === undefined ? "deleted it" : old ? "changed it" : "added it",
      );
    }
    result = removeCondition(result, type);
    if (wanted !== undefined) {
      const kept = there && sameState(there, wanted) ? there : wanted;
      const { lastTransitionTime } = kept;
      result.push({ ...wanted, lastTransitionTime });
    }
  }
  return result.sort(compareConditions);
}

/** Whether two conditions are equal, times and generations included. */
function isSame(a: Condition | undefined, b: Condition | undefined): boolean {
  if (a === undefined || b === undefined) return a === b;
  return sameState(a, b) && a.observedGeneration === b.observedGeneration &&
    a.lastTransitionTime === b.lastTransitionTime;
}
