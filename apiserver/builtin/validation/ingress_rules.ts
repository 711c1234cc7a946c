import type { TypedLocalObjectReference } from "../../../core/kinds/core_v1.ts";
import type {
  HTTPIngressPath,
  IngressBackend,
  IngressClass,
  IngressSpec,
} from "../../../core/kinds/networking_v1.ts";
import type { FieldPath } from "../../validation/field_path.ts";
import {
  label1035Problems,
  labelProblems,
  subdomainProblems,
} from "../../validation/names.ts";
import { optionalText, text } from "./field_checks.ts";
import { check, type ValidationRules } from "./validation_rule.ts";
import { isAddress, portNameProblems, portProblems } from "./value_problems.ts";

function checkIngress(spec: IngressSpec, fieldPath: FieldPath): void {
  const { rules = [], defaultBackend, ingressClassName } = spec;
  if (rules.length === 0 && !defaultBackend) {
    fieldPath.invalidShown(
      "",
      "[]networking.IngressRule(nil)",
      "either `defaultBackend` or `rules` must be specified",
    );
  }
  for (const [index, { host, http }] of rules.entries()) {
    const at = fieldPath.child(`rules[${index}]`);
    if (host) checkHost(host, at.child("host"));
    if (http && !http.paths?.length) at.required("http.paths");
  }
  for (
    const [index, { hosts = [], secretName }] of (spec.tls ?? []).entries()
  ) {
    const at = fieldPath.child(`tls[${index}]`);
    optionalText(subdomainProblems)(secretName, "secretName", at);
    for (const [number, host] of hosts.entries()) {
      checkHost(host, fieldPath.child(`tls[${index}].hosts[${number}]`));
    }
  }
  if (ingressClassName !== undefined) {
    fieldPath.problems(
      "ingressClassName",
      ingressClassName,
      subdomainProblems(ingressClassName),
    );
  }
}

const WILDCARD =
  /^\*\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;

function checkHost(host: string, fieldPath: FieldPath): void {
  if (isAddress(host)) {
    fieldPath.invalid("", host, "must be a DNS name, not an IP address");
  }
  if (!host.includes("*")) {
    fieldPath.problems("", host, subdomainProblems(host));
  } else if (!WILDCARD.test(host)) {
    fieldPath.invalid(
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
  fieldPath: FieldPath,
): void {
  if (!pathType) {
    fieldPath.required("pathType", "pathType must be specified");
    return;
  }
  const isStrict = pathType === "Exact" || pathType === "Prefix";
  const isFree = pathType === "ImplementationSpecific" && path !== "";
  if ((isStrict || isFree) && !path.startsWith("/")) {
    fieldPath.invalid("path", path, "must be an absolute path");
  }
  if (!isStrict) return;
  for (const sequence of REFUSED_SEQUENCES) {
    if (path.includes(sequence)) {
      fieldPath.invalid("path", path, `must not contain '${sequence}'`);
    }
  }
  for (const ending of REFUSED_ENDINGS) {
    if (path.endsWith(ending)) {
      fieldPath.invalid("path", path, `cannot end with '${ending}'`);
    }
  }
}

function checkBackend(
  { service, resource }: IngressBackend,
  fieldPath: FieldPath,
): void {
  if (service && resource) {
    fieldPath.invalid("", "", "cannot set both resource and service backends");
  } else if (service) {
    if (!service.name) fieldPath.required("service.name");
    else {
      fieldPath.problems(
        "service.name",
        service.name,
        label1035Problems(service.name),
      );
    }
    const { name, number } = service.port ?? {};
    if (name && number) {
      fieldPath.invalid("", "", "cannot set both port name & port number");
    } else if (name) {
      fieldPath.problems("service.port.name", name, portNameProblems(name));
    } else if (number) {
      fieldPath.problems("service.port.number", number, portProblems(number));
    } else fieldPath.required("", "port name or number is required");
  } else if (resource) {
    checkResource(resource, fieldPath.child("resource"));
  } else fieldPath.invalid("", "", "resource or service backend is required");
}

function checkResource(
  { kind, name, apiGroup }: TypedLocalObjectReference,
  fieldPath: FieldPath,
): void {
  text(subdomainProblems)(apiGroup, "apiGroup", fieldPath);
  if (!kind) fieldPath.required("kind", "kind is required");
  if (!name) fieldPath.required("name", "name is required");
}

function checkIngressClass(
  { spec = {} }: IngressClass,
  fieldPath: FieldPath,
): void {
  const at = fieldPath.child("spec");
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

/** Validation rules of Ingresses and IngressClasses. */
export const INGRESS_RULES: ValidationRules = [
  check("api.networking.v1.IngressSpec", checkIngress),
  check("api.networking.v1.HTTPIngressPath", checkIngressPath),
  check("api.networking.v1.IngressBackend", checkBackend),
  check("api.networking.v1.IngressClass", checkIngressClass),
];
