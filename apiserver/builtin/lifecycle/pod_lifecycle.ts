import type { UntypedObject } from "../../../core/api/object.ts";
import type { Pod } from "../../../core/kinds/core_v1.ts";
import { FieldSet } from "../../merge/field_set.ts";
import { timestamp } from "../../../core/api/timestamp.ts";
import { generationLifecycle, type Lifecycle } from "./lifecycle.ts";
import { qosClassOf } from "./pod_qos.ts";
import { keepResize } from "./pod_resize.ts";

const STATUS_RESET: FieldSet = FieldSet.of([
  ["f:spec"],
  ["f:metadata", "f:deletionTimestamp"],
  ["f:metadata", "f:ownerReferences"],
]);

/** Changes a negative grace period to one second. */
function limitGracePeriod({ spec }: ReturnType<typeof asPod>): void {
  if ((spec.terminationGracePeriodSeconds ?? 0) < 0) {
    spec.terminationGracePeriodSeconds = 1;
  }
}

const GENERATION = generationLifecycle("spec");

/** Lifecycle of Pods. */
export const POD_LIFECYCLE: Lifecycle = {
  prepareForCreate(object, context): void {
    const pod = asPod(object);
    pod.status = { phase: "Pending", qosClass: qosClassOf(pod) };
    limitGracePeriod(pod);
    if (pod.spec.schedulingGates === undefined) return;
    const neverProbed = null as unknown as undefined;
    pod.status.conditions = [{
      type: "PodScheduled",
      status: "False",
      lastProbeTime: neverProbed,
      lastTransitionTime: timestamp(context.now),
      reason: "SchedulingGated",
      message: "Scheduling is blocked due to non-empty scheduling gates",
    }];
  },
  prepareForUpdate(object, live, context): void {
    if (context.subresource === "resize") {
      keepResize(asPod(object), asPod(live));
    }
    limitGracePeriod(asPod(object));
    GENERATION.prepareForUpdate?.(object, live, context);
    if (context.subresource !== "status") return;
    const { metadata, status } = asPod(object);
    const before = asPod(live);
    const { ownerReferences } = before.metadata;
    if (ownerReferences) metadata.ownerReferences = ownerReferences;
    else delete metadata.ownerReferences;
    if (status && before.status?.qosClass) {
      status.qosClass ??= before.status.qosClass;
    }
  },
  resetFields: (subresource) =>
    subresource === "status" ? STATUS_RESET : undefined,
  gracePeriod(object, requested): number {
    const { spec, status } = asPod(object);
    // A Pod without a node, or one that has terminated, needs no grace period.
    const isOver = status?.phase === "Failed" || status?.phase === "Succeeded";
    if (!spec.nodeName || isOver) return 0;
    const period = requested ?? spec.terminationGracePeriodSeconds ?? 30;
    return period < 0 ? 1 : period;
  },
};

function asPod(object: UntypedObject): Pod {
  return object as unknown as Pod;
}
