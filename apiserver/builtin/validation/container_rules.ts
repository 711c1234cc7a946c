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
import { labelProblems, qualifiedNameProblems } from "../../names.ts";
import { check, type Place, type ValidationRules } from "./place.ts";
import { portNameProblems, portProblems } from "./value_problems.ts";

function checkContainer(container: Container, place: Place): void {
  const { name, image, ports = [], volumeMounts = [] } = container;
  if (!name) place.required("name");
  else place.problems("name", name, labelProblems(name));
  if (!image) place.required("image");
  const names = new Set<string>();
  for (const [index, port] of ports.entries()) {
    if (!port.name || portNameProblems(port.name).length > 0) continue;
    if (names.has(port.name)) {
      place.duplicate(`ports[${index}].name`, port.name);
    }
    names.add(port.name);
  }
  const paths = new Set<string>();
  for (const [index, { mountPath }] of volumeMounts.entries()) {
    const at = `volumeMounts[${index}].mountPath`;
    if (!mountPath) place.required(at);
    else if (paths.has(mountPath)) {
      place.invalid(at, mountPath, "must be unique");
    }
    paths.add(mountPath);
  }
  checkProbes(container, place);
}

function checkProbes(container: Container, place: Place): void {
  for (const name of ["livenessProbe", "startupProbe"] as const) {
    const successes = container[name]?.successThreshold ?? 1;
    if (successes !== 1) {
      place.invalid(`${name}.successThreshold`, successes, "must be 1");
    }
  }
  if (container.readinessProbe?.terminationGracePeriodSeconds !== undefined) {
    place.invalid(
      "readinessProbe.terminationGracePeriodSeconds",
      container.readinessProbe.terminationGracePeriodSeconds,
      "must not be set for readinessProbes",
    );
  }
}

function checkContainerPort(port: ContainerPort, place: Place): void {
  const { name, containerPort, hostPort } = port;
  if (name) place.problems("name", name, portNameProblems(name));
  if (!containerPort) place.required("containerPort");
  else {
    place.problems("containerPort", containerPort, portProblems(containerPort));
  }
  if (hostPort) place.problems("hostPort", hostPort, portProblems(hostPort));
}

const SOURCES = [
  "fieldRef",
  "resourceFieldRef",
  "configMapKeyRef",
  "secretKeyRef",
] as const;

