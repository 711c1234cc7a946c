import type { Service, ServicePort } from "../../../kinds/core_v1.ts";
import type { EndpointSlice } from "../../../kinds/discovery_v1.ts";
import type {
  HTTPIngressPath,
  IngressBackend,
  IngressClass,
  IngressSpec,
  IPBlock,
  NetworkPolicyPeer,
  NetworkPolicyPort,
} from "../../../kinds/networking_v1.ts";
import {
  label1035Problems,
  labelProblems,
  subdomainProblems,
} from "../../names.ts";
import { checkLabels } from "./label_rules.ts";
import { check, type Place, type ValidationRules } from "./place.ts";
import {
  addressProblems,
  isAddress,
  networkProblems,
  portNameProblems,
  portProblems,
} from "./value_problems.ts";

function checkService({ spec = {} }: Service, place: Place): void {
  const at = place.at("spec");
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
  checkLabels(spec.selector, at.at("selector"));
  for (const [index, address] of (spec.externalIPs ?? []).entries()) {
    at.problems(`externalIPs[${index}]`, address, addressProblems(address));
  }
  for (
    const [index, range] of (spec.loadBalancerSourceRanges ?? []).entries()
  ) {
    const text = range.trim();
    at.problems(
      `LoadBalancerSourceRanges[${index}]`,
      text,
      networkProblems(text),
    );
  }
  if (spec.loadBalancerSourceRanges && type !== "LoadBalancer") {
    at.forbidden(
      "LoadBalancerSourceRanges",
      "may only be used when `type` is 'LoadBalancer'",
    );
  }
  checkClusterAddress(spec, at);
  checkTrafficPolicy(spec, at);
}

type ServiceSpec = NonNullable<Service["spec"]>;

function checkExternalName(spec: ServiceSpec, place: Place): void {
  for (const field of ["clusterIPs", "ipFamilies", "ipFamilyPolicy"] as const) {
    if (spec[field] === undefined) continue;
    place.forbidden(field, "may not be set for ExternalName services");
  }
  const name = spec.externalName?.replace(/\.$/, "") ?? "";
  if (name === "") place.required("externalName");
  else place.problems("externalName", name, subdomainProblems(name));
}

