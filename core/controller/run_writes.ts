import { ApiError } from "../api/api_error.ts";
import { type Kind, kindText, sameKind } from "../api/kind.ts";
import type {
  ApplyObject,
  KubernetesObject,
  NewObject,
} from "../api/object.ts";
import { keyOf, keyText, type ObjectKey } from "../api/object_key.ts";
import { checkOptions } from "../api/options.ts";
import type { OwnWrite } from "../cache/informer/shared_informer.ts";
import { checkStatusPatch } from "../crd/check_status.ts";
import type { JsonPatchOperation } from "../patch/json_patch.ts";
import { isJsonObject } from "../patch/json_value.ts";
import {
  CONTEXT_RULES,
  type ContextApplyOptions,
  type ContextCreateOptions,
  type ContextDeleteOptions,
  type ContextMatchOptions,
  type ContextPatchOptions,
  type ContextWrites,
  type OwnedOption,
} from "./context_writes.ts";
import {
  addFinalizerPatch,
  changeFinalizers,
  checkFinalizer,
  hasFinalizer,
  removeFinalizerPatch,
} from "./finalizer.ts";
import { mutableCopy } from "./mutable_copy.ts";
import { placedObject } from "./owner.ts";
import { partSent } from "./part_sent.ts";
import type { PatchBody, SubresourceWriter } from "./resource_client.ts";
import type { Run } from "./run.ts";
import type { RunEnvironment } from "./run_environment.ts";
import { scopedKey } from "./scoped_key.ts";
import { allWrites } from "./source_group.ts";
import {
  jsonPatchChanges,
  mergePatchChanges,
  prunedField,
  replacementChanges,
} from "./write_match.ts";

/** How often a change is tried again when others are faster. */
const ATTEMPTS = 10;

/** One write as {@linkcode RunWrites} does it. */
interface Write<T extends KubernetesObject> {
  readonly verb: "apply" | "create" | "patch" | "update";
  readonly body: object;
  readonly options: ContextMatchOptions;
  /** Whether it would change the object that a cache has. */
  readonly changes: (cached: KubernetesObject) => boolean;
  readonly send: (signal: AbortSignal) => Promise<T>;
  /** Told of the answer, once it is in the cache. */
  readonly learn?: (cached: KubernetesObject, stored: T) => void;
}

/** {@linkcode ContextWrites} of one run. */
export class RunWrites<P extends KubernetesObject> implements ContextWrites {
  readonly #run: Run<P>;
  readonly #environment: RunEnvironment<P>;

  /**
   * @param run The run.
   * @param environment What all runs share.
   */
  constructor(run: Run<P>, environment: RunEnvironment<P>) {
    this.#run = run;
    this.#environment = environment;
  }

