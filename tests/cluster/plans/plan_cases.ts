/**
 * Operators whose upgrades are planned and then take place: each an example, the
 * edits that make its old version of it, and the objects of a cluster.
 *
 * @module
 */
import type { UntypedObject } from "@coracle/operator/client";
import type { Finding } from "../../../dev/testing/plan/plan_report.ts";

/** Namespace of the objects that have one. */
export const NAMESPACE = "plans";
/** End of the names of objects whose changes the cluster refuses. */
export const REFUSED = "-refused";

/** Upgrade of an operator in a cluster. */
export interface PlanCase {
  /** File of the new version, below `examples`. */
  readonly file: string;
  /** Options of the operator of both versions, as source; `PORT` is a free port. */
  readonly options?: string | undefined;
  /** Texts of the file, each with that of the old version. */
  readonly old: readonly (readonly [now: string, old: string])[];
  /**
   * Variables of both versions. `FOLDER` in them is an empty folder, `EXAMPLES`
   * that of the examples, and `URL` that of a server.
   */
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** Commands of a shell in the empty folder, before the old version starts. */
  readonly setup?: string | undefined;
  /** Number of objects that come of a primary, with it. */
  readonly objects: number;
  /** Objects that others need, once. */
  readonly first?: readonly UntypedObject[] | undefined;
  /** Objects of a name, the primary first. */
  readonly make: (name: string, index: number) => readonly UntypedObject[];
  /** What another manager sets in an object that the operator keeps. */
  readonly rival?: ((name: string) => UntypedObject) | undefined;
  /** Resource, and the field of it that may not change; without one, deletions. */
  readonly refuses?: {
    readonly group: string;
    readonly resource: string;
    readonly field?: string;
  } | undefined;
  /** Fields that no plan can know, each with the reason. */
  readonly unknown?: Readonly<Record<string, string>> | undefined;
  /** What the plan must find. */
  readonly finds: readonly Finding[];
}

export const SAMPLE = "sample.coracle.dev/v1";
export const GALLERY = "gallery.coracle.dev/v1";
/** What stands in objects for the URL of a server. */
export const URL_TEXT = "http://outside.example.com";

/** Metadata of an object of the namespace. */
export function metadataOf(
  name: string,
): { readonly namespace: string; readonly name: string } {
  return { namespace: NAMESPACE, name };
}

/** Time of some days ago. */
const ago = (days: number) =>
  new Date(Math.floor(Date.now() / 1_000 - days * 86_400) * 1_000)
    .toISOString().replace(".000Z", "Z");

/** Deployment with another image, as a tool that replaces images applies it. */
export function otherImage(container: string) {
  return (name: string): UntypedObject => ({
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: metadataOf(name),
    spec: {
      template: { spec: { containers: [{ name: container, image: "o:1" }] } },
    },
  });
}

export const DEPLOYMENTS = {
  group: "apps",
  resource: "deployments",
  field: "spec.template",
} as const;

/** Status of a resource of the examples. */
export const STATUS = (
  resource: string,
  group = "sample.coracle.dev",
): NonNullable<PlanCase["refuses"]> => ({
  group: group,
  resource: `${resource}/status`,
  field: "status",
});

const FOLDER_SYNC: PlanCase = {
  file: "folder_sync.ts",
  old: [[
    "objects: () => fromFiles(folder),",
    'objects: async () => [...(await fromFiles(folder)).map((one) => ({ ...one, data: { version: "1" } })), { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "legacy", namespace: "plans" } }],',
  ]],
  env: { REPOSITORY: "FOLDER/clone" },
  setup: [
    "git init -q origin && cd origin",
    "i=0; while [ $i -lt $COUNT ]; do case $((i % 5)) in 2) end=-refused;; *) end=;; esac",
    // A folder may have a thousand files.
    'printf -- "---\\napiVersion: v1\\nkind: ConfigMap\\nmetadata: { name: p$i$end, namespace: plans }\\ndata: { version: \\"2\\" }\\n" >> p$((i / 10)).yaml',
    "i=$((i + 1)); done",
    'git add -A && git -c user.name=a -c user.email=a@example.com commit -qm "Add objects"',
    "cd .. && git clone -q origin clone",
  ].join("\n"),
  objects: 1,
  make: () => [],
  rival: (name) => ({
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: metadataOf(name),
    data: { version: "3" },
  }),
  finds: ["change", "delete", "takeover"],
};

