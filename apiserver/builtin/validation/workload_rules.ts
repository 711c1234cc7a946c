import type {
  DaemonSetSpec,
  DaemonSetUpdateStrategy,
  DeploymentSpec,
  DeploymentStrategy,
  ReplicaSetSpec,
  StatefulSetSpec,
} from "../../../core/kinds/apps_v1.ts";
import type {
  PodTemplateSpec,
  ReplicationControllerSpec,
} from "../../../core/kinds/core_v1.ts";
import type { LabelSelector } from "../../../core/kinds/meta_v1.ts";
import { shownIntOrString, shownLabels, shownSelector } from "./go_shown.ts";
import { selects } from "./label_rules.ts";
import { check, type Place, type ValidationRules } from "./place.ts";
import { checkTemplate } from "./pod_rules.ts";
import { shareOf, shareProblems } from "./value_problems.ts";

const NO_TEMPLATE: PodTemplateSpec = { spec: { containers: [] } };

/** The selector is there, selects something, and selects the template. */
function checkSelection(
  { selector, template, kind }: {
    readonly selector: LabelSelector | undefined;
    readonly template: PodTemplateSpec;
    readonly kind: string;
  },
  place: Place,
): void {
  const labels = template.metadata?.labels;
  const mismatch = () =>
    place.invalidShown(
      "template.metadata.labels",
      shownLabels(labels),
      "`selector` does not match template `labels`",
    );
  if (!selector) {
    place.required("selector");
    // No selector selects nothing.
    mismatch();
    return;
  }
  const { matchLabels = {}, matchExpressions = [] } = selector;
  const isEmpty =
    Object.keys(matchLabels).length + matchExpressions.length === 0;
  if (isEmpty) {
    place.invalidShown(
      "selector",
      shownSelector(selector),
      `empty selector is invalid for ${kind}`,
    );
    return;
  }
  const selected = selects(selector, labels ?? {});
  if (selected === undefined) {
    place.invalidShown(
      "selector",
      shownSelector(selector),
      "invalid label selector",
    );
  } else if (!selected) mismatch();
}

/** Pods of most workloads run until they are stopped. */
function checkRunsForever(
  { spec }: PodTemplateSpec,
  kind: string,
  place: Place,
): void {
  if (spec?.restartPolicy !== "Always") {
    place.notSupported("template.spec.restartPolicy", spec?.restartPolicy, [
      "Always",
    ]);
  }
  if (spec?.activeDeadlineSeconds !== undefined) {
    place.forbidden(
      "template.spec.activeDeadlineSeconds",
      `activeDeadlineSeconds in ${kind} is not Supported`,
    );
  }
}

/** Checks a number, or a percentage, of something. */
export function checkShare(
  below: string,
  value: number | string | undefined,
  { place, percentLimit }: {
    readonly place: Place;
    readonly percentLimit: boolean;
  },
): void {
  if (value === undefined) return;
  for (const problem of shareProblems(value)) {
    if (typeof value === "number") place.invalid(below, value, problem);
    else place.invalidShown(below, shownIntOrString(value), problem);
  }
  const isTooMuch = typeof value === "string" && shareOf(value) > 100;
  if (percentLimit && isTooMuch) {
    place.invalidShown(
      below,
      shownIntOrString(value),
      "must not be greater than 100%",
    );
  }
}

function checkDeployment(spec: DeploymentSpec, place: Place): void {
  place.notNegative(
    spec,
    "replicas",
    "minReadySeconds",
    "revisionHistoryLimit",
    "progressDeadlineSeconds",
  );
  checkSelection({ ...spec, kind: "deployment" }, place);
  checkRunsForever(spec.template, "ReplicaSet", place);
  checkDeploymentStrategy(spec.strategy ?? {}, place.at("strategy"));
  const { progressDeadlineSeconds: deadline, minReadySeconds = 0 } = spec;
  if (deadline !== undefined && deadline <= minReadySeconds) {
    place.invalid(
      "progressDeadlineSeconds",
      deadline,
      "must be greater than minReadySeconds",
    );
  }
}

function checkDeploymentStrategy(
  { type, rollingUpdate }: DeploymentStrategy,
  place: Place,
): void {
  if (type === "Recreate") {
    if (rollingUpdate) {
      place.forbidden(
        "rollingUpdate",
        "may not be specified when strategy `type` is 'Recreate'",
      );
    }
  } else if (type === "RollingUpdate") {
    const at = place.at("rollingUpdate");
    const { maxUnavailable = 0, maxSurge = 0 } = rollingUpdate ?? {};
    checkShare("maxUnavailable", maxUnavailable, {
      place: at,
      percentLimit: true,
    });
    checkShare("maxSurge", maxSurge, { place: at, percentLimit: false });
    if (shareOf(maxUnavailable) === 0 && shareOf(maxSurge) === 0) {
      at.invalidShown(
        "maxUnavailable",
        shownIntOrString(maxUnavailable),
        "may not be 0 when `maxSurge` is 0",
      );
    }
  } else place.notSupported("", type, ["Recreate", "RollingUpdate"]);
}

