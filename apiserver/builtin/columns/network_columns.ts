import type {
  Endpoints,
  EndpointSubset,
  LoadBalancerStatus,
  Service,
  ServicePort,
} from "../../../core/kinds/core_v1.ts";
import type { EndpointSlice } from "../../../core/kinds/discovery_v1.ts";
import type {
  Ingress,
  IngressClass,
  IngressRule,
  NetworkPolicy,
} from "../../../core/kinds/networking_v1.ts";
import {
  ageOf,
  firstThree,
  labelsText,
  nameOf,
  type Printer,
  selectorCell,
} from "./cell_text.ts";

/** Printers of the networking kinds. */
export const NETWORK_COLUMNS: Readonly<Record<string, Printer>> = {
  services: serviceCells,
  endpoints: (object: Endpoints, now) => [
    nameOf(object),
    endpointsText(object.subsets ?? []),
    ageOf(object, now),
  ],
  "endpointslices.discovery.k8s.io": sliceCells,
  "ingresses.networking.k8s.io": ingressCells,
  "ingressclasses.networking.k8s.io": (object: IngressClass, now) => [
    nameOf(object),
    object.spec?.controller ?? "",
    parametersText(object),
    ageOf(object, now),
  ],
  "networkpolicies.networking.k8s.io": (object: NetworkPolicy, now) => [
    nameOf(object),
    selectorCell(object.spec?.podSelector),
    ageOf(object, now),
  ],
};

function serviceCells(object: Service, now: number): readonly unknown[] {
  const { spec } = object;
  return [
    nameOf(object),
    spec?.type ?? "",
    spec?.clusterIPs?.[0] ?? "<none>",
    externalAddress(object),
    (spec?.ports ?? []).map(portText).join(",") || "<none>",
    ageOf(object, now),
    labelsText(spec?.selector),
  ];
}

function portText({ port, nodePort, protocol }: ServicePort): string {
  return nodePort ? `${port}:${nodePort}/${protocol}` : `${port}/${protocol}`;
}

function externalAddress({ spec, status = {} }: Service): string {
  const external = spec?.externalIPs ?? [];
  switch (spec?.type) {
    case "ClusterIP":
    case "NodePort":
      return external.join(",") || "<none>";
    case "LoadBalancer":
      return [...balancerAddresses(status.loadBalancer), ...external]
        .join(",") || "<pending>";
    case "ExternalName":
      return spec.externalName ?? "";
    default:
      return "<unknown>";
  }
}

function balancerAddresses(
  balancer: Pick<LoadBalancerStatus, "ingress"> | undefined,
): readonly string[] {
  const addresses = (balancer?.ingress ?? [])
    .map(({ ip, hostname }) => ip || hostname || "")
    .filter((address) => address !== "");
  return [...new Set(addresses)].sort();
}

/** First three addresses with their ports, and the number of the others. */
function endpointsText(subsets: readonly EndpointSubset[]): string {
  if (subsets.length === 0) return "<none>";
  const texts = subsets.flatMap(({ addresses = [], ports = [] }) =>
    ports.length === 0
      ? addresses.map(({ ip }) => ip)
      : ports.flatMap(({ port }) =>
        addresses.map(({ ip }) =>
          ip.includes(":") ? `[${ip}]:${port}` : `${ip}:${port}`
        )
      )
  );
  return firstThree(texts);
}

function sliceCells(object: EndpointSlice, now: number): readonly unknown[] {
  const ports = (object.ports ?? []).map(({ port, name }) =>
    String(port ?? name ?? "*")
  );
  const addresses = (object.endpoints ?? []).flatMap((endpoint) =>
    endpoint.addresses
  );
  return [
    nameOf(object),
    object.addressType,
    firstThree(ports) || "<unset>",
    firstThree(addresses) || "<unset>",
    ageOf(object, now),
  ];
}

function ingressCells(object: Ingress, now: number): readonly unknown[] {
  const { spec, status = {} } = object;
  return [
    nameOf(object),
    spec?.ingressClassName ?? "<none>",
    hostsText(spec?.rules ?? []),
    balancerAddresses(status.loadBalancer).join(","),
    spec?.tls?.length ? "80, 443" : "80",
    ageOf(object, now),
  ];
}

/** Hosts of the rules; rules without a host count among those not shown. */
function hostsText(rules: readonly IngressRule[]): string {
  const hosts: string[] = [];
  let hasMore = false;
  for (const { host } of rules) {
    hasMore ||= hosts.length === 3;
    if (!hasMore && host) hosts.push(host);
  }
  if (hosts.length === 0) return "*";
  const shown = hosts.join(",");
  return hasMore ? `${shown} + ${rules.length - 3} more...` : shown;
}

function parametersText({ spec }: IngressClass): string {
  const parameters = spec?.parameters;
  if (parameters === undefined) return "<none>";
  const { kind, apiGroup, name } = parameters;
  const fullKind = apiGroup === undefined ? kind : `${kind}.${apiGroup}`;
  return `${fullKind}/${name}`;
}
