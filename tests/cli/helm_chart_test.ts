import assert from "node:assert/strict";
import { test } from "node:test";
import { parse, parseAllDocuments } from "yaml";
import { untyped } from "@coracle/operator/client";
import type { CrdManifest } from "@coracle/operator/crd";
import { helmChart } from "../../dev/cli/helm_chart.ts";
import { imageParts } from "../../dev/cli/helm_values.ts";
import {
  isLoopback,
  operatorDeployment,
} from "../../dev/cli/operator_deployment.ts";
import { kustomization } from "../../dev/cli/kustomization.ts";
import {
  type ManifestFile,
  yamlWriter,
} from "../../dev/cli/manifest_output.ts";
import type { OperatorDescription } from "../../dev/cli/operator_description.ts";
import type { OperatorManifestInput } from "../../dev/cli/operator_manifests.ts";

type Settings = OperatorDescription["settings"];

const ELECTED = { leaderElection: { name: "boats" } } as const;
const probesOn = (
  port: number,
  host = "0.0.0.0",
  metrics: { readonly secure?: boolean; readonly port?: number } = {},
): Partial<Settings> => ({
  probes: {
    port,
    host,
    debug: false,
    metrics: {
      secure: false,
      port: 8443,
      host: "0.0.0.0",
      certificates: "self",
      ...metrics,
    },
  },
});

function inputOf(
  settings: readonly Partial<Settings>[],
  more: Partial<OperatorManifestInput> = {},
): OperatorManifestInput {
  return {
    name: "boats",
    namespace: "boats-system",
    image: "registry.test:5000/boats:1.2.0",
    operators: settings.map((one) => ({
      controllers: [],
      settings: { namespaces: "all", ...one } as Settings,
    })),
    definitions: [],
    policies: [],
    managed: [],
    runtime: "node",
    recorded: [
      { verb: "list", group: "", resource: "nodes" },
      { verb: "get", group: "", resource: "secrets", namespace: "vault" },
    ],
    ...more,
  };
}

type Read = (path: string) => string;

async function filesBy(
  make: typeof helmChart | typeof kustomization,
  settings: readonly Partial<Settings>[],
  more: Partial<OperatorManifestInput> = {},
): Promise<{ files: readonly ManifestFile[]; read: Read }> {
  const files = make(inputOf(settings, more), await yamlWriter());
  const read = (path: string) =>
    files.find((file) => file.path === path)?.text ?? "";
  return { files, read };
}

const ELECTED_WITH_PROBES = [{ ...ELECTED, ...probesOn(8081) }];

/** Values that the Deployment of a chart takes as they are: column and field. */
const BLOCKS: readonly (readonly [number, string, field?: string])[] = [
  [6, "podAnnotations", "annotations"],
  [6, "podSecurityContext", "securityContext"],
  [6, "imagePullSecrets"],
  [6, "nodeSelector"],
  [6, "tolerations"],
  [6, "affinity"],
  [6, "topologySpreadConstraints"],
  [6, "priorityClassName"],
  [10, "resources"],
  [10, "securityContext"],
];

/** Lists of values with further items before them. */
const ITEMS: readonly (readonly [number, string])[] = [
  [8, "volumes"],
  [12, "volumeMounts"],
  [12, "env"],
];

test("the Deployment of a chart has each value of a pod in its place", async () => {
  const { read } = await filesBy(helmChart, ELECTED_WITH_PROBES);
  const deployment = read("templates/deployment.yaml");
  for (const [column, value, field = value] of BLOCKS) {
    const indent = " ".repeat(column);
    const block = [
      `${indent}{{- with .Values.${value} }}`,
      `${indent}${field}:`,
      `${indent}  {{- toYaml . | nindent ${column + 2} }}`,
      `${indent}{{- end }}`,
    ].join("\n");
    assert(deployment.includes(`\n${block}\n`), block);
  }
  // After what the chart needs itself.
  for (const [column, value] of ITEMS) {
    const indent = " ".repeat(column);
    const block = [
      `${indent}{{- with .Values.${value} }}`,
      `${indent}{{- toYaml . | nindent ${column} }}`,
      `${indent}{{- end }}`,
    ].join("\n");
    assert(deployment.includes(`\n${block}\n`), block);
  }
  for (
    const lines of [
      "apiVersion: apps/v1",
      "  namespace: {{ .Release.Namespace | quote }}",
      '  labels:\n    {{- include "boats.labels" . | nindent 4 }}',
      "  replicas: {{ .Values.replicas }}",
      '      labels:\n        {{- include "boats.selectorLabels" . | nindent 8 }}',
      '      serviceAccountName: {{ include "boats.serviceAccountName" . | quote }}',
      '          image: {{ include "boats.image" . | quote }}',
      "          imagePullPolicy: {{ .Values.image.pullPolicy }}",
      "              port: 8081",
    ]
  ) assert(`\n${deployment}`.includes(`\n${lines}\n`), lines);
});

