import {
  type ApiError,
  type Client,
  defineKind,
  type ObjectKey,
  type OperatorOptions,
  untyped,
} from "@coracle/operator";
import { TestCluster, VirtualClock, withTestCluster } from "@coracle/dev";
import {
  Deployment,
  HorizontalPodAutoscaler,
  NetworkPolicy,
  PodDisruptionBudget,
  Secret,
  Service,
} from "@coracle/operator/kinds";
import assert from "node:assert/strict";
import process from "node:process";
import { after, before, test } from "node:test";
import { z } from "zod";
import { operator } from "./memcached_servers.ts";

const names = {
  group: "memcached.c5c3.io",
  kind: "Memcached",
  plural: "memcacheds",
  scope: "Namespaced",
} as const;
const Memcached = untyped({ ...names, version: "v1beta1" });
const Old = untyped({ ...names, version: "v1alpha1" });
const ServiceMonitor = defineKind({
  group: "monitoring.coreos.com",
  version: "v1",
  kind: "ServiceMonitor",
  spec: z.looseObject({}),
});

interface Fields {
  readonly spec: {
    readonly replicas?: number;
    readonly autoscaling?: { readonly metrics?: readonly unknown[] };
  };
  readonly status?: {
    readonly conditions?: readonly { type: string; reason: string }[];
    readonly serverList?: readonly string[];
    readonly readyReplicas?: number;
  };
}

async function read(
  client: Client,
  key: ObjectKey,
): Promise<Fields> {
  return await client.get(Memcached, key) as unknown as Fields;
}

const start = (options: OperatorOptions) =>
  operator({ ...options, probes: undefined, leaderElection: undefined });

function simulated() {
  return {
    kinds: [ServiceMonitor],
    operator: start,
    clock: new VirtualClock(),
    server: { simulate: true },
  };
}

test(
  "A Memcached of v1alpha1 has servers, and a new Secret replaces its pods",
  withTestCluster(simulated(), async (cluster) => {
    const { client, namespace } = cluster;
    const key = { namespace, name: "sessions" };
    const spec = {
      replicas: 2,
      memcached: { verbosity: 2 },
      highAvailability: {
        podDisruptionBudget: { enabled: true, minAvailable: 1 },
      },
      monitoring: { enabled: true, serviceMonitor: {} },
      security: {
        sasl: { enabled: true, credentialsSecretRef: { name: "passwords" } },
        networkPolicy: { enabled: true },
      },
    };
    await client.create(Old, { metadata: key, spec });
    const conditions = async () => {
      const { status } = await read(client, key);
      return Object.fromEntries(
        status?.conditions?.map(({ type, reason }) => [type, reason]) ?? [],
      );
    };
    await cluster.until(async () =>
      (await conditions())["Ready"] === "MemcachedReady"
    );
    assert.deepEqual(await conditions(), {
      Available: "Available",
      Progressing: "ProgressingComplete",
      Degraded: "SecretNotFound",
      Ready: "MemcachedReady",
    });
    const { status } = await read(client, key);
    assert.deepEqual(status?.serverList, [`sessions.${namespace}:11211`]);
    const template = async () =>
      (await client.get(Deployment, key)).spec?.template;
    const hash = async () =>
      (await template())?.metadata?.annotations
        ?.["memcached.c5c3.io/secret-hash"];
    assert.equal(await hash(), undefined);
    const passwords = { namespace, name: "passwords" };
    await client.create(Secret, {
      metadata: passwords,
      data: { "password-file": "YTpi" },
    });
    await cluster.until(async () => await hash() !== undefined);
    const first = await hash();
    await client.patch(Secret, passwords, {
      data: { "password-file": "YTpj" },
    });
    await cluster.until(async () => await hash() !== first);
    const [server, exporter] = (await template())?.spec?.containers ?? [];
    assert.equal(
      server?.args?.join(" "),
      "-m 64 -c 1024 -t 4 -I 1m -vv -Y /etc/memcached/sasl/password-file",
    );
    assert.equal(exporter?.image, "prom/memcached-exporter:v0.15.4");
    const service = await client.get(Service, key);
    assert.deepEqual(
      service.spec?.ports?.map(({ port }) => port),
      [11211, 9150],
    );
    await client.get(PodDisruptionBudget, key);
    await client.get(ServiceMonitor, key);
    await client.get(NetworkPolicy, key);

    // What is switched off is deleted.
    await client.patch(Memcached, key, {
      spec: { highAvailability: null, monitoring: null, security: null },
    });
    await cluster.until(async () =>
      !await client.find(PodDisruptionBudget, key) &&
      !await client.find(ServiceMonitor, key) &&
      !await client.find(NetworkPolicy, key)
    );
    assert.equal((await conditions())["Degraded"], "NotDegraded");
  }),
);

