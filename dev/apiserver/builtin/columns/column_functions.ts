import type { LabelSelector, OwnerReference } from "@coracle/operator/client";
import { labelRequirements, parseApiVersion } from "@coracle/operator/internal";
import type {
  DiscoveryEndpointPort,
  EndpointSubset,
  IngressRule,
  Job,
  LoadBalancerStatus,
  ResourceQuotaStatus,
  Service,
  ServicePort,
  Subject,
} from "@coracle/operator/kinds";
import { humanAge, humanDuration } from "../../human_duration.ts";
import type { RuleFunction } from "../../validation/rules/expression.ts";
import { metricsText } from "./autoscaler_columns.ts";

type Labels = Readonly<Record<string, string>>;
type Balancer = Pick<LoadBalancerStatus, "ingress"> | undefined;

/** Condition of an object. */
interface Condition {
  readonly type: string;
  readonly status?: string;
  readonly reason?: string;
}

/**
 * Selector as text with its requirements sorted by key, as the column of
 * Deployments shows it; empty if the selector is empty or absent.
 */
function selectorText(selector?: LabelSelector): string {
  if (selector === undefined) return "";
  const { matchLabels, matchExpressions = [] } = selector;
  try {
    const labels = Object.entries(matchLabels ?? {}).map((
      [key, value],
    ) => ({ key, text: `${key}=${value}` }));
    const expressions = labelRequirements({ matchExpressions }).map((
      { key, operator, values },
    ) => ({ key, text: conditionText(key, operator, values) }));
    return [...labels, ...expressions]
      .sort((a, b) => a.key < b.key ? -1 : a.key > b.key ? 1 : 0)
      .map(({ text }) => text)
      .join(",");
  } catch {
    return "<invalid>";
  }
}

function conditionText(
  key: string,
  operator: string,
  values: readonly string[],
): string {
  if (operator === "Exists") return key;
  if (operator === "DoesNotExist") return `!${key}`;
  const list = [...values].sort().join(",");
  return `${key} ${operator === "In" ? "in" : "notin"} (${list})`;
}

/** Selector as the generated `String()` method of Go writes it. */
function goSelector(
  { matchLabels = {}, matchExpressions = [] }: LabelSelector,
): string {
  const labels = Object.entries(matchLabels).sort().map(([key, value]) =>
    `${key}: ${value},`
  );
  const expressions = matchExpressions.map(({ key, operator, values = [] }) =>
    `LabelSelectorRequirement{Key:${key},Operator:${operator},Values:[${
      values.join(" ")
    }],},`
  );
  return `&LabelSelector{MatchLabels:map[string]string{${
    labels.join("")
  }},MatchExpressions:[]LabelSelectorRequirement{${expressions.join("")}},}`;
}

/** First three texts, with the number of the remaining texts. */
function firstThree(texts: readonly string[]): string {
  const shown = texts.slice(0, 3).join(",");
  return texts.length > 3 ? `${shown} + ${texts.length - 3} more...` : shown;
}

function addresses(balancer: Balancer): readonly string[] {
  const found = (balancer?.ingress ?? [])
    .map(({ ip, hostname }) => ip || hostname || "")
    .filter((address) => address !== "");
  return [...new Set(found)].sort();
}

function externalAddress({ spec, status = {} }: Service): string {
  const external = spec?.externalIPs ?? [];
  switch (spec?.type) {
    case "ClusterIP":
    case "NodePort":
      return external.join(",") || "<none>";
    case "LoadBalancer":
      return [...addresses(status.loadBalancer), ...external].join(",") ||
        "<pending>";
    case "ExternalName":
      return spec.externalName ?? "";
    default:
      return "<unknown>";
  }
}

/** First three addresses with their ports, and the number of the remaining addresses. */
function endpoints(subsets: readonly EndpointSubset[] = []): string {
  if (subsets.length === 0) return "<none>";
  return firstThree(
    subsets.flatMap(({ addresses = [], ports = [] }) =>
      ports.length === 0
        ? addresses.map(({ ip }) => ip)
        : ports.flatMap(({ port }) =>
          addresses.map(({ ip }) =>
            ip.includes(":") ? `[${ip}]:${port}` : `${ip}:${port}`
          )
        )
    ),
  );
}

/** Hosts of the rules of an Ingress; rules without a host count as hidden ones. */
function hosts(rules: readonly IngressRule[] = []): string {
  const found: string[] = [];
  let hasMore = false;
  for (const { host } of rules) {
    hasMore ||= found.length === 3;
    if (!hasMore && host) found.push(host);
  }
  if (found.length === 0) return "*";
  const shown = found.join(",");
  return hasMore ? `${shown} + ${rules.length - 3} more...` : shown;
}

/** Used and hard amounts of a quota: only its limits, or everything except its limits. */
function quota(
  { hard = {}, used = {} }: ResourceQuotaStatus = {},
  isLimit: boolean,
): string {
  return Object.keys(hard).sort()
    .filter((name) => name.startsWith("limits.") === isLimit)
    .map((name) => `${name}: ${used[name] ?? "0"}/${hard[name]}`)
    .join(", ");
}

const ROLE_PREFIX = "node-role.kubernetes.io/";

function roles(labels: Labels = {}): string {
  const found = Object.entries(labels).map(([key, value]) => {
    if (key.startsWith(ROLE_PREFIX)) return key.slice(ROLE_PREFIX.length);
    return key === "kubernetes.io/role" ? value : "";
  });
  return [...new Set(found)].filter((role) => role !== "").sort().join(",");
}

