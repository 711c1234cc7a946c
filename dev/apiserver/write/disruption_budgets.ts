import {
  type LabelSelector,
  matchesLabels,
  timestamp,
} from "@coracle/operator/client";
import { labelRequirements } from "@coracle/operator/internal";
import type { Pod, PodDisruptionBudget } from "@coracle/operator/kinds";
import type { ApiContext } from "../api_context.ts";
import { serverError, StatusError } from "../status.ts";
import type { Store } from "../storage/store.ts";
import type { StoredObject } from "../storage/stored_object.ts";

const BUDGETS = { group: "policy", plural: "poddisruptionbudgets" };

/** Maximum number of evicted pods that a budget records. */
const MAX_DISRUPTED = 2_000;

type Labels = Readonly<Record<string, string>> | undefined;

/**
 * Creates a function that checks whether a budget selects a pod; a budget
 * without selector selects nothing.
 */
export function selectsPods(
  selector: LabelSelector | undefined,
): (labels: Labels) => boolean {
  if (selector === undefined) return () => false;
  const requirements = labelRequirements(selector);
  return (labels = {}) => matchesLabels(requirements, labels);
}

/** Selections of the budgets, which every change of a pod asks for. */
const selections: WeakMap<StoredObject, (labels: Labels) => boolean> =
  new WeakMap();

/** Disruption budgets that select a pod. */
export function budgetsOf(
  store: Store,
  { namespace, labels }: StoredObject,
): StoredObject[] {
  const budgets = store.collection(BUDGETS);
  if (budgets.size === 0) return [];
  return budgets.scan({ namespace }).filter((stored) => {
    let selects = selections.get(stored);
    if (selects === undefined) {
      const { spec } = stored.parse() as unknown as PodDisruptionBudget;
      selections.set(stored, selects = selectsPods(spec?.selector));
    }
    return selects(labels);
  });
}

/**
 * Charges the eviction of a pod to its disruption budget.
 *
 * @throws {StatusError} 429 if the budget does not permit it, 500 if the pod
 * has several budgets.
 */
export function takeDisruption(
  { store, clock }: ApiContext,
  stored: StoredObject,
  dryRun: boolean,
): void {
  const pod = stored.parse() as unknown as Pod;
  const { phase, conditions } = pod.status ?? {};
  // Evictions of pods that do not run, or end anyway, are no disruption.
  if (phase !== "Running" || stored.terminating) return;
  const [found, ...others] = budgetsOf(store, stored);
  if (found === undefined) return;
  if (others.length > 0) {
    throw serverError(
      "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
    );
  }
  const object = found.parse();
  const budget = object as unknown as PodDisruptionBudget;
  const { unhealthyPodEvictionPolicy } = budget.spec ?? {};
  const { status } = budget;
  const {
    currentHealthy = 0,
    desiredHealthy = 0,
    disruptionsAllowed = 0,
    disruptedPods = {},
  } = status ?? {};
  const isReady = conditions?.some(({ type, status }) =>
    type === "Ready" && status === "True"
  );
  const isSpare = unhealthyPodEvictionPolicy === "AlwaysAllow" ||
    (currentHealthy >= desiredHealthy && desiredHealthy > 0);
  if (!isReady && isSpare) return;
  const isStale = (status?.observedGeneration ?? 0) <
    (budget.metadata.generation ?? 0);
  if (isStale) {
    throw violation(
      `The disruption budget ${found.name} is still being processed by the server.`,
      10,
    );
  }
  if (
    disruptionsAllowed <= 0 || Object.keys(disruptedPods).length > MAX_DISRUPTED
  ) {
    throw violation(
      `The disruption budget ${found.name} needs ${desiredHealthy} healthy pods and has ${currentHealthy} currently`,
      undefined,
    );
  }
  if (dryRun || status === undefined) return;
  status.disruptionsAllowed = disruptionsAllowed - 1;
  status.disruptedPods = {
    ...disruptedPods,
    [stored.name]: timestamp(clock.wallTime()),
  };
  store.put(found.definition, object);
}

function violation(
  message: string,
  retryAfterSeconds: number | undefined,
): StatusError {
  return new StatusError({
    code: 429,
    reason: "TooManyRequests",
    message:
      "Cannot evict pod as it would violate the pod's disruption budget.",
    details: {
      ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
      causes: [{ reason: "DisruptionBudget", message }],
    },
  });
}
