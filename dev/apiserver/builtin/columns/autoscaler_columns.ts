import type {
  HorizontalPodAutoscaler,
  MetricSpec,
  MetricStatus,
  MetricTarget,
  MetricValueStatus,
} from "@coracle/operator/kinds";

const UNKNOWN = "<unknown>";
const MAX_METRICS = 2;

/** Current and target metrics of a HorizontalPodAutoscaler (v2), as text. */
export function metricsText({ spec, status }: HorizontalPodAutoscaler): string {
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