test(
  "An autoscaled Memcached is defaulted, and leaves the replicas alone",
  withTestCluster(simulated(), async (cluster) => {
    const { client, namespace } = cluster;
    const key = { namespace, name: "sessions" };
    await client.create(Memcached, {
      metadata: key,
      spec: {
        autoscaling: { enabled: true, maxReplicas: 5 },
        resources: { requests: { cpu: "100m" } },
      },
    });
    const { spec } = await read(client, key);
    assert.equal(spec.replicas, undefined);
    assert.equal(spec.autoscaling?.metrics?.length, 1);
    await cluster.until(() => client.find(HorizontalPodAutoscaler, key));
    await client.patch(Deployment, key, { spec: { replicas: 4 } });
    await cluster.until(async () =>
      (await read(client, key)).status?.readyReplicas === 4
    );
  }),
);

// Facts of the specs of the original, in Go: inputs, and what the API server stores,
// refuses and gets of them.

// deno-lint-ignore no-explicit-any -- The facts are about any field.
type Facts = any;

// One cluster for all facts; its Deployments have the counts that the tests write.
let cluster: TestCluster;
before(async () => {
  cluster = await TestCluster.start({
    kinds: [ServiceMonitor],
    operator: start,
  });
});
after(() => cluster.stop());

const budget = (podDisruptionBudget: object) => ({
  highAvailability: { podDisruptionBudget },
});
const atLeast = (minAvailable: unknown) =>
  budget({ enabled: true, minAvailable });
const limit = (memory: unknown, maxMemoryMB = 64) => ({
  memcached: { maxMemoryMB },
  resources: { limits: { memory } },
});
const shutdown = (delay: number, grace: number, enabled = true) => ({
  highAvailability: {
    gracefulShutdown: {
      enabled,
      preStopDelaySeconds: delay,
      terminationGracePeriodSeconds: grace,
    },
  },
});
const metric = (name: string, target: object = {}) => [{
  type: "Resource",
  resource: {
    name,
    target: { type: "Utilization", averageUtilization: 80, ...target },
  },
}];
const scaled = (autoscaling: object = {}, more: object = {}) => ({
  autoscaling: { enabled: true, maxReplicas: 10, ...autoscaling },
  ...more,
});
const cpu = { resources: { requests: { cpu: "100m" } } };
const sasl = {
  sasl: { enabled: true, credentialsSecretRef: { name: "sasl-secret" } },
};
const tls = {
  tls: { enabled: true, certificateSecretRef: { name: "tls-cert" } },
};
const config = {
  maxMemoryMB: 64,
  maxConnections: 1024,
  threads: 4,
  maxItemSize: "1m",
  verbosity: 0,
};
const zone = {
  maxSkew: 1,
  topologyKey: "topology.kubernetes.io/zone",
  whenUnsatisfiable: "DoNotSchedule",
};
const EXPORTER = "prom/memcached-exporter:v0.15.4";

