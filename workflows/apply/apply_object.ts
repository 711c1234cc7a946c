import { ApiError } from "../../core/api/api_error.ts";
import type { ApplyObject, KubernetesObject } from "../../core/api/object.ts";
import { keyOf } from "../../core/api/object_key.ts";
import type { Client } from "../../core/client/client.ts";
import { type Clock, systemClock } from "../../core/clock.ts";
import {
  asReferenced,
  type ObjectReference,
  referencedKind,
  referenceOf,
} from "../kstatus/object_reference.ts";
import { waitFor, type WaitOptions } from "../kstatus/wait_for.ts";
import {
  type AppliedChange,
  type FieldDifference,
  objectChanges,
} from "./change_set.ts";
import { hasPolicy, ownerLabels, type SetOptions } from "./set_options.ts";

/** Plan for one object of a set. */
export interface ApplyPlan extends ObjectReference {
  /** Object to send. */
  readonly object: KubernetesObject;
  /** Current object; undefined if it does not exist. */
  readonly live: KubernetesObject | undefined;
  /** Action to take. */
  readonly action: AppliedChange["action"];
  /** Fields that differ. */
  readonly fields: readonly FieldDifference[];
  /** Whether the current object must be deleted first. */
  readonly replace: boolean;
}

/**
 * Kinds whose deletion deletes their contents: only their own annotation can
 * force a replacement.
 */
const HOLDERS: readonly string[] = [
  "CustomResourceDefinition",
  "Namespace",
  "PersistentVolume",
  "PersistentVolumeClaim",
];

/** Adds the labels of the set to an object. */
function ofSet(
  object: KubernetesObject,
  { owner }: SetOptions,
): KubernetesObject {
  const { metadata } = object;
  const labels = { ...metadata.labels, ...ownerLabels(owner) };
  return { ...object, metadata: { ...metadata, labels } };
}

/**
 * Determines by a dry run what applying an object would change.
 *
 * @throws {ApiError} If the server would refuse it.
 */
export async function planObject(
  client: Client,
  given: KubernetesObject,
  options: SetOptions,
): Promise<ApplyPlan> {
  const { owner, fieldManager, signal, force = false } = options;
  const object = ofSet(given, options);
  const reference = referenceOf(object);
  const kind = referencedKind(reference);
  const live = await client.find(kind, keyOf(object), { signal });
  const plan = { ...reference, object, live, fields: [], replace: false };
  const isSkipped = hasPolicy(object, owner, ["apply", "ignore"]) ||
    hasPolicy(live, owner, ["apply", "ignore"]) ||
    (live !== undefined && hasPolicy(object, owner, ["apply", "ifnotpresent"]));
  if (isSkipped) return { ...plan, action: "skipped" };
  try {
    const wanted = await client.apply(kind, applied(object), {
      dryRun: true,
      force: true,
      fieldManager,
      signal,
    });
    const fields = objectChanges(live, asReferenced(wanted, reference));
    const action = live === undefined
      ? "created"
      : fields.length > 0
      ? "configured"
      : "unchanged";
    return { ...plan, action, fields };
  } catch (error) {
    const mayReplace = (force && !HOLDERS.includes(object.kind ?? "")) ||
      hasPolicy(object, owner, ["force", "enabled"]) ||
      hasPolicy(live, owner, ["force", "enabled"]);
    if (live === undefined || !mayReplace || !isImmutable(error)) throw error;
    return { ...plan, action: "created", replace: true };
  }
}

/** Options of {@linkcode executePlan}. */
export interface ExecuteOptions extends SetOptions {
  readonly timeout: WaitOptions["timeout"];
  readonly clock: Clock | undefined;
}

/**
 * Executes a plan.
 *
 * @returns The stored object; undefined if nothing was written.
 */
export async function executePlan(
  client: Client,
  plan: ApplyPlan,
  options: ExecuteOptions,
): Promise<KubernetesObject | undefined> {
  const { fieldManager, signal, timeout, clock = systemClock } = options;
  const { object, live, action } = plan;
  if (action !== "created" && action !== "configured") return undefined;
  const kind = referencedKind(plan);
  if (plan.replace && live !== undefined) {
    const { uid } = live.metadata;
    await client.delete(kind, keyOf(object), {
      propagationPolicy: "Background",
      preconditions: { uid },
      signal,
    });
    const gone = { desired: "NotFound", timeout, signal, clock } as const;
    await waitFor(client, [referenceOf(object)], gone);
  }
  return await client.apply(kind, applied(object), {
    force: true,
    fieldManager,
    signal,
  });
}

/** Removes the fields that only a server sets, for server-side apply. */
function applied(object: KubernetesObject): ApplyObject<KubernetesObject> {
  const {
    resourceVersion: _version,
    uid: _uid,
    generation: _generation,
    creationTimestamp: _creation,
    managedFields: _fields,
    ...metadata
  } = object.metadata;
  return { ...object, metadata };
}

/** Whether the server refused to change an immutable field. */
function isImmutable(error: unknown): boolean {
  return ApiError.is(error) &&
    (error.status === 409 || error.status === 422) &&
    /immutable|forbidden: updates to/i.test(error.message);
}