function checkEnvVar({ name, value, valueFrom }: EnvVar, place: Place): void {
  if (!name) place.required("name");
  // Any printable text without an equals sign is a name.
  else if (!/^[ -<>-~]+$/.test(name)) {
    place.invalid(
      "name",
      name,
      "a valid environment variable name must consist only of printable ASCII characters other than '='",
    );
  }
  if (valueFrom === undefined) return;
  const sources = SOURCES.filter((source) => valueFrom[source] !== undefined);
  if (sources.length === 0) {
    place.invalid(
      "valueFrom",
      "",
      "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`",
    );
  } else if (value) {
    place.invalid(
      "valueFrom",
      "",
      "may not be specified when `value` is not empty",
    );
  } else if (sources.length > 1) {
    place.invalid(
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
  place: Place,
): void {
  const found = handlers.filter((handler) => handler in given);
  if (found.length === 0) place.required("", "must specify a handler type");
  for (const handler of found.slice(1)) {
    place.forbidden(handler, "may not specify more than 1 handler type");
  }
}

function checkProbe(probe: Probe, place: Place): void {
  checkHandlers(probe, PROBE_HANDLERS, place);
  place.notNegative(
    probe,
    "initialDelaySeconds",
    "timeoutSeconds",
    "periodSeconds",
    "successThreshold",
    "failureThreshold",
  );
  const { terminationGracePeriodSeconds: period } = probe;
  if (period !== undefined && period <= 0) {
    place.invalid(
      "terminationGracePeriodSeconds",
      period,
      "must be greater than 0",
    );
  }
}

function checkPortOf(
  { port }: { readonly port: number | string },
  place: Place,
): void {
  if (typeof port === "number") {
    place.problems("port", port, portProblems(port));
  } else {
    for (const problem of portNameProblems(port)) {
      place.invalid("port", port, problem);
    }
  }
}

function checkHttpGet(action: HTTPGetAction, place: Place): void {
  if (!action.path) place.required("path");
  checkPortOf(action, place);
  for (const { name } of action.httpHeaders ?? []) {
    if (/^[-A-Za-z0-9]+$/.test(name)) continue;
    place.invalid(
      "httpHeaders",
      name,
      "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')",
    );
  }
}

const COUNTED_WHOLE = /^(?:hugepages-|[^/]*\/)/;

function checkResources(
  { limits = {}, requests = {} }: ResourceRequirements,
  place: Place,
): void {
  for (
    const [part, list] of [["limits", limits], ["requests", requests]] as const
  ) {
    for (const [name, text] of Object.entries(list)) {
      const at = place.at(`${part}[${name}]`);
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
      place.invalid(
        "requests",
        text,
        `must be less than or equal to ${name} limit of ${limit}`,
      );
    }
  }
}

const RESOURCE_NAMES = ["cpu", "memory", "ephemeral-storage"];

/** Names that quotas know besides. */
const QUOTA_NAMES: ReadonlySet<string> = new Set([
  ...["requests", "limits"].flatMap((part) =>
    RESOURCE_NAMES.map((name) => `${part}.${name}`)
  ),
  ...["pods", "resourcequotas", "services", "replicationcontrollers"],
  ...["secrets", "configmaps", "persistentvolumeclaims", "storage"],
  ...["requests.storage", "services.nodeports", "services.loadbalancers"],
]);

function checkResourceName(name: string, place: Place): void {
  place.problems("", name, qualifiedNameProblems(name));
  const isStandard = RESOURCE_NAMES.includes(name) || name.includes("/") ||
    name.startsWith("hugepages-");
  if (isStandard) return;
  if (!QUOTA_NAMES.has(name)) {
    place.invalid(
      "",
      name,
      "must be a standard resource type or fully qualified",
    );
  }
  place.invalid("", name, "must be a standard resource for containers");
}

function checkSecurityContext(context: SecurityContext, place: Place): void {
  for (const field of ["runAsUser", "runAsGroup"] as const) {
    const id = context[field];
    if (id === undefined || id >= 0 && id <= 2_147_483_647) continue;
    place.invalid(field, id, "must be between 0 and 2147483647, inclusive");
  }
  if (context.allowPrivilegeEscalation === false && context.privileged) {
    place.invalidShown(
      "",
      "core.SecurityContext",
      "cannot set `allowPrivilegeEscalation` to false and `privileged` to true",
    );
  }
}

/** What is checked of containers and what is in them. */
export const CONTAINER_RULES: ValidationRules = [
  check("api.core.v1.Container", checkContainer),
  check("api.core.v1.ContainerPort", checkContainerPort),
  check("api.core.v1.EnvVar", checkEnvVar),
  check("api.core.v1.Probe", checkProbe),
  check(
    "api.core.v1.LifecycleHandler",
    (handler: LifecycleHandler, place) =>
      checkHandlers(handler, LIFECYCLE_HANDLERS, place),
  ),
  check("api.core.v1.HTTPGetAction", checkHttpGet),
  check(
    "api.core.v1.TCPSocketAction",
    (action: TCPSocketAction, place) => checkPortOf(action, place),
  ),
  check(
    "api.core.v1.GRPCAction",
    (action: GRPCAction, place) => checkPortOf(action, place),
  ),
  check("api.core.v1.ExecAction", (action: ExecAction, place) => {
    if (!action.command?.length) place.required("command");
  }),
  check("api.core.v1.ResourceRequirements", checkResources),
  check("api.core.v1.SecurityContext", checkSecurityContext),
];
