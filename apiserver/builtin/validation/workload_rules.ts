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
import type { FieldPath } from "../../validation/field_path.ts";
import { shownIntOrString, shownLabels, shownSelector } from "./go_shown.ts";
import { selects } from "./label_rules.ts";
import { check, type ValidationRules } from "./validation_rule.ts";
import { checkTemplate } from "./pod_rules.ts";
import { intOrPercentProblems, intOrPercentValue } from "./value_problems.ts";

const NO_TEMPLATE: PodTemplateSpec = { spec: { containers: [] } };

/** Checks that the selector is set, not empty and matches the template. */
function checkSelection(
  { selector, template, kind }: {
    readonly selector: LabelSelector | undefined;
    readonly template: PodTemplateSpec;
    readonly kind: string;
  },
  fieldPath: FieldPath,
): void {
  const labels = template.metadata?.labels;
  const mismatch = () =>
    fieldPath.invalidShown(
      "template.metadata.labels",
      shownLabels(labels),
      "`selector` does not match template `labels`",
    );
  if (!selector) {
    fieldPath.required("selector");
    // Without a selector nothing matches.
    mismatch();
    return;
  }
  const { matchLabels = {}, matchExpressions = [] } = selector;
  const isEmpty =
    Object.keys(matchLabels).length + matchExpressions.length === 0;
  if (isEmpty) {
    fieldPath.invalidShown(
      "selector",
      shownSelector(selector),
      `empty selector is invalid for ${kind}`,
    );
    return;
  }
  const selected = selects(selector, labels ?? {});
  if (selected === undefined) {
    fieldPath.invalidShown(
      "selector",
      shownSelector(selector),
      "invalid label selector",
    );
  } else if (!selected) mismatch();
}

/** Checks that the restart policy is `Always`. */
function checkRestartPolicy(
  { spec }: PodTemplateSpec,
  kind: string,
  fieldPath: FieldPath,
): void {
  if (spec?.restartPolicy !== "Always") {
    fieldPath.notSupported("template.spec.restartPolicy", spec?.restartPolicy, [
      "Always",
    ]);
  }
  if (spec?.activeDeadlineSeconds !== undefined) {
    fieldPath.forbidden(
      "template.spec.activeDeadlineSeconds",
      `activeDeadlineSeconds in ${kind} is not Supported`,
    );
  }
}

/** Checks a number or percentage (`IntOrString`). */
export function checkIntOrPercent(
  below: string,
  value: number | string | undefined,
  { fieldPath, percentLimit }: {
    readonly fieldPath: FieldPath;
    readonly percentLimit: boolean;
  },
): void {
  if (value === undefined) return;
  for (const problem of intOrPercentProblems(value)) {
    if (typeof value === "number") fieldPath.invalid(below, value, problem);
    else fieldPath.invalidShown(below, shownIntOrString(value), problem);
  }
  const isTooMuch = typeof value === "string" && intOrPercentValue(value) > 100;
  if (percentLimit && isTooMuch) {
    fieldPath.invalidShown(
      below,
      shownIntOrString(value),
      "must not be greater than 100%",
    );
  }
}

function checkDeployment(spec: DeploymentSpec, fieldPath: FieldPath): void {
  fieldPath.notNegative(
    spec,
    "replicas",
    "minReadySeconds",
    "revisionHistoryLimit",
    "progressDeadlineSeconds",
  );
  checkSelection({ ...spec, kind: "deployment" }, fieldPath);
  checkRestartPolicy(spec.template, "ReplicaSet", fieldPath);
  checkDeploymentStrategy(spec.strategy ?? {}, fieldPath.child("strategy"));
  const { progressDeadlineSeconds: deadline, minReadySeconds = 0 } = spec;
  if (deadline !== undefined && deadline <= minReadySeconds) {
    fieldPath.invalid(
      "progressDeadlineSeconds",
      deadline,
      "must be greater than minReadySeconds",
    );
  }
}

function checkDeploymentStrategy(
  { type, rollingUpdate }: DeploymentStrategy,
  fieldPath: FieldPath,
): void {
  if (type === "Recreate") {
    if (rollingUpdate) {
      fieldPath.forbidden(
        "rollingUpdate",
        "may not be specified when strategy `type` is 'Recreate'",
      );
    }
  } else if (type === "RollingUpdate") {
    const at = fieldPath.child("rollingUpdate");
    const { maxUnavailable = 0, maxSurge = 0 } = rollingUpdate ?? {};
    checkIntOrPercent("maxUnavailable", maxUnavailable, {
      fieldPath: at,
      percentLimit: true,
    });
    checkIntOrPercent("maxSurge", maxSurge, {
      fieldPath: at,
      percentLimit: false,
    });
    if (
      intOrPercentValue(maxUnavailable) === 0 &&
      intOrPercentValue(maxSurge) === 0
    ) {
      at.invalidShown(
        "maxUnavailable",
        shownIntOrString(maxUnavailable),
        "may not be 0 when `maxSurge` is 0",
      );
    }
  } else fieldPath.notSupported("", type, ["Recreate", "RollingUpdate"]);
}

function checkReplicaSet(
  { template = NO_TEMPLATE, ...spec }: ReplicaSetSpec,
  fieldPath: FieldPath,
): void {
  fieldPath.notNegative(spec, "replicas", "minReadySeconds");
  checkSelection(
    { selector: spec.selector, template, kind: "deployment" },
    fieldPath,
  );
  checkRestartPolicy(template, "ReplicaSet", fieldPath);
}