const all = {
  replicas: 3,
  image: "memcached:1.6.28",
  memcached: {
    maxMemoryMB: 512,
    maxConnections: 4096,
    threads: 16,
    maxItemSize: "4m",
    verbosity: 1,
    extraArgs: ["-o", "modern"],
  },
  resources: { requests: { cpu: "100m" }, limits: { memory: "1Gi" } },
  monitoring: {
    enabled: true,
    exporterImage: "custom/exporter:v2",
    serviceMonitor: {
      interval: "15s",
      scrapeTimeout: "5s",
      additionalLabels: { team: "platform", "app.kubernetes.io/name": "x" },
    },
  },
  highAvailability: {
    antiAffinityPreset: "hard",
    topologySpreadConstraints: [zone],
    podDisruptionBudget: { enabled: true, minAvailable: 2 },
    gracefulShutdown: {
      enabled: true,
      preStopDelaySeconds: 20,
      terminationGracePeriodSeconds: 60,
    },
  },
  security: {
    podSecurityContext: { runAsNonRoot: true },
    containerSecurityContext: { runAsUser: 1000 },
    ...sasl,
    tls: { ...tls.tls, enableClientCert: true },
    networkPolicy: {
      enabled: true,
      allowedSources: [
        { namespaceSelector: { matchLabels: { env: "production" } } },
        { podSelector: { matchLabels: { role: "api" } } },
      ],
    },
  },
  service: { annotations: { "example.org/a": "b" } },
};

/** What is accepted, and a part of what is then stored. */
const ACCEPTED: readonly [spec: object, stored?: object][] = [
  [{}, { replicas: 1, image: "memcached:1.6", memcached: config }],
  [{ replicas: 0 }, { replicas: 0 }],
  [{ replicas: 64 }],
  [{ image: "" }, { image: "" }],
  [{ memcached: {} }, { memcached: config }],
  [{ memcached: { maxMemoryMB: 256 } }, {
    memcached: { ...config, maxMemoryMB: 256 },
  }],
  // In Go, a field without a value and 0 are the same.
  [{
    memcached: {
      maxMemoryMB: 0,
      maxConnections: 0,
      threads: 0,
      maxItemSize: "",
    },
  }, { memcached: config }],
  [{ memcached: { maxMemoryMB: 16, maxConnections: 1, threads: 1 } }],
  [{ memcached: { maxMemoryMB: 65_536, maxConnections: 65_536 } }],
  [{ memcached: { threads: 128, maxItemSize: "512k", verbosity: 2 } }],
  [{ monitoring: { enabled: true } }, {
    monitoring: { enabled: true, exporterImage: EXPORTER },
  }],
  [{ monitoring: { enabled: false } }, {
    monitoring: { enabled: false, exporterImage: EXPORTER },
  }],
  [{ monitoring: { exporterImage: "custom/exporter:v1.0" } }, {
    monitoring: { exporterImage: "custom/exporter:v1.0" },
  }],
  [{ monitoring: { serviceMonitor: {} } }, {
    monitoring: {
      exporterImage: EXPORTER,
      serviceMonitor: { interval: "30s", scrapeTimeout: "10s" },
    },
  }],
  [{ monitoring: { serviceMonitor: { interval: "15s" } } }, {
    monitoring: {
      exporterImage: EXPORTER,
      serviceMonitor: { interval: "15s", scrapeTimeout: "10s" },
    },
  }],
  [{ highAvailability: {} }, {
    highAvailability: { antiAffinityPreset: "soft" },
  }],
  [{ highAvailability: { antiAffinityPreset: "hard" } }, {
    highAvailability: { antiAffinityPreset: "hard" },
  }],
  [all, all],
  [scaled({}, cpu), {
    replicas: undefined,
    autoscaling: {
      enabled: true,
      maxReplicas: 10,
      metrics: metric("cpu"),
      behavior: { scaleDown: { stabilizationWindowSeconds: 300 } },
    },
  }],
  [scaled({ metrics: [] }, cpu)],
  [scaled({ metrics: metric("memory", { averageUtilization: 70 }) }), {
    replicas: undefined,
  }],
  [
    scaled({
      metrics: metric("cpu", {
        type: "AverageValue",
        averageUtilization: undefined,
        averageValue: "500m",
      }),
      behavior: { scaleDown: { stabilizationWindowSeconds: 600 } },
    }),
  ],
  [scaled({ minReplicas: 3, maxReplicas: 3 }, cpu)],
  [scaled({ minReplicas: 1 }, cpu)],
  [scaled({ maxReplicas: undefined }, cpu)],
  [scaled({}, { resources: { requests: { cpu: 0 } } })],
  [{ autoscaling: { enabled: false, maxReplicas: 10 } }, {
    replicas: 1,
    autoscaling: { enabled: false, maxReplicas: 10 },
  }],
  [{ autoscaling: { enabled: false, minReplicas: 5, maxReplicas: 3 } }],
  [{ replicas: 3, autoscaling: { enabled: false, metrics: metric("cpu") } }],
  [limit("128Mi")],
  [limit("96Mi")],
  [limit("101M")],
  [limit(100_663_296)],
  [limit("100663296000m")],
  [limit("4200Mi", 4096)],
  [{ resources: { limits: { cpu: "500m" } } }],
  [{ resources: { limits: {} } }],
  [atLeast("50%")],
  [{ replicas: 3, ...atLeast(2) }],
  [{ replicas: 3, ...atLeast("100%") }],
  [scaled({}, { ...atLeast(5), ...cpu })],
  [budget({ enabled: true, maxUnavailable: "25%" })],
  [budget({ enabled: true, maxUnavailable: 1 })],
  [budget({ enabled: false })],
  [shutdown(10, 30)],
  [shutdown(10, 11)],
  [shutdown(1, 2)],
  [shutdown(300, 600)],
  [shutdown(30, 10, false)],
  [{ security: {} }],
  [{ security: { ...sasl, ...tls } }],
  [{ security: { sasl: { enabled: false }, tls: { enabled: false } } }],
  [{ security: { networkPolicy: { enabled: false } } }],
];