function checkServicePorts(
  ports: readonly ServicePort[],
  type: string | undefined,
  place: Place,
): void {
  const names = new Set<string>();
  const numbers = new Set<string>();
  const nodePorts = new Set<string>();
  for (const [index, port] of ports.entries()) {
    const at = place.at(`ports[${index}]`);
    const { name, protocol, nodePort, targetPort } = port;
    if (!name) { if (ports.length > 1) at.required("name"); }
    else {
      at.problems("name", name, labelProblems(name));
      if (names.has(name)) at.duplicate("name", name);
      names.add(name);
    }
    at.problems("port", port.port, portProblems(port.port));
    if (typeof targetPort === "number") {
      at.problems("targetPort", targetPort, portProblems(targetPort));
    } else if (targetPort !== undefined) {
      at.problems("targetPort", targetPort, portNameProblems(targetPort));
    }
    const key = `${protocol}/${port.port}`;
    if (numbers.has(key)) {
      at.duplicate("", { port: port.port, protocol });
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

function checkClusterAddress(spec: ServiceSpec, place: Place): void {
  const { clusterIP, clusterIPs = [] } = spec;
  if (clusterIPs.length === 0) return;
  if (clusterIP !== clusterIPs[0]) {
    place.invalid(
      "clusterIPs",
      clusterIPs,
      "first value must match `clusterIP`",
    );
  }
  for (const [index, address] of clusterIPs.entries()) {
    if (address === "None" && index === 0) continue;
    place.problems(
      `clusterIPs[${index}]`,
      address,
      addressProblems(address),
    );
  }
}

function checkTrafficPolicy(spec: ServiceSpec, place: Place): void {
  const { externalTrafficPolicy, type, healthCheckNodePort } = spec;
  const isExternal = type === "LoadBalancer" || type === "NodePort" ||
    type === "ClusterIP" && spec.externalIPs !== undefined;
  if (externalTrafficPolicy !== undefined && !isExternal) {
    place.invalid(
      "externalTrafficPolicy",
      externalTrafficPolicy,
      "may only be set for externally-accessible services",
    );
  }
  const needsHealth = type === "LoadBalancer" &&
    externalTrafficPolicy === "Local";
  if (healthCheckNodePort && !needsHealth) {
    place.invalid(
      "healthCheckNodePort",
      healthCheckNodePort,
      "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'",
    );
  }
  const timeout = spec.sessionAffinityConfig?.clientIP?.timeoutSeconds;
  if (timeout !== undefined && (timeout <= 0 || timeout > 86_400)) {
    place.invalid(
      "sessionAffinityConfig.clientIP.timeoutSeconds",
      timeout,
      "must be greater than 0 and less than 86400",
    );
  }
}

function checkIngress(spec: IngressSpec, place: Place): void {
  const { rules = [], defaultBackend, ingressClassName } = spec;
  if (rules.length === 0 && !defaultBackend) {
    place.invalidShown(
      "",
      "[]networking.IngressRule(nil)",
      "either `defaultBackend` or `rules` must be specified",
    );
  }
  for (const [index, { host, http }] of rules.entries()) {
    const at = place.at(`rules[${index}]`);
    if (host) checkHost(host, at.at("host"));
    if (http && !http.paths?.length) at.required("http.paths");
  }
  for (const [index, { hosts = [] }] of (spec.tls ?? []).entries()) {
    for (const [number, host] of hosts.entries()) {
      checkHost(host, place.at(`tls[${index}].hosts[${number}]`));
    }
  }
  if (ingressClassName !== undefined) {
    place.problems(
      "ingressClassName",
      ingressClassName,
      subdomainProblems(ingressClassName),
    );
  }
}

const WILDCARD =
  /^\*\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;

function checkHost(host: string, place: Place): void {
  if (isAddress(host)) {
    place.invalid("", host, "must be a DNS name, not an IP address");
  }
  if (!host.includes("*")) place.problems("", host, subdomainProblems(host));
  else if (!WILDCARD.test(host)) {
    place.invalid(
      "",
      host,
      "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. '*.example.com', regex used for validation is '\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
    );
  }
}

const REFUSED_SEQUENCES = ["//", "/./", "/../", "%2f", "%2F"];
const REFUSED_ENDINGS = ["/..", "/."];

function checkIngressPath(
  { path = "", pathType }: HTTPIngressPath,
  place: Place,
): void {
  if (!pathType) {
    place.required("pathType", "pathType must be specified");
    return;
  }
  const isStrict = pathType !== "ImplementationSpecific";
  if ((isStrict || path !== "") && !path.startsWith("/")) {
    place.invalid("path", path, "must be an absolute path");
  }
  if (!isStrict) return;
  for (const sequence of REFUSED_SEQUENCES) {
    if (path.includes(sequence)) {
      place.invalid("path", path, `must not contain '${sequence}'`);
    }
  }
  for (const ending of REFUSED_ENDINGS) {
    if (path.endsWith(ending)) {
      place.invalid("path", path, `cannot end with '${ending}'`);
    }
  }
}

function checkBackend(
  { service, resource }: IngressBackend,
  place: Place,
): void {
  if (service && resource) {
    place.invalid("", "", "cannot set both resource and service backends");
  } else if (service) {
    if (!service.name) place.required("service.name");
    else {
      place.problems(
        "service.name",
        service.name,
        label1035Problems(service.name),
      );
    }
    const { name, number } = service.port ?? {};
    if (name && number) {
      place.invalid("", "", "cannot set both port name & port number");
    } else if (name) {
      place.problems("service.port.name", name, portNameProblems(name));
    } else if (number) {
      place.problems("service.port.number", number, portProblems(number));
    } else place.required("", "port name or number is required");
  } else if (!resource) {
    place.invalid("", "", "resource or service backend is required");
  }
}

function checkIngressClass({ spec = {} }: IngressClass, place: Place): void {
  const at = place.at("spec");
  const { controller = "", parameters } = spec;
  if (controller === "") at.required("controller");
  else if (!controller.includes("/") || controller.endsWith("/")) {
    at.invalid(
      "controller",
      controller,
      'must be a domain-prefixed path (such as "acme.io/foo")',
    );
  } else {
    const domain = controller.slice(0, controller.indexOf("/"));
    at.problems("controller", domain, subdomainProblems(domain));
  }
  if (parameters === undefined) return;
  const { kind, name, apiGroup, namespace, scope } = parameters;
  if (!kind) at.required("parameters.kind", "kind is required");
  if (!name) at.required("parameters.name", "name is required");
  if (apiGroup !== undefined) {
    at.problems("parameters.apiGroup", apiGroup, subdomainProblems(apiGroup));
  }
  if (scope === "Namespace" && namespace !== undefined) {
    at.problems("parameters.namespace", namespace, labelProblems(namespace));
  }
  if (parameters.scope === "Namespace" && parameters.namespace === undefined) {
    at.required(
      "parameters.namespace",
      "`parameters.scope` is set to 'Namespace'",
    );
  }
  if (parameters.scope === "Cluster" && parameters.namespace !== undefined) {
    at.forbidden(
      "parameters.namespace",
      "`parameters.scope` is set to 'Cluster'",
    );
  }
}

function checkPolicyPort(
  { port, endPort }: NetworkPolicyPort,
  place: Place,
): void {
  if (typeof port === "number") {
    place.problems("port", port, portProblems(port));
    if (endPort === undefined) return;
    if (endPort < port) {
      place.invalid("endPort", port, "must be greater than or equal to `port`");
    }
    place.problems("endPort", endPort, portProblems(endPort));
    return;
  }
  if (endPort !== undefined) {
    place.invalid(
      "endPort",
      endPort,
      `may not be specified when \`port\` is ${
        port === undefined ? "not specified" : "non-numeric"
      }`,
    );
  }
  if (port !== undefined) place.problems("port", port, portNameProblems(port));
}

function checkPeer(peer: NetworkPolicyPeer, place: Place): void {
  const given = Object.keys(peer).length;
  if (given === 0) place.required("", "must specify a peer");
  else if (given > 1 && peer.ipBlock) {
    place.forbidden("", "may not specify both ipBlock and another peer");
  }
}

function checkBlock({ cidr, except = [] }: IPBlock, place: Place): void {
  if (!cidr) {
    place.required("cidr");
    return;
  }
  place.problems("cidr", cidr, networkProblems(cidr));
  for (const [index, range] of except.entries()) {
    place.problems(`except[${index}]`, range, networkProblems(range));
  }
}

function checkEndpointSlice(slice: EndpointSlice, place: Place): void {
  const { addressType, endpoints, ports = [] } = slice;
  if (!addressType) place.required("addressType");
  for (const [index, endpoint] of (endpoints ?? []).entries()) {
    const at = place.at(`endpoints[${index}]`);
    // Go writes an empty list as null.
    const addresses = endpoint.addresses ?? [];
    if (addresses.length === 0) {
      at.required("addresses", "must contain at least 1 address");
    }
    for (const [number, address] of addresses.entries()) {
      at.problems(
        `addresses[${number}]`,
        address,
        addressType === "FQDN"
          ? subdomainProblems(address)
          : addressProblems(address),
      );
    }
  }
  const names = new Set<string>();
  for (const [index, { name = "" }] of (ports ?? []).entries()) {
    if (names.has(name)) place.duplicate(`ports[${index}].name`, name);
    names.add(name);
  }
}

/** What is checked of what connects Pods. */
export const NETWORK_RULES: ValidationRules = [
  check("api.core.v1.Service", checkService),
  check("api.networking.v1.IngressSpec", checkIngress),
  check("api.networking.v1.HTTPIngressPath", checkIngressPath),
  check("api.networking.v1.IngressBackend", checkBackend),
  check("api.networking.v1.IngressClass", checkIngressClass),
  check("api.networking.v1.NetworkPolicyPort", checkPolicyPort),
  check("api.networking.v1.NetworkPolicyPeer", checkPeer),
  check("api.networking.v1.IPBlock", checkBlock),
  check("api.discovery.v1.EndpointSlice", checkEndpointSlice),
];
