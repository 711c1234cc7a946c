import { webhookUrl } from "../../validation/request_url.ts";
import { Buffer } from "node:buffer";
import { Quantity } from "@coracle/operator/client";
import {
  jsonEquals,
  type JsonObject,
  parseApiVersion,
  scheduleProblem,
  timeZoneProblem,
} from "@coracle/operator/internal";
import type {
  Container,
  ContainerStatus,
  LabelSelector,
  PersistentVolumeClaimSpec,
  PodSpec,
  ResourceRequirements,
  ScopedResourceSelectorRequirement,
  SuccessPolicyRule,
  Toleration,
} from "@coracle/operator/kinds";
import * as certificateRules from "./certificate_rules.ts";
import { qosClassOf } from "../lifecycle/pod_qos.ts";
import type { RuleFunction } from "../../validation/rules/expression.ts";
import { goJson } from "../../validation/go_value.ts";
import { selects } from "../../validation/rules/label_rules.ts";
import { FORMATS } from "../../validation/rules/rule_words.ts";
import {
  intOrPercentValue,
  isAddress,
} from "../../validation/rules/value_problems.ts";
import { isNumber } from "../../exact_json.ts";

type Struct = Readonly<Record<string, unknown>> | undefined;
type Labels = Record<string, string> | undefined;

function problems(format: string, value: unknown): string {
  return (FORMATS[format]?.(value as never) ?? []).join(",");
}

