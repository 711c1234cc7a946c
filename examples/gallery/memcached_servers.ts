/**
 * Memcached operator of C5C3 with all of its parts, ported from Go: two versions, a
 * webhook that fills in defaults and validates, six kinds of objects, and pods that
 * are replaced when a Secret changes.
 *
 *     apiVersion: memcached.c5c3.io/v1beta1
 *     kind: Memcached
 *     metadata: { name: sessions }
 *     spec: { replicas: 3, monitoring: { enabled: true, serviceMonitor: {} } }
 */
import {
  allow,
  defineKind,
  deny,
  type Kind,
  type KubernetesObject,
  type ObjectOf,
  Operator,
  type OperatorOptions,
  type Reconciler,
  setStatus,
  watch,
} from "@coracle/operator";
import type { ControllerAdmission } from "@coracle/operator/core";
import {
  type Container,
  Deployment,
  HorizontalPodAutoscaler,
  type HorizontalPodAutoscalerBehavior,
  type IntOrString,
  type MetricSpec,
  NetworkPolicy,
  type NetworkPolicyPeer,
  PodDisruptionBudget,
  type PodSecurityContext,
  type ResourceRequirements,
  schemaOf,
  Secret,
  type SecurityContext,
  Service,
  type TopologySpreadConstraint,
} from "@coracle/operator/kinds";
import { setCondition } from "@coracle/operator/workflows";
import { createHash } from "node:crypto";
import { z } from "zod";

const GROUP = "memcached.c5c3.io";
const PORT = 11211;
const TLS_PORT = 11212;
const METRICS_PORT = 9150;
const MOUNTS = "/etc/memcached";
const RESTART = `${GROUP}/restart-trigger`;

const enabled = z.boolean().optional();
const intOrString = () =>
  z.custom<IntOrString>().meta({ "x-kubernetes-int-or-string": true })
    .optional();
const secretRef = z.object({ name: z.string().optional() }).optional();
const resources = z.custom<ResourceRequirements>()
  .meta(schemaOf("ResourceRequirements")).optional();

const spec = z.object({
  replicas: z.int().min(0).max(64).optional(),
  image: z.string().default("memcached:1.6"),
  resources,
  memcached: z.object({
    maxMemoryMB: z.int().min(16).max(65_536).default(64),
    maxConnections: z.int().min(1).max(65_536).default(1_024),
    threads: z.int().min(1).max(128).default(4),
    maxItemSize: z.string().regex(/^[0-9]+(k|m)$/).default("1m"),
    verbosity: z.int().min(0).max(2).default(0),
    extraArgs: z.array(z.string()).optional(),
  }).prefault({}),
  highAvailability: z.object({
    antiAffinityPreset: z.enum(["soft", "hard"]).default("soft"),
    topologySpreadConstraints: z.array(
      z.custom<TopologySpreadConstraint>()
        .meta(schemaOf("TopologySpreadConstraint")),
    ).optional(),
    podDisruptionBudget: z.object({
      enabled,
      minAvailable: intOrString(),
      maxUnavailable: intOrString(),
    }).optional(),
    gracefulShutdown: z.object({
      enabled,
      preStopDelaySeconds: z.int().min(1).max(300).default(10),
      terminationGracePeriodSeconds: z.int().min(1).max(600).default(30),
    }).optional(),
  }).optional(),
  monitoring: z.object({
    enabled,
    exporterImage: z.string().default("prom/memcached-exporter:v0.15.4"),
    exporterResources: resources,
    serviceMonitor: z.object({
      additionalLabels: z.record(z.string(), z.string()).optional(),
      interval: z.string().default("30s"),
      scrapeTimeout: z.string().default("10s"),
    }).optional(),
  }).optional(),
  security: z.object({
    podSecurityContext: z.custom<PodSecurityContext>()
      .meta(schemaOf("PodSecurityContext")).optional(),
    containerSecurityContext: z.custom<SecurityContext>()
      .meta(schemaOf("SecurityContext")).optional(),
    sasl: z.object({ enabled, credentialsSecretRef: secretRef }).optional(),
    tls: z.object({
      enabled,
      certificateSecretRef: secretRef,
      enableClientCert: z.boolean().optional(),
    }).optional(),
    networkPolicy: z.object({
      enabled,
      allowedSources: z.array(
        z.custom<NetworkPolicyPeer>().meta(schemaOf("NetworkPolicyPeer")),
      ).optional(),
    }).optional(),
  }).optional(),
  autoscaling: z.object({
    enabled,
    minReplicas: z.int().min(1).optional(),
    maxReplicas: z.int().min(1).optional(),
    metrics: z.array(z.custom<MetricSpec>().meta(schemaOf("MetricSpec")))
      .optional(),
    behavior: z.custom<HorizontalPodAutoscalerBehavior>()
      .meta(schemaOf("HorizontalPodAutoscalerBehavior")).optional(),
  }).optional(),
  service: z.object({
    annotations: z.record(z.string(), z.string()).optional(),
  }).optional(),
});

