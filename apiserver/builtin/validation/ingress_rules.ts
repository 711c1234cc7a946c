import type { TypedLocalObjectReference } from "../../../core/kinds/core_v1.ts";
import type {
  HTTPIngressPath,
  IngressBackend,
  IngressClass,
  IngressSpec,
} from "../../../core/kinds/networking_v1.ts";
import {
  label1035Problems,
  labelProblems,
  subdomainProblems,
} from "../../names.ts";
import { optionalText, text } from "./field_checks.ts";
import { check, type Place, type ValidationRules } from "./place.ts";
import { isAddress, portNameProblems, portProblems } from "./value_problems.ts";

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
  for (
    const [index, { hosts = [], secretName }] of (spec.tls ?? []).entries()
  ) {
    const at = place.at(`tls[${index}]`);
    optionalText(subdomainProblems)(secretName, "secretName", at);
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
  const isStrict = pathType === "Exact" || pathType === "Prefix";
  const isFree = pathType === "ImplementationSpecific" && path !== "";
  if ((isStrict || isFree) && !path.startsWith("/")) {
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
  } else if (resource) {
    checkResource(resource, place.at("resource"));
  } else place.invalid("", "", "resource or service backend is required");
}

function checkResource(
  { kind, name, apiGroup }: TypedLocalObjectReference,
  place: Place,
): void {
  text(subdomainProblems)(apiGroup, "apiGroup", place);
  if (!kind) place.required("kind", "kind is required");
  if (!name) place.required("name", "name is required");
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

/** What is checked of what lets requests into a cluster. */
export const INGRESS_RULES: ValidationRules = [
  check("api.networking.v1.IngressSpec", checkIngress),
  check("api.networking.v1.HTTPIngressPath", checkIngressPath),
  check("api.networking.v1.IngressBackend", checkBackend),
  check("api.networking.v1.IngressClass", checkIngressClass),
];
