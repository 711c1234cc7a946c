import type {
  Container,
  ContainerPort,
  EmptyDirVolumeSource,
  Endpoints,
  HostPathVolumeSource,
  HTTPGetAction,
  LimitRangeItem,
  Namespace,
  NamespaceStatus,
  NodeStatus,
  ObjectFieldSelector,
  PersistentVolume,
  PersistentVolumeClaim,
  PersistentVolumeClaimSpec,
  Pod,
  PodSpec,
  Probe,
  ReplicationController,
  ResourceRequirements,
  Secret,
  SecretVolumeSource,
  Service,
  ServiceAccountTokenProjection,
  Volume,
} from "../../../core/kinds/core_v1.ts";
import { type DefaultRules, rule } from "./default_rule.ts";

const NAME_PART = "[a-z0-9]+(?:(?:\\.|_|__|-+)[a-z0-9]+)*";
const HOST_PART = "(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])";
/** Image reference: host and port, path, tag and digest; only the path is required. */
const IMAGE = new RegExp(
  `^(?:${HOST_PART}(?:\\.${HOST_PART})*(?::[0-9]+)?/)?` +
    `${NAME_PART}(?:/${NAME_PART})*(?::(?<tag>[\\w][\\w.-]{0,127}))?` +
    "(?<digest>@[A-Za-z][\\w+.-]*:[0-9a-fA-F]{32,})?$",
);

/**
 * Default pull policy of an image: `Always` for the tag `latest` or no tag,
 * `IfNotPresent` otherwise and for malformed references.
 */
function pullPolicy(image: string): "Always" | "IfNotPresent" {
  const { groups } = IMAGE.exec(image) ?? {};
  if (groups === undefined || groups["digest"]) return "IfNotPresent";
  return (groups["tag"] ?? "latest") === "latest" ? "Always" : "IfNotPresent";
}

function defaultContainer(container: Container): void {
  container.imagePullPolicy ??= pullPolicy(container.image ?? "");
  container.terminationMessagePath ??= "/dev/termination-log";
  container.terminationMessagePolicy ??= "File";
}

/** Sets a missing request to the limit of the same resource. */
function requestLimits(resources: ResourceRequirements | undefined): void {
  if (resources?.limits === undefined) return;
  resources.requests = { ...resources.limits, ...resources.requests };
}

/** Sets the host port to the container port, for Pods in the host network. */
function shareHostPorts(ports: ContainerPort[] | undefined): void {
  for (const port of ports ?? []) {
    if (!port.hostPort && port.containerPort) {
      port.hostPort = port.containerPort;
    }
  }
}

function defaultPod({ spec }: Pod): void {
  const containers = [...spec.containers ?? [], ...spec.initContainers ?? []];
  for (const { resources } of containers) requestLimits(resources);
  spec.enableServiceLinks ??= true;
  if (spec.hostNetwork) {
    for (const { ports } of containers) shareHostPorts(ports);
  }
}

function defaultPodSpec(spec: PodSpec): void {
  spec.dnsPolicy ??= "ClusterFirst";
  spec.restartPolicy ??= "Always";
  spec.securityContext ??= {};
  spec.terminationGracePeriodSeconds ??= 30;
  spec.schedulerName ??= "default-scheduler";
  // `serviceAccount` is the deprecated alias of `serviceAccountName`.
  const account = spec.serviceAccountName ?? spec.serviceAccount;
  if (account === undefined) return;
  spec.serviceAccountName = account;
  spec.serviceAccount = account;
}

function defaultVolume(volume: Volume): void {
  if (Object.keys(volume).every((field) => field === "name")) {
    const nothing: EmptyDirVolumeSource = {};
    volume.emptyDir = nothing;
  }
  const { image } = volume;
  if (image) image.pullPolicy ??= pullPolicy(image.reference ?? "");
}

function defaultProbe(probe: Probe): void {
  probe.timeoutSeconds ??= 1;
  probe.periodSeconds ??= 10;
  probe.successThreshold ??= 1;
  probe.failureThreshold ??= 3;
}

/** Sets the default file mode 0644. */
function defaultMode(source: SecretVolumeSource): void {
  source.defaultMode ??= 0o644;
}

function defaultService({ spec = {}, status }: Service): void {
  spec.sessionAffinity ??= "None";
  if (spec.sessionAffinity === "None") delete spec.sessionAffinityConfig;
  if (
    spec.sessionAffinity === "ClientIP" &&
    spec.sessionAffinityConfig?.clientIP?.timeoutSeconds === undefined
  ) spec.sessionAffinityConfig = { clientIP: { timeoutSeconds: 10_800 } };
  spec.type ??= "ClusterIP";
  for (const port of spec.ports ?? []) {
    port.protocol ??= "TCP";
    if (!port.targetPort) port.targetPort = port.port;
  }
  const { type } = spec;
  const external = type === "LoadBalancer" || type === "NodePort" ||
    type === "ClusterIP" && spec.externalIPs !== undefined;
  if (external) spec.externalTrafficPolicy ??= "Cluster";
  if (type !== "ExternalName") spec.internalTrafficPolicy ??= "Cluster";
  if (type !== "LoadBalancer") return;
  spec.allocateLoadBalancerNodePorts ??= true;
  for (const ingress of status?.loadBalancer?.ingress ?? []) {
    if (ingress.ip) ingress.ipMode ??= "VIP";
  }
}

