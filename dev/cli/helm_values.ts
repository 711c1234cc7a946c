import {
  type MetricsPort,
  metricsPorts,
  POD_SETTINGS,
  podEnvironment,
  replicasOf,
} from "./operator_deployment.ts";
import type { OperatorManifestInput } from "./operator_manifests.ts";
import type { ToYaml } from "./manifest_output.ts";
import { DASHBOARD_LABELS } from "./monitoring/monitoring_manifests.ts";
import { EGRESS, MONITOR_TLS, SCRAPERS } from "./optional_manifests.ts";

/** Splits an image at its tag and its digest. */
export function imageParts(
  image: string,
): { repository: string; tag: string; digest: string } {
  const [, repository = image, tag = "", digest = ""] =
    /^(.+?)(?::(\w[\w.-]*))?(?:@(\w+:[0-9a-f]+))?$/.exec(image) ?? [];
  return { repository, tag, digest };
}

/** A value of a chart: its comment, its default and its JSON Schema. */
type Value = readonly [comment: string, value: unknown, schema?: object];

const ANY_OBJECT = { type: "object" };
const ANY_LIST = { type: "array" };
const TEXT = { type: "string" };
const SWITCH = { type: "boolean" };
/** Larger numbers have an exponent in templates. */
const SAMPLING = { type: "integer", minimum: 1, maximum: 100_000 };

/** JSON Schema of an object with exactly these fields. */
function fields(properties: Readonly<Record<string, object>>): object {
  return { type: "object", additionalProperties: false, properties };
}

function valuesOf(
  input: OperatorManifestInput,
): Readonly<Record<string, Value>> {
  const { podSecurityContext, resources, securityContext } = POD_SETTINGS;
  return {
    image: [
      "Without a tag and a digest, the tag is the chart's appVersion.",
      // A new version of the chart names its tag once, in Chart.yaml.
      { ...imageParts(input.image), tag: "", pullPolicy: "IfNotPresent" },
      fields({
        repository: { ...TEXT, minLength: 1 },
        tag: TEXT,
        digest: TEXT,
        pullPolicy: { enum: ["Always", "IfNotPresent", "Never"] },
      }),
    ],
    imagePullSecrets: ["", [], ANY_LIST],
    fullnameOverride: [
      "Name of the objects, by default that of the release.",
      "",
      TEXT,
    ],
    replicas: [
      "More than one need leader election or sharding.",
      replicasOf(input.operators),
      { type: "integer", minimum: 0 },
    ],
    resources: ["", resources, ANY_OBJECT],
    env: [
      "Environment of the container; these limit the memory of the runtime.",
      [...podEnvironment(input.runtime), ...input.env ?? []],
      ANY_LIST,
    ],
    podSecurityContext: ["", podSecurityContext, ANY_OBJECT],
    securityContext: ["", securityContext, ANY_OBJECT],
    podAnnotations: ["", {}, ANY_OBJECT],
    nodeSelector: ["", {}, ANY_OBJECT],
    tolerations: ["", [], ANY_LIST],
    affinity: ["", {}, ANY_OBJECT],
    topologySpreadConstraints: ["", [], ANY_LIST],
    priorityClassName: ["", "", TEXT],
    volumes: ["", [], ANY_LIST],
    volumeMounts: ["", [], ANY_LIST],
    serviceAccount: [
      "",
      { create: true, name: "", annotations: {} },
      fields({ create: SWITCH, name: TEXT, annotations: ANY_OBJECT }),
    ],
    rbac: [
      "extraRules are rules of a further ClusterRole.",
      { create: true, extraRules: [] },
      fields({ create: SWITCH, extraRules: ANY_LIST }),
    ],
    crds: [
      "An upgrade of the release upgrades the definitions. keep: uninstalling it leaves them and all their objects.",
      { install: true, keep: true },
      fields({ install: SWITCH, keep: SWITCH }),
    ],
    ...monitorValues(metricsPorts(input.operators)),
    log: [
      "Least severe level (debug, info, warn, error), form (json, text), and most lines with the same message in a second, or false. Running pods take over a change within a minute or two.",
      { level: "info", format: "json", sampling: false },
      fields({
        level: { enum: ["debug", "info", "warn", "error"] },
        format: { enum: ["json", "text"] },
        sampling: { anyOf: [{ const: false }, SAMPLING] },
      }),
    ],
    podDisruptionBudget: [
      "",
      { enabled: false, maxUnavailable: 1 },
      fields({
        enabled: SWITCH,
        maxUnavailable: { type: ["integer", "string"] },
      }),
    ],
    networkPolicy: [
      "metricsFrom are those who may read the metrics; egress allows name resolution and the API server; add what your code calls.",
      { enabled: false, metricsFrom: SCRAPERS, egress: EGRESS },
      fields({ enabled: SWITCH, metricsFrom: ANY_LIST, egress: ANY_LIST }),
    ],
  };
}

/** Values of the ServiceMonitor; none without ports. */
function monitorValues(
  ports: readonly MetricsPort[],
): Readonly<Record<string, Value>> {
  if (ports.length === 0) return {};
  const isSecure = ports.some((one) => one.isSecure);
  const secure = isSecure
    ? " tlsConfig verifies the certificate of the metrics. The account of Prometheus needs the ClusterRole NAME-metrics-reader."
    : "";
  return {
    serviceMonitor: [
      `Service and ServiceMonitor, for the Prometheus operator; labels are those that it selects.${secure}`,
      {
        enabled: false,
        interval: "30s",
        labels: {},
        ...isSecure && { tlsConfig: MONITOR_TLS },
      },
      fields({
        enabled: SWITCH,
        interval: TEXT,
        labels: ANY_OBJECT,
        ...isSecure && { tlsConfig: ANY_OBJECT },
      }),
    ],
    prometheusRule: [
      "Alerts, for the Prometheus operator. They read the metrics that the ServiceMonitor has scraped.",
      { enabled: false, labels: {} },
      fields({ enabled: SWITCH, labels: ANY_OBJECT }),
    ],
    grafanaDashboard: [
      "ConfigMap with a dashboard; labels are those by which the sidecar of Grafana finds it.",
      { enabled: false, labels: DASHBOARD_LABELS },
      fields({ enabled: SWITCH, labels: ANY_OBJECT }),
    ],
  };
}

/** Content of the file values.yaml of a chart. */
export function chartValues(
  input: OperatorManifestInput,
  toYaml: ToYaml,
): string {
  return Object.entries(valuesOf(input)).map(([name, [comment, value]]) =>
    `${comment === "" ? "" : `# ${comment}\n`}${toYaml({ [name]: value })}`
  ).join("");
}

/** Content of values.schema.json of a chart: Helm refuses other values. */
export function valuesSchema(input: OperatorManifestInput): string {
  const properties = Object.fromEntries(
    Object.entries(valuesOf(input)).map((
      [name, [, , schema]],
    ) => [name, schema ?? {}]),
  );
  const schema = {
    $schema: "http://json-schema.org/draft-07/schema#",
    ...fields({ ...properties, global: ANY_OBJECT }),
  };
  return `${JSON.stringify(schema, null, 2)}\n`;
}
