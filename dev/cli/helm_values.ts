import { POD_SETTINGS, probePorts, replicasOf } from "./operator_deployment.ts";
import type { OperatorManifestInput } from "./operator_manifests.ts";
import type { ToYaml } from "./manifest_output.ts";
import { EGRESS, SCRAPERS } from "./optional_manifests.ts";

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

/** JSON Schema of an object with exactly these fields. */
function fields(properties: Readonly<Record<string, object>>): object {
  return { type: "object", additionalProperties: false, properties };
}

function valuesOf(
  input: OperatorManifestInput,
): Readonly<Record<string, Value>> {
  const { podSecurityContext, env, resources, securityContext } = POD_SETTINGS;
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
      [...env, ...input.env ?? []],
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
    ...probePorts(input.operators).length > 0 && {
      serviceMonitor: [
        "Service and ServiceMonitor, for the Prometheus operator; labels are those that it selects.",
        { enabled: false, interval: "30s", labels: {} },
        fields({ enabled: SWITCH, interval: TEXT, labels: ANY_OBJECT }),
      ],
    },
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
