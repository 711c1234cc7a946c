import type { OperatorDescription } from "./operator_description.ts";

/** User and group of the container; the kubelet checks only numbers. */
const USER_ID = 1000;

/**
 * Environment that keeps the memory of the process near what its caches hold, on
 * Node, Deno and glibc; other runtimes and libraries ignore it.
 */
const ENVIRONMENT: Readonly<Record<string, string>> = {
  NODE_OPTIONS: "--max-semi-space-size=4",
  DENO_V8_FLAGS: "--max-semi-space-size=4,--heap-growing-percent=50",
  MALLOC_ARENA_MAX: "2",
  MALLOC_MMAP_THRESHOLD_: "131072",
};

const MEMORY_LIMIT = "384Mi";

/** Whether only processes in the same pod reach an address. */
export function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || host.startsWith("127.");
}

/** Deployment of operators that run in one process. */
export function operatorDeployment(
  { name, namespace, image, operators }: {
    readonly name: string;
    readonly namespace: string;
    readonly image: string;
    readonly operators: readonly OperatorDescription[];
  },
): unknown {
  const labels = { "app.kubernetes.io/name": name };
  const settings = operators.map((operator) => operator.settings);
  const isShared = settings.every(({ leaderElection, sharding }) =>
    leaderElection !== undefined || sharding !== undefined
  );
  const ports = settings.flatMap(({ probes }) =>
    probes === undefined || probes.port === 0 || isLoopback(probes.host)
      ? []
      : [probes.port]
  );
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name, namespace, labels },
    spec: {
      replicas: 1,
      // Two replicas at the same time would reconcile everything twice.
      ...!isShared && { strategy: { type: "Recreate" } },
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: podSpec(name, image, ports) },
    },
  };
}

/** Pod spec with one unprivileged container. */
function podSpec(
  name: string,
  image: string,
  ports: readonly number[],
): unknown {
  const [port] = ports;
  const get = (path: string) => ({ httpGet: { path, port } });
  return {
    serviceAccountName: name,
    securityContext: {
      runAsNonRoot: true,
      runAsUser: USER_ID,
      runAsGroup: USER_ID,
      seccompProfile: { type: "RuntimeDefault" },
    },
    containers: [{
      name: "operator",
      image,
      env: Object.entries(ENVIRONMENT).map(([name, value]) => ({
        name,
        value,
      })),
      ...port !== undefined && {
        ports: ports.map((containerPort, index) => ({
          name: index === 0 ? "probes" : `probes-${index + 1}`,
          containerPort,
        })),
        livenessProbe: get("/healthz"),
        readinessProbe: get("/readyz"),
      },
      resources: {
        requests: { cpu: "50m", memory: "96Mi" },
        limits: { memory: MEMORY_LIMIT },
      },
      securityContext: {
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ["ALL"] },
      },
    }],
  };
}
