import type { Service, ServicePort } from "../../../core/kinds/core_v1.ts";
import type {
  IPBlock,
  NetworkPolicyPeer,
  NetworkPolicyPort,
} from "../../../core/kinds/networking_v1.ts";
import type { FieldPath } from "../../validation/field_path.ts";
import {
  labelProblems,
  qualifiedNameProblems,
  subdomainProblems,
} from "../../validation/names.ts";
import { oneOf, text } from "./field_checks.ts";
import { shownIntOrString, shownTexts } from "./go_shown.ts";
import { checkLabels } from "./label_rules.ts";
import { check, type ValidationRules } from "./validation_rule.ts";
import {
  addressProblems,
  networkProblems,
  portNameProblems,
  portProblems,
} from "./value_problems.ts";

function checkService({ spec = {} }: Service, fieldPath: FieldPath): void {
  const at = fieldPath.child("spec");
  const { ports = [], type, clusterIP } = spec;
  const isHeadless = clusterIP === "None";
  if (ports.length === 0 && !isHeadless && type !== "ExternalName") {
    at.required("ports");
  }
  if (isHeadless && (type === "LoadBalancer" || type === "NodePort")) {
    at.invalid(
      "clusterIPs[0]",
      "None",
      `may not be set to 'None' for ${type} services`,
    );
  }
  if (type === "ExternalName") checkExternalName(spec, at);
  checkServicePorts(ports, type, at);
  checkLabels(spec.selector, at.child("selector"));
  for (const [index, address] of (spec.externalIPs ?? []).entries()) {
    at.problems(`externalIPs[${index}]`, address, addressProblems(address));
  }
  checkFamilies(spec, at);
  checkClusterAddress(spec, at);
  checkBalancer(spec, at);
  checkTrafficPolicy(spec, at);
}

type ServiceSpec = NonNullable<Service["spec"]>;

function checkExternalName(spec: ServiceSpec, fieldPath: FieldPath): void {
  for (const field of ["clusterIPs", "ipFamilies", "ipFamilyPolicy"] as const) {
    if (spec[field] === undefined) continue;
    fieldPath.forbidden(field, "may not be set for ExternalName services");
  }
  const name = spec.externalName?.replace(/\.$/, "") ?? "";
  if (name === "") fieldPath.required("externalName");
  else fieldPath.problems("externalName", name, subdomainProblems(name));
}

function checkServicePorts(
  ports: readonly ServicePort[],
  type: string | undefined,
  fieldPath: FieldPath,
): void {
  const names = new Set<string>();
  const numbers = new Set<string>();
  const nodePorts = new Set<string>();
  for (const [index, port] of ports.entries()) {
    const at = fieldPath.child(`ports[${index}]`);
    const { name, protocol, nodePort, targetPort } = port;
    if (!name) { if (ports.length > 1) at.required("name"); }
    else {
      at.problems("name", name, labelProblems(name));
      if (names.has(name)) at.duplicate("name", name);
      names.add(name);
    }
    at.problems("port", port.port, portProblems(port.port));
    text(qualifiedNameProblems)(port.appProtocol, "appProtocol", at);
    if (typeof targetPort === "number") {
      at.problems("targetPort", targetPort, portProblems(targetPort));
    } else if (targetPort !== undefined) {
      at.problems("targetPort", targetPort, portNameProblems(targetPort));
    }
    const key = `${protocol}/${port.port}`;
    if (numbers.has(key)) {
      at.duplicateShown(shownPort(port));
    }
    numbers.add(key);
    if (!nodePort) continue;
    if (type === "ClusterIP") {
      at.forbidden("nodePort", "may not be used when `type` is 'ClusterIP'");
    }
    const nodeKey = `${protocol}/${nodePort}`;
    if (nodePorts.has(nodeKey)) at.duplicate("nodePort", nodePort);
    nodePorts.add(nodeKey);
  }
}

/** Port as Go formats one with only protocol and number set. */
function shownPort({ protocol, port }: ServicePort): string {
  return `core.ServicePort{Name:"", Protocol:${
    JSON.stringify(protocol)
  }, AppProtocol:(*string)(nil), Port:${port}, TargetPort:${
    shownIntOrString(0)
  }, NodePort:0}`;
}

function checkClusterAddress(spec: ServiceSpec, fieldPath: FieldPath): void {
  const { clusterIP, clusterIPs = [] } = spec;
  if (clusterIPs.length === 0) return;
  if (clusterIP !== clusterIPs[0]) {
    fieldPath.invalidShown(
      "clusterIPs",
      shownTexts(clusterIPs),
      "first value must match `clusterIP`",
    );
  }
  if (clusterIPs.length > 1 && clusterIPs.includes("None")) {
    fieldPath.invalidShown(
      "clusterIPs",
      shownTexts(clusterIPs),
      "'None' must be the first and only value",
    );
    return;
  }
  for (const [index, address] of clusterIPs.entries()) {
    if (address === "None" && index === 0) continue;
    fieldPath.problems(
      `clusterIPs[${index}]`,
      address,
      addressProblems(address),
    );
  }
}

