import type { ContainerStatus, Pod } from "@coracle/operator/kinds";
import { humanAge } from "../../human_duration.ts";

/** Progress of the containers of a pod, as its columns show it. */
interface Progress {
  readonly reason: string;
  readonly ready: number;
  readonly restarts: number;
  /** Time of the last termination before a restart. */
  readonly lastRestart: string | undefined;
}

/** Table cells of a Pod. */
export function podCells(pod: Pod, now: number): readonly unknown[] {
  const { spec, status = {} } = pod;
  const { reason, ready, restarts, lastRestart } = progress(pod);
  const sidecars = (spec.initContainers ?? []).filter((container) =>
    container.restartPolicy === "Always"
  );
  const total = (spec.containers ?? []).length + sidecars.length;
  const ago = restarts !== 0 && lastRestart !== undefined
    ? ` (${humanAge(lastRestart, now)} ago)`
    : "";
  return [
    pod.metadata.name ?? "",
    `${ready}/${total}`,
    shownReason(pod, reason),
    `${restarts}${ago}`,
    humanAge(pod.metadata.creationTimestamp, now),
    status.podIPs?.[0]?.ip || "<none>",
    spec.nodeName || "<none>",
    status.nominatedNodeName || "<none>",
    readinessGates(pod),
  ];
}

/** Row conditions of a Pod, which mark terminated ones as completed. */
export function podRowConditions(
  { status }: Pod,
): readonly Readonly<Record<string, string>>[] | undefined {
  const ended = status?.phase === "Succeeded"
    ? "The pod has completed successfully."
    : status?.phase === "Failed"
    ? "The pod failed."
    : undefined;
  if (ended === undefined) return undefined;
  return [{
    type: "Completed",
    status: "True",
    reason: String(status?.phase),
    message: ended,
  }];
}

function progress(pod: Pod): Progress {
  const { status = {} } = pod;
  const isGated = status.conditions?.some(({ type, reason }) =>
    type === "PodScheduled" && reason === "SchedulingGated"
  );
  const before = isGated
    ? "SchedulingGated"
    : status.reason || status.phase || "";
  const initial = initialization(pod);
  const reason = initial.reason ?? before;
  const isInitialized = initial.reason === undefined ||
    hasCondition(pod, "Initialized");
  return isInitialized
    ? mainProgress(pod, { ...initial.sidecars, reason })
    : { ...initial.all, ready: initial.sidecars.ready, reason };
}

/** Sum of the restarts of several containers, with the time of the last one. */
class Restarts {
  restarts = 0;
  lastRestart: string | undefined;
  ready = 0;

  add({ restartCount, lastState }: ContainerStatus): void {
    this.restarts += restartCount;
    const end = lastState?.terminated?.finishedAt;
    if (end && end > (this.lastRestart ?? "")) this.lastRestart = end;
  }
}

/**
 * Progress of the init containers; its reason is that of the first one that has
 * not succeeded.
 */
function initialization({ spec, status = {} }: Pod): {
  readonly reason?: string | undefined;
  readonly all: Restarts;
  readonly sidecars: Restarts;
} {
  const all = new Restarts();
  const sidecars = new Restarts();
  const containers = spec.initContainers ?? [];
  const statuses = status.initContainerStatuses ?? [];
  for (const [index, container] of statuses.entries()) {
    const { name, state = {}, started, ready } = container;
    const isSidecar = containers.some((container) =>
      container.name === name && container.restartPolicy === "Always"
    );
    all.add(container);
    if (isSidecar) sidecars.add(container);
    if (state.terminated?.exitCode === 0) continue;
    if (isSidecar && started) {
      if (ready) sidecars.ready += 1;
      continue;
    }
    const reason = `Init:${
      stateReason(container) ?? `${index}/${containers.length}`
    }`;
    return { reason, all, sidecars };
  }
  return { all, sidecars };
}

/** Reason why an init container has not succeeded; undefined if its state has none. */
function stateReason({ state = {} }: ContainerStatus): string | undefined {
  const { terminated, waiting } = state;
  if (terminated) return endReason(terminated);
  return waiting?.reason && waiting.reason !== "PodInitializing"
    ? waiting.reason
    : undefined;
}

function endReason(
  { reason, signal, exitCode }: {
    readonly reason?: string | undefined;
    readonly signal?: number | undefined;
    readonly exitCode: number;
  },
): string {
  if (reason) return reason;
  return signal ? `Signal:${signal}` : `ExitCode:${exitCode}`;
}

function mainProgress(pod: Pod, start: Progress): Progress {
  const counted = new Restarts();
  Object.assign(counted, {
    restarts: start.restarts,
    lastRestart: start.lastRestart,
    ready: start.ready,
  });
  let { reason } = start;
  let hasRunning = false;
  for (const container of (pod.status?.containerStatuses ?? []).toReversed()) {
    const { state = {}, ready } = container;
    counted.add(container);
    if (state.waiting?.reason) reason = state.waiting.reason;
    else if (state.terminated) reason = endReason(state.terminated);
    else if (ready && state.running) {
      hasRunning = true;
      counted.ready += 1;
    }
  }
  if (reason === "Completed" && hasRunning) {
    reason = hasCondition(pod, "Ready") ? "Running" : "NotReady";
  }
  const { restarts, lastRestart, ready } = counted;
  return { reason, restarts, lastRestart, ready };
}

function shownReason({ metadata, status = {} }: Pod, reason: string): string {
  if (!metadata.deletionTimestamp) return reason;
  if (status.reason === "NodeLost") return "Unknown";
  const hasEnded = status.phase === "Succeeded" || status.phase === "Failed";
  return hasEnded ? reason : "Terminating";
}

function hasCondition({ status }: Pod, type: string): boolean {
  return status?.conditions?.find((condition) => condition.type === type)
    ?.status === "True";
}

function readinessGates(pod: Pod): string {
  const gates = pod.spec.readinessGates ?? [];
  if (gates.length === 0) return "<none>";
  const open = gates.filter(({ conditionType }) =>
    hasCondition(pod, conditionType)
  );
  return `${open.length}/${gates.length}`;
}
