import type { CrdManifest } from "@coracle/operator/crd";
import {
  disruptionBudget,
  metricsService,
  networkPolicy,
  serviceMonitor,
} from "./optional_manifests.ts";
import {
  isShared,
  logName,
  metricsPorts,
  operatorDeployment,
  operatorLabels,
  POD_SETTINGS,
  type PodSettings,
  sourcePorts,
  webhookPorts,
} from "./operator_deployment.ts";
import {
  grafanaDashboard,
  prometheusRule,
} from "./monitoring/monitoring_manifests.ts";
import {
  type OperatorManifestInput,
  operatorManifests,
} from "./operator_manifests.ts";
import { EXTRA_RULES, HELPERS, NOTES } from "./helm_templates.ts";
import { chartValues, imageParts, valuesSchema } from "./helm_values.ts";
import { policyObjects } from "./policies.ts";
import type { ManifestFile, ToYaml } from "./manifest_output.ts";
import { memberRoles } from "./member_roles.ts";

/** Placeholders in manifests, which a template replaces with expressions. */
const NAME = "coracle-release-name";
const NAMESPACE = "coracle-release-namespace";
const ACCOUNT = "coracle-release-account";
const IMAGE = "coracle-release-image";
const POLICY = "coracle-release-policy";
/** The name and the namespace within other texts. */
const NAME_TEXT = "coracle-release-text";
const NAMESPACE_TEXT = "coracle-release-place";
/** The namespace, also at the end of a longer name. */
const NAMESPACES = new RegExp(`([-a-z0-9.]*\\.)?${NAMESPACE}`, "g");
const namespaceExpression = (_: string, before = "") =>
  before === ""
    ? "{{ .Release.Namespace | quote }}"
    : `"${before}{{ .Release.Namespace }}"`;
const scalar = (value: string) => `coracle-scalar-${value}`;
const block = (value: string) => `coracle-block-${value}`;
const text = (value: string) => `coracle-text-${value}`;
/** The items of a value, after other items of a list. */
const items = (value: string) => [`coracle-items-${value}`];
/** Placeholder key, which a template replaces with all fields of a value. */
const MERGED = "coracle-merged";

/** Values of a chart that are copied unchanged into the spec of the pod. */
const POD_VALUES: readonly string[] = [
  "imagePullSecrets",
  "nodeSelector",
  "tolerations",
  "affinity",
  "topologySpreadConstraints",
  "priorityClassName",
];

