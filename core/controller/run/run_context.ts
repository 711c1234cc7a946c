import { type Clock, loadModule } from "../../clock.ts";
import { ApiError } from "../../api/api_error.ts";
import {
  checkKind,
  isBuiltIn,
  type Kind,
  kindText,
  type ResolvedKind,
  sameKind,
} from "../../api/kind.ts";
import type {
  ApplyObject,
  KubernetesObject,
  NewObject,
  WrittenAs,
} from "../../api/object.ts";
import {
  keyOf,
  keyText,
  keyToRead,
  type ObjectKey,
  parseKey,
} from "../../api/object_key.ts";
import {
  checkOption,
  checkOptions,
  checkParts,
  type OptionRules,
  typeText,
} from "../../api/options.ts";
import type { OwnWrite } from "../../cache/informer/shared_informer.ts";
import { type Client, sendWrite } from "../../client/client.ts";
import {
  type ApiRequest,
  applyRequest,
  checkObject,
  createRequest,
  encodeJson,
  keyFor,
  patchRequest,
  replaceRequest,
} from "../../client/request.ts";
import type {
  SubresourceOption,
  WriteOptions,
} from "../../client/request_options.ts";
import type { Answer } from "../../client/response.ts";
import { retryOnConflict } from "../../client/retry_on_conflict.ts";
import { checkStatusPatch } from "../../crd/check_status.ts";
import { mutableCopy, prunedField } from "../../json/prune.ts";
import type { Logger } from "../../logger.ts";
import {
  diffJsonPatch,
  type JsonPatchOperation,
} from "../../patch/json_patch.ts";
import { checkIntegers, isJsonObject } from "../../patch/json_value.ts";
import { isPromise } from "../../callback.ts";
import { spanFields } from "../../tracing.ts";
import type { ApplyMemory } from "./apply_memory.ts";
import type { RunCause } from "../cause.ts";
import type {
  Context,
  ContextWriteOptions,
  ManagedWorkflowResult,
  PrimaryEvents,
  RetryInfo,
} from "../context.ts";
import { EVENT_OPTIONS, type EventRecorder } from "../event_recorder.ts";
import type {
  EventSource,
  PrimaryCache,
  SourceRegistry,
} from "../event_source.ts";
import { checkFinalizer, hasFinalizer, setFinalizer } from "../finalizer.ts";
import { FollowedWrites } from "./followed_writes.ts";
import { partOf } from "./keyed_lists.ts";
import { type Ownership, type Placed, placedObject } from "./owner.ts";
import type { PrimarySource } from "../primary_source.ts";
import type { Run } from "./run.ts";
import { allWrites, type SourceGroup } from "../source_group.ts";
import { WatchingSource } from "../watch/watch_source.ts";
import type { MaybePromise } from "../reconciler.ts";
import { valuesOf } from "./write_changes.ts";
import type { WriteObserver } from "./write_loop.ts";
import {
  jsonPatchChanges,
  mergePatchChanges,
  replacementChanges,
} from "./write_match.ts";

/** Dependencies of the contexts of all runs of a controller. */
export interface RunDeps<P extends KubernetesObject> {
  readonly controller: string;
  readonly kind: ResolvedKind<P>;
  readonly fieldManager: string;
  /** Finalizer of the controller, even if it adds none to primaries. */
  readonly finalizer: string;
  /** Finalizer that the controller adds to its primaries; undefined if none. */
  readonly keptFinalizer: string | undefined;
  /** Whether the cache of primaries leaves out more than managed fields. */
  readonly cacheIsPartial: boolean;
  readonly client: Client;
  readonly clock: Clock;
  readonly log: Logger;
  readonly primaries: PrimarySource<P>;
  readonly sources: SourceGroup<P>;
  readonly recorder: EventRecorder;
  readonly ownership: Ownership<P>;
  /** Memory of applies, loaded on first use. */
  readonly applied: () => MaybePromise<ApplyMemory>;
  readonly writeObserver: WriteObserver;
}

/** Options of `ctx.patch`. */
type PatchWriteOptions = NonNullable<Parameters<Context<never>["patch"]>[3]>;
/** Options of `ctx.delete`. */
type DeleteWriteOptions = NonNullable<Parameters<Context<never>["delete"]>[2]>;

