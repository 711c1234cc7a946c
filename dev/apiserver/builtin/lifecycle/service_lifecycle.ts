import type { UntypedObject } from "@coracle/operator/client";
import { jsonEquals, type StatusCause } from "@coracle/operator/internal";
import type { Service, ServiceSpec } from "@coracle/operator/kinds";
import type { HookContext } from "../../registry.ts";
import { fieldError, invalid, type StatusError } from "../../status.ts";
import type { Lifecycle } from "./lifecycle.ts";
import { ServiceAddresses } from "./service_addresses.ts";

/** Lifecycle of Services: allocates and releases cluster IPs and node ports. */
export function serviceLifecycle(): Lifecycle {
  const addresses = new ServiceAddresses();
  return {
    prepareForCreate(object, context): void {
      object.status = { loadBalancer: {} };
      const service = asService(object);
      const { spec } = service;
      if (spec.clusterIP) spec.clusterIPs ??= [spec.clusterIP];
      allocate(service, { addresses, context, live: undefined });
    },
    prepareForUpdate(object, live, context): void {
      if (context.subresource !== undefined) return;
      const service = asService(object);
      const before = asService(live);
      keepAllocated(service.spec, before.spec);
      dropForType(service, before.spec);
      allocate(service, { addresses, context, live: before });
    },
  };
}

type StoredService = Service & { spec: ServiceSpec };

function asService(object: UntypedObject): StoredService {
  object.spec ??= {};
  return object as unknown as StoredService;
}

const needsAddress = (spec: ServiceSpec): boolean =>
  spec.type !== "ExternalName";
const needsNodePort = (spec: ServiceSpec): boolean =>
  spec.type === "NodePort" || spec.type === "LoadBalancer";
const needsHealthPort = (spec: ServiceSpec): boolean =>
  spec.type === "LoadBalancer" && spec.externalTrafficPolicy === "Local";
const isExternal = (spec: ServiceSpec): boolean =>
  needsNodePort(spec) ||
  spec.type === "ClusterIP" && spec.externalIPs !== undefined;

/** Keeps allocated values that an update omits. */
function keepAllocated(spec: ServiceSpec, before: ServiceSpec): void {
  if (needsAddress(spec) && needsAddress(before)) {
    if (spec.clusterIP === before.clusterIP && before.clusterIPs) {
      spec.clusterIPs ??= before.clusterIPs;
    } else if (
      spec.clusterIP && jsonEquals(spec.clusterIPs, before.clusterIPs)
    ) spec.clusterIPs = [spec.clusterIP];
    if (before.clusterIP) spec.clusterIP ??= before.clusterIP;
    if (before.clusterIPs) spec.clusterIPs ??= before.clusterIPs;
  }
  if (needsNodePort(spec) && needsNodePort(before)) {
    const inUse = new Set((spec.ports ?? []).map(({ nodePort }) => nodePort));
    for (const port of spec.ports ?? []) {
      const old = before.ports?.find(({ name }) => name === port.name);
      if (port.nodePort || !old?.nodePort || inUse.has(old.nodePort)) continue;
      port.nodePort = old.nodePort;
    }
  }
  if (needsHealthPort(spec) && before.healthCheckNodePort) {
    spec.healthCheckNodePort ??= before.healthCheckNodePort;
  }
}

/** Drops fields that the new type does not have, unless the client changed them as well. */
function dropForType(service: StoredService, before: ServiceSpec): void {
  const { spec } = service;
  const drop = (...fields: (keyof ServiceSpec)[]) => {
    const unchanged = fields.every((field) =>
      jsonEquals(spec[field], before[field])
    );
    if (unchanged) { for (const field of fields) delete spec[field]; }
  };
  if (needsAddress(before) && !needsAddress(spec)) {
    drop("clusterIP", "clusterIPs");
    drop("ipFamilies");
    drop("ipFamilyPolicy");
    drop("internalTrafficPolicy");
  }
  if (needsNodePort(before) && !needsNodePort(spec)) {
    const old = new Set((before.ports ?? []).map(({ nodePort }) => nodePort));
    const ports = spec.ports ?? [];
    if (ports.every(({ nodePort }) => !nodePort || old.has(nodePort))) {
      for (const port of ports) delete port.nodePort;
    }
  }
  if (needsHealthPort(before) && !needsHealthPort(spec)) {
    drop("healthCheckNodePort");
  }
  if (before.type === "LoadBalancer" && spec.type !== "LoadBalancer") {
    drop("allocateLoadBalancerNodePorts");
    drop("loadBalancerClass");
    service.status = { loadBalancer: {} };
  }
  if (isExternal(before) && !isExternal(spec)) drop("externalTrafficPolicy");
}

