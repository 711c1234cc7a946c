import {
  DaemonSet,
  Node,
  Pod,
  type PodSpec,
  type Toleration,
} from "@coracle/operator/kinds";
import type { ControllerApi, Draft } from "../controller_api.ts";
import type { ControllerDefinition } from "../controller_loop.ts";
import { matchesNode, toleratesTaints } from "../nodes/scheduler.ts";
import {
  availableAt,
  byAge,
  isFinished,
  isReady,
  podFrom,
  readiness,
  scaled,
} from "./pods.ts";
import { cutRevisions, syncRevisions } from "./revisions.ts";

const HASH_LABEL = "controller-revision-hash";

/** Tolerations of all pods of DaemonSets, which run even on nodes with problems. */
const TOLERATIONS: readonly Toleration[] = [
  ...(["not-ready", "unreachable"] as const).map((name) => ({
    key: `node.kubernetes.io/${name}`,
    operator: "Exists" as const,
    effect: "NoExecute" as const,
  })),
  ...["disk-pressure", "memory-pressure", "pid-pressure", "unschedulable"].map(
    (name) => ({
      key: `node.kubernetes.io/${name}`,
      operator: "Exists" as const,
      effect: "NoSchedule" as const,
    }),
  ),
];

/** Controller of DaemonSets. */
export const DAEMON_SETS: ControllerDefinition = {
  name: "daemonset-controller",
  kind: DaemonSet,
  owns: [Pod],
  watches: [{
    kind: Node,
    *keys({ type }, api) {
      const sets = api.context.store.collection(DaemonSet);
      if (type !== "MODIFIED" || sets.size > 0) {
        for (const { key } of sets.values()) yield key;
      }
    },
  }],
  sync: (object, api) => syncDaemonSet(object as DaemonSet, api),
};

/** Name of the node that a pod was created for. */
function nodeOf({ spec }: Pod): string {
  const terms = spec.affinity?.nodeAffinity
    ?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms;
  return spec.nodeName || (terms?.[0]?.matchFields?.[0]?.values?.[0] ?? "");
}

async function syncDaemonSet(
  set: DaemonSet,
  api: ControllerApi,
): Promise<number | undefined> {
  const { metadata, spec, status } = set;
  const { minReadySeconds = 0, template, updateStrategy } = spec;
  const { all, newest } = await syncRevisions(
    api,
    DaemonSet,
    set,
    (hash) => ({ [HASH_LABEL]: hash }),
  );
  const hash = newest.metadata.labels?.[HASH_LABEL] ?? "";
  const isNew = (pod: Pod) => pod.metadata.labels?.[HASH_LABEL] === hash;
  const podSpec: PodSpec = {
    ...template.spec,
    tolerations: [...template.spec.tolerations ?? [], ...TOLERATIONS],
  };
  const nodes = api.list(Node, undefined);
  const isWanted = (node: Node, effects: readonly string[]) =>
    matchesNode(podSpec, node) && toleratesTaints(podSpec, node, effects);
  const wanted = nodes.filter((node) =>
    isWanted(node, ["NoSchedule", "NoExecute"])
  );
  const claim = () => api.claim(Pod, DaemonSet, set, spec.selector);
  const create = (node: string) =>
    api.create(Pod, podOn(node, set, podSpec, hash));
  const isAvailable = (pod: Pod) =>
    (availableAt(pod, minReadySeconds) ?? Infinity) <= api.now;
  let failure: unknown;
  if (metadata.deletionTimestamp === undefined) {
    try {
      const pods = await claim();
      const surge = scaled(
        updateStrategy?.rollingUpdate?.maxSurge,
        wanted.length,
        "up",
      );
      await place(pods, {
        api,
        create,
        nodes: wanted.map(({ metadata }) => metadata.name),
        kept: new Set(
          nodes.filter((node) => isWanted(node, ["NoExecute"]))
            .map(({ metadata }) => metadata.name),
        ),
        surges: surge > 0,
        isNew,
      });
      if (updateStrategy?.type !== "OnDelete") {
        await roll(await claim(), {
          api,
          create,
          nodes: wanted.map(({ metadata }) => metadata.name),
          isNew,
          isAvailable,
          surge,
          unavailable: scaled(
            updateStrategy?.rollingUpdate?.maxUnavailable ?? 1,
            wanted.length,
            "up",
          ),
        });
      }
    } catch (error) {
      failure = error;
    }
  }
  const pods = await claim();
  const names = new Set(wanted.map(({ metadata }) => metadata.name));
  // The oldest pod of a node counts; with a surge there are two.
  const counted = new Map<string, Pod>();
  for (const pod of [...pods].sort(byAge)) {
    if (!counted.has(nodeOf(pod))) counted.set(nodeOf(pod), pod);
  }
  const inPlace = [...counted].filter(([node]) => names.has(node))
    .map(([, pod]) => pod);
  const { ready, available, delay } = readiness(
    inPlace,
    minReadySeconds,
    api.now,
  );
  const updated = inPlace.filter(isNew).length;
  const missing = wanted.length - available;
  await api.setStatus(DaemonSet, set, {
    currentNumberScheduled: inPlace.length,
    numberMisscheduled: counted.size - inPlace.length,
    desiredNumberScheduled: wanted.length,
    numberReady: ready,
    observedGeneration: metadata.generation,
    ...(updated > 0 && { updatedNumberScheduled: updated }),
    ...(available > 0 && { numberAvailable: available }),
    ...(missing > 0 && { numberUnavailable: missing }),
    ...(status?.collisionCount !== undefined &&
      { collisionCount: status.collisionCount }),
  });
  await cutRevisions(api, set, all, (revision) =>
    revision === newest ||
    pods.some(({ metadata: { labels } }) =>
      labels?.[HASH_LABEL] === revision.metadata.labels?.[HASH_LABEL]
    ));
  if (failure !== undefined) throw failure;
  return delay;
}

