import { CERT_MANAGER_DIRECTORY } from "@coracle/operator/internal";
import type { OperatorDescription } from "./operator_description.ts";

/** Numeric ID of the container's user and group, as the kubelet requires. */
const USER_ID = 1000;

/**
 * Environment variables that keep the memory of the process close to the size
 * of its caches, on Node, Deno and glibc; other runtimes and libraries ignore
 * them.
 */
const ENVIRONMENT: Readonly<Record<string, string>> = {
  NODE_OPTIONS: "--max-semi-space-size=4",
  DENO_V8_FLAGS: "--max-semi-space-size=4,--heap-growing-percent=50",
  MALLOC_ARENA_MAX: "2",
  // The size of slabs of caches, which would leave holes in the heap of glibc.
  MALLOC_MMAP_THRESHOLD_: "262144",
};

/** Directory of the settings of the log, which the operator reads again. */
export const LOG_DIRECTORY = "/etc/coracle/log";
const LOG_VOLUME = "coracle-log";
const CERTIFICATE_VOLUME = "coracle-webhooks";

/** Runtime of an image. */
export type ImageRuntime = "node" | "deno" | "bun";

/** Name of the API server within a cluster. */
export const API_SERVER = "kubernetes.default.svc";

/**
 * Environment of a container by default. Deno's permission for the network names
 * the API server, whose address differs from cluster to cluster.
 */
export function podEnvironment(
  runtime: ImageRuntime,
): readonly Variable[] {
  const host = { name: "KUBERNETES_SERVICE_HOST", value: API_SERVER };
  return [...runtime === "deno" ? [host] : [], ...POD_SETTINGS.env];
}

/** Name of the ConfigMap with the settings of the log; there may be none. */
export function logName(name: string): string {
  return `${name}-log`;
}

const MEMORY_LIMIT = "384Mi";

/** Variable of the environment. */
export interface Variable {
  readonly name: string;
  readonly value: string;
}

export type PodSettings =
  & Readonly<
    Record<"podSecurityContext" | "resources" | "securityContext", unknown>
  >
  & { readonly env: readonly Variable[] };

/** Settings of the pod that a deployment may change. */
export const POD_SETTINGS: PodSettings = {
  podSecurityContext: {
    runAsNonRoot: true,
    runAsUser: USER_ID,
    runAsGroup: USER_ID,
    seccompProfile: { type: "RuntimeDefault" },
  },
  env: Object.entries(ENVIRONMENT).map(([name, value]) => ({ name, value })),
  resources: {
    requests: { cpu: "50m", memory: "96Mi" },
    limits: { memory: MEMORY_LIMIT },
  },
  securityContext: {
    allowPrivilegeEscalation: false,
    readOnlyRootFilesystem: true,
    capabilities: { drop: ["ALL"] },
  },
};

/** Whether only processes in the same pod reach an address. */
export function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || host.startsWith("127.");
}

/** Label that selects the pods of an operator. */
export function operatorLabels(name: string): Readonly<Record<string, string>> {
  return { "app.kubernetes.io/name": name };
}

/** Whether several replicas of the operators divide the work or elect a leader. */
export function isShared(operators: readonly OperatorDescription[]): boolean {
  return operators.every(({ settings: { leaderElection, sharding } }) =>
    leaderElection !== undefined || sharding !== undefined
  );
}

/** Port of the container, by its name. */
export interface ContainerPort {
  readonly name: string;
  readonly containerPort: number;
}

function named(name: string, ports: readonly number[]): ContainerPort[] {
  return ports.map((containerPort, index) => ({
    name: index === 0 ? name : `${name}-${index + 1}`,
    containerPort,
  }));
}

/** Whether other pods reach a port that is listened on. */
function isReached(
  listens: { readonly port: number; readonly host: string },
): boolean {
  return listens.port !== 0 && !isLoopback(listens.host);
}

/** Ports of the probes that the kubelet reaches. */
function probePorts(
  operators: readonly OperatorDescription[],
): readonly ContainerPort[] {
  const probes = operators.flatMap(({ settings }) => settings.probes ?? []);
  return named("probes", probes.filter(isReached).map(({ port }) => port));
}

/** Port of the metrics of an operator. */
export interface MetricsPort {
  readonly name: string;
  /** Whether the port has HTTPS, and asks for a token. */
  readonly isSecure: boolean;
}

/** Ports of the secure metrics that other pods reach. */
function securePorts(
  operators: readonly OperatorDescription[],
): readonly ContainerPort[] {
  const secure = operators.flatMap(({ settings: { probes } }) =>
    probes?.metrics.secure ? probes.metrics : []
  );
  return named("metrics", secure.filter(isReached).map(({ port }) => port));
}

/** Ports from which metrics are read. */
export function metricsPorts(
  operators: readonly OperatorDescription[],
): readonly MetricsPort[] {
  const isSecure = ({ settings: { probes } }: OperatorDescription) =>
    probes?.metrics.secure === true;
  const plain = probePorts(operators.filter((one) => !isSecure(one)));
  const all = probePorts(operators);
  return [
    ...all.filter(({ containerPort }) =>
      plain.some((one) => one.containerPort === containerPort)
    ).map(({ name }) => ({ name, isSecure: false })),
    ...securePorts(operators).map(({ name }) => ({ name, isSecure: true })),
  ];
}

