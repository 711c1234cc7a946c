import { Quantity } from "../../../core/api/quantity.ts";
import type {
  Container,
  ContainerPort,
  EnvVar,
  ExecAction,
  GRPCAction,
  HTTPGetAction,
  LifecycleHandler,
  Probe,
  ResourceRequirements,
  SecurityContext,
  TCPSocketAction,
} from "../../../core/kinds/core_v1.ts";
import type { FieldPath } from "../../validation/field_path.ts";
import {
  labelProblems,
  qualifiedNameProblems,
} from "../../validation/names.ts";
import { check, type ValidationRules } from "./validation_rule.ts";
import { portNameProblems, portProblems } from "./value_problems.ts";

function checkContainer(container: Container, fieldPath: FieldPath): void {
  const { name, image, ports = [], volumeMounts = [] } = container;
  if (!name) fieldPath.required("name");
  else fieldPath.problems("name", name, labelProblems(name));
  if (!image) fieldPath.required("image");
  const names = new Set<string>();
  for (const [index, port] of ports.entries()) {
    if (!port.name || portNameProblems(port.name).length > 0) continue;
    if (names.has(port.name)) {
      fieldPath.duplicate(`ports[${index}].name`, port.name);
    }
    names.add(port.name);
  }
  const paths = new Set<string>();
  for (const [index, { mountPath }] of volumeMounts.entries()) {
    const at = `volumeMounts[${index}].mountPath`;
    if (!mountPath) fieldPath.required(at);
    else if (paths.has(mountPath)) {
      fieldPath.invalid(at, mountPath, "must be unique");
    }
    paths.add(mountPath);
  }
  checkProbes(container, fieldPath);
}

function checkProbes(container: Container, fieldPath: FieldPath): void {
  for (const name of ["livenessProbe", "startupProbe"] as const) {
    const successes = container[name]?.successThreshold ?? 1;
    if (successes !== 1) {
      fieldPath.invalid(`${name}.successThreshold`, successes, "must be 1");
    }
  }
  if (container.readinessProbe?.terminationGracePeriodSeconds !== undefined) {
    fieldPath.invalid(
      "readinessProbe.terminationGracePeriodSeconds",
      container.readinessProbe.terminationGracePeriodSeconds,
      "must not be set for readinessProbes",
    );
  }
}

function checkContainerPort(port: ContainerPort, fieldPath: FieldPath): void {
  const { name, containerPort, hostPort } = port;
  if (name) fieldPath.problems("name", name, portNameProblems(name));
  if (!containerPort) fieldPath.required("containerPort");
  else {
    fieldPath.problems(
      "containerPort",
      containerPort,
      portProblems(containerPort),
    );
  }
  if (hostPort) {
    fieldPath.problems("hostPort", hostPort, portProblems(hostPort));
  }
}

const SOURCES = [
  "fieldRef",
  "resourceFieldRef",
  "configMapKeyRef",
  "secretKeyRef",
] as const;

function checkEnvVar(
  { name, value, valueFrom }: EnvVar,
  fieldPath: FieldPath,
): void {
  if (!name) fieldPath.required("name");
  // Any printable ASCII text without an equals sign is a valid name.
  else if (!/^[ -<>-~]+$/.test(name)) {
    fieldPath.invalid(
      "name",
      name,
      "a valid environment variable name must consist only of printable ASCII characters other than '='",
    );
  }
  if (valueFrom === undefined) return;
  const sources = SOURCES.filter((source) => valueFrom[source] !== undefined);
  if (sources.length === 0) {
    fieldPath.invalid(
      "valueFrom",
      "",
      "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`",
    );
  } else if (value) {
    fieldPath.invalid(
      "valueFrom",
      "",
      "may not be specified when `value` is not empty",
    );
  } else if (sources.length > 1) {
    fieldPath.invalid(
      "valueFrom",
      "",
      "may not have more than one field specified at a time",
    );
  }
}

const PROBE_HANDLERS = ["exec", "httpGet", "tcpSocket", "grpc"] as const;
const LIFECYCLE_HANDLERS = ["exec", "httpGet", "tcpSocket", "sleep"] as const;

function checkHandlers(
  given: object,
  handlers: readonly string[],
  fieldPath: FieldPath,
): void {
  const found = handlers.filter((handler) => handler in given);
  if (found.length === 0) fieldPath.required("", "must specify a handler type");
  for (const handler of found.slice(1)) {
    fieldPath.forbidden(handler, "may not specify more than 1 handler type");
  }
}

function checkProbe(probe: Probe, fieldPath: FieldPath): void {
  checkHandlers(probe, PROBE_HANDLERS, fieldPath);
  fieldPath.notNegative(
    probe,
    "initialDelaySeconds",
    "timeoutSeconds",
    "periodSeconds",
    "successThreshold",
    "failureThreshold",
  );
  const { terminationGracePeriodSeconds: period } = probe;
  if (period !== undefined && period <= 0) {
    fieldPath.invalid(
      "terminationGracePeriodSeconds",
      period,
      "must be greater than 0",
    );
  }
}

