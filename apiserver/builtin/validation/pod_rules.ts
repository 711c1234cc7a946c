import type {
  Container,
  PodOS,
  PodSecurityContext,
  PodSpec,
  PodTemplateSpec,
  SeccompProfile,
} from "../../../core/kinds/core_v1.ts";
import type { FieldPath } from "../../validation/field_path.ts";
import {
  labelProblems,
  qualifiedNameProblems,
  subdomainProblems,
} from "../../validation/names.ts";
import { between } from "./field_checks.ts";
import { checkAnnotations, checkLabels } from "./label_rules.ts";
import { check, type ValidationRules } from "./validation_rule.ts";
import { addressProblems } from "./value_problems.ts";

function checkPodSpec(spec: PodSpec, fieldPath: FieldPath): void {
  checkVolumeNames(spec, fieldPath);
  if (!spec.containers?.length) fieldPath.required("containers");
  const names = new Set<string>();
  for (const kind of ["containers", "initContainers"] as const) {
    for (const [index, container] of (spec[kind] ?? []).entries()) {
      const at = fieldPath.child(`${kind}[${index}]`);
      if (names.has(container.name)) at.duplicate("name", container.name);
      names.add(container.name);
      checkRestartPolicy(container, kind === "initContainers", at);
    }
  }
  checkNames(spec, fieldPath);
  checkHost(spec, fieldPath);
  checkDns(spec, fieldPath);
}

function checkRestartPolicy(
  { restartPolicy }: Container,
  isInit: boolean,
  fieldPath: FieldPath,
): void {
  if (restartPolicy === undefined) return;
  if (!isInit) {
    fieldPath.forbidden(
      "restartPolicy",
      "may not be set for non-init containers",
    );
  } else if (restartPolicy !== "Always") {
    fieldPath.notSupported("restartPolicy", restartPolicy, ["Always"]);
  }
}

/** Checks the mounts of all containers; invalid volumes count as missing. */
function checkAllMounts(spec: PodSpec, fieldPath: FieldPath): void {
  const volumes = new Set(
    (spec.volumes ?? []).filter((_, index) =>
      !fieldPath.hasProblems(`volumes[${index}]`)
    ).map(({ name }) => name),
  );
  for (const kind of ["containers", "initContainers"] as const) {
    for (const [index, container] of (spec[kind] ?? []).entries()) {
      checkMounts(container, volumes, fieldPath.child(`${kind}[${index}]`));
    }
  }
}

function checkVolumeNames(spec: PodSpec, fieldPath: FieldPath): void {
  const names = new Set<string>();
  for (const [index, { name }] of (spec.volumes ?? []).entries()) {
    const at = fieldPath.child(`volumes[${index}]`);
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
  fieldPath: FieldPath,
): void {
  for (const [index, mount] of volumeMounts.entries()) {
    const { name, subPath, recursiveReadOnly, readOnly } = mount;
    const at = fieldPath.child(`volumeMounts[${index}]`);
    if (!name) at.required("name");
    if (!volumes.has(name)) at.notFound("name", name);
    if (subPath?.startsWith("/")) {
      fieldPath.invalid(
        "volumeMounts.subPath",
        subPath,
        "must be a relative path",
      );
    }
    if (subPath?.split("/").includes("..")) {
      fieldPath.invalid(
        "volumeMounts.subPath",
        subPath,
        "must not contain '..'",
      );
    }
    if (
      recursiveReadOnly !== undefined && recursiveReadOnly !== "Disabled" &&
      !readOnly
    ) {
      fieldPath.forbidden(
        "volumeMounts.recursiveReadOnly",
        "may only be specified when readOnly is true",
      );
    }
  }
}

function checkNames(spec: PodSpec, fieldPath: FieldPath): void {
  for (
    const field of [
      "serviceAccountName",
      "nodeName",
      "priorityClassName",
    ] as const
  ) {
    const name = spec[field];
    if (name) fieldPath.problems(field, name, subdomainProblems(name));
  }
  for (const field of ["hostname", "subdomain"] as const) {
    const name = spec[field];
    if (name) fieldPath.problems(field, name, labelProblems(name));
  }
  checkLabels(spec.nodeSelector, fieldPath.child("nodeSelector"));
  const { activeDeadlineSeconds: deadline } = spec;
  if (deadline !== undefined && (deadline < 1 || deadline > 2 ** 31 - 1)) {
    fieldPath.invalid(
      "activeDeadlineSeconds",
      deadline,
      "must be between 1 and 2147483647, inclusive",
    );
  }
  const gates = new Set<string>();
  for (const [index, { name }] of (spec.schedulingGates ?? []).entries()) {
    const at = fieldPath.child(`schedulingGates[${index}]`);
    at.problems("", name, qualifiedNameProblems(name));
    if (gates.has(name)) at.duplicate("", name);
    gates.add(name);
  }
  for (
    const [index, { conditionType }] of (spec.readinessGates ?? []).entries()
  ) {
    fieldPath.problems(
      `readinessGates[${index}].conditionType`,
      conditionType,
      qualifiedNameProblems(conditionType),
    );
  }
}

function checkHost(spec: PodSpec, fieldPath: FieldPath): void {
  if (spec.hostPID && spec.shareProcessNamespace) {
    fieldPath.invalid(
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
        fieldPath.invalid(
          `${kind}[${index}].ports[${number}].hostPort`,
          hostPort,
          "must match `containerPort` when `hostNetwork` is true",
        );
      }
    }
  }
  checkHostPorts(spec, fieldPath);
  for (
    const [index, { ip, hostnames = [] }] of (spec.hostAliases ?? []).entries()
  ) {
    const at = fieldPath.child(`hostAliases[${index}]`);
    at.problems("ip", ip, addressProblems(ip ?? ""));
    for (const [number, name] of hostnames.entries()) {
      at.problems(`hostnames[${number}]`, name, subdomainProblems(name));
    }
  }
}