/** Sets the type and moves `stringData` to `data`. */
function defaultSecret(secret: Secret): void {
  secret.type ??= "Opaque";
  if (secret.stringData === undefined) return;
  const encoded = Object.entries(secret.stringData).map(([name, text]) => [
    name,
    base64Of(text),
  ]);
  secret.data = { ...secret.data, ...Object.fromEntries(encoded) };
  delete secret.stringData;
}

function base64Of(text: string): string {
  const bytes = new TextEncoder().encode(text);
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
}

function defaultLimits(item: LimitRangeItem): void {
  if (item.type !== "Container") return;
  const limits = { ...item.max, ...item.default };
  const requests = { ...item.min, ...limits, ...item.defaultRequest };
  if (Object.keys(limits).length > 0) item.default = limits;
  if (Object.keys(requests).length > 0) item.defaultRequest = requests;
}

function defaultReplicationController(
  controller: ReplicationController,
): void {
  const { metadata, spec = {} } = controller;
  const labels = spec.template?.metadata?.labels;
  if (labels) {
    spec.selector ??= { ...labels };
    metadata.labels ??= { ...labels };
  }
  spec.replicas ??= 1;
}

function defaultEndpoints({ subsets = [] }: Endpoints): void {
  for (const { ports = [] } of subsets) {
    for (const port of ports) port.protocol ??= "TCP";
  }
}

function defaultNamespace({ metadata }: Namespace): void {
  const { name } = metadata;
  if (!name) return;
  metadata.labels = {
    ...metadata.labels,
    "kubernetes.io/metadata.name": name,
  };
}

function defaultPersistentVolume(volume: PersistentVolume): void {
  const { spec = {}, status = {} } = volume;
  status.phase ??= "Pending";
  spec.persistentVolumeReclaimPolicy ??= "Retain";
  spec.volumeMode ??= "Filesystem";
}

/** Default rules of the core group. */
export const CORE_DEFAULTS: DefaultRules = [
  rule("api.core.v1.Pod", defaultPod),
  rule("api.core.v1.PodSpec", defaultPodSpec),
  rule("api.core.v1.Container", defaultContainer),
  rule("api.core.v1.EphemeralContainer", defaultContainer),
  rule("api.core.v1.Volume", defaultVolume),
  rule("api.core.v1.Probe", defaultProbe),
  rule("api.core.v1.HTTPGetAction", (action: HTTPGetAction) => {
    action.path ??= "/";
    action.scheme ??= "HTTP";
  }),
  rule("api.core.v1.ObjectFieldSelector", (selector: ObjectFieldSelector) => {
    selector.apiVersion ??= "v1";
  }),
  rule("api.core.v1.SecretVolumeSource", defaultMode),
  rule("api.core.v1.ConfigMapVolumeSource", defaultMode),
  rule("api.core.v1.DownwardAPIVolumeSource", defaultMode),
  rule("api.core.v1.ProjectedVolumeSource", defaultMode),
  rule("api.core.v1.HostPathVolumeSource", (source: HostPathVolumeSource) => {
    // The empty type, which is not in the enumeration, disables the check.
    source.type ??= "" as "File";
  }),
  rule(
    "api.core.v1.ServiceAccountTokenProjection",
    (projection: ServiceAccountTokenProjection) => {
      projection.expirationSeconds ??= 3600;
    },
  ),
  rule("api.core.v1.Service", defaultService),
  rule("api.core.v1.Secret", defaultSecret),
  rule("api.core.v1.LimitRangeItem", defaultLimits),
  rule("api.core.v1.ReplicationController", defaultReplicationController),
  rule("api.core.v1.Endpoints", defaultEndpoints),
  rule("api.core.v1.Namespace", defaultNamespace),
  rule("api.core.v1.NamespaceStatus", (status: NamespaceStatus) => {
    status.phase ??= "Active";
  }),
  rule("api.core.v1.NodeStatus", (status: NodeStatus) => {
    if (status.capacity) status.allocatable ??= { ...status.capacity };
  }),
  rule("api.core.v1.PersistentVolume", defaultPersistentVolume),
  rule("api.core.v1.PersistentVolumeClaim", (claim: PersistentVolumeClaim) => {
    (claim.status ??= {}).phase ??= "Pending";
  }),
  rule(
    "api.core.v1.PersistentVolumeClaimSpec",
    (spec: PersistentVolumeClaimSpec) => {
      spec.volumeMode ??= "Filesystem";
    },
  ),
];
