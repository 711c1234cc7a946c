import type { KubernetesObject } from "../../core/api/object.ts";
import type { OptionRules } from "../../core/api/options.ts";

/** The names of the annotations by which people ask for runs. */
export interface RequestNames {
  /**
   * Asks for a run; any new value does.
   *
   * @default {"reconcile.coracle.dev/requestedAt"}
   */
  readonly requestedAt?: string | undefined;
  /**
   * Asks for a forced run when it has the same value as the request.
   *
   * @default {"reconcile.coracle.dev/forceAt"}
   */
  readonly forceAt?: string | undefined;
}

/** What the names of annotations must be. */
export const REQUEST_NAME_RULES: OptionRules<RequestNames> = {
  requestedAt: "name?",
  forceAt: "name?",
};

/** The annotation by which people ask for a run, unless it is named otherwise. */
export const REQUESTED_AT = "reconcile.coracle.dev/requestedAt";
/** The annotation by which people force a run, unless it is named otherwise. */
export const FORCE_AT = "reconcile.coracle.dev/forceAt";

/** What a status remembers of requests. */
export interface HandledRequests {
  /** The token of the last request that a pass has answered. */
  lastHandledReconcileAt?: string | undefined;
  /** The token of the last force that a pass has seen. */
  lastHandledForceAt?: string | undefined;
}

/** Which requests an object carries, and what to remember of them. */
export interface Requests {
  /** Whether somebody asked for a run since the last one. */
  readonly requested: boolean;
  /** Whether somebody asked for a forced run since the last one. */
  readonly forced: boolean;
  /** What to write into the status at the end of the pass. */
  readonly handled: HandledRequests;
}

/**
 * Reads the requests of an object. A value is an opaque token: one that differs
 * from the one handled last is a request, even a blank one. A force counts only
 * beside a request of the same value, once; it is remembered as handled even
 * when it was refused.
 *
 * @param object The object as the pass has seen it.
 * @param handled What its status remembers.
 * @param names How the annotations are called.
 *
 * @example Forced once
 * ```ts
 * import { requestsOf } from "@coracle/operator/workflows";
 *
 * const object = {
 *   metadata: {
 *     name: "web",
 *     annotations: {
 *       "reconcile.coracle.dev/requestedAt": "now",
 *       "reconcile.coracle.dev/forceAt": "now",
 *     },
 *   },
 * };
 * const first = requestsOf(object);
 * if (!first.forced) throw new Error("Unexpected refusal");
 * if (requestsOf(object, first.handled).forced) throw new Error("Forced twice");
 * ```
 */
export function requestsOf(
  object: KubernetesObject,
  handled: HandledRequests = {},
  names: RequestNames = {},
): Requests {
  const annotations = object.metadata.annotations ?? {};
  const requestedAt = annotations[names.requestedAt ?? REQUESTED_AT];
  const forceAt = annotations[names.forceAt ?? FORCE_AT];
  const requested = requestedAt !== undefined &&
    requestedAt !== handled.lastHandledReconcileAt;
  const next: HandledRequests = { ...handled };
  if (requestedAt !== undefined) next.lastHandledReconcileAt = requestedAt;
  if (forceAt !== undefined) next.lastHandledForceAt = forceAt;
  return {
    requested,
    forced: requested && forceAt === requestedAt &&
      forceAt !== handled.lastHandledForceAt,
    handled: next,
  };
}

/**
 * Whether an update brought a new request: for filters. The removal of one is
 * none, and neither is an object that was not there before.
 */
export function requestChanged(
  object: KubernetesObject | undefined,
  previous: KubernetesObject | undefined,
  names: RequestNames = {},
): boolean {
  if (object === undefined || previous === undefined) return false;
  const name = names.requestedAt ?? REQUESTED_AT;
  const token = object.metadata.annotations?.[name];
  return token !== undefined &&
    token !== previous.metadata.annotations?.[name];
}