const condition = z.object({
  type: z.string(),
  status: z.enum(["True", "False", "Unknown"]),
  reason: z.string(),
  message: z.string(),
  lastTransitionTime: z.iso.datetime(),
  observedGeneration: z.int().optional(),
});
const status = z.object({
  conditions: z.array(condition).meta({
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["type"],
  }),
  readyReplicas: z.int(),
  observedGeneration: z.int(),
  serverList: z.array(z.string()),
}).partial();

const Memcached = defineKind({
  group: GROUP,
  version: "v1beta1",
  kind: "Memcached",
  plural: "memcacheds",
  spec,
  status,
  printerColumns: [
    { name: "Replicas", type: "integer", jsonPath: ".spec.replicas" },
    { name: "Ready", type: "integer", jsonPath: ".status.readyReplicas" },
    { name: "Age", type: "date", jsonPath: ".metadata.creationTimestamp" },
  ],
  // The fields of both versions are the same.
  versions: [{
    name: "v1alpha1",
    spec,
    status,
    up: ({ spec }) => ({ spec }),
    down: ({ spec }) => ({ spec }),
  }],
});
type Memcached = ObjectOf<typeof Memcached>;
type Spec = Memcached["spec"];

const ServiceMonitor = defineKind({
  group: "monitoring.coreos.com",
  version: "v1",
  kind: "ServiceMonitor",
  spec: z.looseObject({}),
});

const FACTORS: Readonly<Record<string, number>> = {
  n: 1e-9,
  u: 1e-6,
  m: 1e-3,
  "": 1,
  ...Object.fromEntries(
    ["k", "M", "G", "T", "P", "E"].map((unit, at) => [unit, 1e3 ** (at + 1)]),
  ),
  ...Object.fromEntries(
    ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"]
      .map((unit, at) => [unit, 1024 ** (at + 1)]),
  ),
};

function bytesOf(quantity: IntOrString): number {
  const [, number, unit] = /^([\d.]+(?:[eE][+-]?\d+)?)(\w*)$/
    .exec(String(quantity)) ?? [];
  return Number(number) * (FACTORS[unit ?? ""] ?? NaN);
}

function usesCpu({ type, resource }: MetricSpec): boolean {
  return type === "Resource" && resource?.name === "cpu" &&
    resource.target.type === "Utilization";
}