test("a chart without election or sharding refuses several replicas", async () => {
  const refuses = async (...settings: readonly Partial<Settings>[]) =>
    (await filesBy(helmChart, settings)).read("templates/deployment.yaml")
      .startsWith("{{- if gt (int .Values.replicas) 1 }}\n{{- fail ");
  assert.equal(await refuses(ELECTED), false);
  assert.equal(await refuses({ sharding: { name: "boats" } }), false);
  assert.equal(await refuses(ELECTED, {}), true);
});

test("the bindings of a chart are for its own service account", async () => {
  const { read } = await filesBy(helmChart, ELECTED_WITH_PROBES);
  const rbac = read("templates/rbac.yaml");
  const subject = `  - kind: ServiceAccount
    name: {{ include "boats.serviceAccountName" . | quote }}
    namespace: {{ .Release.Namespace | quote }}
`;
  // Those of the ClusterRole, of two namespaces and of the extra rules.
  assert.equal(rbac.split(subject).length, 5, rbac);
  assert.equal(rbac.match(/kind: \w+Binding$/gm)?.length, 4);
});

test("a chart has these default values", async () => {
  const { read } = await filesBy(helmChart, ELECTED_WITH_PROBES);
  const udp = { port: 53, protocol: "UDP" };
  const tcp = (port: number) => ({ port, protocol: "TCP" });
  assert.deepEqual(parse(read("values.yaml")), {
    image: {
      repository: "registry.test:5000/boats",
      tag: "",
      digest: "",
      pullPolicy: "IfNotPresent",
    },
    imagePullSecrets: [],
    fullnameOverride: "",
    replicas: 2,
    resources: {
      requests: { cpu: "50m", memory: "96Mi" },
      limits: { memory: "384Mi" },
    },
    env: [
      { name: "NODE_OPTIONS", value: "--max-semi-space-size=4" },
      {
        name: "DENO_V8_FLAGS",
        value: "--max-semi-space-size=4,--heap-growing-percent=50",
      },
      { name: "MALLOC_ARENA_MAX", value: "2" },
      { name: "MALLOC_MMAP_THRESHOLD_", value: "262144" },
    ],
    podSecurityContext: {
      runAsNonRoot: true,
      runAsUser: 1000,
      runAsGroup: 1000,
      seccompProfile: { type: "RuntimeDefault" },
    },
    securityContext: {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ["ALL"] },
    },
    podAnnotations: {},
    nodeSelector: {},
    tolerations: [],
    affinity: {},
    topologySpreadConstraints: [],
    priorityClassName: "",
    volumes: [],
    volumeMounts: [],
    serviceAccount: { create: true, name: "", annotations: {} },
    rbac: { create: true, extraRules: [] },
    crds: { install: true, keep: true },
    serviceMonitor: { enabled: false, interval: "30s", labels: {} },
    prometheusRule: { enabled: false, labels: {} },
    grafanaDashboard: { enabled: false, labels: { grafana_dashboard: "1" } },
    log: { level: "info", format: "json", sampling: false },
    podDisruptionBudget: { enabled: false, maxUnavailable: 1 },
    networkPolicy: {
      enabled: false,
      metricsFrom: [
        { namespaceSelector: { matchLabels: { metrics: "enabled" } } },
      ],
      egress: [{ ports: [udp, tcp(53)] }, { ports: [tcp(443), tcp(6443)] }],
    },
  });
});

