import type {
  Container,
  PodOS,
  PodSecurityContext,
  PodSpec,
  PodTemplateSpec,
  SeccompProfile,
} from "../../../core/kinds/core_v1.ts";
import {
  labelProblems,
  qualifiedNameProblems,
  subdomainProblems,
} from "../../names.ts";
import { between } from "./field_checks.ts";
import { checkAnnotations, checkLabels } from "./label_rules.ts";
import { check, type Place, type ValidationRules } from "./place.ts";
import { addressProblems } from "./value_problems.ts";

function checkPodSpec(spec: PodSpec, place: Place): void {
  checkVolumeNames(spec, place);
  if (!spec.containers?.length) place.required("containers");
  const names = new Set<string>();
  for (const kind of ["containers", "initContainers"] as const) {
    for (const [index, container] of (spec[kind] ?? []).entries()) {
      const at = place.at(`${kind}[${index}]`);
      if (names.has(container.name)) at.duplicate("name", container.name);
      names.add(container.name);
      checkRestartPolicy(container, kind === "initContainers", at);
    }
  }
  checkNames(spec, place);
  checkHost(spec, place);
  checkDns(spec, place);
}

function checkRestartPolicy(
  { restartPolicy }: Container,
  isInit: boolean,
  place: Place,
): void {
  if (restartPolicy === undefined) return;
  if (!isInit) {
    place.forbidden("restartPolicy", "may not be set for non-init containers");
  } else if (restartPolicy !== "Always") {
    place.notSupported("restartPolicy", restartPolicy, ["Always"]);
  }
}

/** Mounts are of volumes in which nothing is wrong. */
function checkAllMounts(spec: PodSpec, place: Place): void {
  const volumes = new Set(
    (spec.volumes ?? []).filter((_, index) =>
      !place.hasProblems(`volumes[${index}]`)
    ).map(({ name }) => name),
  );
  for (const kind of ["containers", "initContainers"] as const) {
    for (const [index, container] of (spec[kind] ?? []).entries()) {
      checkMounts(container, volumes, place.at(`${kind}[${index}]`));
    }
  }
}

function checkVolumeNames(spec: PodSpec, place: Place): void {
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
}

function checkMounts(
  { volumeMounts = [] }: Container,
  volumes: ReadonlySet<string>,
  place: Place,
): void {
  for (const [index, mount] of volumeMounts.entries()) {
    const { name, subPath, recursiveReadOnly, readOnly } = mount;
    const at = place.at(`volumeMounts[${index}]`);
    if (!name) at.required("name");
    if (!volumes.has(name)) at.notFound("name", name);
    if (subPath?.startsWith("/")) {
      place.invalid("volumeMounts.subPath", subPath, "must be a relative path");
    }
    if (subPath?.split("/").includes("..")) {
      place.invalid("volumeMounts.subPath", subPath, "must not contain '..'");
    }
    if (
      recursiveReadOnly !== undefined && recursiveReadOnly !== "Disabled" &&
      !readOnly
    ) {
      place.forbidden(
        "volumeMounts.recursiveReadOnly",
        "may only be specified when readOnly is true",
      );
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
  for (
    const [index, { conditionType }] of (spec.readinessGates ?? []).entries()
  ) {
    place.problems(
      `readinessGates[${index}].conditionType`,
      conditionType,
      qualifiedNameProblems(conditionType),
    );
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
          `${kind}[${index}].ports[${number}].hostPort`,
          hostPort,
          "must match `containerPort` when `hostNetwork` is true",
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
    for (const [number, name] of hostnames.entries()) {
      at.problems(`hostnames[${number}]`, name, subdomainProblems(name));
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

function checkOs({ name }: PodOS, place: Place): void {
  if (!name) place.required("name", "cannot be empty");
  else if (name !== "linux" && name !== "windows") {
    place.notSupported("", name, ["linux", "windows"]);
  }
}

const HIGHEST_ID = 2_147_483_647;
const SYSCTL =
  /^(?:[a-z0-9](?:[-_a-z0-9]*[a-z0-9])?[./])*[a-z0-9](?:[-_a-z0-9]*[a-z0-9])?$/;

function checkPodSecurity(context: PodSecurityContext, place: Place): void {
  for (const field of ["fsGroup", "runAsUser", "runAsGroup"] as const) {
    between(0, HIGHEST_ID)(context[field], field, place);
  }
  for (
    const [index, group] of (context.supplementalGroups ?? []).entries()
  ) between(0, HIGHEST_ID)(group, `supplementalGroups[${index}]`, place);
  const names = new Set<string>();
  for (const [index, { name }] of (context.sysctls ?? []).entries()) {
    const at = `sysctls[${index}].name`;
    if (!name) place.required(at);
    else if (name.length > 253 || !SYSCTL.test(name)) {
      place.invalid(
        at,
        name,
        "must have at most 253 characters and match regex ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$",
      );
    } else if (names.has(name)) place.duplicate(at, name);
    names.add(name);
  }
}

function checkSeccomp(
  { type, localhostProfile }: SeccompProfile,
  place: Place,
): void {
  if (!type) {
    place.required("type", "type is required when seccompProfile is set");
  }
  if (type === "Localhost" && localhostProfile === undefined) {
    place.required(
      "localhostProfile",
      "must be set when seccomp type is Localhost",
    );
  }
  if (type !== "Localhost" && localhostProfile !== undefined) {
    place.invalid(
      "localhostProfile",
      localhostProfile,
      "can only be set when seccomp type is Localhost",
    );
  }
}

/** Checks the labels and annotations that Pods get. */
export function checkTemplate(
  { metadata }: PodTemplateSpec,
  place: Place,
): void {
  checkLabels(metadata?.labels, place.at("labels"));
  checkAnnotations(metadata?.annotations, place.at("annotations"));
}

/** What is checked of Pods, and of the templates of Pods. */
export const POD_RULES: ValidationRules = [
  check("api.core.v1.PodSpec", checkPodSpec),
  check("api.core.v1.PodTemplateSpec", checkTemplate),
  check("api.core.v1.PodSpec", checkAllMounts, "after"),
  check("api.core.v1.PodOS", checkOs),
  check("api.core.v1.PodSecurityContext", checkPodSecurity),
  check("api.core.v1.SeccompProfile", checkSeccomp),
];