const PDB = "highAvailability.podDisruptionBudget";
const GRACE = "highAvailability.gracefulShutdown.terminationGracePeriodSeconds";
const MEMORY = "resources.limits.memory";
const CPU = "resources.requests.cpu";
const SASL = "security.sasl.credentialsSecretRef.name";
const TLS = "security.tls.certificateSecretRef.name";

/** What is refused: the fields, and words of the message. */
const REFUSED: readonly [spec: object, fields: string[], words?: RegExp][] = [
  [
    {
      replicas: 2,
      ...limit("95Mi"),
      highAvailability: {
        ...budget({ enabled: true }).highAvailability,
        gracefulShutdown: { enabled: true, preStopDelaySeconds: 30 },
      },
      security: { sasl: { enabled: true }, tls: { enabled: true } },
      autoscaling: { enabled: true, minReplicas: 3, maxReplicas: 2 },
    },
    [
      MEMORY,
      PDB,
      GRACE,
      SASL,
      TLS,
      "replicas",
      "autoscaling.minReplicas",
      CPU,
    ],
  ],
  [{ replicas: -1 }, ["replicas"]],
  [{ replicas: 65 }, ["replicas"]],
  [{ memcached: { maxMemoryMB: 15 } }, ["memcached.maxMemoryMB"]],
  [{ memcached: { maxMemoryMB: 65_537 } }, ["memcached.maxMemoryMB"]],
  [{ memcached: { maxConnections: 65_537 } }, ["memcached.maxConnections"]],
  [{ memcached: { threads: 129 } }, ["memcached.threads"]],
  [{ memcached: { maxItemSize: "1g" } }, ["memcached.maxItemSize"]],
  [{ memcached: { maxItemSize: "abc" } }, ["memcached.maxItemSize"]],
  [{ memcached: { verbosity: 3 } }, ["memcached.verbosity"]],
  [{ highAvailability: { antiAffinityPreset: "medium" } }, [
    "highAvailability.antiAffinityPreset",
  ]],
  [shutdown(301, 600), [
    "highAvailability.gracefulShutdown.preStopDelaySeconds",
  ]],
  [shutdown(1, 601), [GRACE]],
  [limit("64Mi"), [MEMORY], /memory .*96Mi/],
  [limit("95Mi"), [MEMORY]],
  [limit("100M"), [MEMORY]],
  [limit("100663295"), [MEMORY]],
  [limit("4096Mi", 4096), [MEMORY]],
  // The defaults of the server come first, so that there are 64 MB.
  [{ resources: { limits: { memory: "64Mi" } } }, [MEMORY]],
  [budget({ enabled: true }), [PDB]],
  [
    budget({ enabled: true, minAvailable: 1, maxUnavailable: 1 }),
    [PDB],
    /mutually exclusive/,
  ],
  [{ replicas: 3, ...atLeast(3) }, [`${PDB}.minAvailable`], /3.*3/],
  [{ replicas: 3, ...atLeast(5) }, [`${PDB}.minAvailable`]],
  // There is 1 replica by default.
  [atLeast(1), [`${PDB}.minAvailable`]],
  [shutdown(10, 10), [GRACE]],
  [shutdown(30, 10), [GRACE], /terminationGracePeriodSeconds.*30/],
  [{ security: { sasl: { enabled: true } } }, [SASL]],
  [{ security: { tls: { enabled: true, certificateSecretRef: {} } } }, [TLS]],
  [{ security: { sasl: { enabled: true }, tls: { enabled: true } } }, [
    SASL,
    TLS,
  ]],
  [
    scaled({}, { replicas: 3, ...cpu }),
    ["replicas"],
    /spec\.replicas.*mutually exclusive/,
  ],
  [scaled({}, { replicas: 0, ...cpu }), ["replicas"]],
  [
    scaled({ minReplicas: 5, maxReplicas: 3 }, cpu),
    ["autoscaling.minReplicas"],
    /5.*3/,
  ],
  [scaled({ metrics: metric("cpu") }), [CPU], /CPU utilization/],
  [scaled({}, { resources: { limits: { cpu: "500m" } } }), [CPU]],
  [scaled({}, { resources: { requests: { memory: "128Mi" } } }), [CPU]],
  [scaled({ minReplicas: 5, maxReplicas: 3 }, { replicas: 3, ...cpu }), [
    "replicas",
    "autoscaling.minReplicas",
  ]],
  [
    {
      replicas: 3,
      ...limit("64Mi"),
      highAvailability: {
        ...atLeast(3).highAvailability,
        ...shutdown(30, 10).highAvailability,
      },
      security: { sasl: { enabled: true } },
    },
    [MEMORY, `${PDB}.minAvailable`, GRACE, SASL],
    /memory.*minAvailable.*terminationGracePeriodSeconds.*credentialsSecretRef/,
  ],
];

