import { loadModule } from "../../clock.ts";
import { ApiError } from "../../api/api_error.ts";
import { apiVersionOf, type Kind, kindText } from "../../api/kind.ts";
import type {
  ApplyObject,
  KubernetesObject,
  NewObject,
  ObjectMeta,
  WrittenAs,
} from "../../api/object.ts";
import { keyOf, keyText, type ObjectKey } from "../../api/object_key.ts";
import {
  checkOption,
  checkOptions,
  type OptionRules,
} from "../../api/options.ts";
import {
  applyRequest,
  checkObject,
  createRequest,
  keyFor,
  patchRequest,
  replaceRequest,
} from "../../client/request.ts";
import { retryOnConflict } from "../../client/retry_on_conflict.ts";
import { prunedField } from "../../json/prune.ts";
import type { JsonPatchOperation } from "../../patch/json_patch.ts";
import type { ApplyMemory } from "./apply_memory.ts";
import type { Context, ContextWriteOptions } from "../context.ts";
import { checkFinalizer, hasFinalizer, setFinalizer } from "../finalizer.ts";
import type { MaybePromise } from "../reconciler.ts";
import { WatchingSource } from "../watch/watch_source.ts";
import { modification } from "./modification.ts";
import { type Placed, placedObject } from "./owner.ts";
import type { Run } from "./run.ts";
import type { RunDeps } from "./run_deps.ts";
import { checkedKey } from "./run_reads.ts";
import {
  jsonPatchChanges,
  mergePatchChanges,
  replacementChanges,
} from "./write_match.ts";
import { WriteSender, type Written } from "./write_sender.ts";

/** Options of `ctx.patch`. */
type PatchWriteOptions = NonNullable<Parameters<Context<never>["patch"]>[3]>;
/** Options of `ctx.delete`. */
type DeleteWriteOptions = NonNullable<Parameters<Context<never>["delete"]>[2]>;

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
/** Options of an apply that takes no fields over. */
export const FINALIZER_ONLY: ContextWriteOptions = Object.freeze({
  match: false,
});

const DELETE_RULES: OptionRules<DeleteWriteOptions> = {
  signal: "signal?",
  propagationPolicy: ["Background", "Foreground", "Orphan", undefined],
  uid: "name?",
  live: "boolean?",
};

/** What a run writes: the verbs of its context, and what its result needs. */
export class RunWrites<P extends KubernetesObject> {
  readonly #run: Run<P>;
  readonly #deps: RunDeps<P>;
  readonly #sender: WriteSender<P>;

  constructor(run: Run<P>, deps: RunDeps<P>) {
    this.#run = run;
    this.#deps = deps;
    this.#sender = new WriteSender(run, deps);
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
    if (options !== FINALIZER_ONLY) await this.#takeOver(kind, key, options);
    return (await this.#sender.send(kind, key, {
      verb: "apply",
      body: intent,
      options,
      // No other controller may own the object. The server checks owner
      // references, but not annotations.
      admit: async (cached) => {
        if (placed.relation === "none") return;
        const stored = cached ??
          (placed.relation === "annotations"
            ? await client.find(kind, key, { signal: this.#run.signal })
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

  /**
   * Makes the fields that an object has of the managers of the option `takeOver`
   * those of this controller.
   */
  async #takeOver<T extends KubernetesObject>(
    kind: Kind<T>,
    key: ObjectKey,
    { subresource, signal = this.#run.signal }: ContextWriteOptions,
  ): Promise<void> {
    const { client, fieldManager, log, sources, takeOver } = this.#deps;
    const managers = [
      ...takeOver,
      ...sources.ofKind(kind).flatMap((source) =>
        source instanceof WatchingSource ? source.takeOver : []
      ),
    ];
    if (managers.length === 0) return;
    const { managersLeft, takeOverPatch } = await loadModule(
      import("./take_over.ts"),
    );
    const apiVersion = apiVersionOf(kind);
    const wanted = { managers, fieldManager, apiVersion, subresource };
    const known = await this.#sender.cached(kind, key);
    if (known && managersLeft(known, wanted)?.length === 0) return;
    const read = () => client.find(kind, key, { signal });
    const first = await read();
    if (first === undefined) return;
    await retryOnConflict(first, {
      read,
      send: async (latest) => {
        const patch = takeOverPatch(latest, wanted);
        if (patch === undefined) return;
        // The server takes managed fields from the object only, also those of a status.
        const sent = { signal, type: "json", match: false } as const;
        await this.sendPatch(kind, key, patch, sent);
        log.info("Took over the fields of other managers", {
          object: this.#run.key,
          target: `${kindText(kind)} ${keyText(key)}`,
          managers: managersLeft(latest, wanted),
          ...subresource !== undefined && { subresource },
        });
      },
    });
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
    const isPrimary = this.#sender.isPrimaryKind(kind) &&
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
    return (await this.#sender.send<T>(kind, key, {
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
    return this.#sender.send(kind, target, {
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
    const isPrimary = this.#sender.isPrimaryKind(kind);
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
    return (await this.#sender.send(kind, keyOf(object), {
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
            this.#sender.beginWrite(kind, target).succeed(latest, { base });
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
    const { signal = this.#run.signal, propagationPolicy } = options;
    const target = await this.#keyOf(kind, key);
    let { uid, resourceVersion }: Partial<ObjectMeta> = Object(key);
    if (options.live) {
      const stored = await this.#deps.client.find(kind, target, { signal });
      if (stored === undefined) return;
      uid ??= stored.metadata.uid;
      resourceVersion ??= stored.metadata.resourceVersion;
    }
    uid = options.uid ?? uid;
    try {
      await this.#deps.client.delete(kind, target, {
        signal,
        propagationPolicy: propagationPolicy ?? "Background",
        ...(uid || resourceVersion) && {
          preconditions: { uid, resourceVersion },
        },
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
    const { client, kind: primaryKind, ownership } = this.#deps;
    const { primary } = this.#run;
    const resolved = await client.resolve(kind);
    return placedObject(resolved, object, {
      primary,
      primaryKind,
      owned: ownership.wanted(owned),
    });
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
    const stored = await client.find(kind, key, { signal: this.#run.signal });
    const { emptiedFields } = await loadModule(import("./status_leftovers.ts"));
    const patch = stored && (refused.relation === "reference" &&
        ownership.checkOwner(kind, stored, this.#run.primary) ||
      emptiedFields(stored, this.#deps.fieldManager, refused));
    if (patch === undefined) return false;
    await this.patch(kind, key, patch, { type: "json" });
    return true;
  }
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