/** What is wrong with a spec: pairs of a field below the spec and a message. */
function* mistakesOf(spec: Spec): Iterable<readonly [string, string]> {
  const memory = spec.resources?.limits?.["memory"];
  const least = spec.memcached.maxMemoryMB + 32;
  if (memory !== undefined && bytesOf(memory) < least * 1024 ** 2) {
    yield ["resources.limits.memory", `memory must be at least ${least}Mi`];
  }
  const { podDisruptionBudget: budget, gracefulShutdown: shutdown } =
    spec.highAvailability ?? {};
  if (budget?.enabled) {
    const path = "highAvailability.podDisruptionBudget";
    const { minAvailable: min, maxUnavailable: max } = budget;
    if (min !== undefined && max !== undefined) {
      yield [path, "minAvailable and maxUnavailable are mutually exclusive"];
    } else if (min === undefined && max === undefined) {
      yield [path, "must have one of minAvailable and maxUnavailable"];
    } else if (typeof min === "number" && min >= (spec.replicas ?? Infinity)) {
      yield [
        `${path}.minAvailable`,
        `${min} must be less than ${spec.replicas}`,
      ];
    }
  }
  if (shutdown?.enabled) {
    const { preStopDelaySeconds: delay } = shutdown;
    if (shutdown.terminationGracePeriodSeconds <= delay) {
      yield [
        "highAvailability.gracefulShutdown.terminationGracePeriodSeconds",
        `must be more than ${delay}`,
      ];
    }
  }
  const { sasl, tls } = spec.security ?? {};
  if (sasl?.enabled && !sasl.credentialsSecretRef?.name) {
    yield ["security.sasl.credentialsSecretRef.name", "is required with SASL"];
  }
  if (tls?.enabled && !tls.certificateSecretRef?.name) {
    yield ["security.tls.certificateSecretRef.name", "is required with TLS"];
  }
  if (!spec.autoscaling?.enabled) return;
  const { minReplicas: min = 0, maxReplicas: max = 0, metrics } =
    spec.autoscaling;
  if (spec.replicas !== undefined) {
    yield ["replicas", "autoscaling and replicas are mutually exclusive"];
  }
  if (min > max) {
    yield ["autoscaling.minReplicas", `${min} must be at most ${max}`];
  }
  if (
    metrics?.some(usesCpu) && spec.resources?.requests?.["cpu"] === undefined
  ) {
    yield ["resources.requests.cpu", "is required to scale by CPU utilization"];
  }
}

const admission: ControllerAdmission<Memcached> = {
  failurePolicy: "Fail",
  default(memcached) {
    const { spec } = memcached;
    const { autoscaling, memcached: config } = spec;
    // The schema has the defaults of what is left out; 0 and "" mean the same.
    config.maxMemoryMB ||= 64;
    config.maxConnections ||= 1_024;
    config.threads ||= 4;
    config.maxItemSize ||= "1m";
    const monitor = spec.monitoring?.serviceMonitor;
    if (monitor) {
      monitor.interval ||= "30s";
      monitor.scrapeTimeout ||= "10s";
    }
    if (!autoscaling?.enabled) {
      spec.replicas ??= 1;
      return memcached;
    }
    if (!autoscaling.metrics?.length) {
      const target = { type: "Utilization", averageUtilization: 80 };
      autoscaling.metrics = [
        { type: "Resource", resource: { name: "cpu", target } },
      ];
    }
    autoscaling.behavior ??= { scaleDown: { stabilizationWindowSeconds: 300 } };
    return memcached;
  },
  validate({ spec }) {
    const causes = [...mistakesOf(spec)].map(([field, message]) => ({
      field: `spec.${field}`,
      message,
    }));
    if (causes.length === 0) return allow();
    return deny("the spec contradicts itself", { causes });
  },
};

const labelsOf = (instance: string) => ({
  "app.kubernetes.io/name": "memcached",
  "app.kubernetes.io/instance": instance,
  "app.kubernetes.io/managed-by": "memcached-operator",
});

/** Names and ports that are served. */
function portsOf({ security, monitoring }: Spec) {
  return [
    { name: "memcached", port: PORT },
    ...security?.tls?.enabled
      ? [{ name: "memcached-tls", port: TLS_PORT }]
      : [],
    ...monitoring?.enabled ? [{ name: "metrics", port: METRICS_PORT }] : [],
  ];
}