/** Checks that the containers use distinct host ports. */
function checkHostPorts(spec: PodSpec, fieldPath: FieldPath): void {
  const taken = new Set<string>();
  for (const [index, { ports = [] }] of (spec.containers ?? []).entries()) {
    for (const [number, port] of ports.entries()) {
      if (!port.hostPort) continue;
      const key = `${port.protocol}/${port.hostIP ?? ""}/${port.hostPort}`;
      if (taken.has(key)) {
        fieldPath.duplicate(
          `containers[${index}].ports[${number}].hostPort`,
          key,
        );
      }
      taken.add(key);
    }
  }
}

function checkDns(
  { dnsPolicy, dnsConfig }: PodSpec,
  fieldPath: FieldPath,
): void {
  const { nameservers = [], searches = [], options = [] } = dnsConfig ?? {};
  if (dnsPolicy === "None" && nameservers.length === 0) {
    fieldPath.required(
      dnsConfig === undefined ? "dnsConfig" : "dnsConfig.nameservers",
      dnsConfig === undefined
        ? "must provide `dnsConfig` when `dnsPolicy` is None"
        : "must provide at least one DNS nameserver when `dnsPolicy` is None",
    );
  }
  for (const [index, server] of nameservers.entries()) {
    fieldPath.problems(
      `dnsConfig.nameservers[${index}]`,
      server,
      addressProblems(server),
    );
  }
  for (const [index, search] of searches.entries()) {
    const name = search.endsWith(".") ? search.slice(0, -1) : search;
    fieldPath.problems(
      `dnsConfig.searches[${index}]`,
      name,
      subdomainProblems(name),
    );
  }
  for (const [index, { name }] of options.entries()) {
    if (!name) {
      fieldPath.required(`dnsConfig.options[${index}]`, "must not be empty");
    }
  }
}

function checkOs({ name }: PodOS, fieldPath: FieldPath): void {
  if (!name) fieldPath.required("name", "cannot be empty");
  else if (name !== "linux" && name !== "windows") {
    fieldPath.notSupported("", name, ["linux", "windows"]);
  }
}

const HIGHEST_ID = 2_147_483_647;
const SYSCTL =
  /^(?:[a-z0-9](?:[-_a-z0-9]*[a-z0-9])?[./])*[a-z0-9](?:[-_a-z0-9]*[a-z0-9])?$/;

function checkPodSecurity(
  context: PodSecurityContext,
  fieldPath: FieldPath,
): void {
  for (const field of ["fsGroup", "runAsUser", "runAsGroup"] as const) {
    between(0, HIGHEST_ID)(context[field], field, fieldPath);
  }
  for (
    const [index, group] of (context.supplementalGroups ?? []).entries()
  ) between(0, HIGHEST_ID)(group, `supplementalGroups[${index}]`, fieldPath);
  const names = new Set<string>();
  for (const [index, { name }] of (context.sysctls ?? []).entries()) {
    const at = `sysctls[${index}].name`;
    if (!name) fieldPath.required(at);
    else if (name.length > 253 || !SYSCTL.test(name)) {
      fieldPath.invalid(
        at,
        name,
        "must have at most 253 characters and match regex ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$",
      );
    } else if (names.has(name)) fieldPath.duplicate(at, name);
    names.add(name);
  }
}

function checkSeccomp(
  { type, localhostProfile }: SeccompProfile,
  fieldPath: FieldPath,
): void {
  if (!type) {
    fieldPath.required("type", "type is required when seccompProfile is set");
  }
  if (type === "Localhost" && localhostProfile === undefined) {
    fieldPath.required(
      "localhostProfile",
      "must be set when seccomp type is Localhost",
    );
  }
  if (type !== "Localhost" && localhostProfile !== undefined) {
    fieldPath.invalid(
      "localhostProfile",
      localhostProfile,
      "can only be set when seccomp type is Localhost",
    );
  }
}

/** Checks the labels and annotations of a Pod template. */
export function checkTemplate(
  { metadata }: PodTemplateSpec,
  fieldPath: FieldPath,
): void {
  checkLabels(metadata?.labels, fieldPath.child("labels"));
  checkAnnotations(metadata?.annotations, fieldPath.child("annotations"));
}

/** Validation rules of Pods and Pod templates. */
export const POD_RULES: ValidationRules = [
  check("api.core.v1.PodSpec", checkPodSpec),
  check("api.core.v1.PodTemplateSpec", checkTemplate),
  check("api.core.v1.PodSpec", checkAllMounts, "after"),
  check("api.core.v1.PodOS", checkOs),
  check("api.core.v1.PodSecurityContext", checkPodSecurity),
  check("api.core.v1.SeccompProfile", checkSeccomp),
];
