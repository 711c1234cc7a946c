import { Quantity, type UntypedObject } from "@coracle/operator/client";
import type {
  PersistentVolumeClaim,
  Pod,
  PodAffinityTerm,
  ResourceClaimSpec,
  ResourceQuota,
  Service,
} from "@coracle/operator/kinds";
import type { GroupResource } from "../registry.ts";
import {
  type Amounts,
  amountsOf,
  podAmounts,
  type ResourceTexts,
  sum,
} from "./pod_resources.ts";

const ONE: Quantity = Quantity.parse("1");

/** Resources of the core group that a quota may name without `count/`. */
const COUNTED: ReadonlySet<string> = new Set([
  "configmaps",
  "persistentvolumeclaims",
  "replicationcontrollers",
  "resourcequotas",
  "secrets",
  "services",
]);

/** Resources that quotas ignore: events, and objects that are not stored. */
const IGNORED = /^events$|reviews$|^bindings$|^componentstatuses$/;

/** Whether quotas ignore a resource. */
export function isIgnored({ plural }: GroupResource): boolean {
  return IGNORED.test(plural);
}

/**
 * Amounts that an object uses, by the names of quota resources.
 *
 * @param resource Resource of the object.
 * @param read Function that returns the object; called only for resources that
 * count more than their number.
 * @param now Time in milliseconds since the Unix epoch.
 */
export function usageOf(
  resource: GroupResource,
  read: () => UntypedObject,
  now: number,
): Amounts {
  const { group, plural } = resource;
  const usage: Amounts = new Map([
    [`count/${group === "" ? plural : `${plural}.${group}`}`, ONE],
  ]);
  if (group === "resource.k8s.io" && plural === "resourceclaims") {
    for (const [name, count] of deviceCounts(read())) {
      usage.set(name, Quantity.parse(String(count)));
    }
  }
  if (group !== "") return usage;
  if (COUNTED.has(plural)) usage.set(plural, ONE);
  const measure = MEASURES[plural];
  if (measure) {
    for (const [name, amount] of measure(read(), now)) usage.set(name, amount);
  }
  return usage;
}

type Measure = (
  object: UntypedObject,
  now: number,
) => Iterable<[string, Quantity]>;

const MEASURES: Readonly<Record<string, Measure>> = {
  *pods(object, now) {
    const { spec, status, metadata } = object as unknown as Pod;
    if (status?.phase === "Failed" || status?.phase === "Succeeded") return;
    const { deletionTimestamp, deletionGracePeriodSeconds: grace = 0 } =
      metadata;
    if (
      deletionTimestamp && Date.parse(deletionTimestamp) + grace * 1000 < now
    ) return;
    yield ["pods", ONE];
    const requests = podAmounts(spec, "requests");
    const limits = podAmounts(spec, "limits");
    for (const [name, amount] of amountsOf(spec.overhead)) {
      requests.set(name, sum(requests.get(name), amount));
      const limit = limits.get(name);
      if (limit?.nano) limits.set(name, limit.plus(amount));
    }
    yield* computed(requests, limits);
  },
  *services(object) {
    const { spec } = object as unknown as Service;
    const ports = spec?.ports ?? [];
    const balanced = spec?.type === "LoadBalancer";
    const allocated = balanced && spec.allocateLoadBalancerNodePorts === false
      ? ports.filter(({ nodePort }) => nodePort)
      : ports;
    const nodePorts = balanced || spec?.type === "NodePort"
      ? allocated.length
      : 0;
    yield ["services.nodeports", Quantity.parse(String(nodePorts))];
    yield ["services.loadbalancers", Quantity.parse(balanced ? "1" : "0")];
  },
  *persistentvolumeclaims(object) {
    const { spec, metadata, status } =
      object as unknown as PersistentVolumeClaim;
    const { storage } = amountsOfStorage(
      spec?.resources?.requests,
      status?.allocatedResources,
    );
    if (storage) yield ["requests.storage", storage];
    const className =
      metadata.annotations?.["volume.beta.kubernetes.io/storage-class"] ??
        spec?.storageClassName;
    if (!className) return;
    const prefix = `${className}.storageclass.storage.k8s.io/`;
    yield [`${prefix}persistentvolumeclaims`, ONE];
    if (storage) yield [`${prefix}requests.storage`, storage];
  },
};

/** Maximum number of devices of a device request. */
const MOST_DEVICES = 32;

/** Maximum number of devices of a claim, by the quota resources of their classes. */
function deviceCounts(object: UntypedObject): ReadonlyMap<string, number> {
  const { devices } = object.spec as ResourceClaimSpec;
  const counts = new Map<string, number>();
  for (const { exactly, firstAvailable = [] } of devices?.requests ?? []) {
    // Of alternatives, each class counts with its largest one.
    const most = new Map<string, number>();
    for (const wanted of exactly ? [exactly] : firstAvailable) {
      const { deviceClassName, allocationMode, count = 1 } = wanted;
      const devices = allocationMode === "All" ? MOST_DEVICES : count;
      const name = `${deviceClassName}.deviceclass.resource.k8s.io/devices`;
      most.set(name, Math.max(most.get(name) ?? 0, devices));
    }
    for (const [name, devices] of most) {
      counts.set(name, (counts.get(name) ?? 0) + devices);
    }
  }
  return counts;
}

