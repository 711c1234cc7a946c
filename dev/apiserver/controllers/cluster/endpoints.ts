import type { ResolvedKind } from "@coracle/operator/client";
import { jsonEquals } from "@coracle/operator/internal";
import {
  type DiscoveryEndpointPort,
  type Endpoint,
  Endpoints,
  EndpointSlice,
  type EndpointSubset,
  Node,
  Pod,
  Service,
  type ServicePort,
} from "@coracle/operator/kinds";
import type { Change } from "../../storage/history.ts";
import {
  type ControllerApi,
  controllerReference,
  matcher,
} from "../controller_api.ts";
import type { ControllerDefinition } from "../controller_loop.ts";
import { canonicalText } from "../../crd/schema/json_tree.ts";
import { IpAddress } from "../../validation/ip_address.ts";
import { isFinished, isReady } from "../workloads/pods.ts";
import { readJson, writeJson } from "../../exact_json.ts";

const SERVICE_NAME = "kubernetes.io/service-name";
const MANAGED_BY = "endpointslice.kubernetes.io/managed-by";
const HEADLESS = "service.kubernetes.io/headless";
const SLICE_MANAGER = "endpointslice-controller.k8s.io";
const MIRROR_MANAGER = "endpointslicemirroring-controller.k8s.io";
const SKIP_MIRROR = "endpointslice.kubernetes.io/skip-mirror";
/** Maximum number of endpoints in a slice. */
const SLICE_SIZE = 100;

/** Services that selected a pod before or after a change. */
function* servicesOf(
  { object, previous }: Change,
  api: ControllerApi,
): Iterable<string> {
  const services = api.list(Service, object.namespace);
  for (const { metadata, spec } of services) {
    const matches = matcher({ matchLabels: spec?.selector });
    if (matches(object.labels) || (previous && matches(previous.labels))) {
      yield `${metadata.namespace}/${metadata.name}`;
    }
  }
}

/** Watch of the slices of a controller, whose owners have the name in their label. */
function slicesOf(
  manager: string,
): NonNullable<ControllerDefinition["watches"]>[number] {
  return {
    kind: EndpointSlice,
    *keys({ object: { namespace, labels } }) {
      const name = labels?.[SERVICE_NAME];
      if (name && labels?.[MANAGED_BY] === manager) {
        yield `${namespace}/${name}`;
      }
    },
  };
}

/** Controller of EndpointSlices of Services with a selector. */
export const ENDPOINT_SLICES: ControllerDefinition = {
  name: "endpointslice-controller",
  kind: Service,
  watches: [{ kind: Pod, keys: servicesOf }, slicesOf(SLICE_MANAGER)],
  async sync(object, api) {
    const service = object as Service;
    const { metadata, spec = {} } = service;
    if (!spec.selector || spec.type === "ExternalName") return;
    const wanted = groups(podEndpoints(service, api));
    const labels: Record<string, string> = {
      ...metadata.labels,
      [SERVICE_NAME]: metadata.name,
      [MANAGED_BY]: SLICE_MANAGER,
    };
    if (spec.clusterIP === "None") labels[HEADLESS] = "";
    await writeSlices(api, {
      kind: Service,
      owner: service,
      labels,
      wanted: wanted.size > 0 ? [...wanted.values()] : [{
        ports: [],
        endpoints: [],
      }],
    });
  },
};

