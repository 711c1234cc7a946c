import { loadModule } from "../../clock.ts";
import { ApiError } from "../../api/api_error.ts";
import { kindText } from "../../api/kind.ts";
import type { ApplyObject, KubernetesObject } from "../../api/object.ts";
import { keyOf, keyText } from "../../api/object_key.ts";
import { isExplainedBy } from "../../cache/informer/explained_change.ts";
import { retryOnConflict } from "../../client/retry_on_conflict.ts";
import { objectSchemaOf, statusSchemaOf } from "../../crd/check_status.ts";
import {
  diffJsonPatch,
  type JsonPatchOperation,
} from "../../patch/json_patch.ts";
import { checkIntegers, isJsonObject } from "../../patch/json_value.ts";
import { applyMergePatch, definedFields } from "../../patch/merge_patch.ts";
import type { ReconcileResult } from "../result.ts";
import { mentionsKeyedList, mergeKeyedLists, partOf } from "./keyed_lists.ts";
import type { RunContext } from "./run_context.ts";
import type { RunDeps } from "./run_deps.ts";
import { FINALIZER_ONLY } from "./run_writes.ts";
import type { Written } from "./write_sender.ts";
import { valuesOf } from "./write_changes.ts";

export interface ResultWriterDeps<P extends KubernetesObject> {
  readonly runDeps: RunDeps<P>;
  /** Whether the finalizer is added by server-side apply. */
  readonly serverSideApply: boolean;
}

/** Result of a run, with the object of the run. */
interface ResultWrite<P extends KubernetesObject> {
  /** State that the reconciler was given. */
  readonly primary: P;
  readonly result: ReconcileResult | void;
  /** Signal that aborts the requests. */
  readonly signal: AbortSignal;
  /** Whether the run succeeded, so that it has observed the generation. */
  readonly succeeded: boolean;
}

/** Fields to write to the object of a run. */
interface FieldWrite<P extends KubernetesObject> {
  readonly method: ReconcileResult["method"];
  readonly primary: P;
  readonly fields: Body;
}

/** Options of one request. */
interface SendOptions {
  readonly signal: AbortSignal;
  readonly subresource?: "status" | undefined;
}

/** Request body with a part of an object. */
type Body = Record<string, unknown>;

/** Status field with the generation that a controller has observed. */
const OBSERVED = "observedGeneration";

/**
 * Writer of the results of runs to their primary: finalizer, fields and status.
 *
 * Guarantees
 * - Each write affects only the object of the run: its UID is sent along, so
 *   that a deleted object is not created again, and a new object with the same
 *   name is not changed. API servers ignore the UID in one case: a write of the
 *   status of a custom resource without a resourceVersion.
 * - The answer is in the cache before the run ends.
 * - A write is not sent if the cache shows that it would change nothing.
 */
export class ResultWriter<P extends KubernetesObject> {
  readonly #deps: ResultWriterDeps<P>;
  /** Whether the status of the kind has the field {@linkcode OBSERVED}. */
  readonly #observes: boolean;

  constructor(deps: ResultWriterDeps<P>) {
    this.#deps = deps;
    const { properties = {} } = statusSchemaOf(deps.runDeps.kind) ?? {};
    this.#observes = Object.hasOwn(properties, OBSERVED);
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
    const { serverSideApply, runDeps: { kind, keptFinalizer } } = this.#deps;
    if (keptFinalizer === undefined) return primary;
    if (!serverSideApply) {
      return await context.writes.setFinalizer(keptFinalizer, true);
    }
    const { name, namespace } = primary.metadata;
    const intent = { metadata: { name, namespace } } as ApplyObject<P>;
    return await context.writes.apply(kind, intent, FINALIZER_ONLY);
  }