/** Secrets that are mounted, by the name of the volume. */
function mountsOf({ security: { sasl, tls } = {} }: Spec) {
  const certificate = ["tls.crt", "tls.key"];
  if (tls?.enableClientCert) certificate.push("ca.crt");
  return [
    {
      name: "sasl-credentials",
      path: `${MOUNTS}/sasl`,
      secret: sasl?.enabled && sasl.credentialsSecretRef?.name,
      keys: ["password-file"],
    },
    {
      name: "tls-certificates",
      path: `${MOUNTS}/tls`,
      secret: tls?.enabled && tls.certificateSecretRef?.name,
      keys: certificate,
    },
  ].flatMap((one) => one.secret ? [{ ...one, secret: one.secret }] : []);
}

function argumentsOf({ memcached, security: { sasl, tls } = {} }: Spec) {
  const { maxMemoryMB, maxConnections, threads, maxItemSize } = memcached;
  const option = (name: string, file: string) => [
    "-o",
    `${name}=${MOUNTS}/tls/${file}`,
  ];
  return [
    ...["-m", `${maxMemoryMB}`, "-c", `${maxConnections}`],
    ...["-t", `${threads}`, "-I", maxItemSize],
    ...memcached.verbosity > 0 ? [`-${"v".repeat(memcached.verbosity)}`] : [],
    ...sasl?.enabled ? ["-Y", `${MOUNTS}/sasl/password-file`] : [],
    ...tls?.enabled
      ? [
        "-Z",
        ...option("ssl_chain_cert", "tls.crt"),
        ...option("ssl_key", "tls.key"),
        ...tls.enableClientCert ? option("ssl_ca_cert", "ca.crt") : [],
      ]
      : [],
    ...memcached.extraArgs ?? [],
  ];
}

function affinityOf(name: string, preset: "soft" | "hard") {
  const { "app.kubernetes.io/managed-by": _, ...matchLabels } = labelsOf(name);
  const term = {
    topologyKey: "kubernetes.io/hostname",
    labelSelector: { matchLabels },
  };
  const podAntiAffinity = preset === "hard"
    ? { requiredDuringSchedulingIgnoredDuringExecution: [term] }
    : {
      preferredDuringSchedulingIgnoredDuringExecution: [
        { weight: 100, podAffinityTerm: term },
      ],
    };
  return { podAntiAffinity };
}

function deploymentOf(
  { metadata: { name, annotations = {} }, spec }: Memcached,
  secretHash: string | undefined,
) {
  const { highAvailability: available, monitoring, security } = spec;
  const labels = labelsOf(name);
  const version = spec.image.includes("@") ? undefined : /:([^:]*)$/
    .exec(spec.image)?.[1];
  const versioned = {
    ...labels,
    ...version && { "app.kubernetes.io/version": version },
  };
  const mounts = mountsOf(spec);
  const ports = portsOf(spec).map(({ name, port }) => ({
    name,
    containerPort: port,
  }));
  const tcpSocket = { port: "memcached" };
  const shutdown = available?.gracefulShutdown?.enabled
    ? available.gracefulShutdown
    : undefined;
  const securityContext = security?.containerSecurityContext;
  const containers: Container[] = [{
    name: "memcached",
    image: spec.image,
    args: argumentsOf(spec),
    resources: spec.resources,
    securityContext,
    ports: ports.filter(({ name }) => name !== "metrics"),
    volumeMounts: mounts.map(({ name, path }) => ({
      name,
      mountPath: path,
      readOnly: true,
    })),
    livenessProbe: { tcpSocket, initialDelaySeconds: 10, periodSeconds: 10 },
    readinessProbe: { tcpSocket, initialDelaySeconds: 5, periodSeconds: 5 },
    lifecycle: shutdown && {
      preStop: {
        exec: { command: ["sleep", `${shutdown.preStopDelaySeconds}`] },
      },
    },
  }];
  if (monitoring?.enabled) {
    containers.push({
      name: "exporter",
      image: monitoring.exporterImage,
      resources: monitoring.exporterResources,
      securityContext,
      ports: ports.filter(({ name }) => name === "metrics"),
    });
  }
  return {
    metadata: { name, labels: versioned },
    spec: {
      // An autoscaler has the replicas to itself.
      replicas: spec.autoscaling?.enabled ? undefined : spec.replicas ?? 1,
      selector: { matchLabels: labels },
      strategy: {
        type: "RollingUpdate" as const,
        rollingUpdate: { maxSurge: 1, maxUnavailable: 0 },
      },
      template: {
        metadata: {
          labels: versioned,
          annotations: {
            ...secretHash && { [`${GROUP}/secret-hash`]: secretHash },
            ...annotations[RESTART] && { [RESTART]: annotations[RESTART] },
          },
        },
        spec: {
          affinity: available && affinityOf(name, available.antiAffinityPreset),
          topologySpreadConstraints: available?.topologySpreadConstraints,
          terminationGracePeriodSeconds: shutdown
            ?.terminationGracePeriodSeconds,
          securityContext: security?.podSecurityContext,
          containers,
          volumes: mounts.map(({ name, secret, keys }) => ({
            name,
            secret: {
              secretName: secret,
              items: keys.map((key) => ({ key, path: key })),
            },
          })),
        },
      },
    },
  };
}