test("the schema of a chart's values refuses unknown values only", async () => {
  const { read } = await filesBy(helmChart, ELECTED_WITH_PROBES);
  const schema = JSON.parse(read("values.schema.json"));
  assert.equal(schema.additionalProperties, false);
  const { image, podDisruptionBudget, global, replicas } = schema.properties;
  assert.deepEqual(replicas, { type: "integer", minimum: 0 });
  // Helm adds the value global to each chart that another depends on.
  assert.deepEqual(global, { type: "object" });
  assert.equal(image.additionalProperties, false);
  assert.deepEqual(image.properties.pullPolicy, {
    enum: ["Always", "IfNotPresent", "Never"],
  });
  assert.deepEqual(podDisruptionBudget.properties.maxUnavailable, {
    type: ["integer", "string"],
  });
});

test("a chart keeps braces of a definition and its choice of deletion", async () => {
  const definition = {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: "boats.test.coracle.dev", annotations: { a: "{{b}}" } },
    spec: { group: "test.coracle.dev", names: { plural: "boats" } },
  } as unknown as CrdManifest;
  const { read } = await filesBy(helmChart, [{
    ...ELECTED,
    leaderElection: { name: "boats", namespace: "{{ x" },
  }], { definitions: [definition] });
  assert.equal(
    read("templates/crds/boats.test.coracle.dev.yaml"),
    `{{- if .Values.crds.install }}
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: boats.test.coracle.dev
  annotations:
    a: "{{ "{{" }}b}}"
    helm.sh/resource-policy: {{ ternary "keep" "delete" .Values.crds.keep }}
spec:
  group: test.coracle.dev
  names:
    plural: boats
{{- end }}
`,
  );
  assert.match(
    read("templates/rbac.yaml"),
    /^ {2}namespace: "?\{\{ "\{\{" \}\} x/m,
  );
});

test("the helpers of a chart name its objects and its image", async () => {
  const { read } = await filesBy(helmChart, [ELECTED]);
  const helpers = read("templates/_helpers.tpl");
  for (
    const line of [
      '{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}',
      '{{- printf "%s@%s" .repository .digest -}}',
      '{{- printf "%s:%s" .repository (.tag | default $.Chart.AppVersion | toString) -}}',
      "app.kubernetes.io/name: {{ .Chart.Name | quote }}",
      "app.kubernetes.io/instance: {{ .Release.Name | quote }}",
    ]
  ) assert(helpers.includes(`\n${line}\n`), line);
});

test("an image without a tag is the latest in a chart and a kustomization", async () => {
  const image = { image: "registry.test/boats" };
  const chart = await filesBy(helmChart, [ELECTED], image);
  assert.equal(parse(chart.read("Chart.yaml")).appVersion, "latest");
  const { read } = await filesBy(kustomization, [ELECTED], image);
  const { images, resources } = parse(read("kustomization.yaml"));
  assert.deepEqual(images, [{ name: image.image, newTag: "latest" }]);
  // Without definitions there is no file of them.
  assert.deepEqual(resources, [
    "namespace.yaml",
    "rbac.yaml",
    "deployment.yaml",
  ]);
});

test("users may edit the values of a chart and a kustomization", async () => {
  const keptBy = async (make: typeof helmChart | typeof kustomization) =>
    (await filesBy(make, ELECTED_WITH_PROBES)).files
      .filter(({ kept }) => kept).map(({ path }) => path);
  assert.deepEqual(await keptBy(helmChart), [
    "Chart.yaml",
    "values.yaml",
    "values.schema.json",
  ]);
  assert.deepEqual(await keptBy(kustomization), ["kustomization.yaml"]);
});

test("the components of a kustomization select the pods and their ports", async () => {
  const { read } = await filesBy(kustomization, [
    { ...ELECTED, ...probesOn(8081) },
    { ...ELECTED, ...probesOn(8082) },
    { ...ELECTED, ...probesOn(0) },
    { ...ELECTED, ...probesOn(8083, "127.0.0.1") },
  ]);
  const labels = { "app.kubernetes.io/name": "boats" };
  const specsOf = (name: string) =>
    parseAllDocuments(read(`components/${name}/${name}.yaml`))
      .map((one) => one.toJSON().spec);
  assert.deepEqual(specsOf("service-monitor"), [
    {
      clusterIP: "None",
      selector: labels,
      ports: [
        { name: "probes", port: 8080, targetPort: "probes" },
        { name: "probes-2", port: 8081, targetPort: "probes-2" },
      ],
    },
    {
      selector: { matchLabels: labels },
      endpoints: ["probes", "probes-2"]
        .map((port) => ({ port, interval: "30s" })),
    },
  ]);
  assert.deepEqual(specsOf("disruption-budget"), [
    { maxUnavailable: 1, selector: { matchLabels: labels } },
  ]);
  const [policy] = specsOf("network-policy");
  assert.partialDeepStrictEqual(policy, {
    podSelector: { matchLabels: labels },
    policyTypes: ["Ingress", "Egress"],
    ingress: [{
      ports: ["probes", "probes-2"]
        .map((port) => ({ port, protocol: "TCP" })),
      from: [{ namespaceSelector: { matchLabels: { metrics: "enabled" } } }],
    }],
  });
  const { template } = parse(read("deployment.yaml")).spec;
  assert.equal(template.spec.serviceAccountName, "boats");
});

test("a chart leads to the event sources of an operator", async () => {
  const { operators } = inputOf([ELECTED]);
  const controller = {
    name: "boats",
    kind: untyped({
      group: "sea.dev",
      version: "v1",
      kind: "Boat",
      plural: "boats",
      scope: "Namespaced",
    }),
    secondaryKinds: [],
    readOnlyKinds: [],
    listens: [{ name: "pushes", port: 9000, host: "0.0.0.0" }],
    settings: { install: false, usesFinalizer: false },
  };
  const { read } = await filesBy(helmChart, [], {
    operators: operators.map((one) => ({ ...one, controllers: [controller] })),
  });
  const service = read("templates/sources.yaml");
  assert.match(
    service,
    /^ {2}name: "\{\{ include "boats\.fullname" \. \| trunc 55 \| trimSuffix "-" \}\}-sources"$/m,
  );
  assert.match(service, /port: 9000\n {6}targetPort: sources\n/);
});

test("secure metrics have a port, a monitor with HTTPS and roles of their own", async () => {
  const secure = [{
    ...ELECTED,
    ...probesOn(8080, "0.0.0.0", { secure: true }),
  }];
  const { read } = await filesBy(kustomization, secure);
  const [service, monitor] = parseAllDocuments(
    read("components/service-monitor/service-monitor.yaml"),
  ).map((one) => one.toJSON());
  assert.deepEqual(
    service.spec.ports.map(({ name }: { name: string }) => name),
    [
      "metrics",
    ],
  );
  assert.deepEqual(monitor.spec.endpoints, [{
    port: "metrics",
    interval: "30s",
    scheme: "https",
    bearerTokenFile: "/var/run/secrets/kubernetes.io/serviceaccount/token",
    tlsConfig: { insecureSkipVerify: true },
  }]);
  const [container] =
    parse(read("deployment.yaml")).spec.template.spec.containers;
  assert.deepEqual(container.ports, [
    { name: "probes", containerPort: 8080 },
    { name: "metrics", containerPort: 8443 },
  ]);
  assert.equal(container.readinessProbe.httpGet.port, 8080);
  const roles = parseAllDocuments(read("rbac.yaml")).map((one) => one.toJSON())
    .filter(({ kind }) => kind === "ClusterRole");
  const reader = roles.find(({ metadata }) =>
    metadata.name === "boats-metrics-reader"
  );
  assert.deepEqual(reader.rules, [
    { nonResourceURLs: ["/metrics"], verbs: ["get"] },
  ]);
  const own = roles.find(({ metadata }) => metadata.name === "boats");
  for (
    const [group, resource] of [
      ["authentication.k8s.io", "tokenreviews"],
      ["authorization.k8s.io", "subjectaccessreviews"],
    ]
  ) {
    assert.deepEqual(
      own.rules.find(({ apiGroups }: { apiGroups: string[] }) =>
        apiGroups[0] === group
      ),
      { apiGroups: [group], resources: [resource], verbs: ["create"] },
    );
  }
  const chart = await filesBy(helmChart, secure);
  assert.deepEqual(parse(chart.read("values.yaml")).serviceMonitor, {
    enabled: false,
    interval: "30s",
    labels: {},
    tlsConfig: { insecureSkipVerify: true },
  });
  assert.match(
    chart.read("templates/servicemonitor.yaml"),
    /\n {6}\{\{- with .Values.serviceMonitor.tlsConfig \}\}\n {6}tlsConfig:\n/,
  );
});

test("the alerts and the dashboard of an operator are of its metrics alone", async () => {
  const { read } = await filesBy(kustomization, ELECTED_WITH_PROBES);
  const { spec } = parse(
    read("components/prometheus-rule/prometheus-rule.yaml"),
  );
  const own = 'job="boats",namespace="boats-system"';
  for (const { alert, expr } of spec.groups[0].rules) {
    for (const [text] of expr.matchAll(/coracle_\w+[^ )]*/g)) {
      assert(text.includes(`{${own}`), `${alert}: ${expr}`);
    }
  }
  const { data } = parse(
    read("components/grafana-dashboard/grafana-dashboard.yaml"),
  );
  assert.deepEqual(Object.keys(data), ["boats.json"]);
  const { uid, panels } = JSON.parse(data["boats.json"]);
  assert.equal(uid, "boats");
  assert(panels.length > 10);
  const chart = await filesBy(helmChart, ELECTED_WITH_PROBES);
  const rule = chart.read("templates/prometheusrule.yaml");
  const expressions = rule.match(/^ +expr: .*$/gm) ?? [];
  const place =
    'job="{{ include "boats.fullname" . }}",namespace="{{ .Release.Namespace }}"';
  assert.equal(expressions.length, spec.groups[0].rules.length);
  for (const line of expressions) assert(line.includes(place), line);
  assert.match(rule, /summary: "\{\{ "\{\{" \}\} \$labels\.controller/);
  assert.match(
    chart.read("templates/dashboard.yaml"),
    /^ {2}\{\{ include "boats\.fullname" \. \}\}\.json: \|/m,
  );
});

test("an operator without ports has no monitor and lets nothing in", async () => {
  const kustomized = await filesBy(kustomization, [ELECTED]);
  assert.doesNotMatch(kustomized.read("kustomization.yaml"), /monitor/);
  const policy = kustomized.read(
    "components/network-policy/network-policy.yaml",
  );
  assert.deepEqual(parse(policy).spec.ingress, []);
  const { files, read } = await filesBy(helmChart, [ELECTED]);
  assert(!files.some(({ path }) => path.includes("monitor")));
  assert.doesNotMatch(read("values.yaml"), /serviceMonitor/);
});

test("imageParts splits an image at its tag and its digest", () => {
  const digest = `sha256:${"0".repeat(64)}`;
  for (
    const [image, repository, tag, found] of [
      ["a", "a", "", ""],
      ["a.b:5000/c", "a.b:5000/c", "", ""],
      ["a.b:5000/c:1.0-rc.1_2", "a.b:5000/c", "1.0-rc.1_2", ""],
      [`a:1@${digest}`, "a", "1", digest],
      [`a@${digest}`, "a", "", digest],
    ] as const
  ) {
    assert.deepEqual(imageParts(image), { repository, tag, digest: found });
  }
});

test("a Deployment selects its own pods, on any address but loopback", () => {
  const { operators } = inputOf(ELECTED_WITH_PROBES);
  const deployment = operatorDeployment({
    name: "boats",
    namespace: "docks",
    image: "boats:1",
    operators,
  });
  const labels = { "app.kubernetes.io/name": "boats" };
  assert.partialDeepStrictEqual(deployment, {
    metadata: { name: "boats", namespace: "docks" },
    spec: {
      replicas: 2,
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { serviceAccountName: "boats" } },
    },
  });
  assert.deepEqual(
    ["127.0.0.1", "127.1.2.3", "::1", "localhost"].filter(isLoopback).length,
    4,
  );
  assert.deepEqual(["0.0.0.0", "::", "12.7.0.1"].filter(isLoopback), []);
});