function without(struct: Struct, names: readonly string[]): Struct {
  return Object.fromEntries(
    Object.entries(struct ?? {}).filter(([name]) => !names.includes(name)),
  );
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

/** Size in bytes of base64 texts after decoding. */
function decodedSize(data: Labels = {}): number {
  return sum(
    Object.values(data).map((text) =>
      text.length / 4 * 3 -
      (text.endsWith("==") ? 2 : text.endsWith("=") ? 1 : 0)
    ),
  );
}

/** Required keys of Secrets, by type. */
const SECRET_KEYS: Readonly<Record<string, readonly string[]>> = {
  "kubernetes.io/tls": ["tls.crt", "tls.key"],
  "kubernetes.io/dockercfg": [".dockercfg"],
  "kubernetes.io/dockerconfigjson": [".dockerconfigjson"],
  "kubernetes.io/ssh-auth": ["ssh-privatekey"],
};

/** Names without a slash that a quota may limit. */
const QUOTA_NAMES =
  /^(?:(?:(?:requests|limits)\.)?(?:cpu|memory|ephemeral-storage)|pods|resourcequotas|services|replicationcontrollers|secrets|configmaps|persistentvolumeclaims|requests\.storage|services\.nodeports|services\.loadbalancers|(?:requests\.)?hugepages-.*)$/s;

/** What a quota of a scope may limit, of the resources without a slash. */
const POD_AMOUNTS = /^(?:pods|(?:(?:requests|limits)\.)?(?:cpu|memory))$/;
const SCOPED_RESOURCES: Readonly<Record<string, RegExp>> = {
  BestEffort: /^pods$/,
  CrossNamespacePodAffinity: POD_AMOUNTS,
  NotBestEffort: POD_AMOUNTS,
  NotTerminating: POD_AMOUNTS,
  PriorityClass: POD_AMOUNTS,
  Terminating: POD_AMOUNTS,
  VolumeAttributesClass: /^(?:persistentvolumeclaims|requests\.storage)$/,
};

function isNative(resource: string): boolean {
  return !resource.includes("/") || resource.includes("kubernetes.io/");
}

/** Parts of a Pod spec that an update must not change. */
function fixedPod(spec: PodSpec): JsonObject {
  const { containers, initContainers, ...rest } = spec;
  const withoutImages = (list: readonly object[] = []) =>
    list.map((container) => without({ ...container }, ["image"]));
  return {
    ...without(rest, [
      "ephemeralContainers",
      "activeDeadlineSeconds",
      "tolerations",
      "schedulingGates",
    ]),
    containers: withoutImages(containers),
    initContainers: withoutImages(initContainers),
  };
}

/** Parts of a claim that an update must not change. */
function fixedClaim(
  spec: PersistentVolumeClaimSpec = {},
  isBound: boolean,
  keepsVolume: boolean,
): JsonObject {
  const {
    resources = {},
    volumeName,
    volumeAttributesClassName,
    ...rest
  } = spec;
  const { storage, ...requests } = resources.requests ?? {};
  return {
    ...rest,
    ...(keepsVolume ? { volumeName } : {}),
    ...(isBound ? {} : { volumeAttributesClassName }),
    resources: {
      ...resources,
      requests: { ...requests, ...(isBound ? {} : { storage }) },
    },
  };
}

/** Resources without amounts of CPU and memory. */
function fixedResources(resources: ResourceRequirements = {}): unknown {
  const others = (amounts: Readonly<Record<string, unknown>> = {}) =>
    Object.entries(amounts).filter(([name]) =>
      name !== "cpu" && name !== "memory"
    ).sort();
  const { limits, requests, claims = [] } = resources;
  return [others(limits), others(requests), claims];
}

function keepsTolerations(
  now: readonly Toleration[] = [],
  before: readonly Toleration[] = [],
): boolean {
  const lasting = (list: readonly Toleration[]) =>
    list.map((toleration) => without({ ...toleration }, ["tolerationSeconds"]));
  const left = lasting(now);
  return lasting(before).every((toleration) =>
    left.some((other) => jsonEquals(other, toleration))
  );
}

/** Functions that validation rules call. */
export const FUNCTIONS: Readonly<Record<string, RuleFunction>> = {
  ...certificateRules,
  again: (set: Set<unknown>, value: unknown) =>
    set.has(value) || !set.add(value),
  concat: (a: unknown[] = [], b: unknown[] = []) => [...a, ...b],
  decodedSize,
  emptyMap: () => ({}),
  fixedClaim,
  fixedContainer: ({ resources, ...rest }: Container) => [
    rest,
    fixedResources(resources),
  ],
  fixedPod,
  fixedResources,
  distinct: (list: readonly unknown[] = []) => [...new Set(list)].sort(),
  exceeds: (amount?: string, limit?: string) =>
    amount !== undefined && limit !== undefined &&
    Quantity.parse(amount).nano > Quantity.parse(limit).nano,
  given: (struct: Struct, names: readonly string[]) =>
    names.filter((name) => struct?.[name] !== undefined),
  goRules: (rules?: readonly SuccessPolicyRule[]) =>
    goJson(
      rules?.map(({ succeededIndexes = null, succeededCount = null }) => ({
        SucceededIndexes: succeededIndexes,
        SucceededCount: succeededCount,
      })),
      ["SucceededIndexes"],
    ),
  goScopes: (requirements: readonly ScopedResourceSelectorRequirement[] = []) =>
    goJson({
      MatchExpressions: requirements.map((
        { scopeName = "", operator = "", values = null },
      ) => ({ ScopeName: scopeName, Operator: operator, Values: values })),
    }, ["ScopeName", "Operator"]),
  goSelector: (selector?: LabelSelector) =>
    selector ? goJson(selector, ["matchLabels", "matchExpressions"]) : "null",
  groupOf: (apiVersion: string) => parseApiVersion(apiVersion).group,
  includes: (text: string, part: string) => text.includes(part),
  isAddress,
  isAscending: (values: readonly number[]) =>
    values.every((value, index) => (values[index - 1] ?? value) <= value),
  isEmptySelector: (
    { matchLabels = {}, matchExpressions = [] }: LabelSelector,
  ) => Object.keys(matchLabels).length + matchExpressions.length === 0,
  isEvery: (list: readonly unknown[], value: unknown) =>
    list.every((item) => item === value),
  isLabel: (text: string) => problems("label", text) === "",
  isNumber,
  isPort: (name?: string) => Boolean(name) && problems("port", name) === "",
  isExtended: (resource: string) =>
    !isNative(resource) && !resource.startsWith("requests.") &&
    problems("qualifiedName", `requests.${resource}`) === "",
  /** Whether nodes do not overcommit a resource. */
  isFixed: (resource: string) =>
    !isNative(resource) || resource.startsWith("hugepages-"),
  isQuota: (resource: string) => QUOTA_NAMES.test(resource),
  isResource: (resource: string) =>
    resource.includes("/") || resource === "storage" ||
    QUOTA_NAMES.test(resource),
  webhookUrl: (text: unknown) => webhookUrl(String(text)),
  isSubdomain: (text?: string) =>
    Boolean(text) && problems("subdomain", text) === "",
  isWhole: (text: string) => Quantity.parse(text).nano % 1_000_000_000n === 0n,
  join: (texts: readonly unknown[]) => texts.join(", "),
  json: (value: unknown) => goJson(value),
  keepsTolerations,
  keysBut: (struct: Struct, names: readonly string[]) =>
    Object.keys(without(struct, names) ?? {}),
  keysOf: (...structs: readonly Struct[]) =>
    [...new Set(structs.flatMap((struct) => Object.keys(struct || {})))].sort(),
  lacks: (struct: Struct = {}, before: Struct = {}) =>
    Object.keys(before).some((name) => !Object.hasOwn(struct, name)),
  len: (value?: string | readonly unknown[]) => value?.length ?? 0,
  lower: (text?: string) => text?.toLowerCase(),
  lowerFirst: (text = "") => text.charAt(0).toLowerCase() + text.slice(1),
  /** Resources that a quota of a scope must not limit; undefined for no scope. */
  misfits: (scope = "", hard: Struct = {}) => {
    const fitting = SCOPED_RESOURCES[scope];
    return fitting &&
      Object.keys(hard).filter((resource) =>
        QUOTA_NAMES.test(resource) && !fitting.test(resource)
      );
  },
  newSet: () => new Set(),
  percent: intOrPercentValue,
  pluck: (list: readonly Struct[] | undefined, name: string) =>
    (list ?? []).map((struct) => struct?.[name]),
  problems,
  qosClass: qosClassOf,
  quantity: (text: string) => Quantity.parse(text).nano,
  /** Quotient of two amounts as text, if a ratio is greater. */
  ratioLimit: (ratio?: string, most?: string, least?: string) => {
    if (!ratio || !most || !least) return undefined;
    const [value = 0, high = 0, low = 0] = [ratio, most, least]
      .map((amount) => Number(Quantity.parse(amount).nano));
    const limit = high / low;
    return value / 1e9 > limit ? limit.toFixed(6) : undefined;
  },
  runsWithoutResources: (statuses: readonly ContainerStatus[] = []) => {
    const running = statuses.find(({ state }) => state?.running);
    return running !== undefined && running.resources === undefined;
  },
  same: jsonEquals,
  scheduleProblem,
  secretKeys: (type: string) => SECRET_KEYS[type] ?? [],
  selects: (selector: LabelSelector, labels: Labels) =>
    selects(selector, labels ?? {}),
  selectsAll: (matchLabels: Labels, labels: Labels) =>
    selects({ matchLabels: matchLabels ?? {} }, labels ?? {}),
  split: (text: string | undefined, separator: string) =>
    (text ?? "").split(separator),
  subscripted: (label = "") =>
    /^(.*)\['(.*)'\]$/.exec(label)?.slice(1) ?? [label],
  textSize: (data: Labels = {}) =>
    sum(Object.values(data).map((text) => Buffer.byteLength(text))),
  timeZoneProblem,
  trim: (text?: string) => text?.trim(),
  twoOfAFamily: (ranges: readonly string[] = []) =>
    new Set(ranges.map((range) => range.includes(":"))).size < ranges.length,
  versionOf: (apiVersion: string) => parseApiVersion(apiVersion).version,
  without,
  withoutEnd: (text: string | undefined, end: string) =>
    text?.endsWith(end) ? text.slice(0, -end.length) : text,
};
