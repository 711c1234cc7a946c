import { ApiError } from "../../api/api_error.ts";
import { apiVersionOf, type Kind, kindText } from "../../api/kind.ts";
import type { ApplyObject, KubernetesObject } from "../../api/object.ts";
import { keyOf, keyText } from "../../api/object_key.ts";
import { isExplainedBy } from "../../cache/informer/explained_change.ts";
import { statusSchemaOf } from "../../crd/check_status.ts";
import {
  diffJsonPatch,
  type JsonPatchOperation,
} from "../../patch/json_patch.ts";
import { isJsonObject } from "../../patch/json_value.ts";
import { applyMergePatch } from "../../patch/merge_patch.ts";
import type { ReconcileResult } from "../result.ts";
import type { RunContext, RunDeps } from "./run_context.ts";

/** Dependencies of a {@linkcode ResultWriter}. */
export interface ResultWriterDeps<P extends KubernetesObject> {
  readonly runDeps: RunDeps<P>;
  readonly serverSideApply: boolean;
  /** Finalizer of the controller; undefined if it uses none. */
  readonly finalizer: string | undefined;
}

/** Result of a run, and the object that it is about. */
interface ResultWrite<P extends KubernetesObject> {
  /** State that the reconciler was given. */
  readonly primary: P;
  readonly result: ReconcileResult | void;
  /** Signal that aborts the requests. */
  readonly signal: AbortSignal;
  /** Whether the run succeeded, so that it has observed the generation. */
  readonly succeeded: boolean;
}

/** Options of one request. */
interface SendOptions {
  readonly signal: AbortSignal;
  readonly subresource?: "status" | undefined;
}

/** Body with a part of an object. */
type Body = Record<string, unknown>;

/** Status field with the generation that a controller has observed. */
const OBSERVED = "observedGeneration";

/**
 * Writer of the results of runs to their primary: finalizer, fields and status.
 *
 * Guarantees
 * - Each write applies to the object that the run was about: its UID is sent
 *   along, so that a deleted object is not created again, and a new object of the
 *   same name is not changed.
 * - The answer is in the cache before the run ends.
 * - A write is not sent if the cache shows that it would change nothing.
 */
export class ResultWriter<P extends KubernetesObject> {
  readonly #deps: ResultWriterDeps<P>;
  /** Whether the status of the kind has the field {@linkcode OBSERVED}. */
  readonly #observes: boolean;

  constructor(deps: ResultWriterDeps<P>) {
    this.#deps = deps;
    this.#observes = hasObservedGeneration(deps.runDeps.kind);
  }