  /** Removes the finalizer of the controller if the object has it. */
  async removeFinalizer(context: RunContext<P>): Promise<void> {
    const { keptFinalizer } = this.#deps.runDeps;
    if (keptFinalizer === undefined) return;
    await context.writes.setFinalizer(keptFinalizer, false);
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
    let object = primary;
    if (resource !== undefined) {
      const { status: _, ...fields } = definedFields(resource) as Body;
      const written = await this.#send(context, { method, primary, fields }, {
        signal,
      });
      object = written.object;
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
    const fields = { ...definedFields(status) as Body };
    const { [OBSERVED]: own } = fields;
    // An older generation that `{ ...status }` has copied says nothing.
    const isCopied = own === storedGeneration(primary) &&
      Number(own) < Number(generation);
    if (generation !== undefined && (own === undefined || isCopied)) {
      fields[OBSERVED] = generation;
    }
    if (status !== undefined && method === "apply") {
      await this.#setStatus(context, { primary: object, fields, signal });
    } else {
      await this.#send(context, {
        method: status === undefined ? undefined : method,
        primary: object,
        fields: { status: fields },
      }, { signal, subresource: "status" });
    }
  }

  #send(
    context: RunContext<P>,
    write: FieldWrite<P>,
    options: SendOptions,
  ): Promise<Written<P>> {
    const { method, primary, fields } = write;
    if (method !== undefined) return this.#sendChanged(context, write, options);
    const { kind } = this.#deps.runDeps;
    const wanted = this.#withFinalizer(fields);
    const { uid } = primary.metadata;
    const patch = {
      ...wanted,
      metadata: { ...wanted["metadata"] as Body, uid },
    };
    return mentionsKeyedList(wanted, objectSchemaOf(kind))
      ? this.#mergeLists(context, { primary, patch }, options)
      : context.writes.sendPatch(kind, keyOf(primary), patch, options);
  }

  /** Sends the object with its wanted fields, or a JSON Patch with them. */
  async #sendChanged(
    context: RunContext<P>,
    write: FieldWrite<P>,
    options: SendOptions,
  ): Promise<Written<P>> {
    const { method, primary, fields } = write;
    const { kind } = this.#deps.runDeps;
    const wanted = this.#withFinalizer(fields);
    const base = await this.#base(primary, options.signal);
    const states = { given: base, current: base };
    const object = applyMergePatch(
      base,
      mergeKeyedLists(wanted, objectSchemaOf(kind), states),
    ) as P;
    if (method === "replace") {
      return { object: await context.writes.update(kind, object, options) };
    }
    const difference = diffJsonPatch(base, object);
    checkIntegers(
      `patch ${kindText(kind)} ${keyText(keyOf(primary))}`,
      valuesOf(difference),
    );
    if (difference.some((one) => one.op === "add" && isJsonObject(one.value))) {
      // It would replace what another client has added there since.
      return this.#send(context, { ...write, method: undefined }, options);
    }
    const patch: JsonPatchOperation[] = [
      { op: "test", path: "/metadata/uid", value: primary.metadata.uid },
      ...difference,
    ];
    return await context.writes.sendPatch(kind, keyOf(primary), patch, {
      ...options,
      type: "json",
    });
  }

  /** Sends complete keyed lists; after a conflict, they are merged again. */
  async #mergeLists(
    context: RunContext<P>,
    { primary, patch }: {
      readonly primary: P;
      readonly patch: Body & { readonly metadata: object };
    },
    options: SendOptions,
  ): Promise<Written<P>> {
    const { client, kind, cacheIsPartial } = this.#deps.runDeps;
    const { uid } = primary.metadata;
    const key = keyOf(primary);
    const schema = objectSchemaOf(kind);
    const read = () => client.find(kind, key, { signal: options.signal });
    const known = cacheIsPartial ? await read() : context.current;
    const current = known?.metadata.uid === uid ? known as P : primary;
    return await retryOnConflict(current, {
      send(current) {
        const states = { given: primary, current };
        const merged = mergeKeyedLists(patch, schema, states) as typeof patch;
        checkIntegers(`write ${kindText(kind)} ${keyText(key)}`, merged);
        const { resourceVersion } = current.metadata;
        return context.writes.sendPatch(kind, key, {
          ...merged,
          metadata: { ...merged.metadata, resourceVersion },
        }, options);
      },
      async read(conflict) {
        const fresh = await read();
        if (fresh?.metadata.uid !== uid) throw conflict;
        return fresh;
      },
    }) as Written<P>;
  }

  /**
   * Applies the whole status of the controller, and removes other status fields
   * that earlier patches of the controller wrote.
   */
  async #setStatus(
    context: RunContext<P>,
    { primary, fields, signal }: {
      readonly primary: P;
      readonly fields: Body;
      readonly signal: AbortSignal;
    },
  ): Promise<void> {
    const { client, kind, cacheIsPartial, fieldManager } = this.#deps.runDeps;
    const { name, namespace, uid } = primary.metadata;
    const key = keyOf(primary);
    const read = () => client.find(kind, key, { signal });
    const options = { signal, subresource: "status" } as const;
    const status = applyMergePatch({}, fields) as Body;
    const action = `set the status of ${kindText(kind)} ${keyText(key)}`;
    checkIntegers(action, { status });
    if (this.#observes && status[OBSERVED] === undefined) {
      // The generation that an earlier run has observed is no field of the result.
      const latest = cacheIsPartial ? await read() : context.current ?? primary;
      const stored = latest && storedGeneration(latest);
      if (stored !== undefined) status[OBSERVED] = stored;
    }
    const apply = () =>
      context.writes.apply(kind, {
        metadata: { name, namespace, uid },
        status,
      } as unknown as ApplyObject<P>, options);
    let object: P;
    try {
      object = await apply();
    } catch (error) {
      if (!ApiError.is(error) || !error.isInvalid) throw error;
      const live = await read();
      if (live === undefined || live.metadata.uid !== uid) throw error;
      const { statusPatch } = await loadModule(import("./status_leftovers.ts"));
      const patch = statusPatch(live, {
        manager: fieldManager,
        intent: status,
        schema: objectSchemaOf(kind),
      });
      checkIntegers(action, patch);
      const { resourceVersion } = live.metadata;
      await context.writes.patch(kind, key, {
        ...patch,
        metadata: { uid, resourceVersion },
      }, { ...options, match: false });
      object = await apply();
    }
    try {
      await retryOnConflict(object, {
        async send(latest) {
          if (latest.metadata.uid !== uid) return;
          const leftovers = await leftoversOf(latest, fieldManager);
          if (leftovers === undefined) return;
          checkIntegers(action, { status: leftovers });
          const { resourceVersion } = latest.metadata;
          await context.writes.patch(kind, key, {
            metadata: { uid, resourceVersion },
            status: leftovers,
          }, { ...options, match: false });
        },
        read,
      });
    } catch (error) {
      // The next apply is sent, even if its intent is the same.
      await context.writes.forgetApply(kind, key, "status");
      throw error;
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

  /** Fields of the object; finalizers among them include that of the controller. */
  #withFinalizer(fields: Body): Body {
    const { keptFinalizer } = this.#deps.runDeps;
    const { metadata } = fields as {
      readonly metadata?: { readonly finalizers?: readonly string[] | null };
    };
    if (metadata?.finalizers === undefined || keptFinalizer === undefined) {
      return fields;
    }
    const finalizers = new Set([...metadata.finalizers ?? [], keptFinalizer]);
    return {
      ...fields,
      metadata: { ...metadata, finalizers: [...finalizers] },
    };
  }
}

/**
 * Merge patch that removes the status fields that earlier patches of a manager
 * wrote; undefined without managed fields, as in objects of a cache.
 */
async function leftoversOf(
  object: KubernetesObject,
  manager: string,
): Promise<object | undefined> {
  type Managed = KubernetesObject["metadata"]["managedFields"];
  const managed = partOf(object.metadata, "managedFields") as Managed;
  const mayHave = managed?.some((entry) =>
    entry.manager === manager && entry.operation === "Update"
  );
  if (!mayHave) return undefined;
  const { statusLeftovers } = await loadModule(import("./status_leftovers.ts"));
  return statusLeftovers(object, manager);
}

/** Observed generation in the status of an object, if the cache keeps it. */
function storedGeneration(object: KubernetesObject): unknown {
  return partOf(partOf(object, "status"), OBSERVED);
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
  // Foreign changes of the metadata and the status, after which nothing may run,
  // count only if they start the deletion.
  const isOurs = written !== undefined &&
    primary.metadata.deletionTimestamp === object.metadata.deletionTimestamp &&
    isExplainedBy({ ...written, metadata: 0, status: 0 }, primary, object);
  return (isOurs ? object : primary).metadata.generation;
}