  async apply<T extends KubernetesObject>(
    kind: Kind<T>,
    object: ApplyObject<T>,
    options: ContextApplyOptions = {},
  ): Promise<T> {
    checkOptions(options, CONTEXT_RULES.apply, "ctx.apply()");
    const { fieldManager, applied } = this.#environment;
    const subresource = options.subresource !== undefined;
    const { owned = subresource ? false : undefined } = options;
    const intent = await this.intent(kind, object, { owned });
    const key = keyOf(intent as KubernetesObject);
    const id = `${kindText(kind)} ${keyText(key)}`;
    const memory = await applied();
    return await this.#write(kind, key, {
      verb: "apply",
      body: intent,
      options,
      changes: (cached) =>
        !memory.isNeedless({ id, intent, subresource, cached }),
      send: (signal) =>
        this.#writer(options).apply(kind, intent, {
          signal,
          fieldManager,
          force: true,
        }),
      learn: (cached, stored) =>
        memory.learn({ id, intent, subresource, cached }, stored),
    });
  }

  intent<T extends KubernetesObject>(
    kind: Kind<T>,
    object: ApplyObject<T>,
    options: OwnedOption = {},
  ): Promise<ApplyObject<T>> {
    checkOptions(options, CONTEXT_RULES.intent, "ctx.intent()");
    return this.#placed(kind, object, options);
  }

  async create<T extends KubernetesObject>(
    kind: Kind<T>,
    object: NewObject<T>,
    options: ContextCreateOptions = {},
  ): Promise<T> {
    checkOptions(options, CONTEXT_RULES.create, "ctx.create()");
    const { client, fieldManager } = this.#environment;
    const intent = await this.#placed(kind, object, options);
    const { name } = intent.metadata;
    const key = name === undefined
      ? undefined
      : keyOf(intent as KubernetesObject);
    return await this.#write(kind, key, {
      verb: "create",
      body: intent,
      options,
      changes: () => true,
      send: (signal) => client.create(kind, intent, { signal, fieldManager }),
    });
  }

  async patch<T extends KubernetesObject>(
    kind: Kind<T>,
    key: string | ObjectKey,
    body: unknown,
    options: ContextPatchOptions = {},
  ): Promise<T> {
    checkOptions(options, CONTEXT_RULES.patch, "ctx.patch()");
    const { fieldManager } = this.#environment;
    const { type = "merge" } = options;
    const target = await this.#keyOf(kind, key);
    return await this.#write(kind, target, {
      verb: "patch",
      body: body as object,
      options,
      changes(cached) {
        if (type === "strategic") return true;
        return type === "merge"
          ? mergePatchChanges(cached, body)
          : jsonPatchChanges(cached, body as readonly JsonPatchOperation[]);
      },
      send: (signal) =>
        this.#writer(options).patch(kind, target, body as PatchBody<T>, {
          type,
          signal,
          fieldManager,
        }),
    });
  }

  async replace<T extends KubernetesObject>(
    kind: Kind<T>,
    object: T,
    options: ContextMatchOptions = {},
  ): Promise<T> {
    checkOptions(options, CONTEXT_RULES.replace, "ctx.replace()");
    const { fieldManager } = this.#environment;
    const { resourceVersion } = object.metadata;
    const what = `Cannot replace ${kindText(kind)} ${keyText(keyOf(object))}`;
    if (!resourceVersion) {
      throw new TypeError(
        `${what}: it needs the metadata.resourceVersion that it was read with, so that no change of others is lost: received none`,
      );
    }
    const part = options.subresource === undefined
      ? object
      : { status: (object as { status?: unknown }).status };
    const pruned = prunedField(part);
    if (pruned !== undefined) {
      throw new TypeError(
        `${what}: it comes from a cache that leaves out a field, which would be lost: use apply, patch or modify: received an object without ${pruned}`,
      );
    }
    return await this.#write(kind, keyOf(object), {
      verb: "update",
      body: object,
      options,
      changes: (cached) =>
        cached.metadata.resourceVersion !== resourceVersion ||
        replacementChanges(cached, object, options.subresource),
      send: (signal) =>
        this.#writer(options).replace(kind, object, { signal, fieldManager }),
    });
  }

  async modify<T extends KubernetesObject>(
    kind: Kind<T>,
    key: string | ObjectKey,
    change: (object: T) => void,
    options: ContextMatchOptions = {},
  ): Promise<T | undefined> {
    checkOptions(options, CONTEXT_RULES.replace, "ctx.modify()");
    const { client } = this.#environment;
    const { signal = this.#run.signal } = options;
    const target = await this.#keyOf(kind, key);
    for (let attempt = 1;; attempt++) {
      const read = await client.find(kind, target, { signal });
      if (read === undefined) return undefined;
      const changed = mutableCopy(read);
      change(changed);
      if (!replacementChanges(read, changed, options.subresource)) return read;
      try {
        return await this.replace(kind, changed, options);
      } catch (error) {
        if (!ApiError.is(error)) throw error;
        if (error.isNotFound) return undefined;
        if (!error.isConflict || attempt === ATTEMPTS) throw error;
      }
    }
  }

  async delete<T extends KubernetesObject>(
    kind: Kind<T>,
    key: string | ObjectKey,
    options: ContextDeleteOptions = {},
  ): Promise<void> {
    checkOptions(options, CONTEXT_RULES.delete, "ctx.delete()");
    this.#run.throwIfAborted();
    const { signal = this.#run.signal, propagationPolicy, uid } = options;
    const target = await this.#keyOf(kind, key);
    try {
      await this.#environment.client.delete(kind, target, {
        signal,
        propagationPolicy: propagationPolicy ?? "Background",
        ...(uid !== undefined && { preconditions: { uid } }),
      });
      this.#run.wrote(`delete ${kindText(kind)} ${keyText(target)}`);
    } catch (error) {
      if (!ApiError.is(error) || !error.isNotFound) throw error;
    }
  }

  async addFinalizer(
    finalizer: string = this.#environment.finalizer,
  ): Promise<void> {
    checkFinalizer(finalizer);
    await this.changeFinalizers((object) =>
      hasFinalizer(object, finalizer)
        ? undefined
        : addFinalizerPatch(object, finalizer)
    );
  }

  async removeFinalizer(
    finalizer: string = this.#environment.finalizer,
  ): Promise<void> {
    await this.changeFinalizers((object) =>
      hasFinalizer(object, finalizer)
        ? removeFinalizerPatch(object, finalizer)
        : undefined
    );
  }

  /**
   * Changes the finalizers of the primary, whatever others change meanwhile.
   *
   * @param change Gives the patch, or undefined if nothing is left to do.
   * @returns The primary as it is now; undefined if it is gone.
   */
  async changeFinalizers(
    change: (object: P) => readonly JsonPatchOperation[] | undefined,
  ): Promise<P | undefined> {
    const { client, kind, primaries } = this.#environment;
    const { key, objectKey, primary, signal } = this.#run;
    const current = await primaries.read(key);
    const isSame = current?.metadata.uid === primary.metadata.uid;
    return await changeFinalizers(isSame ? current as P : primary, {
      kind,
      read: () => client.find(kind, objectKey, { signal }),
      patch: (patch) =>
        this.patch(kind, objectKey, patch, { type: "json", match: false }),
    }, change);
  }

  /** Does a write, unless it is needless, with the caches told of it. */
  async #write<T extends KubernetesObject>(
    kind: Kind<T>,
    key: ObjectKey | undefined,
    write: Write<T>,
  ): Promise<T> {
    const { trigger = false, match = true, subresource } = write.options;
    const { signal } = write.options;
    if (signal === undefined) this.#run.throwIfAborted();
    const { verb, body } = write;
    const before = key && await this.#cached(kind, key);
    if (match && before !== undefined && !write.changes(before)) {
      return before as T;
    }
    if (subresource !== undefined) await this.#checkStatus(kind, body, before);
    const own = key && this.#beginWrite(kind, key);
    try {
      const object = await write.send(signal ?? this.#run.signal);
      (own ?? this.#beginWrite(kind, keyOf(object))).succeed(object, {
        sent: partSent(verb, body),
        base: verb === "update"
          ? (body as KubernetesObject).metadata.resourceVersion
          : undefined,
        subresource: subresource !== undefined,
      });
      const after = write.learn && await this.#cached(kind, keyOf(object));
      if (after !== undefined) write.learn?.(after, object);
      const action = subresource ? `${verb} ${subresource} of` : verb;
      const stored = { verb: action, body, kind, before, after: object };
      this.#environment.onWrite(this.#run, stored);
      if (trigger) this.#run.requestAnother();
      return object;
    } catch (error) {
      own?.fail();
      throw error;
    }
  }

  #writer({ subresource }: ContextMatchOptions): SubresourceWriter {
    const { client } = this.#environment;
    return subresource === undefined ? client : client.status;
  }

  /** The object as a cache has it; one that is bounded may have to fetch it. */
  async #cached<T extends KubernetesObject>(
    kind: Kind<T>,
    key: ObjectKey,
  ): Promise<KubernetesObject | undefined> {
    const { sources, primaries } = this.#environment;
    return this.#isPrimaryKind(kind)
      ? await primaries.read(key)
      : await sources.get(kind, key);
  }

  #beginWrite(kind: Kind, key: ObjectKey): OwnWrite {
    const { sources, primaries } = this.#environment;
    const write = sources.beginWrite(kind, key);
    if (!this.#isPrimaryKind(kind)) return write;
    return allWrites([write, primaries.beginWrite(key) as OwnWrite]);
  }

  #isPrimaryKind(kind: Kind): boolean {
    return sameKind(kind, this.#environment.kind);
  }

  #keyOf(kind: Kind, key: string | ObjectKey): Promise<ObjectKey> {
    const { namespace } = this.#run.primary.metadata;
    const named = typeof key === "string" ? { namespace, name: key } : key;
    return scopedKey(this.#environment.client, kind, named);
  }

  /** The object with its namespace, and the primary as its owner. */
  async #placed<O extends Parameters<typeof placedObject>[1]>(
    kind: Kind,
    object: O,
    { owned }: OwnedOption,
  ): Promise<O> {
    const { client, kind: primaryKind } = this.#environment;
    const { primary } = this.#run;
    const resolved = await client.resolve(kind);
    return placedObject(resolved, object, { primary, primaryKind, owned });
  }

  /** Refuses a status that does not fit, before the server would. */
  async #checkStatus(
    kind: Kind,
    body: object,
    before: KubernetesObject | undefined,
  ): Promise<void> {
    const { status: patch } = body as { status?: unknown };
    if (!isJsonObject(patch)) return;
    const whole = this.#isPrimaryKind(kind) &&
      !this.#environment.cacheIsPartial;
    const current = Object.entries(before ?? {})
      .find(([name]) => name === "status")?.[1] ?? (whole ? {} : undefined);
    await checkStatusPatch(kind, patch, current as object | undefined);
  }
}