/** All ports of the container. */
function containerPorts(
  operators: readonly OperatorDescription[],
): readonly ContainerPort[] {
  return [
    ...probePorts(operators),
    ...securePorts(operators),
    ...webhookPorts(operators),
    ...sourcePorts(operators),
  ];
}

/** Ports of the webhooks that a Service leads to. */
export function webhookPorts(
  operators: readonly OperatorDescription[],
): readonly ContainerPort[] {
  const ports = operators.flatMap(({ settings: { webhooks } }) =>
    webhooks === undefined || "serve" in webhooks || !webhooks.service
      ? []
      : [webhooks.port]
  );
  return named("webhooks", ports);
}

/** Volumes with the certificates that cert-manager issues for webhooks. */
function certificateVolumes(
  operators: readonly OperatorDescription[],
  namespace: string,
): readonly unknown[] {
  return operators.flatMap(({ settings: { webhooks } }) => {
    if (webhooks === undefined || "serve" in webhooks) return [];
    const { certificates, service, name } = webhooks;
    if (certificates !== "cert-manager" || service === undefined) return [];
    const secretName = name ??
      `${service.name}.${service.namespace ?? namespace}`;
    return [{ name: CERTIFICATE_VOLUME, secret: { secretName } }];
  }).slice(0, 1);
}

/** Ports of event sources that a Service leads to. */
export function sourcePorts(
  operators: readonly OperatorDescription[],
): readonly ContainerPort[] {
  const listens = operators.flatMap(({ controllers }) =>
    controllers.flatMap(({ listens = [] }) => listens)
  );
  return named("sources", listens.filter(isReached).map(({ port }) => port));
}

/** Replicas of a first deployment: with a leader, another stands by. */
export function replicasOf(operators: readonly OperatorDescription[]): number {
  return isShared(operators) ? 2 : 1;
}

/** Ports and probes of the container; empty without ports. */
function containerProbes(
  operators: readonly OperatorDescription[],
): Readonly<Record<string, unknown>> {
  const ports = containerPorts(operators);
  const [first] = probePorts(operators);
  if (first === undefined) return ports.length > 0 ? { ports } : {};
  const get = (path: string) => ({
    httpGet: { path, port: first.containerPort },
  });
  return {
    ports,
    livenessProbe: get("/healthz"),
    readinessProbe: get("/readyz"),
  };
}

/** Time for the end of a stop, after the grace period of the runs. */
const STOP_SECONDS = 20;
/** Time that the kubelet gives a pod by default. */
const DEFAULT_SECONDS = 30;

/** Time until the kubelet kills the pod, if the default is too short for a stop. */
function podGrace(
  operators: readonly OperatorDescription[],
): { readonly terminationGracePeriodSeconds?: number } {
  const graces = operators.map(({ settings }) => settings.shutdownGrace ?? 0);
  const seconds = Math.ceil(Math.max(...graces) / 1_000) + STOP_SECONDS;
  return seconds > DEFAULT_SECONDS
    ? { terminationGracePeriodSeconds: seconds }
    : {};
}

/** Deployment of operators that run in one process. */
export function operatorDeployment(
  { name, namespace, image, operators, ...more }: {
    readonly name: string;
    readonly namespace: string;
    readonly image: string;
    readonly operators: readonly OperatorDescription[];
    readonly replicas?: unknown;
    readonly account?: string;
    /** Settings of the pod; the defaults if absent. */
    readonly settings?: PodSettings;
    /** Further fields of the pod's metadata, its spec and its container. */
    readonly metadata?: object;
    readonly pod?: object;
    readonly container?: object;
    readonly volumes?: readonly unknown[];
    readonly volumeMounts?: readonly unknown[];
  },
): unknown {
  const labels = operatorLabels(name);
  const certificates = certificateVolumes(operators, namespace);
  const { podSecurityContext, env, resources, securityContext } =
    more.settings ?? POD_SETTINGS;
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name, namespace, labels },
    spec: {
      replicas: more.replicas ?? replicasOf(operators),
      // Two replicas at the same time would reconcile everything twice.
      ...!isShared(operators) && { strategy: { type: "Recreate" } },
      selector: { matchLabels: labels },
      template: {
        metadata: { labels, ...more.metadata },
        spec: {
          serviceAccountName: more.account ?? name,
          securityContext: podSecurityContext,
          ...podGrace(operators),
          ...more.pod,
          volumes: [
            {
              name: LOG_VOLUME,
              configMap: { name: logName(name), optional: true },
            },
            ...certificates,
            ...more.volumes ?? [],
          ],
          containers: [{
            name: "operator",
            image,
            ...more.container,
            env: [
              { name: "CORACLE_OPERATOR_LOG_DIRECTORY", value: LOG_DIRECTORY },
              ...env,
            ],
            volumeMounts: [
              { name: LOG_VOLUME, mountPath: LOG_DIRECTORY, readOnly: true },
              ...certificates.map(() => ({
                name: CERTIFICATE_VOLUME,
                mountPath: CERT_MANAGER_DIRECTORY,
                readOnly: true,
              })),
              ...more.volumeMounts ?? [],
            ],
            ...containerProbes(operators),
            resources,
            securityContext,
          }],
        },
      },
    },
  };
}
