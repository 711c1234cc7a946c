import { timestamp, type UntypedObject } from "@coracle/operator/client";
import { errorMessage, jsonEquals } from "@coracle/operator/internal";
import {
  type Container,
  type ContainerState,
  type ContainerStatus,
  Node,
  Pod,
  type PodCondition,
  type PodStatus,
} from "@coracle/operator/kinds";
import type { ApiContext } from "../../api_context.ts";
import type { ControllerApi } from "../controller_api.ts";
import type { ControllerDefinition, Sync } from "../controller_loop.ts";
import { withCondition } from "../conditions.ts";
import { isFinished, podCondition } from "../workloads/pods.ts";
import { readJson, writeJson } from "../../exact_json.ts";

/** Time until the containers of a new pod run, in milliseconds. */
const START_MS = 500;
/** Run time in milliseconds of a container without a hook in a pod that is to end. */
const FINISH_MS = 1_000;
/** Stop time of a container without a hook, in milliseconds. */
const STOP_MS = 500;
/** First and longest delay before another restart of a container, in milliseconds. */
const BACKOFF_MS = { first: 10_000, longest: 300_000 };
/** Exit code of a process ended by SIGTERM. */
const STOPPED = 143;

const NODE_INFO = {
  architecture: "amd64",
  bootID: "",
  containerRuntimeVersion: "simulated://1.0.0",
  kernelVersion: "",
  kubeProxyVersion: "",
  kubeletVersion: "v1.37.0",
  machineID: "",
  operatingSystem: "linux",
  osImage: "Simulated",
  systemUUID: "",
};

/** Process of a container. */
interface Process {
  restarts: number;
  /** Start time of the process, which may be in the future. */
  startAt: number;
  isStarted: boolean;
  isReady: boolean;
  /** Whether a hook decides when the process ends. */
  isHooked: boolean;
  exit?: { readonly code: number; readonly at: number; message?: string };
  /** State of the container before the last restart. */
  last?: ContainerState | undefined;
  readonly signal: AbortController;
}

/** Running containers of a pod. */
interface Run {
  readonly processes: Map<string, Process>;
  readonly ip: string;
  stopAt?: number;
}

/** Creates the nodes of a server with simulated pods, unless some exist. */
export async function createNodes(
  api: ControllerApi,
  count: number,
): Promise<void> {
  if (api.list(Node, undefined).length > 0) return;
  for (let index = 1; index <= count; index++) {
    const name = `node-${index}`;
    await api.create(Node, { metadata: { name }, spec: {} });
  }
}

/** Controller that registers the nodes of kubelets: makes every new node ready. */
export const NODE_REGISTRATION: ControllerDefinition = {
  name: "node-registration",
  manager: "kubelet",
  kind: Node,
  async sync(object, api) {
    const { metadata: { name }, status } = object as Node;
    if (status?.nodeInfo?.kubeletVersion) return;
    const node = await api.update(Node, object as Node, (draft) => {
      draft.metadata.labels = {
        "kubernetes.io/arch": NODE_INFO.architecture,
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": NODE_INFO.operatingSystem,
        ...draft.metadata.labels,
      };
      // Admission taints new nodes as not ready.
      const { taints = [], ...spec } = draft.spec ?? {};
      const others = taints.filter(({ key }) =>
        key !== "node.kubernetes.io/not-ready"
      );
      draft.spec = { ...spec, ...others.length > 0 && { taints: others } };
    });
    if (node === undefined) return;
    const address = api.list(Node, undefined)
      .findIndex(({ metadata }) => metadata.name === name) + 2;
    const capacity = { cpu: "8", memory: "32Gi", pods: "110" };
    await api.setStatus(Node, node, {
      ...node.status,
      nodeInfo: NODE_INFO,
      capacity,
      allocatable: capacity,
      addresses: [
        {
          type: "InternalIP",
          address: `172.18.${address >> 8}.${address & 255}`,
        },
        { type: "Hostname", address: name },
      ],
      conditions: [{
        type: "Ready",
        status: "True",
        lastHeartbeatTime: api.time,
        lastTransitionTime: api.time,
        reason: "KubeletReady",
        message: "kubelet is posting ready status",
      }],
    });
  },
};

/**
 * Kubelet of simulated nodes: the containers of bound pods run, become ready,
 * restart, finish and stop as the hook `run` determines. Without the hook,
 * containers of pods with the restart policy Always run until they are stopped,
 * and others succeed.
 */
export function kubelet(context: ApiContext): ControllerDefinition {
  const pods = new PodRunner(context);
  return {
    name: "kubelet",
    manager: "kubelet",
    kind: Pod,
    sync: (object, api, wake) => pods.sync(object as Pod, api, wake),
    removed: ({ uid }) => pods.end(uid),
    stop: () => pods.stop(),
  };
}