/** Context of the allocations for one write. */
interface Allocation {
  readonly addresses: ServiceAddresses;
  readonly context: HookContext;
  readonly live: StoredService | undefined;
}

function allocate(service: StoredService, allocation: Allocation): void {
  const { spec } = service;
  if (!needsAddress(spec)) return;
  setFamilies(service, allocation.live?.spec);
  allocateAddress(service, allocation);
  const wantsNodePorts = spec.type === "NodePort" ||
    spec.type === "LoadBalancer" &&
      spec.allocateLoadBalancerNodePorts !== false;
  if (wantsNodePorts) allocateNodePorts(service, allocation);
  if (needsHealthPort(spec) && !spec.healthCheckNodePort) {
    const { addresses, context } = allocation;
    spec.healthCheckNodePort = addresses.takeNodePort(
      service,
      "health",
      context,
    );
  }
}

/** Sets the IP families of a Service; the cluster has IPv4 only. */
function setFamilies(
  service: StoredService,
  before: ServiceSpec | undefined,
): void {
  const { spec } = service;
  const isBare = spec.clusterIP === "None" && spec.selector === undefined;
  spec.ipFamilyPolicy ??= before?.ipFamilyPolicy ??
    (isBare ? "RequireDualStack" : "SingleStack");
  if (isBare) {
    const families = spec.ipFamilies ??= ["IPv4"];
    if (families.length === 1 && spec.ipFamilyPolicy !== "SingleStack") {
      families.push(families[0] === "IPv4" ? "IPv6" : "IPv4");
    }
    return;
  }
  const causes = (spec.ipFamilies ?? []).flatMap((family, index) => {
    const why = "not configured on this cluster";
    const field = `spec.ipFamilies[${index}]`;
    return family === "IPv6" ? [fieldError.invalid(field, family, why)] : [];
  });
  const { ipFamilyPolicy: policy } = spec;
  if (policy === "RequireDualStack") {
    const why = "this cluster is not configured for dual-stack services";
    causes.unshift(fieldError.invalid("spec.ipFamilyPolicy", policy, why));
  }
  if (causes.length > 0) throw refused(service, ...causes);
  spec.ipFamilies ??= ["IPv4"];
}

function allocateAddress(
  service: StoredService,
  { addresses, context, live }: Allocation,
): void {
  const { spec } = service;
  if (spec.clusterIP === "None") return;
  if (!spec.clusterIP) {
    spec.clusterIP = addresses.takeAddress(service, context);
    spec.clusterIPs = [spec.clusterIP];
    return;
  }
  if (spec.clusterIP === live?.spec.clusterIP) return;
  if (addresses.claim(service, spec.clusterIP, context)) return;
  const why =
    `failed to allocate IP ${spec.clusterIP}: provided IP is already allocated`;
  const cause = fieldError.invalid("spec.clusterIPs", spec.clusterIPs, why);
  throw refused(service, cause);
}

function allocateNodePorts(
  service: StoredService,
  { addresses, context }: Allocation,
): void {
  for (const [index, port] of (service.spec.ports ?? []).entries()) {
    if (!port.nodePort) {
      const use = `${port.protocol}${port.port}`;
      port.nodePort = addresses.takeNodePort(service, use, context);
      continue;
    }
    const fits = port.nodePort >= 30_000 && port.nodePort <= 32_767;
    if (fits && addresses.claim(service, String(port.nodePort), context)) {
      continue;
    }
    const field = `spec.ports[${index}].nodePort`;
    const why = fits
      ? "provided port is already allocated"
      : "provided port is not in the valid range. The range of valid ports is 30000-32767";
    throw refused(service, fieldError.invalid(field, port.nodePort, why));
  }
}

function refused(service: Service, ...causes: StatusCause[]): StatusError {
  const { name } = service.metadata;
  return invalid({ group: "", kind: "Service", name }, causes);
}
