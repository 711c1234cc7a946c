import type { KubernetesObject } from "../../core/api/object.ts";
import type { ConditionedStatus } from "./condition.ts";
import type { RequestNames } from "./summarized_definition.ts";

/** Default name of the annotation that requests a run. */
export const REQUESTED_AT = "reconcile.coracle.dev/requestedAt";
/** Default name of the annotation that forces a run. */
const FORCE_AT = "reconcile.coracle.dev/forceAt";

/**
 * Reads the requests from the annotations of an object. A value is an opaque
 * token: one that differs from the handled one is a request, even if it is
 * blank. A forced run needs a request with the same value, and happens once;
 * its token counts as handled even if it was refused.
 *
 * @param object The object of the run.
 * @param handled The handled tokens from its status.
 * @param names The names of the annotations.
 * @returns `requested` and `forced` say whether a user has requested or forced
 * a run; `handled` are the tokens to write to the status.
 */
export function requestsOf(
  object: KubernetesObject,
  handled: Pick<
    ConditionedStatus,
    "lastHandledReconcileAt" | "lastHandledForceAt"
  > = {},
  names: RequestNames = {},
): {
  readonly requested: boolean;
  readonly forced: boolean;
  readonly handled: Pick<
    ConditionedStatus,
    "lastHandledReconcileAt" | "lastHandledForceAt"
  >;
} {
  const annotations = object.metadata.annotations ?? {};
  const requestedAt = annotations[names.requestedAt ?? REQUESTED_AT];
  const forceAt = annotations[names.forceAt ?? FORCE_AT];
  const requested = requestedAt !== undefined &&
    requestedAt !== handled.lastHandledReconcileAt;
  const next: typeof handled = { ...handled };
  if (requestedAt !== undefined) next.lastHandledReconcileAt = requestedAt;
  if (forceAt !== undefined) next.lastHandledForceAt = forceAt;
  return {
    requested,
    forced: requested && forceAt === requestedAt &&
      forceAt !== handled.lastHandledForceAt,
    handled: next,
  };
}