function hashOf(secrets: readonly Secret[]): string | undefined {
  const hash = createHash("sha256");
  let isEmpty = true;
  for (const { metadata: { name }, data = {} } of secrets) {
    for (const key of Object.keys(data).toSorted()) {
      isEmpty = false;
      hash.update(`${name}\0${key}\0`).update(data[key] ?? "", "base64");
    }
  }
  return isEmpty ? undefined : hash.digest("hex");
}

/** The four conditions, computed from the Deployment. */
function conditionsOf(
  { spec, status, metadata: { generation = 0 } }: Memcached,
  deployment: Deployment,
  missing: readonly string[],
  now: number,
) {
  const { replicas: total = 0, readyReplicas: ready = 0, updatedReplicas = 0 } =
    deployment.status ?? {};
  const desired = spec.autoscaling?.enabled ? total : spec.replicas ?? 1;
  const progressing = updatedReplicas < desired || total !== desired;
  const degraded = missing.length > 0 || ready < desired;
  const isReady = desired > 0 && ready === desired;
  const message = `${ready} of ${desired} replicas are ready`;
  const rows = [
    [
      "Available",
      ready > 0,
      ready > 0 ? "Available" : "Unavailable",
      spec.autoscaling?.enabled ? `${message} (HPA-managed)` : message,
    ],
    [
      "Progressing",
      progressing,
      progressing ? "Progressing" : "ProgressingComplete",
      `${updatedReplicas} of ${desired} replicas are updated`,
    ],
    [
      "Degraded",
      degraded,
      missing.length > 0
        ? "SecretNotFound"
        : degraded
        ? "Degraded"
        : "NotDegraded",
      missing.length > 0 ? `Secrets not found: ${missing.join(", ")}` : message,
    ],
    [
      "Ready",
      isReady,
      isReady ? "MemcachedReady" : "MemcachedNotReady",
      message,
    ],
  ] as const;
  let conditions = status?.conditions ?? [];
  for (const [type, is, reason, message] of rows) {
    conditions = setCondition(
      conditions,
      { type, status: is ? "True" : "False", reason, message },
      { now, generation, transition: "status" },
    ) as typeof conditions;
  }
  return { conditions, isReady, ready };
}