/** Files of a Helm chart that deploys operators into the release's namespace. */
export function helmChart(
  input: OperatorManifestInput,
  toYaml: ToYaml,
): readonly ManifestFile[] {
  const { name, operators } = input;
  const place = { name: NAME, namespace: NAMESPACE };
  const { definitions, policies, rbac, userRoles, webhooks, sources } =
    operatorManifests({ ...input, ...place });
  const members = memberRoles({ ...input, ...place });
  const [account, ...roles] = rbac;
  const bound = roles.map((role) => ({
    ...role,
    ...role.subjects && {
      subjects: role.subjects.map((one) => ({ ...one, name: ACCOUNT })),
    },
  }));
  const ports = metricsPorts(operators);
  const target = {
    ...place,
    ports,
    maxUnavailable: scalar("podDisruptionBudget.maxUnavailable"),
    interval: scalar("serviceMonitor.interval"),
    tlsConfig: block("serviceMonitor.tlsConfig"),
    monitorLabels: { [MERGED]: "serviceMonitor.labels" },
    egress: block("networkPolicy.egress"),
    metricsFrom: block("networkPolicy.metricsFrom"),
  };
  const texts = {
    ...place,
    nameText: NAME_TEXT,
    namespaceText: NAMESPACE_TEXT,
  };
  const raw = (text: string) => text.replaceAll("CHART", name);
  const render = (condition: string, ...objects: readonly unknown[]) =>
    `{{- if ${condition} }}\n${
      objects.map((object) => `---\n${template(toYaml(object), name)}`).join("")
    }{{- end }}\n`;
  const files: Record<string, string> = {
    "_helpers.tpl": raw(HELPERS),
    "NOTES.txt": raw(NOTES),
    "serviceaccount.yaml": render(
      ".Values.serviceAccount.create",
      {
        ...account,
        metadata: {
          ...account?.metadata,
          name: ACCOUNT,
          annotations: block("serviceAccount.annotations"),
        },
      },
    ),
    "rbac.yaml":
      render(".Values.rbac.create", ...bound, ...userRoles, ...members) +
      raw(EXTRA_RULES),
    "log.yaml": render(".Values.log", logSettings()),
    "deployment.yaml": onlyOne(input) +
      template(toYaml(deploymentOf(input)), name),
    "poddisruptionbudget.yaml": render(
      ".Values.podDisruptionBudget.enabled",
      disruptionBudget(target),
    ),
    "networkpolicy.yaml": render(
      ".Values.networkPolicy.enabled",
      networkPolicy({
        ...target,
        called: [...webhookPorts(operators), ...sourcePorts(operators)],
      }),
    ),
    ...ports.length > 0 && {
      "servicemonitor.yaml": render(
        ".Values.serviceMonitor.enabled",
        metricsService(target),
        serviceMonitor(target),
      ),
      "prometheusrule.yaml": render(
        ".Values.prometheusRule.enabled",
        prometheusRule({
          ...texts,
          moreLabels: { [MERGED]: "prometheusRule.labels" },
        }),
      ),
      "dashboard.yaml": render(
        ".Values.grafanaDashboard.enabled",
        grafanaDashboard({
          ...texts,
          moreLabels: { [MERGED]: "grafanaDashboard.labels" },
        }),
      ),
    },
  };
  // Without the budget, which the chart has already.
  const registered = webhooks.slice(0, -1);
  if (registered.length > 0) {
    files["webhooks.yaml"] = registered.map((object) =>
      template(toYaml(object), name)
    ).join("---\n");
  }
  for (const service of sources) {
    files["sources.yaml"] = template(toYaml(service), name);
  }
  if (policies.length > 0) {
    files["policies.yaml"] = policies.map((one) =>
      // An older server does not serve the kind.
      render(
        `.Capabilities.APIVersions.Has "admissionregistration.k8s.io/v1/${one.policy.kind}"`,
        ...policyObjects([one]),
      )
    ).join("");
  }
  for (const definition of definitions) {
    files[`crds/${definition.metadata.name}.yaml`] = definitionTemplate(
      definition,
      toYaml,
    );
  }
  return [
    { path: "Chart.yaml", text: chartFile(input, toYaml), kept: true },
    { path: "values.yaml", text: chartValues(input, toYaml), kept: true },
    { path: "values.schema.json", text: valuesSchema(input), kept: true },
    ...Object.entries(files).map(([path, text]) => ({
      path: `templates/${path}`,
      text,
    })),
  ];
}

function chartFile(
  { name, image }: OperatorManifestInput,
  toYaml: ToYaml,
): string {
  return toYaml({
    apiVersion: "v2",
    name,
    description: `The operator ${name}`,
    type: "application",
    version: "0.1.0",
    appVersion: imageParts(image).tag || "latest",
  });
}