class PodRunner {
  readonly #context: ApiContext;
  readonly #runs: Map<string, Run> = new Map();
  #addresses = 0;

  constructor(context: ApiContext) {
    this.#context = context;
  }

  stop(): void {
    for (const uid of this.#runs.keys()) this.end(uid);
  }

  end(uid: string): void {
    const run = this.#runs.get(uid);
    this.#runs.delete(uid);
    for (const { signal } of run?.processes.values() ?? []) signal.abort();
  }

  async sync(pod: Pod, api: ControllerApi, wake: () => void): ReturnType<Sync> {
    const { metadata: { uid = "", deletionTimestamp }, spec } = pod;
    if (!spec.nodeName) return;
    if (isFinished(pod)) {
      this.end(uid);
      if (deletionTimestamp) await this.#remove(pod, api);
      return;
    }
    const run = this.#runs.get(uid) ?? this.#accept(pod, api.now);
    this.#runs.set(uid, run);
    if (deletionTimestamp) return await this.#terminate(pod, run, api);
    const deadline = spec.activeDeadlineSeconds === undefined
      ? Infinity
      : Date.parse(pod.status?.startTime ?? api.time) +
        spec.activeDeadlineSeconds * 1000;
    if (deadline <= api.now) {
      this.end(uid);
      await this.#write(pod, api, {
        ...this.#status(pod, run, api),
        phase: "Failed",
        reason: "DeadlineExceeded",
        message:
          "Pod was active on the node longer than the specified deadline",
      });
      return;
    }
    const next = this.#advance(pod, run, api.now, wake);
    await this.#write(pod, api, this.#status(pod, run, api));
    const until = Math.min(next, deadline);
    return until === Infinity ? undefined : Math.max(until - api.now, 0);
  }

  /** Starts to run a pod, or continues after a restart of the server. */
  #accept({ status, metadata }: Pod, now: number): Run {
    const [, , third, fourth] = (status?.podIP ?? "").split(".").map(Number);
    const known = (third ?? 0) * 256 + (fourth ?? 0);
    this.#addresses = Math.max(this.#addresses + (known ? 0 : 1), known);
    const address = known || this.#addresses;
    const created = Date.parse(metadata.creationTimestamp ?? "");
    const processes = new Map<string, Process>();
    for (
      const { name, restartCount, state, lastState } of [
        ...status?.initContainerStatuses ?? [],
        ...status?.containerStatuses ?? [],
      ]
    ) {
      const { running, terminated } = state ?? {};
      const process = newProcess(
        Date.parse(running?.startedAt ?? "") || created || now,
        restartCount ?? 0,
      );
      process.last = lastState;
      if (terminated) {
        const at = Date.parse(terminated.finishedAt ?? "") || now;
        process.isStarted = true;
        process.exit = { code: terminated.exitCode, at };
      }
      processes.set(name, process);
    }
    return {
      processes,
      ip: status?.podIP ??
        `10.${244 + (address >> 16)}.${(address >> 8) & 255}.${address & 255}`,
    };
  }

  /**
   * Starts, ends and restarts the containers whose time has come.
   *
   * @returns Time at which the next container is due, in milliseconds since
   * 1970.
   */
  #advance(pod: Pod, run: Run, now: number, wake: () => void): number {
    let next = Infinity;
    const { containers = [], initContainers = [], restartPolicy } = pod.spec;
    for (const container of initContainers) {
      const isSidecar = container.restartPolicy === "Always";
      const policy = isSidecar
        ? "Always"
        : restartPolicy === "Never"
        ? "Never"
        : "OnFailure";
      const process = this.#process(pod, run, container, now);
      const due = this.#step(pod, container, process, {
        now,
        policy,
        wake,
        length: 0,
      });
      next = Math.min(next, due);
      if (!isSidecar && process.exit?.code !== 0) return next;
      if (isSidecar && !process.isStarted) return next;
    }
    for (const container of containers) {
      const process = this.#process(pod, run, container, now);
      const due = this.#step(pod, container, process, {
        now,
        policy: restartPolicy ?? "Always",
        wake,
        length: FINISH_MS,
      });
      next = Math.min(next, due);
    }
    return next;
  }

  #process(pod: Pod, run: Run, { name }: Container, now: number): Process {
    const isFirst = run.processes.size === 0;
    const process = run.processes.get(name) ??
      newProcess(
        isFirst || pod.status?.startTime === undefined ? now + START_MS : now,
        0,
      );
    run.processes.set(name, process);
    return process;
  }

  #step(
    pod: Pod,
    container: Container,
    process: Process,
    { now, policy, wake, length }: {
      readonly now: number;
      readonly policy: string;
      readonly wake: () => void;
      /** Run time of a container without a hook, unless it is endless. */
      readonly length: number;
    },
  ): number {
    if (process.exit !== undefined) {
      const { code, at } = process.exit;
      const restarts = policy === "Always" ||
        (policy === "OnFailure" && code !== 0);
      if (!restarts) return Infinity;
      const { restarts: count } = process;
      const delay = count === 0
        ? 0
        : Math.min(BACKOFF_MS.first * 2 ** (count - 1), BACKOFF_MS.longest);
      if (at + delay > now) return at + delay;
      process.last = terminatedState(process);
      delete process.exit;
      process.restarts++;
      process.isStarted = false;
      process.startAt = now;
    }
    if (!process.isStarted) {
      if (process.startAt > now) return process.startAt;
      this.#start(pod, container, process, wake);
    }
    if (process.exit !== undefined) return now;
    const { initialDelaySeconds = 0 } = container.readinessProbe ?? {};
    const readyAt = process.startAt + initialDelaySeconds * 1000;
    const waiting = readyAt > now ? readyAt : Infinity;
    if (process.isHooked || policy === "Always") return waiting;
    if (process.startAt + length > now) {
      return Math.min(process.startAt + length, waiting);
    }
    process.exit = { code: 0, at: now };
    return now;
  }

  #start(
    pod: Pod,
    { name }: Container,
    process: Process,
    wake: () => void,
  ): void {
    process.isStarted = true;
    process.isReady = true;
    const end = (code: number, message?: string) => {
      if (process.exit !== undefined) return;
      const at = this.#context.clock.wallTime();
      process.exit = { code, at, ...(message !== undefined && { message }) };
    };
    const { run } = this.#context.pods;
    if (run === undefined) return;
    const fail = (error: unknown) => end(128, errorMessage(error));
    try {
      const result = run({
        pod: structuredClone(pod) as unknown as UntypedObject,
        container: name,
        signal: process.signal.signal,
        restarts: process.restarts,
        ready(isReady) {
          process.isReady = isReady;
          wake();
        },
      });
      process.isHooked = result !== undefined;
      if (typeof result === "number") end(result);
      else result?.then(end, fail).then(wake);
    } catch (error) {
      fail(error);
    }
  }

  #status(pod: Pod, run: Run, api: ControllerApi): PodStatus {
    const { now, time } = api;
    const hostIP = api.get(Node, { name: pod.spec.nodeName ?? "" })?.status
      ?.addresses?.find(({ type }) => type === "InternalIP")?.address ??
      "172.18.0.1";
    const { containers = [], initContainers = [], readinessGates } = pod.spec;
    const states = (list: readonly Container[], reason: string) =>
      list.map((container) =>
        containerStatus(container, run.processes.get(container.name), {
          now,
          reason,
        })
      );
    const inits = states(initContainers, "PodInitializing");
    const mains = states(
      containers,
      inits.length > 0 ? "PodInitializing" : "ContainerCreating",
    );
    const started = mains.some(({ state, lastState }) =>
      state?.running || state?.terminated || lastState?.terminated
    );
    const isInitialized = initContainers.every(({ restartPolicy }, index) => {
      const state = inits[index]?.state;
      return state?.terminated?.exitCode === 0 ||
        (restartPolicy === "Always" && state?.running !== undefined);
    });
    const phase = phaseOf(pod, inits, mains, started);
    const isOver = phase === "Succeeded" || phase === "Failed";
    const isReady = !isOver && mains.every(({ ready }) => ready);
    const gates = (readinessGates ?? []).every(({ conditionType }) =>
      podCondition(pod, conditionType)?.status === "True"
    );
    const waits = isOver && phase === "Succeeded"
      ? { reason: "PodCompleted" }
      : { reason: "ContainersNotReady" };
    let conditions = pod.status?.conditions ?? [];
    for (
      const [type, holds, why] of [
        ["PodReadyToStartContainers", started && !isOver, {}],
        ["Initialized", isInitialized || isOver, {
          reason: "ContainersNotInitialized",
        }],
        [
          "Ready",
          isReady && gates,
          isReady ? { reason: "ReadinessGatesNotReady" } : waits,
        ],
        ["ContainersReady", isReady, waits],
      ] as const
    ) {
      conditions = withCondition<PodCondition>(conditions, {
        type,
        status: holds ? "True" : "False",
        lastProbeTime: null as unknown as undefined,
        lastTransitionTime: time,
        ...(!holds && why),
      });
    }
    const ip = pod.spec.hostNetwork ? hostIP : run.ip;
    return {
      ...pod.status,
      phase,
      conditions,
      startTime: pod.status?.startTime ?? time,
      hostIP,
      hostIPs: [{ ip: hostIP }],
      ...(started && { podIP: ip, podIPs: [{ ip }] }),
      ...(inits.length > 0 && { initContainerStatuses: inits }),
      containerStatuses: mains,
    };
  }

  async #write(pod: Pod, api: ControllerApi, status: PodStatus): Promise<void> {
    const plain = readJson(writeJson(status)) as PodStatus;
    if (jsonEquals(plain, pod.status ?? {})) return;
    await api.update(Pod, pod, (draft) => {
      draft.status = plain;
    }, "status");
  }

  /** Stops the containers of a deleted pod, then removes it. */
  async #terminate(
    pod: Pod,
    run: Run,
    api: ControllerApi,
  ): Promise<number | undefined> {
    const { deletionTimestamp = "", deletionGracePeriodSeconds = 0 } =
      pod.metadata;
    const end = deletionGracePeriodSeconds === 0
      ? api.now
      : Date.parse(deletionTimestamp);
    const running = [...run.processes.values()].filter((process) =>
      process.isStarted && process.exit === undefined
    );
    for (const { signal } of running) signal.abort();
    run.stopAt ??= api.now + STOP_MS;
    const waits = running.some(({ isHooked }) => isHooked);
    const stopAt = Math.min(end, waits ? Infinity : run.stopAt);
    if (running.length > 0 && stopAt > api.now) return stopAt - api.now;
    for (const process of run.processes.values()) {
      process.isStarted = true;
      process.exit ??= { code: waits ? 137 : STOPPED, at: api.now };
    }
    const status = this.#status(pod, run, api);
    if (status.phase === "Running" || status.phase === "Pending") {
      const failed = status.containerStatuses?.some(({ state }) =>
        state?.terminated?.exitCode !== 0
      );
      status.phase = failed ? "Failed" : "Succeeded";
    }
    await this.#write(pod, api, status);
    this.end(pod.metadata.uid ?? "");
    await this.#remove(pod, api);
    return undefined;
  }

  async #remove(pod: Pod, api: ControllerApi): Promise<void> {
    const { deletionGracePeriodSeconds, finalizers = [] } = pod.metadata;
    if (deletionGracePeriodSeconds === 0 && finalizers.length > 0) return;
    await api.delete(Pod, pod, { gracePeriodSeconds: 0 });
  }
}

