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
import { labelProblems, pathSegmentProblems } from "../../names.ts";
import { requiredText } from "./field_checks.ts";
import { check, type Place, type ValidationRules } from "./place.ts";

const NAMED = requiredText(pathSegmentProblems);

function checkAutoscaler(
  spec: Pick<
    HorizontalPodAutoscalerSpec,
    "minReplicas" | "maxReplicas" | "scaleTargetRef"
  >,
  place: Place,
): void {
  const { minReplicas = 1, maxReplicas, scaleTargetRef } = spec;
  if (minReplicas < 1) {
    place.invalid(
      "minReplicas",
      minReplicas,
      "must be greater than or equal to 1",
    );
  }
  if (maxReplicas < 1) {
    place.invalid("maxReplicas", maxReplicas, "must be greater than 0");
  }
  if (maxReplicas < minReplicas) {
    place.invalid(
      "maxReplicas",
      maxReplicas,
      "must be greater than or equal to `minReplicas`",
    );
  }
  checkReference(scaleTargetRef, place.at("scaleTargetRef"));
}

function checkReference(
  { kind, name }: CrossVersionObjectReference,
  place: Place,
): void {
  NAMED(kind, "kind", place);
  NAMED(name, "name", place);
}

const SOURCES: Readonly<Record<string, keyof MetricSpec & string>> = {
  ContainerResource: "containerResource",
  External: "external",
  Object: "object",
  Pods: "pods",
  Resource: "resource",
};

function checkMetric(metric: MetricSpec, place: Place): void {
  const { type } = metric;
  if (!type) place.required("type", "must specify a metric source type");
  const expected = SOURCES[type];
  if (expected === undefined) {
    // Once for the type, once for its source.
    place.notSupported("type", type, Object.keys(SOURCES));
    place.notSupported("type", type, Object.keys(SOURCES));
  } else if (metric[expected] === undefined) {
    place.required(
      expected,
      "must populate information for the given metric source",
    );
  }
  const given = Object.values(SOURCES).filter((source) =>
    metric[source] !== undefined
  );
  if (given.length < 2) return;
  for (const source of given.filter((source) => source !== expected)) {
    place.forbidden(source, "must populate the given metric source only");
  }
}

function checkTarget(target: MetricTarget, place: Place): void {
  const { type } = target;
  if (!type) place.required("type", "must specify a metric target type");
  if (!["Utilization", "Value", "AverageValue"].includes(type)) {
    place.invalid(
      "type",
      type,
      "must be either Utilization, Value, or AverageValue",
    );
  }
  for (const field of ["value", "averageValue"] as const) {
    const amount = target[field];
    if (amount === undefined || Quantity.parse(amount).nano > 0n) continue;
    place.invalid(field, amount, "must be positive");
  }
  const { averageUtilization } = target;
  if (averageUtilization !== undefined && averageUtilization < 1) {
    place.invalid(
      "averageUtilization",
      averageUtilization,
      "must be greater than 0",
    );
  }
}

function checkIdentifier({ name }: MetricIdentifier, place: Place): void {
  if (!name) place.required("name", "must specify a metric name");
  else place.problems("name", name, pathSegmentProblems(name));
}

function checkObjectSource(
  { describedObject, metric, target }: ObjectMetricSource,
  place: Place,
): void {
  checkReference(describedObject, place.at("describedObject"));
  checkIdentifier(metric, place.at("metric"));
  if (target.value !== undefined || target.averageValue !== undefined) return;
  place.required(
    "target.averageValue",
    "must set either a target value or averageValue",
  );
}

function checkExternalSource(
  { metric, target }: ExternalMetricSource,
  place: Place,
): void {
  checkIdentifier(metric, place.at("metric"));
  const { value, averageValue } = target;
  if (value === undefined && averageValue === undefined) {
    place.required(
      "target.averageValue",
      "must set either a target value for metric or a per-pod target",
    );
  }
  if (value !== undefined && averageValue !== undefined) {
    place.forbidden(
      "target.value",
      "may not set both a target value for metric and a per-pod target",
    );
  }
}

function checkPodsSource(
  { metric, target }: PodsMetricSource,
  place: Place,
): void {
  checkIdentifier(metric, place.at("metric"));
  if (target.averageValue !== undefined) return;
  place.required(
    "target.averageValue",
    "must specify a positive target averageValue",
  );
}

function checkResourceSource(
  { name, target }: ResourceMetricSource,
  place: Place,
): void {
  if (!name) place.required("name", "must specify a resource name");
  const { averageUtilization, averageValue } = target;
  if (averageUtilization === undefined && averageValue === undefined) {
    place.required(
      "target.averageUtilization",
      "must set either a target raw value or a target utilization",
    );
  }
  if (averageUtilization !== undefined && averageValue !== undefined) {
    place.forbidden(
      "target.averageValue",
      "may not set both a target raw value and a target utilization",
    );
  }
}

function checkContainerSource(
  source: ContainerResourceMetricSource,
  place: Place,
): void {
  const { container } = source;
  checkResourceSource(source, place);
  if (!container) place.required("container", "must specify a container");
  else place.problems("container", container, labelProblems(container));
}

const LONGEST_WINDOW = 3_600;
const LONGEST_PERIOD = 1_800;
const SELECT_POLICIES = ["Disabled", "Max", "Min"];
const POLICY_TYPES = ["Percent", "Pods"];

function checkScaling(rules: HPAScalingRules, place: Place): void {
  const { stabilizationWindowSeconds: window, selectPolicy, policies } = rules;
  if (window !== undefined && window < 0) {
    place.invalid(
      "stabilizationWindowSeconds",
      window,
      "must be greater than or equal to zero",
    );
  }
  if (window !== undefined && window > LONGEST_WINDOW) {
    place.invalid(
      "stabilizationWindowSeconds",
      window,
      `must be less than or equal to ${LONGEST_WINDOW}`,
    );
  }
  if (selectPolicy !== undefined && !SELECT_POLICIES.includes(selectPolicy)) {
    place.notSupported("selectPolicy", selectPolicy, SELECT_POLICIES);
  }
  if (!policies?.length) {
    place.required("policies", "must specify at least one Policy");
  }
}

function checkScalingPolicy(policy: HPAScalingPolicy, place: Place): void {
  const { type, value, periodSeconds } = policy;
  if (!POLICY_TYPES.includes(type)) {
    place.notSupported("type", type, POLICY_TYPES);
  }
  if (value <= 0) place.invalid("value", value, "must be greater than zero");
  if (periodSeconds <= 0) {
    place.invalid("periodSeconds", periodSeconds, "must be greater than zero");
  }
  if (periodSeconds > LONGEST_PERIOD) {
    place.invalid(
      "periodSeconds",
      periodSeconds,
      `must be less than or equal to ${LONGEST_PERIOD}`,
    );
  }
}

/** What is checked of what scales Pods. */
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