/** Controller of Endpoints of Services with a selector. */
export const ENDPOINTS: ControllerDefinition = {
  name: "endpoints-controller",
  kind: Service,
  watches: [{ kind: Pod, keys: servicesOf }, {
    kind: Endpoints,
    *keys({ object }) {
      yield object.key;
    },
  }],
  async sync(object, api) {
    const service = object as Service;
    const { metadata: { name, namespace, labels }, spec = {} } = service;
    if (!spec.selector || spec.type === "ExternalName") return;
    const subsets: EndpointSubset[] = [];
    // Unlike slices, Endpoints have pods that are deleted only on demand.
    const listed = podEndpoints(service, api).filter(({ endpoint }) =>
      spec.publishNotReadyAddresses || !endpoint.conditions?.terminating
    );
    for (const { ports, endpoints } of groups(listed).values()) {
      const addresses = (ready: boolean) =>
        endpoints.filter(({ conditions }) => conditions?.ready === ready)
          .map(({ addresses: [ip = ""], nodeName, targetRef, hostname }) => ({
            ip,
            ...(hostname !== undefined && { hostname }),
            ...(nodeName !== undefined && { nodeName }),
            ...(targetRef !== undefined && { targetRef }),
          }));
      const [ready, notReady] = [addresses(true), addresses(false)];
      subsets.push({
        ...(ready.length > 0 && { addresses: ready }),
        ...(notReady.length > 0 && { notReadyAddresses: notReady }),
        ...(ports.length > 0 && {
          ports: ports.map(({ port = 0, name, ...rest }) => ({
            ...(name && { name }),
            ...rest,
            port,
          })),
        }),
      });
    }
    const managed = {
      ...labels,
      "endpoints.kubernetes.io/managed-by": "endpoint-controller",
      ...(spec.clusterIP === "None" && { [HEADLESS]: "" }),
    };
    const known = api.get(Endpoints, { namespace, name });
    if (known === undefined) {
      await api.create(Endpoints, {
        metadata: { name, namespace, labels: managed },
        subsets,
      });
    } else if (
      !jsonEquals(plain(known.subsets ?? []), plain(subsets)) ||
      !jsonEquals(known.metadata.labels, managed)
    ) {
      await api.update(Endpoints, known, (draft) => {
        draft.subsets = subsets;
        draft.metadata.labels = managed;
      });
    }
  },
};

/** Controller that deletes the Endpoints of deleted Services. */
export const STALE_ENDPOINTS: ControllerDefinition = {
  name: "endpoints-controller",
  kind: Endpoints,
  watches: [{
    kind: Service,
    *keys({ type, object }) {
      if (type === "DELETED") yield object.key;
    },
  }],
  async sync(object, api) {
    const { metadata } = object as Endpoints;
    const managed = metadata.labels?.["endpoints.kubernetes.io/managed-by"];
    if (managed === undefined || api.get(Service, metadata)) return;
    await api.delete(Endpoints, object as Endpoints);
  },
};

/** Controller that mirrors Endpoints of Services without a selector. */
export const ENDPOINT_MIRRORS: ControllerDefinition = {
  name: "endpointslice-mirroring-controller",
  kind: Endpoints,
  watches: [{
    kind: Service,
    *keys({ object }) {
      yield object.key;
    },
  }, slicesOf(MIRROR_MANAGER)],
  async sync(object, api) {
    const endpoints = object as Endpoints;
    const { metadata, subsets = [] } = endpoints;
    const service = api.get(Service, metadata);
    const { annotations = {}, labels = {} } = metadata;
    const isMirrored = service !== undefined && !service.spec?.selector &&
      labels[SKIP_MIRROR] !== "true" &&
      annotations["control-plane.alpha.kubernetes.io/leader"] === undefined;
    const {
      "kubectl.kubernetes.io/last-applied-configuration": _,
      "endpoints.kubernetes.io/last-change-trigger-time": __,
      ...copied
    } = annotations;
    await writeSlices(api, {
      kind: Endpoints,
      owner: endpoints,
      labels: {
        ...labels,
        [SERVICE_NAME]: metadata.name,
        [MANAGED_BY]: MIRROR_MANAGER,
      },
      annotations: copied,
      wanted: !isMirrored ? [] : subsets.map((subset) => ({
        ports: subset.ports?.map((port) => ({ name: "", ...port })) ?? [],
        endpoints: [
          ...mirrored(subset.addresses, true),
          ...mirrored(subset.notReadyAddresses, false),
        ],
      })),
    });
  },
};

function mirrored(
  addresses: EndpointSubset["addresses"],
  ready: boolean,
): Endpoint[] {
  return (addresses ?? []).map(({ ip, hostname, nodeName, targetRef }) => ({
    // Slices take addresses in canonical form only.
    addresses: [String(IpAddress.parse(ip) ?? ip)],
    conditions: { ready },
    ...(hostname && { hostname }),
    ...(nodeName && { nodeName }),
    ...(targetRef && { targetRef }),
  }));
}

/** Endpoints with the same ports. */
interface Group {
  readonly ports: DiscoveryEndpointPort[];
  readonly endpoints: Endpoint[];
}

interface PodEndpoint {
  readonly ports: DiscoveryEndpointPort[];
  readonly endpoint: Endpoint;
}

function groups(all: readonly PodEndpoint[]): Map<string, Group> {
  const found = new Map<string, Group>();
  for (const { ports, endpoint } of all) {
    const key = canonicalText(ports);
    const group = found.get(key) ?? { ports, endpoints: [] };
    group.endpoints.push(endpoint);
    found.set(key, group);
  }
  return found;
}

