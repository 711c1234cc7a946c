import { Quantity } from "../../../core/api/quantity.ts";
import type {
  ContainerResourceMetricSource,
  CrossVersionObjectReference,
  ExternalMetricSource,
  HorizontalPodAutoscalerSpec,
  HPAScalingPolicy,
  HPAScalingRules,
  MetricIdentifier,
  MetricSpec,
  MetricTarget,
  ObjectMetricSource,
  PodsMetricSource,
  ResourceMetricSource,
} from "../../../core/kinds/autoscaling_v2.ts";
import type { FieldPath } from "../../validation/field_path.ts";
import { labelProblems, pathSegmentProblems } from "../../validation/names.ts";
import { requiredText } from "./field_checks.ts";
import { check, type ValidationRules } from "./validation_rule.ts";

const NAMED = requiredText(pathSegmentProblems);

function checkAutoscaler(
  spec: Pick<
    HorizontalPodAutoscalerSpec,
    "minReplicas" | "maxReplicas" | "scaleTargetRef"
  >,
  fieldPath: FieldPath,
): void {
  const { minReplicas = 1, maxReplicas, scaleTargetRef } = spec;
  if (minReplicas < 1) {
    fieldPath.invalid(
      "minReplicas",
      minReplicas,
      "must be greater than or equal to 1",
    );
  }
  if (maxReplicas < 1) {
    fieldPath.invalid("maxReplicas", maxReplicas, "must be greater than 0");
  }
  if (maxReplicas < minReplicas) {
    fieldPath.invalid(
      "maxReplicas",
      maxReplicas,
      "must be greater than or equal to `minReplicas`",
    );
  }
  checkReference(scaleTargetRef, fieldPath.child("scaleTargetRef"));
}

function checkReference(
  { kind, name }: CrossVersionObjectReference,
  fieldPath: FieldPath,
): void {
  NAMED(kind, "kind", fieldPath);
  NAMED(name, "name", fieldPath);
}

const SOURCES: Readonly<Record<string, keyof MetricSpec & string>> = {
  ContainerResource: "containerResource",
  External: "external",
  Object: "object",
  Pods: "pods",
  Resource: "resource",
};

function checkMetric(metric: MetricSpec, fieldPath: FieldPath): void {
  const { type } = metric;
  if (!type) fieldPath.required("type", "must specify a metric source type");
  const expected = SOURCES[type];
  if (expected === undefined) {
    // Reported twice, as upstream does: for the type and for its source.
    fieldPath.notSupported("type", type, Object.keys(SOURCES));
    fieldPath.notSupported("type", type, Object.keys(SOURCES));
  } else if (metric[expected] === undefined) {
    fieldPath.required(
      expected,
      "must populate information for the given metric source",
    );
  }
  const given = Object.values(SOURCES).filter((source) =>
    metric[source] !== undefined
  );
  if (given.length < 2) return;
  for (const source of given.filter((source) => source !== expected)) {
    fieldPath.forbidden(source, "must populate the given metric source only");
  }
}

function checkTarget(target: MetricTarget, fieldPath: FieldPath): void {
  const { type } = target;
  if (!type) fieldPath.required("type", "must specify a metric target type");
  if (!["Utilization", "Value", "AverageValue"].includes(type)) {
    fieldPath.invalid(
      "type",
      type,
      "must be either Utilization, Value, or AverageValue",
    );
  }
  for (const field of ["value", "averageValue"] as const) {
    const amount = target[field];
    if (amount === undefined || Quantity.parse(amount).nano > 0n) continue;
    fieldPath.invalid(field, amount, "must be positive");
  }
  const { averageUtilization } = target;
  if (averageUtilization !== undefined && averageUtilization < 1) {
    fieldPath.invalid(
      "averageUtilization",
      averageUtilization,
      "must be greater than 0",
    );
  }
}

function checkIdentifier(
  { name }: MetricIdentifier,
  fieldPath: FieldPath,
): void {
  if (!name) fieldPath.required("name", "must specify a metric name");
  else fieldPath.problems("name", name, pathSegmentProblems(name));
}

function checkObjectSource(
  { describedObject, metric, target }: ObjectMetricSource,
  fieldPath: FieldPath,
): void {
  checkReference(describedObject, fieldPath.child("describedObject"));
  checkIdentifier(metric, fieldPath.child("metric"));
  if (target.value !== undefined || target.averageValue !== undefined) return;
  fieldPath.required(
    "target.averageValue",
    "must set either a target value or averageValue",
  );
}