function checkPortOf(
  { port }: { readonly port: number | string },
  fieldPath: FieldPath,
): void {
  if (typeof port === "number") {
    fieldPath.problems("port", port, portProblems(port));
  } else {
    for (const problem of portNameProblems(port)) {
      fieldPath.invalid("port", port, problem);
    }
  }
}

function checkHttpGet(action: HTTPGetAction, fieldPath: FieldPath): void {
  if (!action.path) fieldPath.required("path");
  checkPortOf(action, fieldPath);
  for (const { name } of action.httpHeaders ?? []) {
    if (/^[-A-Za-z0-9]+$/.test(name)) continue;
    fieldPath.invalid(
      "httpHeaders",
      name,
      "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')",
    );
  }
}

const COUNTED_WHOLE = /^(?:hugepages-|[^/]*\/)/;

function checkResources(
  { limits = {}, requests = {} }: ResourceRequirements,
  fieldPath: FieldPath,
): void {
  for (
    const [part, list] of [["limits", limits], ["requests", requests]] as const
  ) {
    for (const [name, text] of Object.entries(list)) {
      const at = fieldPath.child(`${part}[${name}]`);
      checkResourceName(name, at);
      const quantity = Quantity.parse(text);
      if (quantity.nano < 0n) {
        at.invalid("", text, "must be greater than or equal to 0");
      }
      if (COUNTED_WHOLE.test(name) && quantity.nano % 1_000_000_000n !== 0n) {
        at.invalid("", text, "must be an integer");
      }
    }
  }
  for (const [name, text] of Object.entries(requests)) {
    const limit = limits[name];
    if (limit === undefined) continue;
    if (Quantity.parse(text).compare(Quantity.parse(limit)) > 0) {
      fieldPath.invalid(
        "requests",
        text,
        `must be less than or equal to ${name} limit of ${limit}`,
      );
    }
  }
}

const RESOURCE_NAMES = ["cpu", "memory", "ephemeral-storage"];

/** Further resource names, which are valid in quotas only. */
const QUOTA_NAMES: ReadonlySet<string> = new Set([
  ...["requests", "limits"].flatMap((part) =>
    RESOURCE_NAMES.map((name) => `${part}.${name}`)
  ),
  ...["pods", "resourcequotas", "services", "replicationcontrollers"],
  ...["secrets", "configmaps", "persistentvolumeclaims", "storage"],
  ...["requests.storage", "services.nodeports", "services.loadbalancers"],
]);

function checkResourceName(name: string, fieldPath: FieldPath): void {
  fieldPath.problems("", name, qualifiedNameProblems(name));
  const isStandard = RESOURCE_NAMES.includes(name) || name.includes("/") ||
    name.startsWith("hugepages-");
  if (isStandard) return;
  if (!QUOTA_NAMES.has(name)) {
    fieldPath.invalid(
      "",
      name,
      "must be a standard resource type or fully qualified",
    );
  }
  fieldPath.invalid("", name, "must be a standard resource for containers");
}

function checkSecurityContext(
  context: SecurityContext,
  fieldPath: FieldPath,
): void {
  for (const field of ["runAsUser", "runAsGroup"] as const) {
    const id = context[field];
    if (id === undefined || id >= 0 && id <= 2_147_483_647) continue;
    fieldPath.invalid(field, id, "must be between 0 and 2147483647, inclusive");
  }
  if (context.allowPrivilegeEscalation === false && context.privileged) {
    fieldPath.invalidShown(
      "",
      "core.SecurityContext",
      "cannot set `allowPrivilegeEscalation` to false and `privileged` to true",
    );
  }
}

/** Validation rules of containers, probes, ports and security contexts. */
export const CONTAINER_RULES: ValidationRules = [
  check("api.core.v1.Container", checkContainer),
  check("api.core.v1.ContainerPort", checkContainerPort),
  check("api.core.v1.EnvVar", checkEnvVar),
  check("api.core.v1.Probe", checkProbe),
  check(
    "api.core.v1.LifecycleHandler",
    (handler: LifecycleHandler, fieldPath) =>
      checkHandlers(handler, LIFECYCLE_HANDLERS, fieldPath),
  ),
  check("api.core.v1.HTTPGetAction", checkHttpGet),
  check(
    "api.core.v1.TCPSocketAction",
    (action: TCPSocketAction, fieldPath) => checkPortOf(action, fieldPath),
  ),
  check(
    "api.core.v1.GRPCAction",
    (action: GRPCAction, fieldPath) => checkPortOf(action, fieldPath),
  ),
  check("api.core.v1.ExecAction", (action: ExecAction, fieldPath) => {
    if (!action.command?.length) fieldPath.required("command");
  }),
  check("api.core.v1.ResourceRequirements", checkResources),
  check("api.core.v1.SecurityContext", checkSecurityContext),
];
