import type {
  Affinity,
  Container,
  NodeSelectorRequirement,
  NodeSelectorTerm,
  PodAffinityTerm,
  PodSpec,
  PodTemplateSpec,
  Toleration,
  TopologySpreadConstraint,
} from "../../../kinds/core_v1.ts";
import {
  labelProblems,
  qualifiedNameProblems,
  subdomainProblems,
} from "../../names.ts";
import { checkAnnotations, checkLabels } from "./label_rules.ts";
import { check, type Place, type ValidationRules } from "./place.ts";
import { addressProblems } from "./value_problems.ts";

function checkPodSpec(spec: PodSpec, place: Place): void {
  const volumes = checkVolumeNames(spec, place);
  if (!spec.containers?.length) place.required("containers");
  const names = new Set<string>();
  for (const kind of ["containers", "initContainers"] as const) {
    for (const [index, container] of (spec[kind] ?? []).entries()) {
      const at = place.at(`${kind}[${index}]`);
      if (names.has(container.name)) at.duplicate("name", container.name);
      names.add(container.name);
      checkMounts(container, volumes, at);
      if (kind === "containers" && container.restartPolicy !== undefined) {
        at.forbidden("restartPolicy", "may not be set for non-init containers");
      }
    }
  }
  checkNames(spec, place);
  checkHost(spec, place);
  checkDns(spec, place);
}

function checkVolumeNames(spec: PodSpec, place: Place): Set<string> {
  const names = new Set<string>();
  for (const [index, { name }] of (spec.volumes ?? []).entries()) {
    const at = place.at(`volumes[${index}]`);
    if (!name) at.required("name");
    else {
      const problems = labelProblems(name);
      at.problems("name", name, problems);
      if (names.has(name)) at.duplicate("name", name);
    }
    names.add(name);
  }
  return names;
}

function checkMounts(
  { volumeMounts = [] }: Container,
  volumes: ReadonlySet<string>,
  place: Place,
): void {
  for (const [index, { name, subPath }] of volumeMounts.entries()) {
    const at = place.at(`volumeMounts[${index}]`);
    if (!name) at.required("name");
    if (!volumes.has(name)) at.notFound("name", name);
    if (subPath?.startsWith("/")) {
      place.invalid("volumeMounts.subPath", subPath, "must be a relative path");
    }
    if (subPath?.split("/").includes("..")) {
      place.invalid("volumeMounts.subPath", subPath, "must not contain '..'");
    }
  }
}

function checkNames(spec: PodSpec, place: Place): void {
  for (
    const field of [
      "serviceAccountName",
      "nodeName",
      "priorityClassName",
    ] as const
  ) {
    const name = spec[field];
    if (name) place.problems(field, name, subdomainProblems(name));
  }
  for (const field of ["hostname", "subdomain"] as const) {
    const name = spec[field];
    if (name) place.problems(field, name, labelProblems(name));
  }
  checkLabels(spec.nodeSelector, place.at("nodeSelector"));
  const { activeDeadlineSeconds: deadline } = spec;
  if (deadline !== undefined && (deadline < 1 || deadline > 2 ** 31 - 1)) {
    place.invalid(
      "activeDeadlineSeconds",
      deadline,
      "must be between 1 and 2147483647, inclusive",
    );
  }
  const gates = new Set<string>();
  for (const [index, { name }] of (spec.schedulingGates ?? []).entries()) {
    const at = place.at(`schedulingGates[${index}]`);
    at.problems("", name, qualifiedNameProblems(name));
    if (gates.has(name)) at.duplicate("", name);
    gates.add(name);
  }
  for (const [index, { name }] of (spec.imagePullSecrets ?? []).entries()) {
    if (!name) place.required(`imagePullSecrets[${index}].name`);
  }
}

function checkHost(spec: PodSpec, place: Place): void {
  if (spec.hostPID && spec.shareProcessNamespace) {
    place.invalid(
      "shareProcessNamespace",
      true,
      "ShareProcessNamespace and HostPID cannot both be enabled",
    );
  }
  for (const kind of ["containers", "initContainers"] as const) {
    for (const [index, { ports = [] }] of (spec[kind] ?? []).entries()) {
      for (const [number, { hostPort, containerPort }] of ports.entries()) {
        if (!spec.hostNetwork || !hostPort || hostPort === containerPort) {
          continue;
        }
        place.invalid(
          `${kind}[${index}].ports[${number}].containerPort`,
          containerPort,
          "must match `hostPort` when `hostNetwork` is true",
        );
      }
    }
  }
  checkHostPorts(spec, place);
  for (
    const [index, { ip, hostnames = [] }] of (spec.hostAliases ?? []).entries()
  ) {
    const at = place.at(`hostAliases[${index}]`);
    at.problems("ip", ip, addressProblems(ip ?? ""));
    for (const name of hostnames) {
      at.problems("hostnames", name, subdomainProblems(name));
    }
  }
}

/** Two containers cannot have one port of the host. */
function checkHostPorts(spec: PodSpec, place: Place): void {
  const taken = new Set<string>();
  for (const [index, { ports = [] }] of (spec.containers ?? []).entries()) {
    for (const [number, port] of ports.entries()) {
      if (!port.hostPort) continue;
      const key = `${port.protocol}/${port.hostIP ?? ""}/${port.hostPort}`;
      if (taken.has(key)) {
        place.duplicate(
          `containers[${index}].ports[${number}].hostPort`,
          key,
        );
      }
      taken.add(key);
    }
  }
}

