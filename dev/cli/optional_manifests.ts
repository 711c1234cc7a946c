import type { RbacManifest } from "../testing/rbac.ts";
import {
  type ContainerPort,
  type MetricsPort,
  operatorLabels,
} from "./operator_deployment.ts";

/** Name, namespace, ports and settings of the objects beside a Deployment. */
interface Place {
  readonly name: string;
  readonly namespace: string;
  /** Ports of the pods with probes and metrics. */
  readonly ports: readonly { readonly name: string }[];
  /** Ports that others call: webhooks and event sources. */
  readonly called?: readonly { readonly name: string }[];
  /** Number of pods that a drain may evict at the same time; 1 by default. */
  readonly maxUnavailable?: unknown;
  /** Interval between two scrapes; 30 seconds by default. */
  readonly interval?: unknown;
  /** How Prometheus verifies a port with HTTPS; not at all by default. */
  readonly tlsConfig?: unknown;
  /** Further labels of the ServiceMonitor. */
  readonly monitorLabels?: object;
  /** Who may read the metrics; {@linkcode SCRAPERS} by default. */
  readonly metricsFrom?: unknown;
  /** Rules for outgoing connections; {@linkcode EGRESS} by default. */
  readonly egress?: unknown;
}

/** Default of the TLS of a ServiceMonitor: processes make their certificate themselves. */
export const MONITOR_TLS = { insecureSkipVerify: true };

/** File with the token of Prometheus. */
const TOKEN_FILE = "/var/run/secrets/kubernetes.io/serviceaccount/token";

/** ClusterRole for those who read secure metrics, such as Prometheus. */
export function metricsReader(
  { name }: Pick<Place, "name">,
): RbacManifest {
  return {
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind: "ClusterRole",
    metadata: { name: `${name}-metrics-reader` },
    rules: [{ nonResourceURLs: ["/metrics"], verbs: ["get"] }],
  };
}

/** Service of the event sources that are called from outside; empty without any. */
export function sourceService(
  { name, namespace, ports }: {
    readonly name: string;
    readonly namespace: string;
    readonly ports: readonly ContainerPort[];
  },
): readonly unknown[] {
  const labels = operatorLabels(name);
  return ports.length === 0 ? [] : [{
    apiVersion: "v1",
    kind: "Service",
    metadata: { name: `${name.slice(0, 55)}-sources`, namespace, labels },
    spec: {
      selector: labels,
      ports: ports.map(({ name, containerPort }) => ({
        name,
        port: containerPort,
        targetPort: name,
      })),
    },
  }];
}

/** Service of the ports of an operator, for Prometheus to find its pods. */
export function metricsService({ name, namespace, ports }: Place): unknown {
  const labels = operatorLabels(name);
  return {
    apiVersion: "v1",
    kind: "Service",
    metadata: { name, namespace, labels },
    spec: {
      // One address for each pod: a scrape is of one replica.
      clusterIP: "None",
      selector: labels,
      ports: ports.map(({ name }, index) => ({
        name,
        port: 8080 + index,
        targetPort: name,
      })),
    },
  };
}

/** ServiceMonitor of the Prometheus operator. */
export function serviceMonitor(
  {
    name,
    namespace,
    ports,
    interval = "30s",
    tlsConfig = MONITOR_TLS,
    monitorLabels,
  }: Omit<Place, "ports"> & { readonly ports: readonly MetricsPort[] },
): unknown {
  const labels = operatorLabels(name);
  return {
    apiVersion: "monitoring.coreos.com/v1",
    kind: "ServiceMonitor",
    metadata: { name, namespace, labels: { ...labels, ...monitorLabels } },
    spec: {
      selector: { matchLabels: labels },
      endpoints: ports.map(({ name: port, isSecure }) => ({
        port,
        interval,
        ...isSecure && {
          scheme: "https",
          bearerTokenFile: TOKEN_FILE,
          tlsConfig,
        },
      })),
    },
  };
}

/** PodDisruptionBudget that lets a drain evict only one replica at a time. */
export function disruptionBudget(
  { name, namespace, maxUnavailable = 1 }: Place,
): unknown {
  const labels = operatorLabels(name);
  return {
    apiVersion: "policy/v1",
    kind: "PodDisruptionBudget",
    metadata: { name, namespace, labels },
    spec: { maxUnavailable, selector: { matchLabels: labels } },
  };
}

/**
 * Peers that may read the metrics: pods of namespaces with this label, as in the
 * manifests of kubebuilder. The kubelet reaches the probes of its node's pods anyway.
 */
export const SCRAPERS: readonly unknown[] = [
  { namespaceSelector: { matchLabels: { metrics: "enabled" } } },
];

/** Connections of an operator, besides those of the reconcilers. */
export const EGRESS: readonly unknown[] = [
  {
    ports: [{ port: 53, protocol: "UDP" }, { port: 53, protocol: "TCP" }],
  },
  // The API server, by its Service and by its usual port.
  {
    ports: [{ port: 443, protocol: "TCP" }, { port: 6443, protocol: "TCP" }],
  },
];

/** NetworkPolicy for metrics, webhooks, name resolution and the API server. */
export function networkPolicy(
  { name, namespace, ports, called = [], ...peers }: Place,
): unknown {
  const { metricsFrom = SCRAPERS, egress = EGRESS } = peers;
  const labels = operatorLabels(name);
  const to = (reached: Place["ports"]) =>
    reached.map(({ name: port }) => ({ port, protocol: "TCP" }));
  return {
    apiVersion: "networking.k8s.io/v1",
    kind: "NetworkPolicy",
    metadata: { name, namespace, labels },
    spec: {
      podSelector: { matchLabels: labels },
      policyTypes: ["Ingress", "Egress"],
      ingress: [
        ...ports.length > 0 ? [{ ports: to(ports), from: metricsFrom }] : [],
        // The API server, and callers of a source, may be anywhere.
        ...called.length > 0 ? [{ ports: to(called) }] : [],
      ],
      egress,
    },
  };
}
