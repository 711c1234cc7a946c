import type { UntypedObject } from "@coracle/operator/client";
import { isJsonObject } from "@coracle/operator/internal";
import type {
  AutoscalingV1HorizontalPodAutoscaler,
  HorizontalPodAutoscaler,
  HorizontalPodAutoscalerBehavior,
  HPAScalingRules,
} from "@coracle/operator/kinds";
import {
  cpuUtilization,
  flatMetric,
  inOrder,
  type Metric,
  type MetricSide,
  nestedMetric,
} from "./autoscaler_metrics.ts";
import { readJson, writeJson } from "../exact_json.ts";

type V1 = AutoscalingV1HorizontalPodAutoscaler;
type V2 = HorizontalPodAutoscaler;
type Annotations = Record<string, string>;

/** Annotations in which autoscaling/v1 keeps the fields that only v2 has. */
const ANNOTATIONS = {
  metrics: "autoscaling.alpha.kubernetes.io/metrics",
  currentMetrics: "autoscaling.alpha.kubernetes.io/current-metrics",
  conditions: "autoscaling.alpha.kubernetes.io/conditions",
  behavior: "autoscaling.alpha.kubernetes.io/behavior",
} as const;
const DEFAULT_UTILIZATION = 80;

/**
 * Converts a HorizontalPodAutoscaler to another version of autoscaling.
 *
 * @param autoscaler Whole object, or only the fields that one manager owns,
 * possibly without metadata.
 * @param apiVersion Version to convert to.
 */
export function convertAutoscaler(
  autoscaler: UntypedObject,
  apiVersion: string,
): UntypedObject {
  if (autoscaler.apiVersion === apiVersion) return autoscaler;
  const { metadata = {}, ...fields } = autoscaler as Partial<UntypedObject>;
  const whole = { ...fields, metadata } as unknown;
  const converted = apiVersion === "autoscaling/v1"
    ? toV1(whole as V2)
    : toV2(whole as V1);
  return converted as unknown as UntypedObject;
}

function toV1({ kind, metadata, spec, status }: V2): V1 {
  const { metrics: wanted, behavior, ...scale } = spec ?? EMPTY_SPEC;
  const { currentMetrics, conditions, ...counts } = status ?? {};
  const metrics = asMetrics(wanted);
  const measured = asMetrics(currentMetrics);
  const annotations: Annotations = withoutV2Fields(metadata.annotations);
  const isCpu = (metric: Metric) =>
    cpuUtilization(metric, "target") !== undefined;
  const others = metrics.filter((metric) => !isCpu(metric));
  setAnnotation(
    annotations,
    ANNOTATIONS.metrics,
    others.map((metric) => flatMetric(metric, "target")),
  );
  setAnnotation(
    annotations,
    ANNOTATIONS.currentMetrics,
    measured.map((metric) => flatMetric(metric, "current")),
  );
  if (behavior !== undefined) {
    annotations[ANNOTATIONS.behavior] = writeJson(
      internalBehavior(behavior),
    );
  }
  setAnnotation(
    annotations,
    ANNOTATIONS.conditions,
    asMetrics(conditions).map((condition) => inOrder(condition, CONDITION)),
  );
  const targetUtilization = utilizationOf(metrics, "target");
  const utilization = utilizationOf(measured, "current");
  return {
    apiVersion: "autoscaling/v1",
    kind,
    metadata: withAnnotations(metadata, annotations),
    spec: {
      ...scale,
      ...targetUtilization !== undefined &&
        { targetCPUUtilizationPercentage: targetUtilization },
    },
    status: {
      ...counts,
      ...utilization !== undefined &&
        { currentCPUUtilizationPercentage: utilization },
    } as V1["status"],
  };
}

const CONDITION: readonly string[] = [
  "type",
  "status",
  "lastTransitionTime",
  "reason",
  "message",
];

function asMetrics(
  list: readonly unknown[] | null | undefined,
): readonly Metric[] {
  return (list ?? []) as readonly Metric[];
}

const EMPTY_SPEC = { scaleTargetRef: { kind: "", name: "" }, maxReplicas: 0 };

function utilizationOf(
  metrics: readonly Metric[],
  side: MetricSide,
): number | undefined {
  return metrics.map((metric) => cpuUtilization(metric, side))
    .find((utilization) => utilization !== undefined);
}