/** Requested storage, or the allocated storage if that is larger. */
function amountsOfStorage(
  requests: ResourceTexts,
  allocated: ResourceTexts,
): { storage: Quantity | undefined } {
  const requested = amountsOf(requests).get("storage");
  const given = amountsOf(allocated).get("storage");
  const larger = requested && given && given.compare(requested) > 0;
  return { storage: larger ? given : requested };
}

const NATIVE = ["cpu", "memory", "ephemeral-storage"];

/** Amounts of quota resources in requests and limits. */
function* computed(
  requests: Amounts,
  limits: Amounts,
): Iterable<[string, Quantity]> {
  for (const [name, amount] of requests) {
    const native = NATIVE.includes(name) || name.startsWith("hugepages-");
    const extended = name.includes("/") && !name.includes("kubernetes.io/");
    if (native) yield [name, amount];
    if (native || extended) yield [`requests.${name}`, amount];
  }
  for (const [name, amount] of limits) {
    if (NATIVE.includes(name)) yield [`limits.${name}`, amount];
  }
}

/** Resources that every container must set if a quota limits them. */
const REQUIRED: ReadonlySet<string> = new Set([
  "cpu",
  "limits.cpu",
  "limits.memory",
  "memory",
  "requests.cpu",
  "requests.memory",
]);

/**
 * Resources of a quota that containers of a pod lack, as text; undefined if
 * none is missing.
 */
export function missingResources(
  { spec }: Pod,
  hard: Iterable<string>,
): string | undefined {
  if (spec.resources?.requests || spec.resources?.limits) return undefined;
  const containers = [...spec.containers ?? [], ...spec.initContainers ?? []]
    .map(({ name, resources }) => ({
      name,
      set: new Map(
        computed(amountsOf(resources?.requests), amountsOf(resources?.limits)),
      ),
    }));
  const missing = [...hard].filter((name) => REQUIRED.has(name)).sort()
    .flatMap((resource) => {
      const names = containers.filter(({ set }) => !set.has(resource))
        .map(({ name }) => name).sort();
      return names.length === 0
        ? []
        : [`${resource} for: ${[...new Set(names)].join(",")}`];
    });
  return missing.length === 0
    ? undefined
    : `must specify ${missing.join("; ")}`;
}

/** Whether a pod has a deadline, as the scope `Terminating` requires. */
export function hasDeadline(object: UntypedObject | undefined): boolean {
  const spec = object?.spec as Partial<Pod["spec"]> | undefined;
  return (spec?.activeDeadlineSeconds ?? -1) >= 0;
}

/**
 * Whether an object is in all scopes of a quota; only pods and claims can be in
 * a scope.
 */
export function inScopes(
  { spec }: ResourceQuota,
  { plural, group }: GroupResource,
  read: () => UntypedObject,
): boolean {
  const selectors = [
    ...(spec?.scopes ?? []).map((scopeName) => ({
      scopeName,
      operator: "Exists",
      values: undefined,
    })),
    ...spec?.scopeSelector?.matchExpressions ?? [],
  ];
  if (selectors.length === 0) return true;
  if (group !== "") return false;
  const object = read();
  return selectors.every(({ scopeName, operator, values = [] }) => {
    const found = plural === "pods"
      ? podScope(object, scopeName)
      : plural === "persistentvolumeclaims" &&
          String(scopeName) === "VolumeAttributesClass"
      ? attributesClasses(object as unknown as PersistentVolumeClaim)
      : false;
    if (typeof found === "boolean") return found;
    // An object that refers to several values is in the scopes of each.
    const names = found.filter(Boolean);
    switch (operator) {
      case "Exists":
        return names.length > 0;
      case "DoesNotExist":
        return names.length === 0;
      case "In":
        return names.some((name) => values.includes(name));
      default:
        return names.length === 0 ||
          names.some((name) => !values.includes(name));
    }
  });
}

/** VolumeAttributesClasses of a claim: the requested one, the current one and the target of a change. */
function attributesClasses(
  { spec, status }: PersistentVolumeClaim,
): readonly string[] {
  return [
    spec?.volumeAttributesClassName ?? "",
    status?.currentVolumeAttributesClassName ?? "",
    status?.modifyVolumeStatus?.targetVolumeAttributesClassName ?? "",
  ];
}

/** Whether a pod is in a scope, or the values that the scope selects by. */
function podScope(
  object: UntypedObject,
  scope: string,
): boolean | readonly string[] {
  const { spec, status } = object as unknown as Pod;
  switch (scope) {
    case "Terminating":
      return hasDeadline(object);
    case "NotTerminating":
      return !hasDeadline(object);
    case "BestEffort":
      return status?.qosClass === "BestEffort";
    case "NotBestEffort":
      return status?.qosClass !== "BestEffort";
    case "PriorityClass":
      return [spec.priorityClassName ?? ""];
    case "CrossNamespacePodAffinity": {
      const { podAffinity, podAntiAffinity } = spec.affinity ?? {};
      return [podAffinity, podAntiAffinity].some((affinity) =>
        [
          ...affinity?.requiredDuringSchedulingIgnoredDuringExecution ?? [],
          ...(affinity?.preferredDuringSchedulingIgnoredDuringExecution ?? [])
            .map(({ podAffinityTerm }) => podAffinityTerm),
        ].some(crossesNamespaces)
      );
    }
    default:
      return false;
  }
}

function crossesNamespaces(
  { namespaces, namespaceSelector }: PodAffinityTerm,
): boolean {
  return (namespaces?.length ?? 0) > 0 || namespaceSelector !== undefined;
}