const EVENT_RULES = {
  reason: "name",
  message: "string",
  options: { type: "object?", options: EVENT_OPTIONS },
} as const;
const OWNED_RULES = { owned: "boolean?" } as const;
const CREATE_RULES = {
  trigger: "boolean?",
  signal: "signal?",
  ...OWNED_RULES,
} as const;
const MATCH_RULES: OptionRules<Omit<ContextWriteOptions, "owned">> = {
  trigger: "boolean?",
  signal: "signal?",
  match: "boolean?",
  subresource: ["status", undefined],
};
const APPLY_RULES: OptionRules<ContextWriteOptions> = {
  ...MATCH_RULES,
  ...OWNED_RULES,
};
const PATCH_RULES: OptionRules<PatchWriteOptions> = {
  ...MATCH_RULES,
  type: ["merge", "json", "strategic", undefined],
  fieldManager: "manager?",
};
const DELETE_RULES: OptionRules<DeleteWriteOptions> = {
  signal: "signal?",
  propagationPolicy: ["Background", "Foreground", "Orphan", undefined],
  uid: "name?",
};

/** Read methods that can be taken out of the context, such as `{ get }`. */
const READS = ["get", "list", "secondary", "secondaries"] as const;
/** Write methods, whose errors fail the run even if they are not awaited. */
const WRITES = [
  "apply",
  "create",
  "patch",
  "replace",
  "modify",
  "delete",
  "addFinalizer",
  "removeFinalizer",
] as const;

/** Properties of a write that differ between the verbs. */
interface Write<T extends KubernetesObject> {
  readonly verb: "apply" | "create" | "patch" | "update";
  readonly body: object;
  readonly options: ContextWriteOptions;
  /** Check before the write, given the object that a cache holds. */
  readonly admit?: (cached: KubernetesObject | undefined) => Promise<void>;
  /** Whether the write would change the object that a cache holds. */
  readonly changes: (cached: KubernetesObject) => boolean;
  readonly request: (
    kind: ResolvedKind,
    options: SubresourceOption & WriteOptions,
  ) => ApiRequest;
  /** Whether to send the write again, after it has repaired the cause of an error. */
  readonly repair?: (error: unknown) => Promise<boolean>;
  /** Callback for the stored object, once it is in the cache. */
  readonly learn?: (stored: T) => void;
}

/** Object after a write, decoded on access. */
export type Written<T extends KubernetesObject> = Pick<Answer<T>, "object">;

/** Implementation of {@linkcode Context}; rare parts are created lazily. */
export class RunContext<P extends KubernetesObject> implements Context<P> {
  readonly #run: Run<P>;
  readonly #deps: RunDeps<P>;
  #attributes: Map<unknown, unknown> | undefined;
  #log: Logger | undefined;
  #writes: FollowedWrites | undefined;
  #hasEnded = false;

  static {
    // A reconciler may take methods out of its context: `{ apply, log }`.
    for (const name of READS) {
      const method: (...args: never) => unknown = this.prototype[name];
      Object.defineProperty(this.prototype, name, {
        get(): unknown {
          return method.bind(this);
        },
      });
    }
    for (const name of WRITES) {
      const method = this.prototype[name] as (
        ...args: unknown[]
      ) => Promise<unknown>;
      Object.defineProperty(this.prototype, name, {
        get(this: RunContext<KubernetesObject>): unknown {
          return (...args: unknown[]) => {
            const { kind = "" } = Object(args[0]) as Partial<Kind>;
            this.#writes ??= new FollowedWrites(() => this.log, this.#hasEnded);
            const write = method.apply(this, args);
            return this.#writes.follow(write, `ctx.${name}(${kind})`);
          };
        },
      });
    }
  }

  constructor(run: Run<P>, deps: RunDeps<P>) {
    this.#run = run;
    this.#deps = deps;
  }

  /**
   * Waits for the writes that the reconciler has not awaited.
   *
   * @returns Undefined if there are none.
   * @throws The error of the first that failed.
   */
  endWrites(): Promise<void> | undefined {
    this.#hasEnded = true;
    return this.#writes?.end();
  }

  get workflow(): ManagedWorkflowResult | undefined {
    return this.#run.workflow;
  }

  set workflow(result: ManagedWorkflowResult | undefined) {
    this.#run.workflow = result;
  }

