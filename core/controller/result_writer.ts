import { ApiError } from "../api/api_error.ts";
import { apiVersionOf, kindText, type ResolvedKind } from "../api/kind.ts";
import type { ApplyObject, KubernetesObject } from "../api/object.ts";
import { keyOf, keyText, type ObjectKey } from "../api/object_key.ts";
import type { OwnWrite, OwnWriteResult } from "../cache/shared_informer.ts";
import { diffJsonPatch, type JsonPatchOperation } from "../patch/json_patch.ts";
import { applyMergePatch } from "../patch/merge_patch.ts";
import {
  addFinalizerPatch,
  changeFinalizers,
  hasFinalizer,
  type ObjectAccess,
  removeFinalizerPatch,
} from "./finalizer.ts";
import type { PatchBody, ResourceClient } from "./resource_client.ts";
import type { RunOutcome, WriteMethod } from "./result.ts";

/** What a {@linkcode ResultWriter} works with. */
export interface ResultWriterOptions<P extends KubernetesObject> {
  readonly client: ResourceClient;
  readonly kind: ResolvedKind<P>;
  readonly fieldManager: string;
  readonly serverSideApply: boolean;
  /** The finalizer of the controller; undefined when it uses none. */
  readonly finalizer: string | undefined;
  /** Whether the cache leaves out more than managed fields. */
  readonly cacheIsPartial: boolean;
  /** Tells the cache that a primary is about to be written. */
  readonly beginWrite: (key: ObjectKey) => OwnWrite<P>;
}

/** A body that is only part of an object. */
type Body = Record<string, unknown>;

/**
 * Writes what runs ask for to their primary: finalizer, fields and status.
 *
 * Guarantees
 * - Each write goes to the incarnation that the run was about: the uid is sent
 *   along, so that an object that was deleted meanwhile is not made again, and
 *   one that was made anew is not touched.
 * - The answer is in the cache before the run ends.
 */
export class ResultWriter<P extends KubernetesObject> {
  readonly #options: ResultWriterOptions<P>;

  /** @param options What it works with. */
  constructor(options: ResultWriterOptions<P>) {
    this.#options = options;
  }

  /**
   * Adds the finalizer of the controller.
   *
   * @returns The object as it is now; undefined if it is gone.
   */
  async addFinalizer(primary: P, signal: AbortSignal): Promise<P | undefined> {
    const { serverSideApply, finalizer } = this.#options;
    if (finalizer === undefined) return primary;
    if (serverSideApply) {
      return await this.#apply(primary, {}, { signal, subresource: false });
    }
    return await changeFinalizers(
      primary,
      this.#access(primary, signal),
      (object) =>
        hasFinalizer(object, finalizer)
          ? undefined
          : addFinalizerPatch(object, finalizer),
    );
  }

  /** Removes the finalizer of the controller, if the object still has it. */
  async removeFinalizer(primary: P, signal?: AbortSignal): Promise<void> {
    const { finalizer } = this.#options;
    if (finalizer === undefined) return;
    await changeFinalizers(
      primary,
      this.#access(primary, signal),
      (object) =>
        hasFinalizer(object, finalizer)
          ? removeFinalizerPatch(object, finalizer)
          : undefined,
    );
  }

  /** Writes fields of the object and then its status, as far as asked for. */
  async write(
    primary: P,
    outcome: RunOutcome,
    signal: AbortSignal,
  ): Promise<void> {
    const { serverSideApply } = this.#options;
    const method = outcome.method ?? (serverSideApply ? "apply" : "merge");
    let object = primary;
    if (outcome.resource !== undefined) {
      const { status: _, ...fields } = outcome.resource as Body;
      const options = { signal, subresource: false };
      object = await this.#send(method, object, fields, options);
    }
    if (outcome.status !== undefined) {
      const fields = { status: outcome.status };
      const options = { signal, subresource: true };
      await this.#send(method, object, fields, options);
    }
  }