const FAMILIES = ["IPv4", "IPv6"];

function checkFamilies(
  { ipFamilies = [] }: ServiceSpec,
  fieldPath: FieldPath,
): void {
  for (const [index, family] of ipFamilies.entries()) {
    const field = `ipFamilies[${index}]`;
    oneOf(FAMILIES)(family, field, fieldPath);
    if (ipFamilies.indexOf(family) < index) fieldPath.duplicate(field, family);
  }
}

function checkBalancer(spec: ServiceSpec, fieldPath: FieldPath): void {
  const { type, loadBalancerSourceRanges: ranges = [] } = spec;
  if (ranges.length > 0 && type !== "LoadBalancer") {
    fieldPath.forbidden(
      "LoadBalancerSourceRanges",
      "may only be used when `type` is 'LoadBalancer'",
    );
  }
  for (const [index, range] of ranges.entries()) {
    const text = range.trim();
    fieldPath.problems(
      `LoadBalancerSourceRanges[${index}]`,
      text,
      networkProblems(text),
    );
  }
  if (
    spec.allocateLoadBalancerNodePorts !== undefined && type !== "LoadBalancer"
  ) {
    fieldPath.forbidden(
      "allocateLoadBalancerNodePorts",
      "may only be used when `type` is 'LoadBalancer'",
    );
  }
  if (spec.loadBalancerClass !== undefined) {
    const { loadBalancerClass: name } = spec;
    if (type !== "LoadBalancer") {
      fieldPath.forbidden(
        "loadBalancerClass",
        "may only be used when `type` is 'LoadBalancer'",
      );
    }
    fieldPath.problems("loadBalancerClass", name, qualifiedNameProblems(name));
  }
}

function checkTrafficPolicy(spec: ServiceSpec, fieldPath: FieldPath): void {
  const { externalTrafficPolicy, type, healthCheckNodePort } = spec;
  const isExternal = type === "LoadBalancer" || type === "NodePort" ||
    type === "ClusterIP" && (spec.externalIPs ?? []).length > 0;
  if (externalTrafficPolicy !== undefined && !isExternal) {
    fieldPath.invalid(
      "externalTrafficPolicy",
      externalTrafficPolicy,
      "may only be set for externally-accessible services",
    );
  }
  const needsHealth = type === "LoadBalancer" &&
    externalTrafficPolicy === "Local";
  if (healthCheckNodePort && !needsHealth) {
    fieldPath.invalid(
      "healthCheckNodePort",
      healthCheckNodePort,
      "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'",
    );
  }
  const timeout = spec.sessionAffinityConfig?.clientIP?.timeoutSeconds;
  if (timeout !== undefined && (timeout <= 0 || timeout > 86_400)) {
    fieldPath.invalid(
      "sessionAffinityConfig.clientIP.timeoutSeconds",
      timeout,
      "must be greater than 0 and less than 86400",
    );
  }
}

function checkPolicyPort(
  { port, endPort }: NetworkPolicyPort,
  fieldPath: FieldPath,
): void {
  if (typeof port === "number") {
    fieldPath.problems("port", port, portProblems(port));
    if (endPort === undefined) return;
    if (endPort < port) {
      fieldPath.invalid(
        "endPort",
        port,
        "must be greater than or equal to `port`",
      );
    }
    fieldPath.problems("endPort", endPort, portProblems(endPort));
    return;
  }
  if (endPort !== undefined) {
    fieldPath.invalid(
      "endPort",
      endPort,
      `may not be specified when \`port\` is ${
        port === undefined ? "not specified" : "non-numeric"
      }`,
    );
  }
  if (port !== undefined) {
    fieldPath.problems("port", port, portNameProblems(port));
  }
}

function checkPeer(peer: NetworkPolicyPeer, fieldPath: FieldPath): void {
  const given = Object.keys(peer).length;
  if (given === 0) fieldPath.required("", "must specify a peer");
  else if (given > 1 && peer.ipBlock) {
    fieldPath.forbidden("", "may not specify both ipBlock and another peer");
  }
}

function checkBlock(
  { cidr, except = [] }: IPBlock,
  fieldPath: FieldPath,
): void {
  if (!cidr) {
    fieldPath.required("cidr");
    return;
  }
  fieldPath.problems("cidr", cidr, networkProblems(cidr));
  for (const [index, range] of except.entries()) {
    fieldPath.problems(`except[${index}]`, range, networkProblems(range));
  }
}

/** Validation rules of Services and NetworkPolicies. */
export const NETWORK_RULES: ValidationRules = [
  check("api.core.v1.Service", checkService),
  check("api.networking.v1.NetworkPolicyPort", checkPolicyPort),
  check("api.networking.v1.NetworkPolicyPeer", checkPeer),
  check("api.networking.v1.IPBlock", checkBlock),
];