/** Converts a manifest into a template: escapes braces, fills placeholders. */
function template(yaml: string, chart: string): string {
  const include = (name: string) => `include "${chart}.${name}" .`;
  return yaml.replaceAll("{{", '{{ "{{" }}')
    .replaceAll(
      /^( *)(\w+):\n( *)app\.kubernetes\.io\/name: coracle-release-name$/gm,
      (_, outer: string, key: string, indent: string) => {
        // Pods keep the labels of selectors only, which an upgrade cannot change.
        const isOwn = key === "labels" && outer.length === 2;
        const labels = isOwn ? "labels" : "selectorLabels";
        return `${outer}${key}:\n${indent}{{- ${
          include(labels)
        } | nindent ${indent.length} }}`;
      },
    )
    .replaceAll(
      /^( *)(\w+): coracle-block-(\S+)$/gm,
      (_, indent: string, key: string, value: string) =>
        `${indent}{{- with .Values.${value} }}\n${indent}${key}:\n` +
        `${indent}  {{- toYaml . | nindent ${indent.length + 2} }}\n` +
        `${indent}{{- end }}`,
    )
    .replaceAll(
      /^( *)- coracle-items-(\S+)$/gm,
      (_, indent: string, value: string) =>
        `${indent}{{- with .Values.${value} }}\n` +
        `${indent}{{- toYaml . | nindent ${indent.length} }}\n` +
        `${indent}{{- end }}`,
    )
    .replaceAll(
      /^( *)coracle-merged: (\S+)$/gm,
      (_, indent: string, value: string) =>
        `${indent}{{- with .Values.${value} }}\n` +
        `${indent}{{- toYaml . | nindent ${indent.length} }}\n` +
        `${indent}{{- end }}`,
    )
    .replaceAll(/coracle-scalar-(\S+)/g, "{{ .Values.$1 }}")
    .replaceAll(/coracle-text-(\S+)/g, "{{ .Values.$1 | quote }}")
    .replaceAll(NAME_TEXT, `{{ ${include("fullname")} }}`)
    .replaceAll(NAMESPACE_TEXT, "{{ .Release.Namespace }}")
    .replaceAll(NAMESPACES, namespaceExpression)
    .replaceAll(
      new RegExp(`${NAME}((?:-[a-z]+)*)`, "g"),
      (_, suffix: string) =>
        suffix === ""
          ? `{{ ${include("fullname")} | quote }}`
          : suffix === "-sources" // The name of a Service has at most 63 characters.
          ? `"{{ ${
            include("fullname")
          } | trunc 55 | trimSuffix "-" }}${suffix}"`
          : `"{{ ${include("fullname")} }}${suffix}"`,
    )
    .replaceAll(ACCOUNT, `{{ ${include("serviceAccountName")} | quote }}`)
    .replaceAll(IMAGE, `{{ ${include("image")} | quote }}`);
}

function deploymentOf({ operators }: OperatorManifestInput): unknown {
  const blocks = (names: readonly string[]) =>
    Object.fromEntries(names.map((name) => [name, block(name)]));
  return operatorDeployment({
    name: NAME,
    namespace: NAMESPACE,
    image: IMAGE,
    operators,
    replicas: scalar("replicas"),
    account: ACCOUNT,
    settings: {
      ...blocks(Object.keys(POD_SETTINGS)),
      env: items("env"),
    } as unknown as PodSettings,
    metadata: { annotations: block("podAnnotations") },
    pod: blocks(POD_VALUES),
    volumes: items("volumes"),
    volumeMounts: items("volumeMounts"),
    container: { imagePullPolicy: scalar("image.pullPolicy") },
  });
}

/** ConfigMap of the log, whose changes running pods take over. */
function logSettings(): unknown {
  const data = Object.fromEntries(
    ["level", "format", "sampling"].map((name) => [name, text(`log.${name}`)]),
  );
  return {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: {
      name: logName(NAME),
      namespace: NAMESPACE,
      labels: operatorLabels(NAME),
    },
    data,
  };
}

/** Template that refuses several replicas without a division of the work. */
function onlyOne({ operators }: OperatorManifestInput): string {
  if (isShared(operators)) return "";
  return '{{- if gt (int .Values.replicas) 1 }}\n{{- fail "replicas must be at most 1: the operator has no leader election and no sharding" }}\n{{- end }}\n';
}

/**
 * CustomResourceDefinition as a template, because Helm installs the folder
 * `crds` of a chart once and never upgrades it.
 */
function definitionTemplate(
  { metadata, ...definition }: CrdManifest,
  toYaml: ToYaml,
): string {
  const { apiVersion, kind, spec } = definition;
  const escaped = (value: unknown) =>
    toYaml(value).replaceAll("{{", '{{ "{{" }}')
      .replaceAll(NAMESPACES, namespaceExpression);
  const annotations = {
    ...metadata.annotations,
    "helm.sh/resource-policy": POLICY,
  };
  const manifest = escaped({
    apiVersion,
    kind,
    metadata: { ...metadata, annotations },
    spec,
  });
  return `{{- if .Values.crds.install }}\n${
    manifest.replace(POLICY, '{{ ternary "keep" "delete" .Values.crds.keep }}')
  }{{- end }}\n`;
}