  get signal(): AbortSignal {
    return this.#run.signal;
  }

  get interrupted(): AbortSignal {
    return this.#run.interrupted;
  }

  get client(): Client {
    return this.#deps.client;
  }

  get clock(): Clock {
    return this.#deps.clock;
  }

  get log(): Logger {
    this.#log ??= this.#deps.log.with({
      ...logFields(this.#run.primary, this.#deps.kind),
      ...spanFields(this.#run.span),
    });
    return this.#log;
  }

  get retry(): RetryInfo {
    return this.#run.retry;
  }

  get cause(): RunCause {
    return this.#run.cause;
  }

  get controller(): string {
    return this.#deps.controller;
  }

  get fieldManager(): string {
    return this.#deps.fieldManager;
  }

  get key(): ObjectKey {
    return this.#run.objectKey;
  }

  get current(): P | undefined {
    return this.#deps.primaries.cache.get(this.#run.key);
  }

  get nextImminent(): boolean {
    return this.#run.hasNewEvent();
  }

  get deleted(): boolean {
    return this.#run.deleted;
  }

  get finalStateUnknown(): boolean {
    return this.#run.finalStateUnknown;
  }

  get attributes(): Map<unknown, unknown> {
    this.#attributes ??= new Map();
    return this.#attributes;
  }

  get primaries(): PrimaryCache<P> {
    return this.#deps.primaries.cache;
  }

  get sources(): SourceRegistry<P> {
    return this.#deps.sources;
  }

  get events(): PrimaryEvents {
    const { recorder, kind } = this.#deps;
    const { primary } = this.#run;
    const record =
      (type: "Normal" | "Warning"): PrimaryEvents["normal"] =>
      (reason, message, options) => {
        const event = { reason, message, options };
        checkParts(event, EVENT_RULES, "an Event");
        recorder.record(primary, kind, { type, ...event });
      };
    return { normal: record("Normal"), warning: record("Warning") };
  }

  async get<T extends KubernetesObject>(
    kind: Kind<T>,
    ...names: readonly [name?: string, namespace?: string]
  ): Promise<T | undefined> {
    this.#run.throwIfAborted();
    const { metadata } = this.#run.primary;
    const key = checkedKey(kind, keyToRead(kind, names, metadata));
    return await this.#deps.sources.read(kind, key, this.signal);
  }

  async list<T extends KubernetesObject>(
    kind: Kind<T>,
    namespace: string | undefined = this.#run.primary.metadata.namespace,
  ): Promise<readonly T[]> {
    this.#run.throwIfAborted();
    checkKind(kind, "ctx.list()");
    checkedKey(kind, { namespace, name: "" });
    const where = namespace === "*" ? undefined : namespace;
    return await this.#deps.sources.readList(kind, where, this.signal);
  }

  secondary<T extends KubernetesObject>(kind: Kind<T>): Promise<T | undefined>;
  secondary<T>(source: EventSource<P, T>): Promise<T | undefined>;
  async secondary(which: Kind | EventSource<P>): Promise<unknown> {
    const found = await this.secondaries(which as Kind);
    if (found.length > 1) {
      throw new RangeError(
        `Cannot choose the secondary: there is more than one, so use ctx.secondaries: received ${found.length}`,
      );
    }
    return found[0];
  }

  secondaries<T extends KubernetesObject>(kind: Kind<T>): Promise<readonly T[]>;
  secondaries<T>(source: EventSource<P, T>): Promise<readonly T[]>;
  async secondaries(which: Kind | EventSource<P>): Promise<readonly unknown[]> {
    this.#run.throwIfAborted();
    const { primary } = this.#run;
    if (!isSource(which)) {
      checkKind(which, "ctx.secondaries()");
      return await this.#deps.sources.secondaries(which, primary);
    }
    return await which.secondaries?.(primary) ?? [];
  }