  async #send(
    method: WriteMethod,
    primary: P,
    fields: Body,
    options: { readonly signal: AbortSignal; readonly subresource: boolean },
  ): Promise<P> {
    const { uid } = primary.metadata;
    switch (method) {
      case "apply":
        return await this.#apply(primary, fields, options);
      case "merge": {
        const metadata = { ...fields.metadata as Body, uid };
        return await this.#patch(primary, { ...fields, metadata } as Body, {
          ...options,
          type: "merge",
        });
      }
      case "json": {
        const base = await this.#base(primary, options.signal);
        const patch: JsonPatchOperation[] = [
          { op: "test", path: "/metadata/uid", value: uid },
          ...diffJsonPatch(base, applyMergePatch(base, fields)),
        ];
        return await this.#patch(primary, patch, { ...options, type: "json" });
      }
      case "replace": {
        const base = await this.#base(primary, options.signal);
        const object = applyMergePatch(base, fields) as P;
        return await this.#replace(object, options);
      }
    }
  }

  /** The object as the reconciler was given it, in full. */
  async #base(primary: P, signal: AbortSignal): Promise<P> {
    const { client, kind, cacheIsPartial } = this.#options;
    if (!cacheIsPartial) return primary;
    const key = keyOf(primary);
    const full = await client.find(kind, key, { signal });
    const { resourceVersion } = primary.metadata;
    if (full?.metadata.resourceVersion === resourceVersion) return full as P;
    throw new ApiError(
      `Cannot write ${kindText(kind)} ${
        keyText(key)
      }: it was changed by others since the run began: received resourceVersion ${
        full?.metadata.resourceVersion ?? "none"
      } in place of ${resourceVersion}`,
      { status: 409, reason: "Conflict" },
    );
  }

  async #apply(
    primary: P,
    fields: Body,
    options: { readonly signal: AbortSignal; readonly subresource: boolean },
  ): Promise<P> {
    const { client, kind, fieldManager, finalizer } = this.#options;
    const { name, namespace, uid } = primary.metadata;
    const { finalizers = [], ...given } = (fields.metadata ?? {}) as {
      finalizers?: string[];
    };
    const kept = finalizer === undefined || options.subresource
      ? finalizers
      : [...new Set([...finalizers, finalizer])];
    const object = {
      ...fields,
      apiVersion: apiVersionOf(kind),
      kind: kind.kind,
      metadata: {
        ...given,
        name,
        namespace,
        uid,
        ...(kept.length > 0 && { finalizers: kept }),
      },
    } as unknown as ApplyObject<P>;
    const writer = options.subresource ? client.status : client;
    return await this.#own(primary, options, () =>
      writer.apply(kind, object, {
        signal: options.signal,
        fieldManager,
        force: true,
      }));
  }

  async #patch(
    primary: P,
    body: Body | readonly JsonPatchOperation[],
    options: {
      readonly type: "merge" | "json";
      readonly signal?: AbortSignal | undefined;
      readonly subresource: boolean;
    },
  ): Promise<P> {
    const { client, kind, fieldManager } = this.#options;
    const { type, signal } = options;
    const writer = options.subresource ? client.status : client;
    return await this.#own(
      primary,
      options,
      () =>
        writer.patch(kind, keyOf(primary), body as PatchBody<P>, {
          type,
          signal,
          fieldManager,
        }),
    );
  }

  async #replace(
    object: P,
    options: { readonly signal: AbortSignal; readonly subresource: boolean },
  ): Promise<P> {
    const { client, kind, fieldManager } = this.#options;
    const { signal } = options;
    const writer = options.subresource ? client.status : client;
    const base = object.metadata.resourceVersion;
    return await this.#own(
      object,
      { ...options, base },
      () => writer.replace(kind, object, { signal, fieldManager }),
    );
  }

  /** Does a write with the cache told before and after. */
  async #own(
    primary: P,
    { base, subresource }: OwnWriteResult,
    send: () => Promise<P>,
  ): Promise<P> {
    const write = this.#options.beginWrite(keyOf(primary));
    try {
      const object = await send();
      write.succeed(object, { base, subresource });
      return object;
    } catch (error) {
      write.fail();
      throw error;
    }
  }

  #access(primary: P, signal: AbortSignal | undefined): ObjectAccess<P> {
    const { client, kind } = this.#options;
    return {
      kind,
      read: () => client.find(kind, keyOf(primary), { signal }),
      patch: (patch) =>
        this.#patch(primary, patch, {
          type: "json",
          signal,
          subresource: false,
        }),
    };
  }
}