function checkReplicaSet(
  { template = NO_TEMPLATE, ...spec }: ReplicaSetSpec,
  place: Place,
): void {
  place.notNegative(spec, "replicas", "minReadySeconds");
  checkSelection(
    { selector: spec.selector, template, kind: "deployment" },
    place,
  );
  checkRunsForever(template, "ReplicaSet", place);
}

function checkReplicationController(
  spec: ReplicationControllerSpec,
  place: Place,
): void {
  place.notNegative(spec, "replicas", "minReadySeconds");
  const { selector = {}, template } = spec;
  if (Object.keys(selector).length === 0) place.required("selector");
  if (!template) {
    place.required("template");
    return;
  }
  const labels = template.metadata?.labels ?? {};
  if (!selects({ matchLabels: selector }, labels)) {
    place.invalidShown(
      "template.metadata.labels",
      shownLabels(template.metadata?.labels),
      "`selector` does not match template `labels`",
    );
  }
  checkRunsForever(template, "ReplicationController", place);
}

function checkDaemonSet(spec: DaemonSetSpec, place: Place): void {
  place.notNegative(spec, "minReadySeconds", "revisionHistoryLimit");
  const { selector, template } = spec;
  if (selector) checkSelection({ ...spec, kind: "daemonset" }, place);
  else {
    place.invalidShown(
      "template.metadata.labels",
      shownLabels(template.metadata?.labels),
      "`selector` does not match template `labels`",
    );
  }
  checkRunsForever(template, "DaemonSet", place);
  checkDaemonSetStrategy(spec.updateStrategy ?? {}, place.at("updateStrategy"));
}

function checkDaemonSetStrategy(
  { type, rollingUpdate = {} }: DaemonSetUpdateStrategy,
  place: Place,
): void {
  if (type === "OnDelete") return;
  if (type !== "RollingUpdate") {
    place.notSupported("", type, ["RollingUpdate", "OnDelete"]);
    return;
  }
  const at = place.at("rollingUpdate");
  const { maxUnavailable, maxSurge = 0 } = rollingUpdate;
  checkShare("maxUnavailable", maxUnavailable, {
    place: at,
    percentLimit: true,
  });
  checkShare("maxSurge", maxSurge, { place: at, percentLimit: true });
  const hasSurge = shareOf(maxSurge) !== 0;
  if (shareOf(maxUnavailable) === 0) {
    if (!hasSurge) {
      at.required("maxUnavailable", "cannot be 0 when maxSurge is 0");
    }
  } else if (hasSurge) {
    at.invalidShown(
      "maxSurge",
      shownIntOrString(maxSurge),
      "may not be set when maxUnavailable is non-zero",
    );
  }
}

function checkStatefulSet(spec: StatefulSetSpec, place: Place): void {
  place.notNegative(spec, "replicas", "minReadySeconds");
  const { podManagementPolicy: policy, updateStrategy = {} } = spec;
  if (policy !== "OrderedReady" && policy !== "Parallel") {
    place.invalid(
      "podManagementPolicy",
      policy,
      "must be 'OrderedReady' or 'Parallel'",
    );
  }
  const { type, rollingUpdate } = updateStrategy;
  if (type === "OnDelete") {
    if (rollingUpdate) {
      place.invalidShown(
        "updateStrategy.rollingUpdate",
        `apps.RollingUpdateStatefulSetStrategy{Partition:${
          rollingUpdate.partition ?? 0
        }, MaxUnavailable:<nil>}`,
        "only allowed for updateStrategy 'RollingUpdate'",
      );
    }
  } else if (type === "RollingUpdate") {
    if (rollingUpdate) {
      place.at("updateStrategy.rollingUpdate")
        .notNegative(rollingUpdate, "partition");
    }
  } else {
    place.invalidShown(
      "updateStrategy",
      `apps.StatefulSetUpdateStrategy{Type:${
        JSON.stringify(type)
      }, RollingUpdate:(*apps.RollingUpdateStatefulSetStrategy)(nil)}`,
      "must be 'RollingUpdate' or 'OnDelete'",
    );
  }
  if ((spec.ordinals?.start ?? 0) < 0) {
    place.invalid(
      "ordinals.start",
      spec.ordinals?.start,
      "must be greater than or equal to 0",
    );
  }
  checkSelection({ ...spec, kind: "statefulset" }, place);
  checkRunsForever(spec.template, "StatefulSet", place);
  const retention = spec.persistentVolumeClaimRetentionPolicy;
  for (const when of ["whenDeleted", "whenScaled"] as const) {
    const what = retention?.[when];
    if (what === undefined || what === "Retain" || what === "Delete") continue;
    place.notSupported(`persistentVolumeClaimRetentionPolicy.${when}`, what, [
      "Retain",
      "Delete",
    ]);
  }
  // What else is in the template is only told when Pods are made of it.
  checkTemplate(spec.template, place.at("template"));
}

/** What is checked of what keeps Pods running. */
export const WORKLOAD_RULES: ValidationRules = [
  check("api.apps.v1.DeploymentSpec", checkDeployment),
  check("api.apps.v1.ReplicaSetSpec", checkReplicaSet),
  check("api.apps.v1.DaemonSetSpec", checkDaemonSet),
  check("api.apps.v1.StatefulSetSpec", checkStatefulSet),
  check("api.core.v1.ReplicationControllerSpec", checkReplicationController),
];
