import { matchesLabels } from "@coracle/operator/client";
import { labelRequirement } from "@coracle/operator/internal";
import { Node, Pod, type PodSpec, type Taint } from "@coracle/operator/kinds";
import { topologyLabels } from "../../admission/pod_topology.ts";
import { assign } from "../../write/bind.ts";
import type { ControllerApi } from "../controller_api.ts";
import type { ControllerDefinition } from "../controller_loop.ts";
import { internalRequest } from "../internal_request.ts";
import { withCondition } from "../conditions.ts";
import { isFinished, podCondition } from "../workloads/pods.ts";

type Term = NonNullable<
  NonNullable<
    NonNullable<NonNullable<PodSpec["affinity"]>["nodeAffinity"]>[
      "requiredDuringSchedulingIgnoredDuringExecution"
    ]
  >["nodeSelectorTerms"]
>[number];

/** Whether a node matches a pod's node selector and node affinity. */
export function matchesNode(spec: PodSpec, { metadata }: Node): boolean {
  const { name, labels = {} } = metadata;
  const wanted = Object.entries(spec.nodeSelector ?? {});
  if (!wanted.every(([key, value]) => labels[key] === value)) return false;
  const required = spec.affinity?.nodeAffinity
    ?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms;
  return required === undefined ||
    required.some((term) => matchesTerm(term, labels, name));
}

function matchesTerm(
  { matchExpressions = [], matchFields = [] }: Term,
  labels: Readonly<Record<string, string>>,
  name: string,
): boolean {
  if (matchExpressions.length + matchFields.length === 0) return false;
  const requirements = matchExpressions.map(({ key, operator, values = [] }) =>
    labelRequirement(key, operator, values)
  );
  return matchesLabels(requirements, labels) &&
    matchFields.every(({ operator, values = [] }) =>
      values.includes(name) === (operator === "In")
    );
}

const UNSCHEDULABLE: Taint = {
  key: "node.kubernetes.io/unschedulable",
  effect: "NoSchedule",
};

/** Whether a pod tolerates the taints of a node with one of the effects. */
export function toleratesTaints(
  { tolerations = [] }: PodSpec,
  { spec }: Node,
  effects: readonly string[],
): boolean {
  const taints: Taint[] = [
    ...spec?.taints ?? [],
    ...(spec?.unschedulable ? [UNSCHEDULABLE] : []),
  ];
  return taints.every((taint) =>
    !effects.includes(taint.effect) ||
    tolerations.some(({ key, operator, value, effect }) =>
      (!effect || effect === taint.effect) && (!key || key === taint.key) &&
      (operator === "Exists" || (value ?? "") === (taint.value ?? ""))
    )
  );
}

/** Scheduler of a server with simulated nodes; ignores resources. */
export const SCHEDULER: ControllerDefinition = {
  name: "scheduler",
  manager: "kube-scheduler",
  kind: Pod,
  watches: [{
    kind: Node,
    *keys(_, api) {
      for (const pod of api.context.store.collection(Pod).values()) {
        if (isWaiting(pod.parse() as unknown as Pod)) yield pod.key;
      }
    },
  }],
  async sync(object, api) {
    const pod = object as Pod;
    if (isWaiting(pod)) await schedule(pod, api);
  },
};

function isWaiting(pod: Pod): boolean {
  const { nodeName, schedulingGates = [], schedulerName } = pod.spec;
  return !nodeName && schedulingGates.length === 0 && !isFinished(pod) &&
    pod.metadata.deletionTimestamp === undefined &&
    (schedulerName ?? "default-scheduler") === "default-scheduler";
}

async function schedule(pod: Pod, api: ControllerApi): Promise<void> {
  const nodes = api.list(Node, undefined);
  const fitting = nodes.filter((node) =>
    matchesNode(pod.spec, node) &&
    toleratesTaints(pod.spec, node, ["NoSchedule", "NoExecute"])
  );
  const { namespace = "", name } = pod.metadata;
  if (fitting.length > 0) {
    const index = nextIndex(api, fitting.length);
    const { store, resources } = api.context;
    const definition = resources.find("", "pods");
    const stored = store.collection(Pod).get(`${namespace}/${name}`);
    if (definition === undefined || stored === undefined) return;
    const bound = stored.parse();
    const node = fitting[index] as Node;
    assign(internalRequest(api.context, definition, stored), bound, {
      node: node.metadata.name,
      labels: topologyLabels(node),
    });
    store.put(definition, bound);
    return;
  }
  const message = nodes.length === 0
    ? "no nodes available to schedule pods"
    : `0/${nodes.length} nodes are available: ${nodes.length} node(s) didn't match Pod's node affinity/selector or had untolerated taint(s).`;
  if (podCondition(pod, "PodScheduled")?.message === message) return;
  await api.update(Pod, pod, (draft) => {
    draft.status = {
      ...draft.status,
      conditions: withCondition(draft.status?.conditions, {
        type: "PodScheduled",
        status: "False",
        lastTransitionTime: api.time,
        reason: "Unschedulable",
        message,
      }),
    };
  }, "status");
}

const bindings = new WeakMap<object, number>();

/** Index of the next node in a round robin. */
function nextIndex({ context }: ControllerApi, count: number): number {
  const turn = bindings.get(context) ?? 0;
  bindings.set(context, turn + 1);
  return turn % count;
}
