import { timestamp, type UntypedObject } from "@coracle/operator/client";
import type { ApiContext } from "./api_context.ts";
import { NAMESPACES } from "./namespace_checks.ts";

/** Names of the namespaces of every cluster. */
const NAMES = ["default", "kube-node-lease", "kube-public", "kube-system"];

/** Creates the objects that every cluster has initially, in an empty store. */
export function bootstrap(
  { store, resources, clock, random }: ApiContext,
): void {
  const namespaces = resources.find("", NAMESPACES.plural);
  const services = resources.find("", "services");
  const system = () => ({
    uid: random.uid(),
    creationTimestamp: timestamp(clock.wallTime()),
  });
  if (namespaces === undefined) return;
  for (const name of NAMES) {
    store.put(namespaces, {
      kind: "Namespace",
      apiVersion: "v1",
      metadata: {
        name,
        ...system(),
        labels: { "kubernetes.io/metadata.name": name },
      },
      spec: { finalizers: ["kubernetes"] },
      status: { phase: "Active" },
    });
  }
  if (services) store.put(services, ownService(system()));
  const networks = resources.find("networking.k8s.io", "servicecidrs");
  if (networks) store.put(networks, serviceNetwork(system()));
}

/** ServiceCIDR `kubernetes`, from which Services get their cluster IPs. */
function serviceNetwork(
  system: { readonly uid: string; readonly creationTimestamp: string },
): UntypedObject {
  return {
    kind: "ServiceCIDR",
    apiVersion: "networking.k8s.io/v1",
    metadata: {
      name: "kubernetes",
      ...system,
      finalizers: ["networking.k8s.io/service-cidr-finalizer"],
    },
    spec: { cidrs: ["10.96.0.0/12"] },
    status: {
      conditions: [{
        type: "Ready",
        status: "True",
        lastTransitionTime: system.creationTimestamp,
        reason: "",
        message: "Kubernetes Service CIDR is ready",
      }],
    },
  };
}

/** Service `kubernetes`, through which pods reach the API server. */
function ownService(
  system: { readonly uid: string; readonly creationTimestamp: string },
): UntypedObject {
  return {
    kind: "Service",
    apiVersion: "v1",
    metadata: {
      name: "kubernetes",
      namespace: "default",
      ...system,
      labels: { component: "apiserver", provider: "kubernetes" },
    },
    spec: {
      ports: [{ name: "https", protocol: "TCP", port: 443, targetPort: 6443 }],
      clusterIP: "10.96.0.1",
      clusterIPs: ["10.96.0.1"],
      type: "ClusterIP",
      sessionAffinity: "None",
      ipFamilies: ["IPv4"],
      ipFamilyPolicy: "SingleStack",
      internalTrafficPolicy: "Cluster",
    },
    status: { loadBalancer: {} },
  };
}