  async apply<T extends KubernetesObject>(
    kind: Kind<T>,
    object: ApplyObject<T>,
    options: ContextWriteOptions = {},
  ): Promise<T> {
    checkOptions(options, APPLY_RULES, "ctx.apply()");
    const { applied, client, ownership } = this.#deps;
    const subresource = options.subresource !== undefined;
    const placed = await this.#intent(kind, object, options);
    const { intent } = placed;
    const key = keyFor(kind, intent, "apply");
    ownership.checkWatched(kind, placed, "apply");
    const id = `${kindText(kind)} ${keyText(key)}`;
    const memory = await applied();
    return (await this.#write(kind, key, {
      verb: "apply",
      body: intent,
      options,
      // No other controller may own the object. The server checks owner
      // references, but not annotations.
      admit: async (cached) => {
        if (placed.relation === "none") return;
        const stored = cached ??
          (placed.relation === "annotations"
            ? await client.find(kind, key, { signal: this.signal })
            : undefined);
        if (stored !== undefined) {
          ownership.checkOwner(kind, stored, this.#run.primary);
        }
      },
      changes: (cached) =>
        !memory.isNeedless({ id, intent, subresource, cached }),
      request: (resolved, common) =>
        applyRequest(resolved, intent, { ...common, force: true }),
      repair: async (error) =>
        !subresource && ApiError.is(error) && error.isInvalid &&
        (placed.relation === "reference" || error.message.includes('"null"')) &&
        await this.#repair(kind, key, { ...placed, error }),
      learn: (stored) => memory.learn({ id, intent, subresource }, stored),
    })).object;
  }

  async intent<T extends KubernetesObject>(
    kind: Kind<T>,
    object: ApplyObject<T>,
    options: Pick<ContextWriteOptions, "owned"> = {},
  ): Promise<ApplyObject<T>> {
    checkOptions(options, OWNED_RULES, "ctx.intent()");
    return (await this.#intent(kind, object, options)).intent;
  }

  /**
   * Object that an apply sends. For the primary itself it includes the
   * finalizer of the controller, which the server would otherwise remove, and
   * the UID.
   */
  async #intent<T extends KubernetesObject>(
    kind: Kind<T>,
    object: ApplyObject<T>,
    { owned, subresource }: Pick<ContextWriteOptions, "owned" | "subresource">,
  ): Promise<Placed<ApplyObject<T>>> {
    const { primary, objectKey } = this.#run;
    const placed = await this.#placed(
      kind,
      object,
      owned ?? (subresource ? false : this.#deps.ownership.byDefault(kind)),
    );
    const { intent, relation } = placed;
    const isPrimary = this.#isPrimaryKind(kind) &&
      keyText(keyOf(intent as KubernetesObject)) === keyText(objectKey);
    if (!isPrimary) return placed;
    const { keptFinalizer } = this.#deps;
    const { metadata } = intent;
    const { deletionTimestamp, uid } = primary.metadata;
    const mayKeep = keptFinalizer !== undefined && subresource === undefined &&
      (deletionTimestamp === undefined || hasFinalizer(primary, keptFinalizer));
    return {
      relation,
      intent: {
        ...intent,
        metadata: {
          uid,
          ...metadata,
          ...(mayKeep && {
            finalizers: [
              ...new Set([...metadata.finalizers ?? [], keptFinalizer]),
            ],
          }),
        },
      },
    };
  }

  /** Forgets the last apply, so that the next one is sent even if equal. */
  async forgetApply(
    kind: Kind,
    key: ObjectKey,
    subresource?: "status",
  ): Promise<void> {
    const id = `${kindText(kind)} ${keyText(key)}`;
    const memory = await this.#deps.applied();
    memory.forget({ id, subresource: subresource !== undefined });
  }

  async create<T extends KubernetesObject, W extends KubernetesObject = T>(
    kind: Kind<T> & WrittenAs<W>,
    object: NewObject<W>,
    options: Pick<ContextWriteOptions, "owned" | "signal" | "trigger"> = {},
  ): Promise<T> {
    checkOptions(options, CREATE_RULES, "ctx.create()");
    const placed = await this.#placed(kind, object, options.owned);
    const { intent } = placed;
    this.#deps.ownership.checkWatched(kind, placed, "create");
    const { name } = intent.metadata;
    const key = name === undefined ? undefined : keyFor(kind, intent, "create");
    return (await this.#write<T>(kind, key, {
      verb: "create",
      body: intent,
      options,
      changes: () => true,
      request: (resolved, common) => createRequest(resolved, intent, common),
    })).object;
  }

  async patch<T extends KubernetesObject>(
    kind: Kind<T>,
    key: string | ObjectKey,
    body: unknown,
    options: PatchWriteOptions = {},
  ): Promise<T> {
    checkOptions(options, PATCH_RULES, "ctx.patch()");
    const target = await this.#keyOf(kind, key);
    return (await this.sendPatch(kind, target, body, options)).object;
  }

  /** Sends a patch to the object with a key, without decoding the answer. */
  sendPatch<T extends KubernetesObject>(
    kind: Kind<T>,
    target: ObjectKey,
    body: unknown,
    options: PatchWriteOptions,
  ): Promise<Written<T>> {
    const { type = "merge", fieldManager } = options;
    return this.#write(kind, target, {
      verb: "patch",
      body: body as object,
      options,
      changes(cached) {
        if (type === "strategic") return true;
        return type === "merge"
          ? mergePatchChanges(cached, body)
          : jsonPatchChanges(cached, body as readonly JsonPatchOperation[]);
      },
      request: (resolved, common) =>
        patchRequest(resolved, target, body, {
          ...common,
          type,
          fieldManager: fieldManager ?? common.fieldManager,
        }),
    });
  }

  async replace<T extends KubernetesObject>(
    kind: Kind<T>,
    object: T,
    options: Omit<ContextWriteOptions, "owned"> = {},
  ): Promise<T> {
    checkOptions(options, MATCH_RULES, "ctx.replace()");
    checkObject(kind, object, "replace");
    const { client, sources, primaries, cacheIsPartial } = this.#deps;
    const { subresource, signal = this.#run.signal } = options;
    const key = keyOf(object);
    const isPrimary = this.#isPrimaryKind(kind);
    const isPartial = (isPrimary && cacheIsPartial) ||
      sources.ofKind(kind).some((source) =>
        source instanceof WatchingSource && source.selection.metadataOnly
      );
    const isMetadata = Object.keys(object).every((name) =>
      /^(?:apiVersion|kind|metadata)$/.test(name)
    );
    // A copy has no guards: it is compared with the cached and the stored object.
    const cached = [
      await sources.get(kind, key),
      isPrimary ? await primaries.cache.read(key) : undefined,
    ].find((one) => prunedField(one, subresource, object));
    const live = cached && await client.find(kind, key, { signal });
    const pruned = prunedField(cached, subresource, object, live ?? {});
    if (pruned !== undefined || (isPartial && isMetadata)) {
      throw new TypeError(
        `Cannot replace ${kindText(kind)} ${keyText(key)}: its cache ${
          pruned === undefined
            ? "keeps only the metadata, so the rest"
            : `does not keep "${pruned}", which`
        } would be lost; use apply, patch or modify`,
      );
    }
    return await this.update(kind, object, options);
  }

  /** Replaces an object by one that is complete. */
  async update<T extends KubernetesObject>(
    kind: Kind<T>,
    object: T,
    options: Omit<ContextWriteOptions, "owned">,
  ): Promise<T> {
    checkObject(kind, object, "replace");
    const { resourceVersion } = object.metadata;
    if (!resourceVersion) {
      throw new TypeError(
        `Cannot replace ${kindText(kind)} ${
          keyText(keyOf(object))
        }: it needs the metadata.resourceVersion that it was read with`,
      );
    }
    return (await this.#write(kind, keyOf(object), {
      verb: "update",
      body: object,
      options,
      changes: (cached) =>
        cached.metadata.resourceVersion !== resourceVersion ||
        replacementChanges(cached, object, options.subresource),
      request: (resolved, common) => replaceRequest(resolved, object, common),
    })).object;
  }

  async modify<T extends KubernetesObject>(
    kind: Kind<T>,
    key: string | ObjectKey,
    change: (object: T) => void,
    options: Omit<ContextWriteOptions, "owned"> = {},
  ): Promise<T | undefined> {
    checkOptions(options, MATCH_RULES, "ctx.modify()");
    checkOption(change, "function", {
      name: "change",
      subject: "ctx.modify()",
    });
    const { client } = this.#deps;
    const { signal = this.#run.signal, subresource } = options;
    const target = await this.#keyOf(kind, key);
    const read = () => client.find(kind, target, { signal });
    const first = await read();
    if (first === undefined) return undefined;
    try {
      return await retryOnConflict(first, {
        attempts: 10,
        read,
        send: async (latest) => {
          const { resourceVersion } = latest.metadata;
          const patch = modification(kind, latest, { change, subresource });
          if (patch === undefined) {
            // What it returns must be in the cache, which may be behind.
            const base = resourceVersion;
            this.#beginWrite(kind, target).succeed(latest, { base });
            return latest;
          }
          const sent = { ...options, type: "json", match: false } as const;
          return (await this.sendPatch(kind, target, patch, sent)).object;
        },
      });
    } catch (error) {
      if (ApiError.is(error) && error.isNotFound) return undefined;
      throw error;
    }
  }

  async delete(
    kind: Kind,
    key: string | ObjectKey,
    options: DeleteWriteOptions = {},
  ): Promise<void> {
    checkOptions(options, DELETE_RULES, "ctx.delete()");
    this.#run.throwIfAborted();
    const { signal = this.#run.signal, propagationPolicy, uid } = options;
    const target = await this.#keyOf(kind, key);
    try {
      await this.#deps.client.delete(kind, target, {
        signal,
        propagationPolicy: propagationPolicy ?? "Background",
        ...(uid !== undefined && { preconditions: { uid } }),
      });
      this.#run.wrote({ verb: "delete", kind, key: keyText(target) });
    } catch (error) {
      if (!ApiError.is(error) || !error.isNotFound) throw error;
    }
  }

  async addFinalizer(finalizer: string = this.#deps.finalizer): Promise<void> {
    await this.setFinalizer(checkFinalizer(finalizer), true);
  }

  async removeFinalizer(
    finalizer: string = this.#deps.finalizer,
  ): Promise<void> {
    await this.setFinalizer(finalizer, false);
  }

  /**
   * Adds or removes a finalizer of the primary; repeated after a conflict.
   *
   * @returns Current state of the primary; undefined if it was deleted.
   */
  async setFinalizer(
    finalizer: string,
    isWanted: boolean,
  ): Promise<P | undefined> {
    const { client, kind, primaries } = this.#deps;
    const { key, objectKey, primary, signal } = this.#run;
    const current = await primaries.cache.read(key);
    const isSame = current?.metadata.uid === primary.metadata.uid;
    const latest = isSame ? current as P : primary;
    return await setFinalizer(latest, {
      finalizer,
      isWanted,
      read: () => client.find(kind, objectKey, { signal }),
      patch: (patch) => this.patch(kind, objectKey, patch, { type: "json" }),
    });
  }

  /** Sends a write unless it would change nothing, and updates the caches. */
  async #write<T extends KubernetesObject>(
    kind: Kind<T>,
    key: ObjectKey | undefined,
    write: Write<T>,
  ): Promise<Written<T>> {
    const { trigger = false, match = true, subresource } = write.options;
    const { signal = this.#run.signal } = write.options;
    if (write.options.signal === undefined) this.#run.throwIfAborted();
    const { verb, body } = write;
    const before = key && await this.#cached(kind, key);
    if (write.admit !== undefined) await write.admit(before);
    if (match && before !== undefined && !write.changes(before)) {
      return { object: before as T };
    }
    const isStatus = subresource !== undefined;
    const checked = isStatus && this.#checkStatus(kind, body, before);
    if (checked instanceof Promise) await checked;
    const { client, fieldManager, writeObserver } = this.#deps;
    // A partial cache does not show what others have changed.
    const isWatched = isStatus && !this.#deps.cacheIsPartial;
    const live = isWatched && key && writeObserver.needsLive(kind, key)
      ? await client.find(kind, key, { signal })
      : undefined;
    const own = key && this.#beginWrite(kind, key);
    const common = { signal, fieldManager, subresource };
    const send = () =>
      sendWrite(client, kind, (resolved) => write.request(resolved, common));
    try {
      const answer = await send().catch(async (error: unknown) => {
        if (!await write.repair?.(error)) throw error;
        return await send();
      });
      const written = key ?? parseKey(answer.keyText);
      (own ?? this.#beginWrite(kind, written)).succeed(answer.json, {
        sent: sentPart(verb, body),
        base: baseOf(body),
        subresource: isStatus,
      });
      const after = write.learn && await this.#cached(kind, written);
      if (after !== undefined) write.learn?.(answer.object);
      const fight = writeObserver.observe(this.#run, {
        verb,
        subresource,
        kind,
        before,
        after: answer,
        isStatus: isWatched,
        live,
      });
      if (fight !== undefined) {
        this.events.warning(
          "StatusFieldFight",
          `${fight.field} changes after each write: ${
            fight.manager === undefined
              ? "another writer changes"
              : `field manager "${fight.manager}" writes`
          } it, too`,
        );
      }
      if (trigger) this.#run.requestAnother();
      return answer;
    } catch (error) {
      own?.fail();
      const mayLack = isStatus && ApiError.is(error) &&
        (error.isNotFound || error.isForbidden);
      if (mayLack) await this.#checkHasStatus(kind, error);
      throw error;
    }
  }

  /** Throws an explanation if a status was refused as the kind has none. */
  async #checkHasStatus(kind: Kind, cause: ApiError): Promise<void> {
    const served = await this.#deps.client.resources().catch(() => []);
    const resource = served.find((resource) => sameKind(resource, kind));
    if (!resource || resource.subresources.includes("status")) return;
    throw new TypeError(
      `Cannot write the status of ${kind.kind}: the kind has none, so ${
        isBuiltIn(kind)
          ? "write an annotation by patchResource()"
          : "give defineKind a status, or its CustomResourceDefinition subresources: { status: {} }"
      }`,
      { cause },
    );
  }

  /** Reads an object from the caches; a bounded cache may have to fetch it. */
  #cached<T extends KubernetesObject>(
    kind: Kind<T>,
    key: ObjectKey,
  ): Promise<KubernetesObject | undefined> {
    const { sources, primaries } = this.#deps;
    return this.#isPrimaryKind(kind)
      ? primaries.cache.read(key)
      : sources.get(kind, key);
  }

  #beginWrite(kind: Kind, key: ObjectKey): OwnWrite {
    const { sources, primaries } = this.#deps;
    const writes = sources.beginWrites(kind, key);
    if (this.#isPrimaryKind(kind)) {
      const { key: text, objectKey: { name, namespace } } = this.#run;
      const isOwn = key.name === name && key.namespace === namespace;
      writes.push(primaries.beginWrite(isOwn ? text : key) as OwnWrite);
    }
    return allWrites(writes);
  }

  #isPrimaryKind(kind: Kind): boolean {
    return sameKind(kind, this.#deps.kind);
  }

  /** Key that a reconciler names, without a namespace for a cluster-scoped kind. */
  async #keyOf(kind: Kind, named: string | ObjectKey): Promise<ObjectKey> {
    const { namespace } = this.#run.primary.metadata;
    const isName = typeof named === "string";
    const key = checkedKey(kind, isName ? { namespace, name: named } : named);
    const { scope } = await this.#deps.client.resolve(kind);
    return scope === "Cluster" ? { name: key.name } : key;
  }

  /** Object with its namespace, and with the primary as its owner. */
  async #placed<O extends Parameters<typeof placedObject>[1]>(
    kind: Kind,
    object: O,
    owned: boolean | undefined,
  ): Promise<Placed<O>> {
    const { client, kind: primaryKind } = this.#deps;
    const { primary } = this.#run;
    const resolved = await client.resolve(kind);
    return placedObject(resolved, object, { primary, primaryKind, owned });
  }

  /**
   * Removes the reference to an earlier object with the name of the primary, as
   * there is one controlling owner, or the fields that an apply empties.
   *
   * @returns Whether there was one.
   * @throws {Error} If another controller owns the object.
   */
  async #repair<T extends KubernetesObject>(
    kind: Kind<T>,
    key: ObjectKey,
    refused: Placed<object> & { readonly error: ApiError },
  ): Promise<boolean> {
    const { client, ownership } = this.#deps;
    const stored = await client.find(kind, key, { signal: this.signal });
    const { emptiedFields } = await loadModule(import("./status_leftovers.ts"));
    const patch = stored && (refused.relation === "reference" &&
        ownership.checkOwner(kind, stored, this.#run.primary) ||
      emptiedFields(stored, this.fieldManager, refused));
    if (patch === undefined) return false;
    await this.patch(kind, key, patch, { type: "json" });
    return true;
  }

  /** Checks a status against the schema of its kind. */
  #checkStatus(
    kind: Kind,
    body: object,
    before: KubernetesObject | undefined,
  ): void | Promise<void> {
    const { status: patch } = body as { status?: unknown };
    if (!isJsonObject(patch)) return;
    const whole = this.#isPrimaryKind(kind) &&
      !this.#deps.cacheIsPartial;
    const current = partOf(before, "status") ?? (whole ? {} : undefined);
    return checkStatusPatch(kind, patch, current as object | undefined);
  }
}

