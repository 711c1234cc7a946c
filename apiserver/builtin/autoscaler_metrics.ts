/** Metric specification or metric status, in v1 or v2 form. */
export type Metric = Readonly<Record<string, unknown>>;

/** Side of a metric: the target in the spec, or the current value in the status. */
export type MetricSide = "target" | "current";

/** Field of a metric source: its flat name in v1 and its path in v2. */
interface MetricField {
  readonly flat: (side: MetricSide) => string;
  readonly nested: (side: MetricSide) => readonly string[];
  /** Sides on which v1 always has a value. */
  readonly required?: readonly MetricSide[];
  /** Fields of the value, in the order of v1. */
  readonly members?: readonly string[];
}

/** Source of metrics with its fields in the order of v1. */
interface MetricSource {
  readonly type: string;
  readonly name: string;
  readonly fields: readonly MetricField[];
  /** Type of a v2 target, derived from its fields. */
  targetType(target: Metric): string;
}

const NAME: MetricField = same("name");
const METRIC_NAME: MetricField = {
  flat: () => "metricName",
  nested: () => ["metric", "name"],
};
const SELECTOR: MetricField = {
  flat: () => "selector",
  nested: () => ["metric", "selector"],
};
const BOTH: readonly MetricSide[] = ["target", "current"];
const MEASURED: readonly MetricSide[] = ["current"];

const SOURCES: readonly MetricSource[] = [
  {
    type: "Object",
    name: "object",
    fields: [
      {
        flat: () => "target",
        nested: () => ["describedObject"],
        members: ["kind", "name", "apiVersion"],
      },
      METRIC_NAME,
      amount("Value", BOTH),
      SELECTOR,
      {
        flat: () => "averageValue",
        nested: (side) => [side, "averageValue"],
      },
    ],
    targetType: ({ averageValue }) =>
      averageValue === undefined ? "Value" : "AverageValue",
  },
  {
    type: "Pods",
    name: "pods",
    fields: [METRIC_NAME, amount("AverageValue", BOTH), SELECTOR],
    targetType: () => "AverageValue",
  },
  {
    type: "Resource",
    name: "resource",
    fields: [
      NAME,
      amount("AverageUtilization"),
      amount("AverageValue", MEASURED),
    ],
    targetType: usageType,
  },
  {
    type: "ContainerResource",
    name: "containerResource",
    fields: [
      NAME,
      amount("AverageUtilization"),
      amount("AverageValue", MEASURED),
      same("container"),
    ],
    targetType: usageType,
  },
  {
    type: "External",
    name: "external",
    fields: [
      METRIC_NAME,
      { ...SELECTOR, flat: () => "metricSelector" },
      amount("Value", MEASURED),
      amount("AverageValue"),
    ],
    targetType: ({ value }) => value === undefined ? "AverageValue" : "Value",
  },
];

function same(name: string): MetricField {
  return { flat: () => name, nested: () => [name] };
}

function amount(
  name: string,
  required: readonly MetricSide[] = [],
): MetricField {
  const short = `${name[0]?.toLowerCase()}${name.slice(1)}`;
  return {
    flat: (side) => `${side}${name}`,
    nested: (side) => [side, short],
    required,
  };
}

function usageType({ averageUtilization }: Metric): string {
  return averageUtilization === undefined ? "AverageValue" : "Utilization";
}

/** Converts a v2 metric to the flat form of the v1 annotation. */
export function flatMetric(metric: Metric, side: MetricSide): Metric {
  const flat: Record<string, unknown> = { type: metric["type"] };
  for (const { name, fields } of SOURCES) {
    const source = metric[name];
    if (source === undefined) continue;
    const members: Record<string, unknown> = flat[name] = {};
    for (const { flat, nested, required, members: order } of fields) {
      const value = read(source, nested(side)) ??
        (required?.includes(side) ? "0" : undefined);
      if (value === undefined) continue;
      members[flat(side)] = order ? inOrder(value as Metric, order) : value;
    }
  }
  return flat;
}

/** Converts a metric from the v1 annotation to v2. */
export function nestedMetric(metric: Metric, side: MetricSide): Metric {
  const result: Record<string, unknown> = { type: metric["type"] };
  for (const { name, fields, targetType } of SOURCES) {
    const source = metric[name];
    if (source === undefined) continue;
    const members: Record<string, unknown> = result[name] = { [side]: {} };
    for (const { flat, nested, required } of fields) {
      const value = read(source, [flat(side)]) ??
        (required?.includes(side) ? "0" : undefined);
      if (value !== undefined) write(members, nested(side), value);
    }
    if (side === "target") {
      const target = members[side] as Record<string, unknown>;
      target["type"] = targetType(target);
    }
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
export function inOrder(
  object: Metric,
  names: readonly string[],
): Metric {
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