function podOn(
  node: string,
  set: DaemonSet,
  podSpec: PodSpec,
  hash: string,
): Draft<Pod> {
  const draft = podFrom(
    { ...set.spec.template, spec: podSpec },
    DaemonSet,
    set,
  );
  draft.metadata.labels = { ...draft.metadata.labels, [HASH_LABEL]: hash };
  draft.spec.affinity = {
    ...draft.spec.affinity,
    nodeAffinity: {
      ...draft.spec.affinity?.nodeAffinity,
      requiredDuringSchedulingIgnoredDuringExecution: {
        nodeSelectorTerms: [{
          matchFields: [{
            key: "metadata.name",
            operator: "In",
            values: [node],
          }],
        }],
      },
    },
  };
  return draft;
}

interface Placing {
  readonly api: ControllerApi;
  readonly create: (node: string) => Promise<unknown>;
  /** Names of the nodes that must have a pod. */
  readonly nodes: readonly string[];
  readonly isNew: (pod: Pod) => boolean;
}

/** Creates the pods of nodes without one; deletes failed and surplus ones. */
async function place(
  pods: readonly Pod[],
  { api, create, nodes, kept, surges, isNew }: Placing & {
    /** Names of the nodes that may keep a pod. */
    readonly kept: ReadonlySet<string>;
    readonly surges: boolean;
  },
): Promise<void> {
  const onNode = new Map<string, Pod[]>();
  for (const pod of pods) {
    onNode.set(nodeOf(pod), [...onNode.get(nodeOf(pod)) ?? [], pod]);
  }
  for (const node of nodes) {
    if (!onNode.has(node)) await create(node);
  }
  for (const [node, all] of onNode) {
    const alive = all.filter(({ metadata }) => !metadata.deletionTimestamp);
    const spare = alive.filter((pod) =>
      isFinished(pod) || !(nodes.includes(node) || kept.has(node))
    );
    const running = alive.filter((pod) => !spare.includes(pod)).sort(byAge);
    // With a surge the old pod and the new one stay.
    spare.push(
      ...surges
        ? [
          ...running.filter(isNew).slice(1),
          ...running.filter((pod) => !isNew(pod)).slice(1),
        ]
        : running.slice(1),
    );
    for (const pod of spare) await api.delete(Pod, pod);
  }
}

/** Replaces pods of old revisions within the limits of the update strategy. */
async function roll(
  pods: readonly Pod[],
  { api, create, nodes, isNew, isAvailable, surge, unavailable }: Placing & {
    readonly isAvailable: (pod: Pod) => boolean;
    readonly surge: number;
    readonly unavailable: number;
  },
): Promise<void> {
  let down = 0;
  let extra = 0;
  const replaced: Pod[] = [];
  const candidates: Pod[] = [];
  for (const node of nodes) {
    const here = pods.filter((pod) =>
      nodeOf(pod) === node && !pod.metadata.deletionTimestamp
    );
    const old = here.find((pod) => !isNew(pod));
    const fresh = here.find(isNew);
    if (!here.some(isAvailable)) down++;
    if (old === undefined) continue;
    if (surge > 0 && fresh !== undefined) {
      if (isAvailable(fresh)) await api.delete(Pod, old);
      else extra++;
    } else if (fresh === undefined) {
      (isAvailable(old) && isReady(old) ? candidates : replaced).push(old);
    }
  }
  const room = Math.max(0, surge > 0 ? surge - extra : unavailable - down);
  for (const pod of [...replaced, ...candidates.slice(0, room)]) {
    if (surge > 0) await create(nodeOf(pod));
    else await api.delete(Pod, pod);
  }
}
