import type { UntypedObject } from "../../../core/api/object.ts";
import type { DaemonSet } from "../../../core/kinds/apps_v1.ts";
import type { Job } from "../../../core/kinds/batch_v1.ts";
import { FieldSet } from "../../merge/field_set.ts";
import { jsonEquals } from "../../../core/patch/json_value.ts";
import {
  generationLifecycle,
  type Lifecycle,
  type Lifecycles,
} from "./lifecycle.ts";

const DEPLOYMENT_STATUS_RESET: FieldSet = FieldSet.of([
  ["f:spec"],
  ["f:metadata", "f:labels"],
]);

const DEPLOYMENT: Lifecycle = {
  prepareForUpdate(object, live, context): void {
    if (context.subresource === "status") {
      const { labels } = live.metadata;
      if (labels) object.metadata.labels = labels;
      else delete object.metadata.labels;
    }
    generationLifecycle("spec", "metadata.annotations")
      .prepareForUpdate?.(object, live, context);
  },
  resetFields: (subresource) =>
    subresource === "status" ? DEPLOYMENT_STATUS_RESET : undefined,
};

/** Annotation with the generation of the template, a spec field of the removed version extensions/v1beta1. */
const TEMPLATE_GENERATION = "deprecated.daemonset.template.generation";

const DAEMON_SET: Lifecycle = {
  prepareForCreate(object): void {
    setTemplateGeneration(object, 1);
  },
  prepareForUpdate(object, live, context): void {
    const { spec } = object as unknown as DaemonSet;
    const before = live as unknown as DaemonSet;
    const count = Number(before.metadata.annotations?.[TEMPLATE_GENERATION]) ||
      0;
    const changed = context.subresource === undefined &&
      !jsonEquals(spec.template, before.spec.template);
    if (count > 0 || changed) {
      setTemplateGeneration(object, changed ? count + 1 : count);
    }
    generationLifecycle("spec").prepareForUpdate?.(object, live, context);
  },
};

function setTemplateGeneration(
  { metadata }: UntypedObject,
  count: number,
): void {
  metadata.annotations = {
    ...metadata.annotations,
    [TEMPLATE_GENERATION]: String(count),
  };
}

const JOB: Lifecycle = {
  prepareForCreate(object): void {
    selectOwnPods(object as unknown as Job);
  },
  ...generationLifecycle("spec"),
};

/** Makes a Job select its Pods by uid, unless it sets its own selector. */
function selectOwnPods({ metadata, spec }: Job): void {
  if (spec === undefined || spec.manualSelector) return;
  const uid = metadata.uid ?? "";
  const labels = {
    "batch.kubernetes.io/controller-uid": uid,
    "batch.kubernetes.io/job-name": metadata.name ?? "",
    "controller-uid": uid,
    "job-name": metadata.name ?? "",
  };
  const template = spec.template.metadata ??= {};
  template.labels = Object.assign(template.labels ?? {}, labels);
  metadata.labels ??= template.labels;
  spec.selector = {
    ...spec.selector,
    matchLabels: {
      ...spec.selector?.matchLabels,
      "batch.kubernetes.io/controller-uid": uid,
    },
  };
}

/** Lifecycles of the workload kinds. */
export const WORKLOAD_LIFECYCLES: Lifecycles = [
  ["deployments.apps", DEPLOYMENT],
  ["daemonsets.apps", DAEMON_SET],
  ["jobs.batch", JOB],
];
