import type { Quantity } from "@coracle/operator/client";
import type {
  Container,
  LimitRange,
  LimitRangeItem,
  PersistentVolumeClaim,
  Pod,
} from "@coracle/operator/kinds";
import { type AdmissionPlugin, type Attributes, refusal } from "./admission.ts";
import { type Amounts, amountsOf, podAmounts } from "./pod_resources.ts";

const LIMIT_RANGES = { group: "", plural: "limitranges" } as const;

/** Plug-in that applies the LimitRanges of a namespace to Pods and PersistentVolumeClaims. */
export const LIMIT_RANGER: AdmissionPlugin = {
  name: "LimitRanger",
  resources: ["pods", "pods/resize", "persistentvolumeclaims"],
  mutate(attributes): void {
    if (!isPod(attributes)) return;
    for (const { spec } of rangesOf(attributes)) {
      setDefaults(attributes.object as unknown as Pod, spec?.limits ?? []);
    }
  },
  validate(attributes): void {
    for (const { spec } of rangesOf(attributes)) {
      const problems = [
        ...new Set(
          (spec?.limits ?? []).flatMap((item) => problemsOf(attributes, item)),
        ),
      ];
      if (problems.length === 0) continue;
      throw refusal(
        attributes,
        problems.length === 1 ? `${problems[0]}` : `[${problems.join(", ")}]`,
      );
    }
  },
};

function isPod({ request }: Attributes): boolean {
  return request.definition.plural === "pods";
}

function rangesOf(attributes: Attributes): readonly LimitRange[] {
  const { request, operation, oldObject, namespace, hooks } = attributes;
  // Containers of a Pod change only by `resize`.
  const fixed = isPod(attributes) && operation === "UPDATE" &&
    request.subresource === undefined;
  if (fixed || oldObject?.metadata.deletionTimestamp !== undefined) return [];
  return [...hooks.list(LIMIT_RANGES, namespace)] as unknown as LimitRange[];
}

function setDefaults(
  { spec, metadata }: Pod,
  limits: readonly LimitRangeItem[],
): void {
  const items = limits.filter(({ type }) => type === "Container");
  const given = {
    requests: Object.assign({}, ...items.map((item) => item.defaultRequest)),
    limits: Object.assign({}, ...items.map((item) => item.default)),
  };
  const notes: string[] = [];
  const complete = (container: Container, what: string) => {
    for (const field of ["requests", "limits"] as const) {
      const own = container.resources?.[field] ?? {};
      const missing = Object.keys(given[field]).filter((name) =>
        !Object.hasOwn(own, name)
      ).sort();
      if (missing.length === 0) continue;
      container.resources = {
        ...container.resources,
        [field]: { ...given[field], ...own },
      };
      notes.push(
        `${missing.join(", ")} ${
          field.slice(0, -1)
        } for ${what} ${container.name}`,
      );
    }
  };
  for (const container of spec.containers ?? []) {
    complete(container, "container");
  }
  for (const container of spec.initContainers ?? []) {
    complete(container, "init container");
  }
  if (notes.length === 0) return;
  metadata.annotations = {
    ...metadata.annotations,
    "kubernetes.io/limit-ranger": `LimitRanger plugin set: ${notes.join("; ")}`,
  };
}

/** Requests and limits of an object to which an item of a LimitRange applies. */
interface Consumer {
  readonly requests: Amounts;
  readonly limits: Amounts;
}

function problemsOf(attributes: Attributes, item: LimitRangeItem): string[] {
  if (!isPod(attributes)) {
    if (item.type !== "PersistentVolumeClaim") return [];
    const { spec } = attributes.object as unknown as PersistentVolumeClaim;
    const requests = amountsOf(spec?.resources?.requests);
    const consumer = { requests, limits: new Map() };
    return [
      ...check(item, "min", consumer),
      ...check(item, "max", consumer, CHECKS.maxRequest),
    ];
  }
  const { spec } = attributes.object as unknown as Pod;
  const consumer = (of: (field: keyof Consumer) => Amounts): Consumer => ({
    requests: of("requests"),
    limits: of("limits"),
  });
  const consumers = item.type === "Pod"
    ? [consumer((field) => podAmounts(spec, field))]
    : item.type === "Container"
    ? [...spec.containers ?? [], ...spec.initContainers ?? []].map((
      { resources },
    ) => consumer((field) => amountsOf(resources?.[field])))
    : [];
  return consumers.flatMap((consumer) => [
    ...check(item, "min", consumer),
    ...check(item, "max", consumer),
    ...check(item, "maxLimitRequestRatio", consumer),
  ]);
}

function check(
  item: LimitRangeItem,
  bound: "min" | "max" | "maxLimitRequestRatio",
  { requests, limits }: Consumer,
  test: Check = CHECKS[bound],
): string[] {
  return [...amountsOf(item[bound])].flatMap(([name, enforced]) => {
    const problem = test(enforced, requests.get(name), limits.get(name));
    if (problem === undefined) return [];
    const [subject, separator] = bound === "maxLimitRequestRatio"
      ? [`${name} max limit to request ratio per ${item.type}`, ", but "]
      : [
        `${
          bound === "min" ? "minimum" : "maximum"
        } ${name} usage per ${item.type}`,
        problem.startsWith("No ") ? ".  " : ", but ",
      ];
    return [`${subject} is ${enforced}${separator}${problem}`];
  });
}

type Check = (
  enforced: Quantity,
  request: Quantity | undefined,
  limit: Quantity | undefined,
) => string | undefined;

const CHECKS: Readonly<
  Record<"min" | "max" | "maxRequest" | "maxLimitRequestRatio", Check>
> = {
  min: (enforced, request, limit) =>
    missing("request", request) ?? beyond("request", request, enforced, -1) ??
      beyond("limit", limit, enforced, -1),
  max: (enforced, request, limit) =>
    missing("limit", limit) ?? beyond("limit", limit, enforced, 1) ??
      beyond("request", request, enforced, 1),
  maxRequest: (enforced, request) =>
    missing("request", request) ?? beyond("request", request, enforced, 1),
  maxLimitRequestRatio(enforced, request, limit) {
    if (!request?.nano) return "no request is specified or request is 0";
    if (!limit?.nano) return "no limit is specified or limit is 0";
    const ratio = limit.toNumber() / request.toNumber();
    return ratio > enforced.toNumber()
      ? `provided ratio is ${ratio.toFixed(6)}`
      : undefined;
  },
};

function missing(what: string, given: Quantity | undefined) {
  return given === undefined ? `No ${what} is specified` : undefined;
}

/** Problem of an amount that is above a bound or, with the sign -1, below it. */
function beyond(
  what: string,
  given: Quantity | undefined,
  bound: Quantity,
  sign: 1 | -1,
): string | undefined {
  return given && given.compare(bound) * sign > 0
    ? `${what} is ${given}`
    : undefined;
}
