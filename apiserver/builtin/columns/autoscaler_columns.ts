import type { UntypedObject } from "../../../core/api/object.ts";
import type {
  HorizontalPodAutoscaler,
  MetricSpec,
  MetricStatus,
  MetricTarget,
  MetricValueStatus,
} from "../../../core/kinds/autoscaling_v2.ts";
import { convertAutoscaler } from "../autoscaler_conversion.ts";
import { ageOf, nameOf } from "./cell_text.ts";

const UNKNOWN = "<unknown>";
const MAX_METRICS = 2;

/** Table cells of a HorizontalPodAutoscaler of any version. */
export function autoscalerCells(
  object: UntypedObject,
  now: number,
): readonly unknown[] {
  const autoscaler = convertAutoscaler(
    object,
    "autoscaling/v2",
  ) as unknown as HorizontalPodAutoscaler;
  const { spec, status } = autoscaler;
  return [
    nameOf(autoscaler),
    `${spec?.scaleTargetRef.kind}/${spec?.scaleTargetRef.name}`,
    metricsText(autoscaler),
    String(spec?.minReplicas ?? "<unset>"),
    spec?.maxReplicas ?? 0,
    status?.currentReplicas ?? 0,
    ageOf(autoscaler, now),
  ];
}

function metricsText({ spec, status }: HorizontalPodAutoscaler): string {
  const metrics = spec?.metrics ?? [];
  if (metrics.length === 0) return "<none>";
  const texts = metrics.map((metric, index) =>
    metricText(metric, status?.currentMetrics?.[index] ?? {})
  );
  const shown = texts.slice(0, MAX_METRICS).join(", ");
  return texts.length > MAX_METRICS
    ? `${shown} + ${texts.length - MAX_METRICS} more...`
    : shown;
}

function metricText(
  metric: MetricSpec,
  measured: Partial<MetricStatus>,
): string {
  const { external, pods, object, resource, containerResource } = metric;
  switch (metric.type) {
    case "External":
      return valueText(external?.target, measured.external?.current);
    case "Object":
      return valueText(object?.target, measured.object?.current);
    case "Pods": {
      const current = measured.pods?.current;
      return `${current?.averageValue ?? UNKNOWN}/${pods?.target.averageValue}`;
    }
    case "Resource":
      return `${resource?.name}: ${
        usageText(resource?.target, measured.resource?.current)
      }`;
    case "ContainerResource":
      return `${containerResource?.name}: ${
        usageText(
          containerResource?.target,
          measured.containerResource?.current,
        )
      }`;
    default:
      return "<unknown type>";
  }
}

function valueText(
  target: MetricTarget | undefined,
  current: MetricValueStatus | undefined,
): string {
  return target?.averageValue === undefined
    ? `${current ? current.value ?? "0" : UNKNOWN}/${target?.value}`
    : `${current?.averageValue ?? UNKNOWN}/${target.averageValue} (avg)`;
}

function usageText(
  target: MetricTarget | undefined,
  current: MetricValueStatus | undefined,
): string {
  if (target?.averageValue !== undefined) {
    return `${current?.averageValue ?? UNKNOWN}/${target.averageValue}`;
  }
  const percent = (value: number | undefined, otherwise: string) =>
    value === undefined ? otherwise : `${value}%`;
  return `${percent(current?.averageUtilization, UNKNOWN)}/${
    percent(target?.averageUtilization, "<auto>")
  }`;
}