function toV2({ kind, metadata, spec, status }: V1): V2 {
  const { targetCPUUtilizationPercentage, ...scale } = spec ?? EMPTY_SPEC_V1;
  const { currentCPUUtilizationPercentage, ...counts } = status ??
    {} as NonNullable<V1["status"]>;
  const annotations = metadata.annotations ?? {};
  const others = nestedMetrics(annotations[ANNOTATIONS.metrics], "target");
  const metrics = [
    ...others ?? [],
    ...targetCPUUtilizationPercentage === undefined
      ? []
      : [cpuMetric("target", targetCPUUtilizationPercentage)],
  ];
  const measured =
    nestedMetrics(annotations[ANNOTATIONS.currentMetrics], "current") ??
      (currentCPUUtilizationPercentage === undefined
        ? undefined
        : [cpuMetric("current", currentCPUUtilizationPercentage)]);
  const behavior = readAnnotation(annotations[ANNOTATIONS.behavior]);
  const conditions = readAnnotation<readonly unknown[]>(
    annotations[ANNOTATIONS.conditions],
  );
  return {
    apiVersion: "autoscaling/v2",
    kind,
    metadata: withAnnotations(metadata, withoutV2Fields(metadata.annotations)),
    spec: {
      ...scale,
      metrics: metrics.length === 0
        ? [cpuMetric("target", DEFAULT_UTILIZATION)]
        : metrics,
      ...behavior && { behavior: published(behavior) },
    } as unknown as V2["spec"],
    status: {
      ...counts,
      ...measured && { currentMetrics: measured },
      ...conditions && { conditions },
    } as unknown as V2["status"],
  };
}

const EMPTY_SPEC_V1: NonNullable<V1["spec"]> = EMPTY_SPEC;

function cpuMetric(side: MetricSide, averageUtilization: number): Metric {
  const amount = side === "target"
    ? { type: "Utilization", averageUtilization }
    : { averageUtilization };
  return { type: "Resource", resource: { name: "cpu", [side]: amount } };
}

function nestedMetrics(
  text: string | undefined,
  side: MetricSide,
): readonly Metric[] | undefined {
  const metrics = readAnnotation<readonly Metric[]>(text);
  return Array.isArray(metrics)
    ? metrics.map((metric: Metric) => nestedMetric(metric, side))
    : undefined;
}

/** Parsed value of an annotation; undefined if absent or malformed. */
function readAnnotation<T extends object>(
  text: string | undefined,
): T | undefined {
  if (text === undefined) return undefined;
  try {
    return readJson(text) as T ?? undefined;
  } catch {
    return undefined;
  }
}

function setAnnotation(
  annotations: Annotations,
  name: string,
  values: readonly unknown[],
): void {
  if (values.length > 0) annotations[name] = writeJson(values);
}

function withoutV2Fields(
  annotations: Readonly<Annotations> | undefined,
): Annotations {
  const names: readonly string[] = Object.values(ANNOTATIONS);
  return Object.fromEntries(
    Object.entries(annotations ?? {}).filter(([name]) => !names.includes(name)),
  );
}

function withAnnotations(
  { annotations: _annotations, ...metadata }: V1["metadata"],
  annotations: Annotations,
): V1["metadata"] {
  return Object.keys(annotations).length === 0
    ? metadata
    : { ...metadata, annotations };
}

/**
 * Values of fields in the order of their declaration, by their names in Go;
 * absent fields are null.
 */
function goFields(object: object, names: readonly string[]): Metric {
  const fields = object as Metric;
  return Object.fromEntries(names.map((name) => [
    name.charAt(0).toUpperCase() + name.slice(1),
    fields[name] ?? null,
  ]));
}

/** Scaling behavior in the form of the annotation. */
function internalBehavior(
  { scaleUp, scaleDown }: HorizontalPodAutoscalerBehavior,
): Metric {
  const rules = (given: HPAScalingRules | undefined) =>
    given === undefined ? null : {
      ...goFields(given, ["stabilizationWindowSeconds", "selectPolicy"]),
      Policies: given.policies?.map((policy) =>
        goFields(policy, ["type", "value", "periodSeconds"])
      ) ?? null,
    };
  return { ScaleUp: rules(scaleUp), ScaleDown: rules(scaleDown) };
}

/** Value of an annotation with JSON names and without nulls. */
function published(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(published);
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).filter(([, field]) => field !== null)
      .map(([name, field]) => [
        name.charAt(0).toLowerCase() + name.slice(1),
        published(field),
      ]),
  );
}
