import { ApiError } from "../api/api_error.ts";
import { apiVersionOf, kindText } from "../api/kind.ts";
import type { Kind } from "../api/kind.ts";
import type { ApplyObject, KubernetesObject } from "../api/object.ts";
import { keyOf, keyText } from "../api/object_key.ts";
import { diffJsonPatch, type JsonPatchOperation } from "../patch/json_patch.ts";
import { applyMergePatch } from "../patch/merge_patch.ts";
import {
  addFinalizerPatch,
  hasFinalizer,
  removeFinalizerPatch,
} from "./finalizer.ts";
import {
  OBSERVED,
  observedGeneration,
  tellsGeneration,
  toldGeneration,
} from "./observed_generation.ts";
import type { RunOutcome, WriteMethod } from "./result.ts";
import type { Run } from "./run.ts";
import type { RunEnvironment } from "./run_environment.ts";
import { RunWrites } from "./run_writes.ts";

/** What a {@linkcode ResultWriter} works with. */
export interface ResultWriterOptions<P extends KubernetesObject> {
  readonly environment: RunEnvironment<P>;
  readonly serverSideApply: boolean;
  /** The finalizer of the controller; undefined when it uses none. */
  readonly finalizer: string | undefined;
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

/** What a result is written for. */
interface WriteOptions {
  /** Ends the requests. */
  readonly signal: AbortSignal;
  /** Whether the run went well, so that its generation counts as observed. */
  readonly succeeded: boolean;
}

/** How fields of a primary are sent. */
interface SendOptions {
  readonly signal: AbortSignal;
  readonly subresource?: "status" | undefined;
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
 * - What the cache shows to be so already is not sent.
 */
export class ResultWriter<P extends KubernetesObject> {
  readonly #options: ResultWriterOptions<P>;
  readonly #tellsGeneration: boolean;

  /** @param options What it works with. */
  constructor(options: ResultWriterOptions<P>) {
    this.#options = options;
    this.#tellsGeneration = tellsGeneration(options.environment.kind);
  }

  /** Whether there is anything to write after a run that went well. */
  hasWork(primary: P, outcome: RunOutcome | void): boolean {
    const { resource, status, observed = true } = outcome ?? {};
    if (resource !== undefined || status !== undefined) return true;
    if (!observed || !this.#tellsGeneration) return false;
    const told = toldGeneration(primary);
    // A cache without the status cannot say what is told already.
    const { cacheIsPartial } = this.#options.environment;
    return told !== primary.metadata.generation &&
      (told !== undefined || !cacheIsPartial);
  }

  /**
   * Adds the finalizer of the controller.
   *
   * @returns The object as it is now; undefined if it is gone.
   */
  async addFinalizer(run: Run<P>): Promise<P | undefined> {
    const { serverSideApply, finalizer } = this.#options;
    const { primary } = run;
    if (finalizer === undefined) return primary;
    const writes = this.#writes(run);
    if (!serverSideApply) {
      return await writes.changeFinalizers((object) =>
        hasFinalizer(object, finalizer)
          ? undefined
          : addFinalizerPatch(object, finalizer)
      );
    }
    const { kind } = this.#options.environment;
    const intent = this.#intent(primary, {}, {});
    return await writes.apply(kind, intent, { owned: false, match: false });
  }

  /** Removes the finalizer of the controller, if the object still has it. */
  async removeFinalizer(run: Run<P>): Promise<void> {
    const { finalizer } = this.#options;
    if (finalizer === undefined) return;
    await this.#writes(run).changeFinalizers((object) =>
      hasFinalizer(object, finalizer)
        ? removeFinalizerPatch(object, finalizer)
        : undefined
    );
  }

  /**
   * Writes fields of the object and then its status, as far as asked for, and
   * the generation that the run has observed.
   *
   * @param run Which run asks.
   * @param primary The object as the run has it.
   * @param outcome What is asked for.
   * @param options What ends the requests.
   */
  async write(
    run: Run<P>,
    { primary, outcome }: {
      readonly primary: P;
      readonly outcome: RunOutcome | void;
    },
    { signal, succeeded }: WriteOptions,
  ): Promise<void> {
    const { serverSideApply } = this.#options;
    const { resource, status, observed = true, method } = outcome ?? {};
    const by = method ?? (serverSideApply ? "apply" : "merge");
    const writes = this.#writes(run);
    let object = primary;
    if (resource !== undefined) {
      const { status: _, ...fields } = resource as Body;
      object = await this.#send(writes, { by, primary, fields }, { signal });
    }
    const generation = succeeded && observed && this.#tellsGeneration
      ? observedGeneration(primary, object, resource)
      : undefined;
    if (
      status === undefined && (generation === undefined || run.hasNewEvent())
    ) {
      // The run that follows at once observes a newer one.
      return;
    }
    const told = generation === undefined ? {} : { [OBSERVED]: generation };
    await this.#send(writes, {
      // An apply of this field alone would give up the rest of the status.
      by: status === undefined ? "merge" : by,
      primary: object,
      fields: { status: { ...told, ...status } },
    }, { signal, subresource: "status" });
  }

  async #send(
    writes: RunWrites<P>,
    { by, primary, fields }: {
      readonly by: WriteMethod;
      readonly primary: P;
      readonly fields: Body;
    },
    options: SendOptions,
  ): Promise<P> {
    const { kind } = this.#options.environment;
    const { uid } = primary.metadata;
    const key = keyOf(primary);
    switch (by) {
      case "apply": {
        const intent = this.#intent(primary, fields, options);
        return await writes.apply(kind, intent, { ...options, owned: false });
      }
      case "merge": {
        const metadata = { ...fields.metadata as Body, uid };
        return await writes.patch(kind, key, { ...fields, metadata }, options);
      }
      case "json": {
        const base = await this.#base(primary, options.signal);
        const patch: JsonPatchOperation[] = [
          { op: "test", path: "/metadata/uid", value: uid },
          ...diffJsonPatch(base, applyMergePatch(base, fields)),
        ];
        return await writes.patch(kind, key, patch, {
          ...options,
          type: "json",
        });
      }
      case "replace": {
        const base = await this.#base(primary, options.signal);
        const object = applyMergePatch(base, fields) as P;
        return await writes.replace(kind, object, options);
      }
    }
  }

  /** The object as the reconciler was given it, in full. */
  async #base(primary: P, signal: AbortSignal): Promise<P> {
    const { client, kind, cacheIsPartial } = this.#options.environment;
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

  /** Fields as they are applied: of this incarnation, with the finalizer. */
  #intent(
    primary: P,
    fields: Body,
    { subresource }: Pick<SendOptions, "subresource">,
  ): ApplyObject<P> {
    const { finalizer, environment: { kind } } = this.#options;
    const { name, namespace, uid } = primary.metadata;
    const { finalizers = [], ...given } = (fields.metadata ?? {}) as {
      finalizers?: string[];
    };
    const kept = finalizer === undefined || subresource !== undefined
      ? finalizers
      : [...new Set([...finalizers, finalizer])];
    return {
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
  }

  #writes(run: Run<P>): RunWrites<P> {
    return new RunWrites(run, this.#options.environment);
  }
}