/** Checks the key of an object that a reconciler names, and returns it. */
function checkedKey(kind: Kind, key: ObjectKey): ObjectKey {
  const { name, namespace } = Object(key) as Partial<ObjectKey>;
  const isKey = typeof name === "string" &&
    (namespace === undefined || typeof namespace === "string");
  if (isKey) return key;
  throw new TypeError(
    `Cannot find ${kind.kind} objects: name and namespace must be texts, as in metadata: received ${
      typeText(typeof name === "string" ? namespace : name ?? key)
    }`,
  );
}

function isSource<P extends KubernetesObject>(
  which: Kind | EventSource<P>,
): which is EventSource<P> {
  return typeof which === "object" && which !== null && "start" in which;
}

/**
 * JSON Patch with the changes that a function makes, for an object that nobody has
 * changed; undefined if it changes nothing that a write can set.
 *
 * @throws {TypeError} If the function returns a promise or another object, or a
 * value is no JSON.
 * @throws {RangeError} If a changed part has an integer beyond 2^53 − 1.
 */
function modification<T extends KubernetesObject>(
  kind: Kind<T>,
  object: T,
  { change, subresource }: {
    readonly change: (object: T) => void;
    readonly subresource: "status" | undefined;
  },
): readonly JsonPatchOperation[] | undefined {
  const copy = mutableCopy(object);
  const result: unknown = change(copy);
  const isAsync = isPromise(result);
  if (isAsync) result.then(undefined, () => {}); // Reported below.
  const { metadata } = Object(result) as Partial<KubernetesObject>;
  const isOther = metadata?.uid === object.metadata.uid && result !== copy;
  if (isAsync || isOther) {
    throw new TypeError(
      `Cannot modify ${kind.kind}: the function must change the object that it gets, without await, and return nothing: received ${
        isAsync ? "a promise" : "another object"
      }`,
    );
  }
  const action = `modify ${kindText(kind)} ${keyText(keyOf(object))}`;
  const changed = JSON.parse(encodeJson(copy, action)) as T;
  if (!replacementChanges(object, changed, subresource)) return undefined;
  const patch = diffJsonPatch(object, changed);
  checkIntegers(action, valuesOf(patch));
  const path = "/metadata/resourceVersion";
  const value = object.metadata.resourceVersion;
  // The server reports a conflict if it has another one.
  return [...patch, { op: "replace", path, value }];
}