test("Memcached objects are stored and refused as by the original", async () => {
  const { client, namespace, until } = cluster;
  const metadata = { namespace, name: "specs" };
  const create = (spec: object, kind = Memcached): Promise<Facts> =>
    client.create(kind, { metadata, spec } as Facts, { dryRun: true });
  await until(() =>
    create(REFUSED[0]?.[0] ?? {}).then(() => false, () => true)
  );
  for (const [at, [spec, stored = {}]] of ACCEPTED.entries()) {
    const found = await create(spec, at % 8 === 0 ? Old : Memcached);
    for (const [name, value] of Object.entries(stored)) {
      assert.deepEqual(found.spec[name], value, JSON.stringify(spec));
    }
  }
  for (const [at, [spec, fields, words = /./]] of REFUSED.entries()) {
    const kind = at % 8 === 0 ? Old : Memcached;
    const error: ApiError = await create(spec, kind).then(
      () => assert.fail(`accepted: ${JSON.stringify(spec)}`),
      (error: ApiError) => error,
    );
    assert.equal(error.status, 422);
    const wrong = error.details.causes?.map(({ field }) => field);
    assert.deepEqual(wrong, fields.map((one) => `spec.${one}`));
    // Clients without causes have the fields as well.
    for (const one of fields) assert(error.message.includes(one), one);
    assert.match(error.message, words);
  }
  // An update is validated as well, a deletion is not.
  await client.create(Memcached, { metadata, spec: { security: sasl } });
  const without = { security: { sasl: { credentialsSecretRef: null } } };
  await assert.rejects(
    client.patch(Memcached, metadata, { spec: without }),
    /credentialsSecretRef/,
  );
  await client.delete(Memcached, metadata);
});

