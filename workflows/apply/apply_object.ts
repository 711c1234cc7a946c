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
import { hasWish, ownerLabels, type SetOptions } from "./set_options.ts";

/** What is to be done with one object. */
export interface ApplyPlan extends ObjectReference {
  /** The object as it is sent. */
  readonly object: KubernetesObject;
  /** The object as it is; undefined if it is not there. */
  readonly live: KubernetesObject | undefined;
  /** What happens to it. */
  readonly action: AppliedChange["action"];
  /** The fields that are not as they should be. */
  readonly fields: readonly FieldDifference[];
  /** Whether it must be deleted before. */
  readonly replace: boolean;
}

/** With these everything would go that is in them: only they can ask for it. */
const HOLDERS: readonly string[] = [
  "CustomResourceDefinition",
  "Namespace",
  "PersistentVolume",
  "PersistentVolumeClaim",
];

/** The object with the labels of its set. */
function ofSet(
  object: KubernetesObject,
  { owner }: SetOptions,
): KubernetesObject {
  const { metadata } = object;
  const labels = { ...metadata.labels, ...ownerLabels(owner) };
  return { ...object, metadata: { ...metadata, labels } };
}

/**
 * Finds out by a dry run what applying an object would change. Nothing is
 * written.
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
  const isSkipped = hasWish(object, owner, ["apply", "ignore"]) ||
    hasWish(live, owner, ["apply", "ignore"]) ||
    (live !== undefined && hasWish(object, owner, ["apply", "ifnotpresent"]));
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
      hasWish(object, owner, ["force", "enabled"]) ||
      hasWish(live, owner, ["force", "enabled"]);
    if (live === undefined || !mayReplace || !isImmutable(error)) throw error;
    return { ...plan, action: "created", replace: true };
  }
}

/** What {@linkcode carryOut} works with. */
export interface CarryOutOptions extends SetOptions {
  readonly timeout: WaitOptions["timeout"];
  readonly clock: Clock | undefined;
}

/**
 * Does what a plan says.
 *
 * @returns The object as it is stored; undefined if nothing was written.
 */
export async function carryOut(
  client: Client,
  plan: ApplyPlan,
  options: CarryOutOptions,
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

/** An object as server-side apply takes it: without what a server gave it. */
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

/** Whether a server refuses a change that only a new object can have. */
function isImmutable(error: unknown): boolean {
  return ApiError.is(error) &&
    (error.status === 409 || error.status === 422) &&
    /immutable|forbidden: updates to/i.test(error.message);
}