/** Version of the object that a write is for; undefined if it is for any. */
function baseOf(body: object): string | undefined {
  if (!Array.isArray(body)) {
    return (body as Partial<KubernetesObject>).metadata?.resourceVersion;
  }
  const guard = (body as readonly JsonPatchOperation[]).find(({ op, path }) =>
    path === "/metadata/resourceVersion" && (op === "replace" || op === "test")
  );
  return guard !== undefined && "value" in guard
    ? String(guard.value)
    : undefined;
}

/** Fields that a write sends, if it sends only a part of the object. */
function sentPart(verb: string, body: unknown): unknown {
  const isPart = verb === "apply" || (verb === "patch" && !Array.isArray(body));
  return isPart ? body : undefined;
}

/** Loader of the memory of applies, whose hash functions are imported on first use. */
export function lazyApplyMemory(): () => MaybePromise<ApplyMemory> {
  let memory: ApplyMemory | undefined;
  const load = async () => {
    const { ApplyMemory } = await loadModule(import("./apply_memory.ts"));
    return memory ??= new ApplyMemory();
  };
  return () => memory ?? load();
}

/** Fields of every log line about an object. */
export function logFields(
  object: KubernetesObject,
  kind: Kind,
): Record<string, unknown> {
  const { name, namespace, uid, resourceVersion, generation } = object.metadata;
  return {
    kind: kind.kind,
    ...(namespace !== undefined && { namespace }),
    name,
    uid,
    resourceVersion,
    ...(generation !== undefined && { generation }),
  };
}