/** Counts of a Deployment, and what follows: ready and updated of all replicas. */
const STATUS: readonly [
  spec: object,
  counts: [ready: number, updated: number, total: number],
  reasons: string,
][] = [
  [
    { replicas: 3 },
    [3, 3, 3],
    "Available ProgressingComplete NotDegraded MemcachedReady",
  ],
  [
    { replicas: 0 },
    [0, 0, 0],
    "Unavailable ProgressingComplete NotDegraded MemcachedNotReady",
  ],
  [{}, [1, 1, 1], "Available ProgressingComplete NotDegraded MemcachedReady"],
  [
    { replicas: 3 },
    [1, 3, 3],
    "Available ProgressingComplete Degraded MemcachedNotReady",
  ],
  [
    { replicas: 3 },
    [0, 3, 3],
    "Unavailable ProgressingComplete Degraded MemcachedNotReady",
  ],
  [
    { replicas: 3 },
    [3, 1, 3],
    "Available Progressing NotDegraded MemcachedReady",
  ],
  [
    { replicas: 5 },
    [3, 3, 3],
    "Available Progressing Degraded MemcachedNotReady",
  ],
  [
    scaled({}, cpu),
    [5, 5, 5],
    "Available ProgressingComplete NotDegraded MemcachedReady",
  ],
];

const TYPES = ["Available", "Progressing", "Degraded", "Ready"];

const LABELS = {
  "app.kubernetes.io/name": "memcached",
  "app.kubernetes.io/instance": "all",
  "app.kubernetes.io/managed-by": "memcached-operator",
};

