import { ApiError } from "../api/api_error.ts";
import {
  apiVersionOf,
  type Kind,
  kindText,
  type ResolvedKind,
} from "../api/kind.ts";
import type { ApplyObject, KubernetesObject } from "../api/object.ts";
import { keyOf, keyText, type ObjectKey } from "../api/object_key.ts";
import type { OwnWrite } from "../cache/shared_informer.ts";
import { diffJsonPatch, type JsonPatchOperation } from "../patch/json_patch.ts";
import { applyMergePatch } from "../patch/merge_patch.ts";
import {
  addFinalizerPatch,
  changeFinalizers,
  hasFinalizer,
  type ObjectAccess,
  removeFinalizerPatch,
} from "./finalizer.ts";
import { partSent } from "./part_sent.ts";
import type { PatchBody, ResourceClient } from "./resource_client.ts";
import type { RunOutcome, WriteMethod } from "./result.ts";
import type { Run } from "./run.ts";

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
  /** Told of every write that the server stored. */
  readonly onWrite: (run: Run<P>, write: StoredWrite) => void;
}

/** A write as it is told when the server has stored it. */
export interface StoredWrite {
  /** What was done: `apply`, `patch` … */
  readonly verb: string;
  readonly kind: Kind;
  /** What was sent. */
  readonly body: unknown;
  /** The object before, as far as a cache had it. */
  readonly before: KubernetesObject | undefined;
  /** The object as the server answered it. */
  readonly after: KubernetesObject;
}

/** What a write goes along with. */
interface WriteOptions<P extends KubernetesObject> {
  readonly run: Run<P>;
  readonly signal: AbortSignal;
  readonly subresource: boolean;
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
  async addFinalizer(run: Run<P>): Promise<P | undefined> {
    const { primary, signal } = run;
    const { serverSideApply, finalizer } = this.#options;
    if (finalizer === undefined) return primary;
    if (serverSideApply) {
      return await this.#apply(primary, {}, {
        run,
        signal,
        subresource: false,
      });
    }
    return await changeFinalizers(
      primary,
      this.#access(primary, { run, signal, subresource: false }),
      (object) =>
        hasFinalizer(object, finalizer)
          ? undefined
          : addFinalizerPatch(object, finalizer),
    );
  }

  /** Removes the finalizer of the controller, if the object still has it. */
  async removeFinalizer(run: Run<P>): Promise<void> {
    const { primary, signal } = run;
    const { finalizer } = this.#options;
    if (finalizer === undefined) return;
    await changeFinalizers(
      primary,
      this.#access(primary, { run, signal, subresource: false }),
      (object) =>
        hasFinalizer(object, finalizer)
          ? removeFinalizerPatch(object, finalizer)
          : undefined,
    );
  }

  /**
   * Writes fields of the object and then its status, as far as asked for.
   *
   * @param primary The object as the run has it.
   * @param outcome What is asked for.
   * @param options Which run asks, and what ends the requests.
   */
  async write(
    primary: P,
    outcome: RunOutcome,
    options: Omit<WriteOptions<P>, "subresource">,
  ): Promise<void> {
    const { serverSideApply } = this.#options;
    const method = outcome.method ?? (serverSideApply ? "apply" : "merge");
    let object = primary;
    if (outcome.resource !== undefined) {
      const { status: _, ...fields } = outcome.resource as Body;
      const write = { ...options, subresource: false };
      object = await this.#send(method, { primary: object, fields }, write);
    }
    if (outcome.status !== undefined) {
      const fields = { status: outcome.status };
      const write = { ...options, subresource: true };
      await this.#send(method, { primary: object, fields }, write);
    }
  }

  async #send(
    method: WriteMethod,
    { primary, fields }: { readonly primary: P; readonly fields: Body },
    options: WriteOptions<P>,
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
    options: WriteOptions<P>,
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
    const { signal } = options;
    return await this.#own(
      primary,
      { ...options, verb: "apply", body: object },
      {
        send: () =>
          writer.apply(kind, object, { signal, fieldManager, force: true }),
      },
    );
  }

  async #patch(
    primary: P,
    body: Body | readonly JsonPatchOperation[],
    options: WriteOptions<P> & { readonly type: "merge" | "json" },
  ): Promise<P> {
    const { client, kind, fieldManager } = this.#options;
    const { type, signal } = options;
    const writer = options.subresource ? client.status : client;
    return await this.#own(primary, { ...options, verb: "patch", body }, {
      send: () =>
        writer.patch(kind, keyOf(primary), body as PatchBody<P>, {
          type,
          signal,
          fieldManager,
        }),
    });
  }

  async #replace(
    object: P,
    options: WriteOptions<P>,
  ): Promise<P> {
    const { client, kind, fieldManager } = this.#options;
    const { signal } = options;
    const writer = options.subresource ? client.status : client;
    const base = object.metadata.resourceVersion;
    return await this.#own(
      object,
      { ...options, verb: "update", body: object },
      {
        base,
        send: () => writer.replace(kind, object, { signal, fieldManager }),
      },
    );
  }

  /** Does a write with the cache told before and after. */
  async #own(
    before: P,
    write: WriteOptions<P> & { readonly verb: string; readonly body: unknown },
    request: {
      readonly send: () => Promise<P>;
      readonly base?: string | undefined;
    },
  ): Promise<P> {
    const { beginWrite, onWrite, kind } = this.#options;
    const { run, verb, body, subresource } = write;
    const own = beginWrite(keyOf(before));
    try {
      const after = await request.send();
      const sent = partSent(verb, body);
      own.succeed(after, { base: request.base, sent, subresource });
      const action = subresource ? `${verb} status of` : verb;
      onWrite(run, { verb: action, kind, body, before, after });
      return after;
    } catch (error) {
      own.fail();
      throw error;
    }
  }

  #access(primary: P, options: WriteOptions<P>): ObjectAccess<P> {
    const { client, kind } = this.#options;
    const { signal } = options;
    return {
      kind,
      read: () => client.find(kind, keyOf(primary), { signal }),
      patch: (patch) =>
        this.#patch(primary, patch, { ...options, type: "json" }),
    };
  }
}