  /** Whether there is something to write after a successful run. */
  hasWork(primary: P, result: ReconcileResult | void): boolean {
    const { resource, status, observed = true } = result ?? {};
    if (resource !== undefined || status !== undefined) return true;
    if (!observed || !this.#observes) return false;
    const stored = storedGeneration(primary);
    // A cache without the status does not show the stored generation.
    return stored !== primary.metadata.generation &&
      (stored !== undefined || !this.#deps.runDeps.cacheIsPartial);
  }

  /**
   * Adds the finalizer of the controller.
   *
   * @returns Current state of the object; undefined if it was deleted.
   */
  async addFinalizer(
    context: RunContext<P>,
    primary: P,
  ): Promise<P | undefined> {
    const { serverSideApply, finalizer, runDeps: { kind } } = this.#deps;
    if (finalizer === undefined) return primary;
    if (!serverSideApply) return await context.setFinalizer(finalizer, true);
    const intent = this.#intent(primary, {}, undefined);
    return await context.apply(kind, intent, { owned: false, match: false });
  }

  /** Removes the finalizer of the controller if the object has it. */
  async removeFinalizer(context: RunContext<P>): Promise<void> {
    const { finalizer } = this.#deps;
    if (finalizer === undefined) return;
    await context.setFinalizer(finalizer, false);
  }

  /**
   * Writes fields of the object and then its status, if the result has them, and
   * the generation that the run has observed.
   */
  async write(
    context: RunContext<P>,
    { primary, result, signal, succeeded }: ResultWrite<P>,
  ): Promise<void> {
    const { resource, status, observed = true, method } = result ?? {};
    const by = method ?? (this.#deps.serverSideApply ? "apply" : "merge");
    let object = primary;
    if (resource !== undefined) {
      const { status: _, ...fields } = resource as Body;
      object = await this.#send(context, { by, primary, fields }, { signal });
    }
    const generation = succeeded && observed && this.#observes
      ? observedGeneration(primary, object, resource)
      : undefined;
    if (
      status === undefined &&
      (generation === undefined || context.nextImminent)
    ) {
      // The next run follows immediately and observes a newer generation.
      return;
    }
    const written = generation === undefined ? {} : { [OBSERVED]: generation };
    await this.#send(context, {
      // An apply of this field alone would remove the rest of the status.
      by: status === undefined ? "merge" : by,
      primary: object,
      fields: { status: { ...written, ...status } },
    }, { signal, subresource: "status" });
  }

  async #send(
    context: RunContext<P>,
    { by, primary, fields }: {
      readonly by: NonNullable<ReconcileResult["method"]>;
      readonly primary: P;
      readonly fields: Body;
    },
    options: SendOptions,
  ): Promise<P> {
    const { kind } = this.#deps.runDeps;
    const { uid } = primary.metadata;
    const key = keyOf(primary);
    switch (by) {
      case "apply": {
        const intent = this.#intent(primary, fields, options.subresource);
        return await context.apply(kind, intent, { ...options, owned: false });
      }
      case "merge": {
        const metadata = { ...fields.metadata as Body, uid };
        return await context.patch(kind, key, { ...fields, metadata }, options);
      }
      case "json": {
        const base = await this.#base(primary, options.signal);
        const patch: JsonPatchOperation[] = [
          { op: "test", path: "/metadata/uid", value: uid },
          ...diffJsonPatch(base, applyMergePatch(base, fields)),
        ];
        const type = "json";
        return await context.patch(kind, key, patch, { ...options, type });
      }
      case "replace": {
        const base = await this.#base(primary, options.signal);
        const object = applyMergePatch(base, fields) as P;
        return await context.replace(kind, object, options);
      }
    }
  }

  /** Complete object in the state that the reconciler was given. */
  async #base(primary: P, signal: AbortSignal): Promise<P> {
    const { client, kind, cacheIsPartial } = this.#deps.runDeps;
    if (!cacheIsPartial) return primary;
    const key = keyOf(primary);
    const full = await client.find(kind, key, { signal });
    const { resourceVersion } = primary.metadata;
    if (full?.metadata.resourceVersion === resourceVersion) return full as P;
    throw new ApiError(
      `Cannot write ${kindText(kind)} ${
        keyText(key)
      }: it was changed since the run began: received resourceVersion ${
        full?.metadata.resourceVersion ?? "none"
      } in place of ${resourceVersion}`,
      { status: 409, reason: "Conflict" },
    );
  }

  /** Apply configuration of fields, with UID and finalizer. */
  #intent(
    primary: P,
    fields: Body,
    subresource: "status" | undefined,
  ): ApplyObject<P> {
    const { finalizer, runDeps: { kind } } = this.#deps;
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
}

/** Whether the status of a kind has a field for the observed generation. */
function hasObservedGeneration(kind: Kind): boolean {
  return Object.hasOwn(statusSchemaOf(kind)?.properties ?? {}, OBSERVED);
}

/** Observed generation in the status of an object, if the cache keeps it. */
function storedGeneration(object: KubernetesObject): unknown {
  // The getter of a pruned status would throw.
  const status: unknown = Object.getOwnPropertyDescriptor(object, "status")
    ?.value;
  return isJsonObject(status) ? status[OBSERVED] : undefined;
}

/**
 * Generation that a run has observed, including its own changes of the spec. A
 * generation that another client may have contributed to is not observed, and its
 * event causes another run.
 *
 * @param primary State that the reconciler was given.
 * @param object State after the run has written the object.
 * @param written Fields that the run wrote; undefined if it wrote none.
 */
function observedGeneration(
  primary: KubernetesObject,
  object: KubernetesObject,
  written: object | undefined,
): number | undefined {
  const isOurs = written !== undefined &&
    isExplainedBy(written, primary, object);
  return (isOurs ? object : primary).metadata.generation;
}
