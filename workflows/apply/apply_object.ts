import type { ApplyObject, KubernetesObject } from "../../core/api/object.ts";
import { keyOf } from "../../core/api/object_key.ts";
import type { Client } from "../../core/client/client.ts";
import {
  appliedMetadata,
  isImmutable,
} from "../../core/patch/apply_configuration.ts";
import {
  asReferenced,
  referencedKind,
  referenceOf,
} from "../kstatus/object_reference.ts";
import { waitFor } from "../kstatus/wait_for.ts";
import { type AppliedChange, objectChanges } from "./change_set.ts";
import {
  type ApplySetOptions,
  hasPolicy,
  ownerLabels,
  type SetOptions,
} from "./set_options.ts";

export interface ApplyPlan {
  readonly change: AppliedChange;
  /** Object to send. */
  readonly object: ApplyObject<KubernetesObject>;
  /** Current object; undefined if it does not exist. */
  readonly live: KubernetesObject | undefined;
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

/** Determines by a dry run what applying an object would change. */
export async function planObject(
  client: Client,
  given: KubernetesObject,
  options: SetOptions,
): Promise<ApplyPlan> {
  const { owner, fieldManager, signal, force = false } = options;
  const reference = referenceOf(given);
  const kind = referencedKind(reference);
  const labels = { ...given.metadata.labels, ...ownerLabels(owner) };
  const metadata = appliedMetadata({ ...given.metadata, labels });
  const object = { ...given, metadata };
  const live = await client.find(kind, keyOf(given), { signal });
  const plan = (
    action: AppliedChange["action"],
    fields: AppliedChange["fields"] = [],
    replace = false,
  ) => ({ change: { reference, action, fields }, object, live, replace });
  const isSkipped = hasPolicy(given, owner, ["apply", "ignore"]) ||
    hasPolicy(live, owner, ["apply", "ignore"]) ||
    (live !== undefined && hasPolicy(given, owner, ["apply", "ifnotpresent"]));
  if (isSkipped) return plan("skipped");
  const dryRun = { dryRun: true, force: true, fieldManager, signal };
  try {
    const wanted = await client.apply(kind, object, dryRun);
    const fields = objectChanges(live, asReferenced(wanted, reference));
    const isEqual = live !== undefined && fields.length === 0;
    return isEqual
      ? plan("unchanged")
      : plan(live === undefined ? "created" : "configured", fields);
  } catch (error) {
    const mayReplace = (force && !HOLDERS.includes(reference.kind)) ||
      hasPolicy(given, owner, ["force", "enabled"]) ||
      hasPolicy(live, owner, ["force", "enabled"]);
    if (live === undefined || !mayReplace || !isImmutable(error)) throw error;
    return plan("created", [], true);
  }
}

/**
 * Executes a plan.
 *
 * @returns The stored object; undefined if nothing was written.
 */
export async function executePlan(
  client: Client,
  { change, object, live, replace }: ApplyPlan,
  options: Pick<
    ApplySetOptions,
    "fieldManager" | "signal" | "timeout" | "clock"
  >,
): Promise<KubernetesObject | undefined> {
  const { fieldManager, signal, timeout, clock } = options;
  const { reference, action } = change;
  if (action !== "created" && action !== "configured") return undefined;
  const kind = referencedKind(reference);
  if (replace) {
    await client.delete(kind, reference, {
      propagationPolicy: "Background",
      preconditions: { uid: live?.metadata.uid },
      signal,
    });
    const gone = { desired: "NotFound", timeout, signal, clock } as const;
    await waitFor(client, [reference], gone);
  }
  return await client.apply(kind, object, {
    force: true,
    fieldManager,
    signal,
  });
}