test("Memcached objects get the parts of the original", async () => {
  const { client, namespace, until } = cluster;
  const secret = (name: string, data: Record<string, string>) =>
    client.create(Secret, { metadata: { namespace, name }, data });
  await secret("sasl-secret", { "password-file": "YTpi" });
  await secret("tls-cert", { "tls.key": "aw==", "tls.crt": "AP8=" });
  const key = { namespace, name: "all" };
  await client.create(Memcached, { metadata: key, spec: all });
  // The last of its parts.
  await until(() => client.find(NetworkPolicy, key));
  const parts: Facts = {};
  for (
    const kind of [
      Deployment,
      Service,
      PodDisruptionBudget,
      NetworkPolicy,
      ServiceMonitor,
    ]
  ) parts[kind.kind] = await client.get<Facts>(kind, key);
  const { metadata, spec: { replicas, selector, strategy, template } } =
    parts.Deployment;
  const versioned = { ...LABELS, "app.kubernetes.io/version": "1.6.28" };
  assert.deepEqual(metadata.labels, versioned);
  assert.equal(metadata.ownerReferences[0].controller, true);
  assert.equal(replicas, 3);
  assert.deepEqual(selector, { matchLabels: LABELS });
  assert.deepEqual(strategy.rollingUpdate, {
    maxSurge: 1,
    maxUnavailable: 0,
  });
  assert.deepEqual(template.metadata.labels, versioned);
  // SHA-256 of names, keys and bytes, so that an upgrade restarts no pod.
  assert.equal(
    template.metadata.annotations["memcached.c5c3.io/secret-hash"],
    "5f4ee233c0510466393e612ce0fd665193df5d316a4b42a3c8fa9360d5397883",
  );
  const pod = template.spec;
  assert.equal(pod.terminationGracePeriodSeconds, 60);
  assert.deepEqual(pod.topologySpreadConstraints, [zone]);
  assert.equal(pod.securityContext.runAsNonRoot, true);
  assert.deepEqual(
    pod.affinity.podAntiAffinity
      .requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey,
    "kubernetes.io/hostname",
  );
  const [server, exporter] = pod.containers;
  assert.equal(
    server.args.join(" "),
    "-m 512 -c 4096 -t 16 -I 4m -v -Y /etc/memcached/sasl/password-file -Z " +
      "-o ssl_chain_cert=/etc/memcached/tls/tls.crt " +
      "-o ssl_key=/etc/memcached/tls/tls.key " +
      "-o ssl_ca_cert=/etc/memcached/tls/ca.crt -o modern",
  );
  assert.deepEqual(server.lifecycle.preStop.exec.command, ["sleep", "20"]);
  assert.deepEqual(
    server.ports.map((one: Facts) => [one.name, one.containerPort]),
    [["memcached", 11211], ["memcached-tls", 11212]],
  );
  for (const container of [server, exporter]) {
    assert.deepEqual(container.securityContext, { runAsUser: 1000 });
  }
  assert.equal(exporter.image, "custom/exporter:v2");
  assert.deepEqual(
    pod.volumes.map(({ secret }: Facts) => [
      secret.secretName,
      secret.items.map((item: Facts) => item.key).join(),
    ]),
    [["sasl-secret", "password-file"], [
      "tls-cert",
      "tls.crt,tls.key,ca.crt",
    ]],
  );
  const service = parts.Service;
  assert.deepEqual(service.metadata.annotations, { "example.org/a": "b" });
  assert.equal(service.spec.clusterIP, "None");
  assert.deepEqual(service.spec.selector, LABELS);
  assert.deepEqual(
    service.spec.ports.map((one: Facts) => [one.port, one.targetPort]),
    [[11211, "memcached"], [11212, "memcached-tls"], [9150, "metrics"]],
  );
  assert.equal(parts.PodDisruptionBudget.spec.minAvailable, 2);
  const [rule] = parts.NetworkPolicy.spec.ingress;
  assert.deepEqual(
    rule.ports.map((one: Facts) => one.port),
    [11211, 11212, 9150],
  );
  assert.deepEqual(rule.from, all.security.networkPolicy.allowedSources);
  // Further labels do not replace those of the operator, nor select pods.
  const monitor = parts.ServiceMonitor;
  assert.deepEqual(monitor.metadata.labels, { ...LABELS, team: "platform" });
  assert.deepEqual(monitor.spec, {
    selector: { matchLabels: LABELS },
    namespaceSelector: { matchNames: [namespace] },
    endpoints: [{ port: "metrics", interval: "15s", scrapeTimeout: "5s" }],
  });
  assert.equal(await client.find(HorizontalPodAutoscaler, key), undefined);
});

// The controllers of a control plane count its pods, which no kubelet starts.
const skip = process.env["CORACLE_TEST_CLUSTER"] === "kubeconfig";

test(
  "Memcached objects get the conditions of the original",
  { skip },
  async () => {
    const { client, namespace, until } = cluster;
    for (const [at, [spec, counts, reasons]] of STATUS.entries()) {
      const key = { namespace, name: `m-${at}` };
      await client.create(Memcached, { metadata: key, spec });
      await until(() => client.find(Deployment, key));
      const [readyReplicas, updatedReplicas, replicas] = counts;
      await client.status.patch(Deployment, key, {
        status: { readyReplicas, updatedReplicas, replicas },
      });
      let status: Facts;
      const found = (type: string) =>
        status?.conditions?.find((one: Facts) => one.type === type);
      await until(async () => {
        ({ status } = await client.get<Facts>(Memcached, key));
        return TYPES.map((type) => found(type)?.reason).join(" ") === reasons;
      });
      const isReady = reasons.endsWith("MemcachedReady");
      const name = `${key.name}.${namespace}:11211`;
      assert.deepEqual(status.serverList, isReady ? [name] : undefined);
      assert.equal(status.observedGeneration, 1);
      for (const { message, observedGeneration } of status.conditions) {
        assert(message !== "" && observedGeneration === 1);
      }
      assert.equal(
        found("Available").message.endsWith("(HPA-managed)"),
        "autoscaling" in spec,
      );
      // The older version shows the same.
      const old = await client.get<Facts>(Old, key);
      assert.deepEqual(old.status, status);
    }
  },
);