const reconciler: Reconciler<Memcached> = {
  async reconcile(memcached, ctx) {
    const { metadata: { name, namespace = "" }, spec } = memcached;
    const labels = labelsOf(name);
    const selector = { matchLabels: labels };
    const wanted = [...new Set(mountsOf(spec).map(({ secret }) => secret))]
      .toSorted();
    const found = await Promise.all(wanted.map((one) => ctx.get(Secret, one)));
    const secrets = found.filter((one) => one !== undefined);
    const missing = wanted.filter((_, at) => found[at] === undefined);

    /** Applies an object, or deletes it if it is not wanted; its changes are Events. */
    const put = async <O extends KubernetesObject>(
      kind: Kind<O>,
      object: Parameters<typeof ctx.apply<O>>[1] | undefined | false,
    ) => {
      const before = await ctx.get(kind, name);
      if (!object) {
        if (before) await ctx.delete(kind, name);
        return;
      }
      const after = await ctx.apply(kind, object);
      if (!before) ctx.events.normal("Created", `Created ${kind.kind} ${name}`);
      else if (before.metadata.generation !== after.metadata.generation) {
        ctx.events.normal("Updated", `Updated ${kind.kind} ${name}`);
      }
      return after;
    };

    const deployment = await put(
      Deployment,
      deploymentOf(memcached, hashOf(secrets)),
    ) as Deployment;
    const { autoscaling, highAvailability, monitoring, security } = spec;
    await put(
      HorizontalPodAutoscaler,
      autoscaling?.enabled && {
        metadata: { name, labels },
        spec: {
          scaleTargetRef: { apiVersion: "apps/v1", kind: "Deployment", name },
          minReplicas: autoscaling.minReplicas,
          maxReplicas: autoscaling.maxReplicas ?? 1,
          metrics: autoscaling.metrics,
          behavior: autoscaling.behavior,
        },
      },
    );
    const ports = portsOf(spec);
    await put(Service, {
      metadata: { name, labels, annotations: spec.service?.annotations },
      spec: {
        clusterIP: "None",
        selector: labels,
        ports: ports.map((one) => ({ ...one, targetPort: one.name })),
      },
    });
    const budget = highAvailability?.podDisruptionBudget;
    const { minAvailable, maxUnavailable } = budget ?? {};
    await put(
      PodDisruptionBudget,
      budget?.enabled && {
        metadata: { name, labels },
        spec: { selector, minAvailable, maxUnavailable },
      },
    );
    const monitor = monitoring?.enabled ? monitoring.serviceMonitor : undefined;
    await put(
      ServiceMonitor,
      monitor && {
        metadata: { name, labels: { ...monitor.additionalLabels, ...labels } },
        spec: {
          selector,
          namespaceSelector: { matchNames: [namespace] },
          endpoints: [{
            port: "metrics",
            interval: monitor.interval,
            scrapeTimeout: monitor.scrapeTimeout,
          }],
        },
      },
    );
    const policy = security?.networkPolicy;
    await put(
      NetworkPolicy,
      policy?.enabled && {
        metadata: { name, labels },
        spec: {
          podSelector: selector,
          policyTypes: ["Ingress"],
          ingress: [{
            ports: ports.map(({ port }) => ({
              port,
              protocol: "TCP" as const,
            })),
            from: policy.allowedSources?.length
              ? policy.allowedSources
              : undefined,
          }],
        },
      },
    );
    const { conditions, isReady, ready } = conditionsOf(
      memcached,
      deployment,
      missing,
      ctx.clock.wallTime(),
    );
    return setStatus({
      conditions,
      readyReplicas: ready,
      serverList: isReady ? [`${name}.${namespace}:${PORT}`] : undefined,
    });
  },
};

export function operator(options: OperatorOptions = {}): Operator {
  const operator = new Operator({
    leaderElection: { name: "memcached-operator" },
    probes: { port: 8081, metrics: { secure: true } },
    webhooks: { service: { name: "memcached-operator" } },
    ...options,
  });
  operator.register(Memcached, reconciler, {
    owns: [
      Deployment,
      HorizontalPodAutoscaler,
      Service,
      PodDisruptionBudget,
      NetworkPolicy,
      ServiceMonitor,
    ],
    watches: [
      watch<Memcached, Secret>(Secret, {
        references: ({ metadata: { namespace }, spec }) =>
          mountsOf(spec).map(({ secret }) => ({ namespace, name: secret })),
      }),
    ],
    requestAnnotations: [RESTART],
    install: true,
    migrateStorage: true,
    admission,
  });
  return operator;
}

if (import.meta.main) await operator().run();