function checkReplicationController(
  spec: ReplicationControllerSpec,
  fieldPath: FieldPath,
): void {
  fieldPath.notNegative(spec, "replicas", "minReadySeconds");
  const { selector = {}, template } = spec;
  if (Object.keys(selector).length === 0) fieldPath.required("selector");
  if (!template) {
    fieldPath.required("template");
    return;
  }
  const labels = template.metadata?.labels ?? {};
  if (!selects({ matchLabels: selector }, labels)) {
    fieldPath.invalidShown(
      "template.metadata.labels",
      shownLabels(template.metadata?.labels),
      "`selector` does not match template `labels`",
    );
  }
  checkRestartPolicy(template, "ReplicationController", fieldPath);
}

function checkDaemonSet(spec: DaemonSetSpec, fieldPath: FieldPath): void {
  fieldPath.notNegative(spec, "minReadySeconds", "revisionHistoryLimit");
  const { selector, template } = spec;
  if (selector) checkSelection({ ...spec, kind: "daemonset" }, fieldPath);
  else {
    fieldPath.invalidShown(
      "template.metadata.labels",
      shownLabels(template.metadata?.labels),
      "`selector` does not match template `labels`",
    );
  }
  checkRestartPolicy(template, "DaemonSet", fieldPath);
  checkDaemonSetStrategy(
    spec.updateStrategy ?? {},
    fieldPath.child("updateStrategy"),
  );
}

function checkDaemonSetStrategy(
  { type, rollingUpdate = {} }: DaemonSetUpdateStrategy,
  fieldPath: FieldPath,
): void {
  if (type === "OnDelete") return;
  if (type !== "RollingUpdate") {
    fieldPath.notSupported("", type, ["RollingUpdate", "OnDelete"]);
    return;
  }
  const at = fieldPath.child("rollingUpdate");
  const { maxUnavailable, maxSurge = 0 } = rollingUpdate;
  checkIntOrPercent("maxUnavailable", maxUnavailable, {
    fieldPath: at,
    percentLimit: true,
  });
  checkIntOrPercent("maxSurge", maxSurge, {
    fieldPath: at,
    percentLimit: true,
  });
  const hasSurge = intOrPercentValue(maxSurge) !== 0;
  if (intOrPercentValue(maxUnavailable) === 0) {
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

function checkStatefulSet(spec: StatefulSetSpec, fieldPath: FieldPath): void {
  fieldPath.notNegative(spec, "replicas", "minReadySeconds");
  const { podManagementPolicy: policy, updateStrategy = {} } = spec;
  if (policy !== "OrderedReady" && policy !== "Parallel") {
    fieldPath.invalid(
      "podManagementPolicy",
      policy,
      "must be 'OrderedReady' or 'Parallel'",
    );
  }
  const { type, rollingUpdate } = updateStrategy;
  if (type === "OnDelete") {
    if (rollingUpdate) {
      fieldPath.invalidShown(
        "updateStrategy.rollingUpdate",
        `apps.RollingUpdateStatefulSetStrategy{Partition:${
          rollingUpdate.partition ?? 0
        }, MaxUnavailable:<nil>}`,
        "only allowed for updateStrategy 'RollingUpdate'",
      );
    }
  } else if (type === "RollingUpdate") {
    if (rollingUpdate) {
      fieldPath.child("updateStrategy.rollingUpdate")
        .notNegative(rollingUpdate, "partition");
    }
  } else {
    fieldPath.invalidShown(
      "updateStrategy",
      `apps.StatefulSetUpdateStrategy{Type:${
        JSON.stringify(type)
      }, RollingUpdate:(*apps.RollingUpdateStatefulSetStrategy)(nil)}`,
      "must be 'RollingUpdate' or 'OnDelete'",
    );
  }
  if ((spec.ordinals?.start ?? 0) < 0) {
    fieldPath.invalid(
      "ordinals.start",
      spec.ordinals?.start,
      "must be greater than or equal to 0",
    );
  }
  checkSelection({ ...spec, kind: "statefulset" }, fieldPath);
  checkRestartPolicy(spec.template, "StatefulSet", fieldPath);
  const retention = spec.persistentVolumeClaimRetentionPolicy;
  for (const when of ["whenDeleted", "whenScaled"] as const) {
    const what = retention?.[when];
    if (what === undefined || what === "Retain" || what === "Delete") continue;
    fieldPath.notSupported(
      `persistentVolumeClaimRetentionPolicy.${when}`,
      what,
      [
        "Retain",
        "Delete",
      ],
    );
  }
  // The rest of the template is validated only when Pods are created from it.
  checkTemplate(spec.template, fieldPath.child("template"));
}

/** Validation rules of Deployments, StatefulSets, DaemonSets and similar kinds. */
export const WORKLOAD_RULES: ValidationRules = [
  check("api.apps.v1.DeploymentSpec", checkDeployment),
  check("api.apps.v1.ReplicaSetSpec", checkReplicaSet),
  check("api.apps.v1.DaemonSetSpec", checkDaemonSet),
  check("api.apps.v1.StatefulSetSpec", checkStatefulSet),
  check("api.core.v1.ReplicationControllerSpec", checkReplicationController),
];