/** Endpoints of the pods that a Service selects. */
function podEndpoints(service: Service, api: ControllerApi): PodEndpoint[] {
  const { metadata: { namespace, name }, spec = {} } = service;
  const { ports = [], publishNotReadyAddresses = false } = spec;
  const found: PodEndpoint[] = [];
  const matches = matcher({ matchLabels: spec.selector });
  for (const pod of api.list(Pod, namespace, matches)) {
    const { podIP, podIPs } = pod.status ?? {};
    if (!podIP || isFinished(pod)) continue;
    const { nodeName, hostname, subdomain } = pod.spec;
    const ready = isReady(pod);
    const terminating = pod.metadata.deletionTimestamp !== undefined;
    const node = api.get(Node, { name: nodeName ?? "" });
    const zone = node?.metadata.labels?.["topology.kubernetes.io/zone"];
    found.push({
      ports: ports.flatMap((port) => {
        const number = targetPort(port, pod);
        return number === undefined ? [] : [{
          name: port.name ?? "",
          port: number,
          protocol: port.protocol ?? "TCP",
          ...(port.appProtocol && { appProtocol: port.appProtocol }),
        }];
      }),
      endpoint: {
        addresses: [podIPs?.[0]?.ip ?? podIP],
        conditions: {
          ready: publishNotReadyAddresses || (ready && !terminating),
          serving: ready,
          terminating,
        },
        ...(hostname && subdomain === name && { hostname }),
        ...(nodeName && { nodeName }),
        ...(zone && { zone }),
        targetRef: {
          kind: "Pod",
          name: pod.metadata.name,
          namespace,
          uid: pod.metadata.uid,
        },
      },
    });
  }
  return found;
}

function targetPort(
  { port, targetPort = port, protocol = "TCP" }: ServicePort,
  pod: Pod,
): number | undefined {
  if (typeof targetPort === "number") return targetPort || port;
  return pod.spec.containers?.flatMap(({ ports = [] }) => ports).find((one) =>
    one.name === targetPort && (one.protocol ?? "TCP") === protocol
  )?.containerPort;
}

/** JSON form of a value, without undefined fields. */
function plain(value: unknown): unknown {
  return readJson(writeJson(value));
}

/** Writes the desired slices of an owner, with few writes. */
async function writeSlices(
  api: ControllerApi,
  { kind, owner, labels, annotations = {}, wanted }: {
    readonly kind: ResolvedKind;
    readonly owner: Service | Endpoints;
    readonly labels: Record<string, string>;
    readonly annotations?: Record<string, string>;
    readonly wanted: readonly Group[];
  },
): Promise<void> {
  const { name, namespace, deletionTimestamp } = owner.metadata;
  if (deletionTimestamp) return;
  const known = api.list(
    EndpointSlice,
    namespace,
    matcher({
      matchLabels: {
        [SERVICE_NAME]: name,
        [MANAGED_BY]: labels[MANAGED_BY] ?? "",
      },
    }),
  );
  const parts = wanted.flatMap(({ ports, endpoints }) => {
    const count = Math.max(1, Math.ceil(endpoints.length / SLICE_SIZE));
    return Array.from({ length: count }, (_, index) => ({
      ports,
      endpoints: endpoints.slice(index * SLICE_SIZE, (index + 1) * SLICE_SIZE),
      addressType: endpoints[0]?.addresses[0]?.includes(":")
        ? "IPv6" as const
        : "IPv4" as const,
    }));
  });
  for (const part of parts) {
    const content = plain(part) as typeof part;
    // A slice with the same ports keeps its name.
    const index = known.findIndex(({ ports, addressType }) =>
      addressType === part.addressType &&
      (jsonEquals(plain(ports ?? []), content.ports) ||
        part.endpoints.length === 0 || wanted.length === 1)
    );
    const [slice] = index < 0 ? [] : known.splice(index, 1);
    if (slice === undefined) {
      await api.create(EndpointSlice, {
        metadata: {
          generateName: `${name}-`,
          namespace,
          labels,
          annotations,
          ownerReferences: [controllerReference(kind, owner)],
        },
        ...content,
      });
    } else if (
      !jsonEquals(plain(slice.ports ?? []), content.ports) ||
      !jsonEquals(plain(slice.endpoints ?? []), content.endpoints) ||
      !jsonEquals(slice.metadata.labels, labels)
    ) {
      await api.update(EndpointSlice, slice, (draft) => {
        Object.assign(draft, content);
        draft.metadata.labels = labels;
      });
    }
  }
  for (const slice of known) await api.delete(EndpointSlice, slice);
}