function controller(owners: readonly OwnerReference[] = []): string {
  const owner = owners.find(({ controller }) => controller);
  if (owner === undefined) return "<none>";
  const { group } = parseApiVersion(owner.apiVersion);
  const kind = group === "" ? owner.kind : `${owner.kind}.${group}`;
  return `${kind.toLowerCase()}/${owner.name}`;
}

/** Status of a Job by its conditions, in order of precedence. */
function jobStatus({ metadata, status = {} }: Job): string {
  const has = (type: string) =>
    status.conditions?.find((condition) => condition.type === type)?.status ===
      "True";
  if (has("Complete")) return "Complete";
  if (has("Failed")) return "Failed";
  if (metadata.deletionTimestamp) return "Terminating";
  if (has("Suspended")) return "Suspended";
  return has("FailureTarget") ? "FailureTarget" : "Running";
}

function completions({ spec, status = {} }: Job): string {
  const succeeded = status.succeeded ?? 0;
  if (spec?.completions !== undefined) {
    return `${succeeded}/${spec.completions}`;
  }
  const parallelism = spec?.parallelism ?? 0;
  return `${succeeded}/1${parallelism > 1 ? ` of ${parallelism}` : ""}`;
}

const SHORT_MODES: Labels = {
  ReadWriteOnce: "RWO",
  ReadOnlyMany: "ROX",
  ReadWriteMany: "RWX",
  ReadWriteOncePod: "RWOP",
};

/** Functions of cell expressions. */
export const CELL_FUNCTIONS: Readonly<Record<string, RuleFunction>> = {
  accessModes: (modes: readonly string[] = []) =>
    Object.keys(SHORT_MODES).filter((mode) => modes.includes(mode))
      .map((mode) => SHORT_MODES[mode]).join(","),
  addresses,
  age: humanAge,
  availability: (conditions: readonly Condition[] = []) => {
    const found = conditions.find(({ type }) => type === "Available");
    return found?.status !== "True" && found?.reason
      ? `${found.status} (${found.reason})`
      : found?.status ?? "Unknown";
  },
  completions,
  controller,
  count: (entries: object = {}) => Object.keys(entries).length,
  duration: (start: string, end: string | undefined, now: number) =>
    humanDuration((end ? Date.parse(end) : now) - Date.parse(start)),
  each: (list: readonly Record<string, string>[] = [], name: string) =>
    list.map((item) => item[name]).join(","),
  endpoints,
  externalAddress,
  find: (list: readonly { type: string }[] = [], type: string) =>
    list.find((item) => item.type === type),
  firstThree,
  flat: (list: readonly Record<string, string[]>[] = [], name: string) =>
    list.flatMap((item) => item[name]),
  goSelector,
  hosts,
  isDefaultClass: (annotations: Labels = {}) =>
    ["storageclass", "storageclass.beta"].some((prefix) =>
      annotations[`${prefix}.kubernetes.io/is-default-class`] === "true"
    ),
  jobStatus,
  join: (texts: readonly string[] = [], separator: string) =>
    texts.join(separator),
  labels: (labels: Labels = {}) =>
    Object.entries(labels).map(([key, value]) => `${key}=${value}`).sort()
      .join(",") || "<none>",
  /** Type of the last condition of some types, perhaps only of those that are true. */
  lastType: (
    conditions: readonly Condition[] = [],
    types: readonly string[],
    onlyTrue: boolean,
  ) =>
    conditions.findLast(({ type, status }) =>
      types.includes(type) && (!onlyTrue || status === "True")
    )?.type,
  len: (list: readonly unknown[] = []) => list.length,
  lower: (text = "") => text.toLowerCase(),
  metrics: metricsText,
  path: (first: unknown = "", second: unknown = "") => `${first}/${second}`,
  ports: (ports: readonly ServicePort[] = []) =>
    ports.map(({ port, nodePort, protocol }) =>
      nodePort ? `${port}:${nodePort}/${protocol}` : `${port}/${protocol}`
    ).join(","),
  quota,
  roles,
  seconds: (seconds: number) => humanDuration(seconds * 1_000),
  servedVersions: (
    versions: readonly {
      readonly name: string;
      readonly served: boolean;
      readonly storage: boolean;
    }[] = [],
  ) =>
    versions.filter(({ served }) => served).map(({ name, storage }) =>
      storage ? `${name}(storage)` : name
    ).sort().join(","),
  /** Selector as text for most columns, with `<none>` for an empty one. */
  selector: (selector?: LabelSelector) => {
    const text = selectorText(selector);
    return text === "<invalid>" ? "<error>" : text || "<none>";
  },
  selectorText,
  slicePorts: (ports: readonly DiscoveryEndpointPort[] = []) =>
    ports.map(({ port, name }) => String(port ?? name ?? "*")),
  /** Type of a condition that is true, or another text if it is false. */
  state: (conditions: readonly Condition[] = [], type: string, no: string) => {
    const found = conditions.findLast((condition) => condition.type === type);
    return found ? found.status === "True" ? type : no : "Unknown";
  },
  subjects: (subjects: readonly Subject[] = [], kind: string) =>
    subjects.filter((subject) => subject.kind === kind)
      .map(({ namespace = "", name }) =>
        kind === "ServiceAccount" ? `${namespace}/${name}` : name
      ).join(", "),
  text: String,
  trim: (text = "") => text.trim(),
};