const NIGHTLY_CLEANER: PlanCase = {
  file: "nightly_cleaner.ts",
  old: [["const KEPT_MS = 7 ", "const KEPT_MS = 700 "], [
    'cron: "0 3 * * *"',
    'cron: "0 3 1 1 *"',
  ]],
  objects: 1,
  // It has not run for days: the missed night is made up.
  first: [{
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: {
      namespace: "default",
      name: "nightly-cleaner",
      annotations: { "jobs.coracle.dev/nightly-cleaner": ago(3) },
    },
  }],
  make: (name, index) => [{
    apiVersion: "batch/v1",
    kind: "Job",
    metadata: metadataOf(name),
    spec: {
      template: {
        spec: {
          restartPolicy: "Never",
          containers: [{ name: "a", image: "a:1" }],
        },
      },
    },
    status: {
      startTime: ago(index % 2 === 0 ? 9 : 2),
      completionTime: ago(index % 2 === 0 ? 9 : 2),
      succeeded: 1,
      conditions: ["SuccessCriteriaMet", "Complete"].map((type) => ({
        type,
        status: "True",
        lastTransitionTime: ago(index % 2 === 0 ? 9 : 2),
      })),
    },
  }],
  finds: ["delete"],
};

export const PLAN_CASES: Readonly<Record<string, PlanCase>> = {
  greeting: {
    file: "greeting.ts",
    old: [["`Hello, ${name}.`", "`Hi, ${name}.`"]],
    objects: 2,
    make: (name) => [{
      apiVersion: SAMPLE,
      kind: "Greeting",
      metadata: metadataOf(name),
      spec: { name },
    }],
    rival: (name) => ({
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: metadataOf(name),
      data: { text: "Good day." },
    }),
    refuses: { group: "", resource: "configmaps", field: "data" },
    finds: ["change", "takeover", "failure"],
  },
  webpage: {
    file: "webpage.ts",
    old: [
      ["nginx:1.29-alpine", "nginx:1.28-alpine"],
      ["primary.spec.exposed,", "primary.metadata.name.length > 0,"],
    ],
    objects: 7,
    make: (name, index) => [{
      apiVersion: SAMPLE,
      kind: "WebPage",
      metadata: metadataOf(name),
      spec: { html: `<p>${name}`, exposed: index % 2 === 0 },
    }],
    rival: otherImage("nginx"),
    refuses: DEPLOYMENTS,
    finds: ["change", "delete", "takeover", "failure"],
  },
  // The new version changes a field that the API server lets nobody change.
  webpage_selector: {
    file: "webpage.ts",
    old: [
      [
        "selector: { matchLabels: labels },",
        "selector: { matchLabels: { page: name } },",
      ],
      [
        "metadata: { labels },\n          spec",
        "metadata: { labels: { ...labels, page: name } },\n          spec",
      ],
    ],
    objects: 7,
    make: (name, index) => [{
      apiVersion: SAMPLE,
      kind: "WebPage",
      metadata: metadataOf(name),
      spec: { html: `<p>${name}`, exposed: index % 2 === 0 },
    }],
    finds: ["failure"],
  },
  // The new version has a stricter schema than the objects of the old one meet.
  greeting_schema: {
    file: "greeting.ts",
    old: [["z.string().min(1)", "z.string()"], [
      "`Hello, ${name}.`",
      '"Hello"',
    ]],
    objects: 2,
    make: (name, index) => [{
      apiVersion: SAMPLE,
      kind: "Greeting",
      metadata: metadataOf(name),
      spec: { name: index % 3 === 0 ? "" : name },
    }],
    finds: ["change"],
  },
  // The new version writes a status that its schema refuses.
  greeting_status: {
    file: "greeting.ts",
    old: [["z.string() }).partial()", "z.string() }).partial().loose()"], [
      "patchStatus({ text })",
      "patchStatus({ text, length: 1 })",
    ]],
    objects: 2,
    make: (name) => [{
      apiVersion: SAMPLE,
      kind: "Greeting",
      metadata: metadataOf(name),
      spec: { name },
    }],
    finds: [],
  },
  tomcat: {
    file: "tomcat.ts",
    old: [["`tomcat:${spec.version}`", "`tomcat:${spec.version}-jre17`"], [
      "curl:8.16.0",
      "curl:8.15.0",
    ]],
    objects: 6,
    make: (name) => [{
      apiVersion: SAMPLE,
      kind: "Tomcat",
      metadata: metadataOf(name),
      spec: { version: 11 },
    }, {
      apiVersion: SAMPLE,
      kind: "WebApp",
      metadata: metadataOf(`${name}-app`),
      spec: { tomcat: name, url: "https://example.com/a.war", context: "a" },
    }],
    rival: otherImage("tomcat"),
    refuses: DEPLOYMENTS,
    finds: ["change", "takeover", "failure"],
  },
  release: {
    file: "release.ts",
    old: [['{ name: "web", image }', '{ name: "web", image, args: ["-v"] }']],
    objects: 4,
    make: (name) => [{
      apiVersion: SAMPLE,
      kind: "Release",
      metadata: metadataOf(name),
      spec: { image: "shop:1" },
    }],
    rival: otherImage("web"),
    refuses: DEPLOYMENTS,
    unknown: {
      ".status.rollout.revision": "it counts the tries of a run",
      ".status.conditions[Ready].lastTransitionTime":
        "a run may see a new Deployment before the cluster's controller does",
    },
    finds: ["change", "takeover", "failure"],
  },
  uptime: {
    file: "uptime.ts",
    old: [['reason: "Answers"', 'reason: "Up"']],
    objects: 1,
    make: (name, index) => [{
      apiVersion: SAMPLE,
      kind: "Website",
      metadata: metadataOf(name),
      spec: { url: index % 2 === 0 ? URL_TEXT : "nowhere" },
    }],
    refuses: STATUS("websites"),
    finds: ["change", "failure", "fetch"],
  },
  mirror: {
    file: "mirror.ts",
    old: [["`${bytes} bytes, ${digest}`", "`${bytes} B, ${digest}`"]],
    env: { MIRROR_STORE: "FOLDER/store" },
    objects: 1,
    make: (name) => [{
      apiVersion: SAMPLE,
      kind: "Mirror",
      metadata: metadataOf(name),
      spec: { url: `${URL_TEXT}/${name}`, interval: "1h" },
    }],
    refuses: STATUS("mirrors"),
    finds: ["change", "failure", "fetch"],
  },
  stream_job: {
    file: "stream_job.ts",
    old: [['trouble("JobManagerUnreachable"', 'trouble("Unreachable"']],
    env: { JOB_MANAGER_URL: "URL/closed", POLL: "1m" },
    objects: 1,
    make: (name) => [{
      apiVersion: SAMPLE,
      kind: "StreamJob",
      metadata: metadataOf(name),
      spec: { program: "count:1", parallelism: 1 },
    }],
    refuses: STATUS("streamjobs"),
    finds: ["change", "failure", "fetch"],
  },
  chat_bridge: {
    file: "chat_bridge.ts",
    old: [["{ messages: 0 }),", '{ messages: 0, lastMessage: "none" }),']],
    env: { CHAT_URL: "ws://127.0.0.1:1/" },
    objects: 1,
    make: (name) => [{
      apiVersion: SAMPLE,
      kind: "Channel",
      metadata: metadataOf(name),
      spec: { room: name },
    }],
    refuses: STATUS("channels"),
    finds: ["change", "failure"],
  },
  github_webhook: {
    file: "github_webhook.ts",
    old: [[
      "if (commit === undefined) return;",
      'if (commit === undefined) return patchStatus({ commit: "none" });',
    ]],
    env: { WEBHOOK_SECRET: "for tests only", WEBHOOK_PORT: "0" },
    objects: 1,
    make: (name) => [{
      apiVersion: SAMPLE,
      kind: "Repository",
      metadata: metadataOf(name),
      spec: { repository: `example/${name}` },
    }],
    refuses: STATUS("repositories"),
    finds: [],
  },
  // Each process has a database of its own, in memory.
  postgres_schema: {
    file: "postgres_schema.ts",
    old: [[
      "Buffer.from(schemaName(schema)).toString",
      "Buffer.from(`old ${schemaName(schema)}`).toString",
    ]],
    objects: 2,
    make: (name) => [{
      apiVersion: SAMPLE,
      kind: "PostgresSchema",
      metadata: metadataOf(name),
      spec: {},
    }],
    rival: (name) => ({
      apiVersion: "v1",
      kind: "Secret",
      metadata: metadataOf(`${name}-postgres`),
      data: { username: "cml2YWw=" },
    }),
    refuses: { group: "", resource: "secrets", field: "data" },
    finds: ["change", "takeover", "failure"],
  },
  helm_release: {
    file: "helm_release.ts",
    old: [[
      "namespace, ...release.spec };",
      'namespace, ...release.spec, values: { host: "old.example.com" } };',
    ]],
    env: { CHARTS: "FOLDER/charts", HELM: "FOLDER/helm" },
    // A definition belongs to one release, so that there is none in the chart.
    setup: [
      'printf \'#!/bin/sh\\nexec node "%s/helm_stand_in.ts" "$@"\\n\' "$EXAMPLES" > helm && chmod +x helm',
      'cp -r "$EXAMPLES/charts" charts && rm charts/shop/crds/* && cd charts/shop/templates',
      "sed -i '/^apiVersion: shop.example.com/,/length:/d' cache.yaml",
    ].join("\n"),
    objects: 24,
    make: (name) => [{
      apiVersion: SAMPLE,
      kind: "HelmRelease",
      metadata: metadataOf(name),
      spec: { chart: "shop", values: { withoutOrders: true } },
    }],
    rival: (name) => ({
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: metadataOf(`${name}-web`),
      data: { host: "rival.example.com" },
    }),
    refuses: {
      group: "networking.k8s.io",
      resource: "ingresses",
      field: "spec",
    },
    finds: ["change", "delete", "takeover", "failure"],
  },
  tenant: {
    file: "tenant.ts",
    old: [
      ['kind: "User", name }', 'kind: "Group", name }'],
      [
        "(await fromFiles(folder)).map(",
        '[...await fromFiles(folder), { apiVersion: "v1", kind: "LimitRange", metadata: { name: "legacy" }, spec: { limits: [] } }].map(',
      ],
    ],
    env: { TENANT_FOLDER: "EXAMPLES/tenant" },
    objects: 9,
    make: (name) => [{
      apiVersion: SAMPLE,
      kind: "Tenant",
      metadata: { name },
      spec: { owners: ["ann@example.com"] },
    }],
    rival: (namespace) => ({
      apiVersion: "v1",
      kind: "ResourceQuota",
      metadata: { namespace, name: "tenant" },
      spec: { hard: { "limits.cpu": "40" } },
    }),
    refuses: {
      group: "rbac.authorization.k8s.io",
      resource: "rolebindings",
      field: "subjects",
    },
    finds: ["change", "delete", "takeover", "failure"],
  },
  dns_sync: {
    file: "dns_sync.ts",
    old: [],
    env: { ZONE_URL: "URL/zone" },
    objects: 1,
    make: (name) => [{
      apiVersion: "v1",
      kind: "Service",
      metadata: {
        ...metadataOf(name),
        annotations: { "dns.example.com/hostname": `${name}.example.com` },
      },
      spec: { clusterIP: "None", ports: [{ port: 80 }] },
    }],
    refuses: { group: "", resource: "services", field: "spec" },
    finds: ["fetch"],
  },
  folder_sync: FOLDER_SYNC,
  // What the server refuses of a set is found before anything of it is written.
  folder_sync_refused: {
    ...FOLDER_SYNC,
    refuses: { group: "", resource: "configmaps", field: "data" },
    finds: ["failure"],
  },
  nightly_cleaner: NIGHTLY_CLEANER,
  // The first deletion that is refused ends a run.
  nightly_cleaner_refused: {
    ...NIGHTLY_CLEANER,
    refuses: { group: "batch", resource: "jobs" },
    finds: ["delete", "failure"],
  },
  memcached: {
    file: "gallery/memcached.ts",
    old: [['args: ["-m", String(spec.memory)]', 'args: ["-m", "32"]']],
    objects: 5,
    make: (name) => [{
      apiVersion: GALLERY,
      kind: "Memcached",
      metadata: metadataOf(name),
      spec: {},
    }],
    rival: otherImage("memcached"),
    refuses: DEPLOYMENTS,
    finds: ["change", "takeover", "failure"],
  },
  store_cluster: {
    file: "gallery/store_cluster.ts",
    old: [['mountPath: "/data"', 'mountPath: "/var/data"']],
    objects: 9,
    make: (name) => [{
      apiVersion: GALLERY,
      kind: "StoreCluster",
      metadata: metadataOf(name),
      spec: { members: 3, image: "store:1", admin: "http://127.0.0.1:1" },
    }],
    rival: (name) => ({
      ...otherImage("store")(name),
      kind: "StatefulSet",
    }),
    refuses: { ...DEPLOYMENTS, resource: "statefulsets" },
    finds: ["change", "takeover", "failure"],
  },
  pull_secret: {
    file: "gallery/pull_secret.ts",
    old: [["OPT_OUT in annotations", '"never" in annotations']],
    objects: 4,
    first: [
      { apiVersion: "v1", kind: "Namespace", metadata: { name: "registry" } },
      {
        apiVersion: "v1",
        kind: "Secret",
        metadata: { namespace: "registry", name: "registry" },
        data: { a: "Yg==" },
      },
    ],
    make: (name, index) => [{
      apiVersion: "v1",
      kind: "Namespace",
      metadata: {
        name,
        ...index % 2 === 0 &&
          { annotations: { "gallery.coracle.dev/no-pull-secret": "" } },
      },
    }],
    rival: (namespace) => ({
      apiVersion: "v1",
      kind: "Secret",
      metadata: { namespace, name: "registry" },
      data: { a: "Yw==" },
    }),
    refuses: {
      group: "",
      resource: "serviceaccounts",
      field: "imagePullSecrets",
    },
    finds: ["change", "delete", "takeover", "failure"],
  },
  namespace_policies: {
    file: "gallery/namespace_policies.ts",
    old: [
      ["teamOf(primary) !== undefined", "primary.kind !== undefined"],
      ['pods: "50"', 'pods: "40"'],
    ],
    objects: 6,
    make: (name, index) => [{
      apiVersion: "v1",
      kind: "Namespace",
      metadata: {
        name,
        ...index % 3 !== 0 && { labels: { "gallery.coracle.dev/team": "a" } },
      },
    }],
    rival: (namespace) => ({
      apiVersion: "v1",
      kind: "ResourceQuota",
      metadata: { namespace, name: "team-policy" },
      spec: { hard: { "requests.cpu": "20" } },
    }),
    refuses: { group: "", resource: "resourcequotas", field: "spec" },
    finds: ["change", "delete", "takeover", "failure"],
  },
  cron_job: {
    file: "gallery/cron_job.ts",
    old: [['spec.suspend ? "Suspended" : ""', 'spec.suspend ? "Paused" : "-"']],
    objects: 1,
    make: (name, index) => [{
      apiVersion: "tutorial.coracle.dev/v1",
      kind: "CronJob",
      metadata: metadataOf(name),
      spec: {
        schedule: "0 0 1 1 *",
        suspend: index % 2 === 0,
        jobTemplate: {
          spec: {
            template: {
              spec: {
                restartPolicy: "Never",
                containers: [{ name: "a", image: "a:1" }],
              },
            },
          },
        },
      },
    }],
    refuses: {
      group: "tutorial.coracle.dev",
      resource: "cronjobs/status",
      field: "status",
    },
    finds: ["change", "failure"],
  },
  acme_issuer: {
    file: "gallery/acme_issuer.ts",
    old: [[
      "patchStatus({ message: (error as Error).message }),",
      'patchStatus({ message: "Failed" }),',
    ]],
    env: { ACME_DIRECTORY: "URL/closed" },
    objects: 1,
    make: (name) => [{
      apiVersion: GALLERY,
      kind: "AcmeCertificate",
      metadata: metadataOf(name),
      spec: { dnsNames: [`${name}.example.com`], secretName: `${name}-tls` },
    }],
    refuses: {
      group: "gallery.coracle.dev",
      resource: "acmecertificates/status",
      field: "status",
    },
    finds: ["change", "failure", "fetch"],
  },
};