function checkDns({ dnsPolicy, dnsConfig }: PodSpec, place: Place): void {
  const { nameservers = [], searches = [], options = [] } = dnsConfig ?? {};
  if (dnsPolicy === "None" && nameservers.length === 0) {
    place.required(
      dnsConfig === undefined ? "dnsConfig" : "dnsConfig.nameservers",
      dnsConfig === undefined
        ? "must provide `dnsConfig` when `dnsPolicy` is None"
        : "must provide at least one DNS nameserver when `dnsPolicy` is None",
    );
  }
  for (const [index, server] of nameservers.entries()) {
    place.problems(
      `dnsConfig.nameservers[${index}]`,
      server,
      addressProblems(server),
    );
  }
  for (const [index, search] of searches.entries()) {
    const name = search.endsWith(".") ? search.slice(0, -1) : search;
    place.problems(
      `dnsConfig.searches[${index}]`,
      name,
      subdomainProblems(name),
    );
  }
  for (const [index, { name }] of options.entries()) {
    if (!name) {
      place.required(`dnsConfig.options[${index}]`, "must not be empty");
    }
  }
}

function checkToleration(toleration: Toleration, place: Place): void {
  const { key, operator, value, effect, tolerationSeconds } = toleration;
  if (key) place.problems("key", key, qualifiedNameProblems(key));
  else if (operator !== "Exists") {
    place.invalid(
      "operator",
      operator ?? "",
      'operator must be Exists when `key` is empty, which means "match all values and all keys"',
    );
  }
  if (tolerationSeconds !== undefined && effect !== "NoExecute") {
    place.invalid(
      "effect",
      effect ?? "",
      "effect must be 'NoExecute' when `tolerationSeconds` is set",
    );
  }
  if (operator === "Exists" && value) {
    place.invalid(
      "operator",
      value,
      "value must be empty when `operator` is 'Exists'",
    );
  }
}

function checkSpread(constraint: TopologySpreadConstraint, place: Place): void {
  const { maxSkew, topologyKey, whenUnsatisfiable } = constraint;
  if (maxSkew <= 0) {
    place.invalid("maxSkew", maxSkew, "must be greater than zero");
  }
  if (!topologyKey) place.required("topologyKey", "can not be empty");
  if (!whenUnsatisfiable) {
    place.notSupported("whenUnsatisfiable", whenUnsatisfiable, [
      "DoNotSchedule",
      "ScheduleAnyway",
    ]);
  }
}

function checkAffinityTerm(
  { topologyKey }: PodAffinityTerm,
  place: Place,
): void {
  if (!topologyKey) place.required("topologyKey", "can not be empty");
  else {
    place.problems(
      "topologyKey",
      topologyKey,
      qualifiedNameProblems(topologyKey),
    );
  }
}

function checkAffinity(affinity: Affinity, place: Place): void {
  for (
    const part of ["nodeAffinity", "podAffinity", "podAntiAffinity"] as const
  ) {
    const field = "preferredDuringSchedulingIgnoredDuringExecution";
    const preferred: readonly { weight: number }[] = affinity[part]?.[field] ??
      [];
    for (const [index, { weight }] of preferred.entries()) {
      if (weight > 0 && weight <= 100) continue;
      place.invalid(
        `${part}.${field}[${index}].weight`,
        weight,
        "must be in the range 1-100",
      );
    }
  }
  const required = affinity.nodeAffinity
    ?.requiredDuringSchedulingIgnoredDuringExecution;
  if (required && !required.nodeSelectorTerms?.length) {
    place.required(
      "nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms",
      "must have at least one node selector term",
    );
  }
}

const WITH_VALUES = ["In", "NotIn"];

function checkRequirement(
  { key, operator, values = [] }: NodeSelectorRequirement,
  place: Place,
): void {
  if (WITH_VALUES.includes(operator)) {
    if (values.length === 0) {
      place.required(
        "values",
        "must be specified when `operator` is 'In' or 'NotIn'",
      );
    }
  } else if (operator === "Exists" || operator === "DoesNotExist") {
    if (values.length > 0) {
      place.forbidden(
        "values",
        "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
      );
    }
  } else if (operator === "Gt" || operator === "Lt") {
    if (values.length !== 1) {
      place.required(
        "values",
        "must be specified single value when `operator` is 'Lt' or 'Gt'",
      );
    }
  } else place.invalid("operator", operator, "not a valid selector operator");
  place.problems("key", key, qualifiedNameProblems(key));
}

function checkTemplate({ metadata }: PodTemplateSpec, place: Place): void {
  checkLabels(metadata?.labels, place.at("labels"));
  checkAnnotations(metadata?.annotations, place.at("annotations"));
}

/** What is checked of Pods, and of the templates of Pods. */
export const POD_RULES: ValidationRules = [
  check("api.core.v1.PodSpec", checkPodSpec),
  check("api.core.v1.PodTemplateSpec", checkTemplate),
  check("api.core.v1.Toleration", checkToleration),
  check("api.core.v1.TopologySpreadConstraint", checkSpread),
  check("api.core.v1.PodAffinityTerm", checkAffinityTerm),
  check("api.core.v1.Affinity", checkAffinity),
  check("api.core.v1.NodeSelectorTerm", (term: NodeSelectorTerm, place) => {
    for (const [index, one] of (term.matchExpressions ?? []).entries()) {
      checkRequirement(one, place.at(`matchExpressions[${index}]`));
    }
  }),
];
