import type {
  DaemonSet,
  Deployment,
  ReplicaSet,
  StatefulSet,
} from "../../../core/kinds/apps_v1.ts";
import type {
  AutoscalingV1HorizontalPodAutoscaler,
} from "../../../core/kinds/autoscaling_v1.ts";
import type {
  HorizontalPodAutoscaler,
  HPAScalingRules,
} from "../../../core/kinds/autoscaling_v2.ts";
import type { CronJob, Job } from "../../../core/kinds/batch_v1.ts";
import { type DefaultRules, rule } from "./default_rule.ts";

function defaultDeployment({ spec }: Deployment): void {
  spec.replicas ??= 1;
  const strategy = spec.strategy ??= {};
  strategy.type ??= "RollingUpdate";
  if (strategy.type === "RollingUpdate") {
    const rollingUpdate = strategy.rollingUpdate ??= {};
    rollingUpdate.maxUnavailable ??= "25%";
    rollingUpdate.maxSurge ??= "25%";
  }
  spec.revisionHistoryLimit ??= 10;
  spec.progressDeadlineSeconds ??= 600;
}

function defaultDaemonSet({ metadata, spec }: DaemonSet): void {
  // Generation of the template, a field of the removed version extensions/v1beta1.
  const generation = "deprecated.daemonset.template.generation";
  metadata.annotations = { [generation]: "0", ...metadata.annotations };
  const strategy = spec.updateStrategy ??= {};
  strategy.type ??= "RollingUpdate";
  if (strategy.type === "RollingUpdate") {
    const rollingUpdate = strategy.rollingUpdate ??= {};
    rollingUpdate.maxUnavailable ??= 1;
    rollingUpdate.maxSurge ??= 0;
  }
  spec.revisionHistoryLimit ??= 10;
}

function defaultStatefulSet({ spec }: StatefulSet): void {
  spec.podManagementPolicy ??= "OrderedReady";
  const strategy = spec.updateStrategy ??= {};
  if (strategy.type === undefined) {
    strategy.type = "RollingUpdate";
    strategy.rollingUpdate ??= {};
  }
  if (strategy.type === "RollingUpdate" && strategy.rollingUpdate) {
    strategy.rollingUpdate.partition ??= 0;
  }
  const retention = spec.persistentVolumeClaimRetentionPolicy ??= {};
  retention.whenDeleted ??= "Retain";
  retention.whenScaled ??= "Retain";
  spec.replicas ??= 1;
  spec.revisionHistoryLimit ??= 10;
  // Claim templates are stored as whole objects, with apiVersion and kind.
  for (const template of spec.volumeClaimTemplates ?? []) {
    template.apiVersion = "v1";
    template.kind = "PersistentVolumeClaim";
  }
}

function defaultJob({ metadata, spec }: Job): void {
  if (spec === undefined) return;
  if (spec.completions === undefined && spec.parallelism === undefined) {
    spec.completions = 1;
  }
  spec.parallelism ??= 1;
  spec.backoffLimit ??= spec.backoffLimitPerIndex === undefined
    ? 6
    : 2 ** 31 - 1;
  const { labels } = spec.template?.metadata ?? {};
  // The same map on purpose: labels added to the template are added here, too.
  if (labels) metadata.labels ??= labels;
  spec.completionMode ??= "NonIndexed";
  spec.suspend ??= false;
  for (const { onPodConditions = [] } of spec.podFailurePolicy?.rules ?? []) {
    for (const pattern of onPodConditions) pattern.status ||= "True";
  }
  spec.podReplacementPolicy ??= spec.podFailurePolicy
    ? "Failed"
    : "TerminatingOrFailed";
  spec.manualSelector ??= false;
}

function defaultCronJob({ spec }: CronJob): void {
  if (spec === undefined) return;
  spec.concurrencyPolicy ??= "Allow";
  spec.suspend ??= false;
  spec.successfulJobsHistoryLimit ??= 3;
  spec.failedJobsHistoryLimit ??= 1;
}

const METRICS_ANNOTATION = "autoscaling.alpha.kubernetes.io/metrics";

const SCALE_UP: HPAScalingRules = {
  stabilizationWindowSeconds: 0,
  selectPolicy: "Max",
  policies: [
    { type: "Pods", value: 4, periodSeconds: 15 },
    { type: "Percent", value: 100, periodSeconds: 15 },
  ],
};
const SCALE_DOWN: HPAScalingRules = {
  selectPolicy: "Max",
  policies: [{ type: "Percent", value: 100, periodSeconds: 15 }],
};

function defaultAutoscaler({ spec }: HorizontalPodAutoscaler): void {
  if (spec === undefined) return;
  spec.minReplicas ??= 1;
  spec.metrics ??= [{
    type: "Resource",
    resource: {
      name: "cpu",
      target: { type: "Utilization", averageUtilization: 80 },
    },
  }];
  const { behavior } = spec;
  if (behavior === undefined) return;
  behavior.scaleUp = { ...structuredClone(SCALE_UP), ...behavior.scaleUp };
  behavior.scaleDown = {
    ...structuredClone(SCALE_DOWN),
    ...behavior.scaleDown,
  };
}

/** Default rules of workloads, Jobs and autoscalers. */
export const WORKLOAD_DEFAULTS: DefaultRules = [
  rule("api.apps.v1.Deployment", defaultDeployment),
  rule("api.apps.v1.DaemonSet", defaultDaemonSet),
  rule("api.apps.v1.StatefulSet", defaultStatefulSet),
  rule("api.apps.v1.ReplicaSet", ({ spec }: ReplicaSet) => {
    if (spec) spec.replicas ??= 1;
  }),
  rule("api.batch.v1.Job", defaultJob),
  rule("api.batch.v1.CronJob", defaultCronJob),
  rule("api.autoscaling.v2.HorizontalPodAutoscaler", defaultAutoscaler),
  rule(
    "api.autoscaling.v1.HorizontalPodAutoscaler",
    ({ metadata, spec }: AutoscalingV1HorizontalPodAutoscaler) => {
      if (spec === undefined) return;
      spec.minReplicas ??= 1;
      // An annotation holds the metrics for which this version has no field.
      if (metadata.annotations?.[METRICS_ANNOTATION]) return;
      spec.targetCPUUtilizationPercentage ??= 80;
    },
  ),
];
