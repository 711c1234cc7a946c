/** Metric specification or metric status, in v1 or v2 form. */
export type Metric = Readonly<Record<string, unknown>>;

/** Side of a metric: the target in the spec, or the current value in the status. */
export type MetricSide = "target" | "current";

const RESOURCE_FIELDS = [
  "name name",
  "$AverageUtilization $.averageUtilization",
  "$AverageValue $.averageValue current",
];

/**
 * Fields of the sources of metrics in the order of v1: name in v1, path in v2,
 * and the sides on which v1 always has a value. `$` stands for the side.
 */
const SOURCES: Readonly<Record<string, readonly string[]>> = {
  object: [
    "target describedObject",
    "metricName metric.name",
    "$Value $.value target,current",
    "selector metric.selector",
    "averageValue $.averageValue",
  ],
  pods: [
    "metricName metric.name",
    "$AverageValue $.averageValue target,current",
    "selector metric.selector",
  ],
  resource: RESOURCE_FIELDS,
  containerResource: [...RESOURCE_FIELDS, "container container"],
  external: [
    "metricName metric.name",
    "metricSelector metric.selector",
    "$Value $.value current",
    "$AverageValue $.averageValue",
  ],
};

/** Fields of a described object, in the order of v1. */
const REFERENCE: readonly string[] = ["kind", "name", "apiVersion"];

/** Field of a metric source: its name in v1 and its path in v2. */
interface MetricField {
  readonly flat: string;
  readonly path: readonly string[];
  /** Whether v1 always has a value. */
  readonly isRequired: boolean;
}

function fieldsOf(source: string, side: MetricSide): MetricField[] {
  return (SOURCES[source] ?? []).map((text) => {
    const [flat = "", path = "", required = ""] = text.replaceAll("$", side)
      .split(" ");
    return { flat, path: path.split("."), isRequired: required.includes(side) };
  });
}

/** Type of a v2 target, derived from its fields. */
function targetType(
  source: string,
  { value, averageValue, averageUtilization }: Metric,
): string {
  if (averageUtilization !== undefined) return "Utilization";
  const isValue = source === "object"
    ? averageValue === undefined
    : source === "external" && value !== undefined;
  return isValue ? "Value" : "AverageValue";
}

/** Converts a v2 metric to the flat form of the v1 annotation. */
export function flatMetric(metric: Metric, side: MetricSide): Metric {
  const result: Record<string, unknown> = { type: metric["type"] };
  for (const name of Object.keys(SOURCES)) {
    const source = metric[name];
    if (source === undefined) continue;
    const members: Record<string, unknown> = result[name] = {};
    for (const { flat, path, isRequired } of fieldsOf(name, side)) {
      const value = read(source, path) ?? (isRequired ? "0" : undefined);
      if (value === undefined) continue;
      members[flat] = flat === "target"
        ? inOrder(value as Metric, REFERENCE)
        : value;
    }
  }
  return result;
}

/** Converts a metric from the v1 annotation to v2. */
export function nestedMetric(metric: Metric, side: MetricSide): Metric {
  const result: Record<string, unknown> = { type: metric["type"] };
  for (const name of Object.keys(SOURCES)) {
    const source = metric[name];
    if (source === undefined) continue;
    const amount: Record<string, unknown> = {};
    const members: Record<string, unknown> = result[name] = { [side]: amount };
    for (const { flat, path, isRequired } of fieldsOf(name, side)) {
      const value = read(source, [flat]) ?? (isRequired ? "0" : undefined);
      if (value !== undefined) write(members, path, value);
    }
    if (side === "target") amount["type"] = targetType(name, amount);
  }
  return result;
}

/** CPU utilization of a metric in percent; undefined for other metrics. */
export function cpuUtilization(
  metric: Metric,
  side: MetricSide,
): number | undefined {
  const { type, resource } = metric;
  if (type !== "Resource" || read(resource, ["name"]) !== "cpu") {
    return undefined;
  }
  return read(resource, [side, "averageUtilization"]) as number | undefined;
}

/** Copy of an object with the named fields, in the given order. */
export function inOrder(object: Metric, names: readonly string[]): Metric {
  const present = names.filter((name) => object[name] !== undefined);
  return Object.fromEntries(present.map((name) => [name, object[name]]));
}

function read(value: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>(
    (inner, name) =>
      typeof inner === "object" && inner !== null
        ? (inner as Metric)[name]
        : undefined,
    value,
  );
}

function write(
  object: Record<string, unknown>,
  [first = "", ...rest]: readonly string[],
  value: unknown,
): void {
  if (rest.length === 0) object[first] = value;
  else {
    const inner = object[first] ??= {};
    write(inner as Record<string, unknown>, rest, value);
  }
}