function newProcess(startAt: number, restarts: number): Process {
  return {
    restarts,
    startAt,
    isStarted: false,
    isReady: false,
    isHooked: false,
    signal: new AbortController(),
  };
}

function terminatedState(process: Process): ContainerState {
  const { code = 0, at = 0, message } = process.exit ?? {};
  return {
    terminated: {
      exitCode: code,
      reason: code === 0
        ? "Completed"
        : message !== undefined
        ? "StartError"
        : "Error",
      ...(message !== undefined && { message }),
      startedAt: timestamp(process.startAt),
      finishedAt: timestamp(at),
    },
  };
}

function containerStatus(
  container: Container,
  process: Process | undefined,
  { now, reason }: { readonly now: number; readonly reason: string },
): ContainerStatus {
  const { name, image = "", readinessProbe } = container;
  const isRunning = process?.isStarted === true && process.exit === undefined;
  const readyAt = (process?.startAt ?? 0) +
    (readinessProbe?.initialDelaySeconds ?? 0) * 1000;
  const isStarted = isRunning && process.startAt <= now;
  return {
    name,
    state: isRunning
      ? { running: { startedAt: timestamp(process.startAt) } }
      : process?.exit
      ? terminatedState(process)
      : { waiting: { reason } },
    lastState: process?.last ?? {},
    ready: isStarted && process.isReady && readyAt <= now,
    restartCount: process?.restarts ?? 0,
    image,
    imageID: isStarted ? `simulated://${image}` : "",
    started: isStarted,
  };
}

function phaseOf(
  { spec: { restartPolicy } }: Pod,
  inits: readonly ContainerStatus[],
  mains: readonly ContainerStatus[],
  started: boolean,
): "Failed" | "Pending" | "Running" | "Succeeded" {
  const failed = ({ state }: ContainerStatus) =>
    state?.terminated !== undefined && state.terminated.exitCode !== 0;
  if (restartPolicy === "Never" && inits.some(failed)) return "Failed";
  if (!started) return "Pending";
  const isOver = restartPolicy !== "Always" &&
    mains.every(({ state }) => state?.terminated) &&
    (restartPolicy === "Never" || !mains.some(failed));
  if (!isOver) return "Running";
  return mains.some(failed) ? "Failed" : "Succeeded";
}