function checkExternalSource(
  { metric, target }: ExternalMetricSource,
  fieldPath: FieldPath,
): void {
  checkIdentifier(metric, fieldPath.child("metric"));
  const { value, averageValue } = target;
  if (value === undefined && averageValue === undefined) {
    fieldPath.required(
      "target.averageValue",
      "must set either a target value for metric or a per-pod target",
    );
  }
  if (value !== undefined && averageValue !== undefined) {
    fieldPath.forbidden(
      "target.value",
      "may not set both a target value for metric and a per-pod target",
    );
  }
}

function checkPodsSource(
  { metric, target }: PodsMetricSource,
  fieldPath: FieldPath,
): void {
  checkIdentifier(metric, fieldPath.child("metric"));
  if (target.averageValue !== undefined) return;
  fieldPath.required(
    "target.averageValue",
    "must specify a positive target averageValue",
  );
}

function checkResourceSource(
  { name, target }: ResourceMetricSource,
  fieldPath: FieldPath,
): void {
  if (!name) fieldPath.required("name", "must specify a resource name");
  const { averageUtilization, averageValue } = target;
  if (averageUtilization === undefined && averageValue === undefined) {
    fieldPath.required(
      "target.averageUtilization",
      "must set either a target raw value or a target utilization",
    );
  }
  if (averageUtilization !== undefined && averageValue !== undefined) {
    fieldPath.forbidden(
      "target.averageValue",
      "may not set both a target raw value and a target utilization",
    );
  }
}

function checkContainerSource(
  source: ContainerResourceMetricSource,
  fieldPath: FieldPath,
): void {
  const { container } = source;
  checkResourceSource(source, fieldPath);
  if (!container) fieldPath.required("container", "must specify a container");
  else fieldPath.problems("container", container, labelProblems(container));
}

const MAX_WINDOW_SECONDS = 3_600;
const MAX_PERIOD_SECONDS = 1_800;
const SELECT_POLICIES = ["Disabled", "Max", "Min"];
const POLICY_TYPES = ["Percent", "Pods"];

function checkScaling(rules: HPAScalingRules, fieldPath: FieldPath): void {
  const { stabilizationWindowSeconds: window, selectPolicy, policies } = rules;
  if (window !== undefined && window < 0) {
    fieldPath.invalid(
      "stabilizationWindowSeconds",
      window,
      "must be greater than or equal to zero",
    );
  }
  if (window !== undefined && window > MAX_WINDOW_SECONDS) {
    fieldPath.invalid(
      "stabilizationWindowSeconds",
      window,
      `must be less than or equal to ${MAX_WINDOW_SECONDS}`,
    );
  }
  if (selectPolicy !== undefined && !SELECT_POLICIES.includes(selectPolicy)) {
    fieldPath.notSupported("selectPolicy", selectPolicy, SELECT_POLICIES);
  }
  if (!policies?.length) {
    fieldPath.required("policies", "must specify at least one Policy");
  }
}

function checkScalingPolicy(
  policy: HPAScalingPolicy,
  fieldPath: FieldPath,
): void {
  const { type, value, periodSeconds } = policy;
  if (!POLICY_TYPES.includes(type)) {
    fieldPath.notSupported("type", type, POLICY_TYPES);
  }
  if (value <= 0) {
    fieldPath.invalid("value", value, "must be greater than zero");
  }
  if (periodSeconds <= 0) {
    fieldPath.invalid(
      "periodSeconds",
      periodSeconds,
      "must be greater than zero",
    );
  }
  if (periodSeconds > MAX_PERIOD_SECONDS) {
    fieldPath.invalid(
      "periodSeconds",
      periodSeconds,
      `must be less than or equal to ${MAX_PERIOD_SECONDS}`,
    );
  }
}

/** Validation rules of HorizontalPodAutoscalers. */
export const AUTOSCALER_RULES: ValidationRules = [
  check("api.autoscaling.v1.HorizontalPodAutoscalerSpec", checkAutoscaler),
  check("api.autoscaling.v2.HorizontalPodAutoscalerSpec", checkAutoscaler),
  check("api.autoscaling.v2.MetricSpec", checkMetric),
  check("api.autoscaling.v2.MetricTarget", checkTarget),
  check("api.autoscaling.v2.ObjectMetricSource", checkObjectSource),
  check("api.autoscaling.v2.ExternalMetricSource", checkExternalSource),
  check("api.autoscaling.v2.PodsMetricSource", checkPodsSource),
  check("api.autoscaling.v2.ResourceMetricSource", checkResourceSource),
  check(
    "api.autoscaling.v2.ContainerResourceMetricSource",
    checkContainerSource,
  ),
  check("api.autoscaling.v2.HPAScalingRules", checkScaling),
  check("api.autoscaling.v2.HPAScalingPolicy", checkScalingPolicy),
];
