import type { Service } from "@coracle/operator/kinds";
import { fnv } from "../../hashes.ts";
import type { HookContext } from "../../registry.ts";

const SERVICES = { group: "", plural: "services" } as const;

/** First allocatable address: 10.96.0.0/12 without the addresses of the network and the server. */
const FIRST_ADDRESS = 10 * 2 ** 24 + 96 * 2 ** 16 + 2;
const ADDRESSES = 2 ** 20 - 3;
const FIRST_NODE_PORT = 30_000;
const NODE_PORTS = 2_768;

/** Key of the Service that holds an address or node port. */
interface Holder {
  readonly namespace: string;
  readonly name: string;
}

/**
 * Allocator of cluster IPs and node ports. Existing allocations are read lazily
 * from the stored Services; the addresses of deleted or changed Services become
 * free again.
 */
export class ServiceAddresses {
  #holders: Map<string, Holder> | undefined;

  /** Allocates a free cluster IP. */
  takeAddress(service: Service, context: HookContext): string {
    const address = this.#take(service, context, (attempt) =>
      addressText(
        FIRST_ADDRESS + fnv(`${service.metadata.uid}${attempt}`) % ADDRESSES,
      ));
    if (address !== undefined) return address;
    throw new RangeError("Cannot allocate a cluster IP: all are in use");
  }

  /** Allocates a free node port; `use` distinguishes the ports of one Service. */
  takeNodePort(service: Service, use: string, context: HookContext): number {
    const port = this.#take(service, context, (attempt) =>
      String(
        FIRST_NODE_PORT +
          (fnv(`${service.metadata.uid}${use}`) + attempt) % NODE_PORTS,
      ));
    if (port !== undefined) return Number(port);
    throw new RangeError("Cannot allocate a node port: all are in use");
  }

  /** Allocates a given address or port; returns false if another Service holds it. */
  claim(service: Service, what: string, context: HookContext): boolean {
    const holder = this.#holderOf(what, context);
    const { name, namespace = "" } = service.metadata;
    const isOwn = holder !== undefined && holder.name === name &&
      holder.namespace === namespace;
    if (holder !== undefined && !isOwn) return false;
    if (!context.dryRun) {
      this.#read(context).set(what, { namespace, name });
    }
    return true;
  }

  #take(
    service: Service,
    context: HookContext,
    candidate: (attempt: number) => string,
  ): string | undefined {
    for (let attempt = 0; attempt < NODE_PORTS; attempt++) {
      const what = candidate(attempt);
      if (this.claim(service, what, context)) return what;
    }
    return undefined;
  }

  #holderOf(what: string, context: HookContext): Holder | undefined {
    const holder = this.#read(context).get(what);
    if (holder === undefined) return undefined;
    const service = context.find(SERVICES, holder) as Service | undefined;
    return service && held(service).includes(what) ? holder : undefined;
  }

  #read(context: HookContext): Map<string, Holder> {
    if (this.#holders) return this.#holders;
    const holders = new Map<string, Holder>();
    for (const object of context.list(SERVICES)) {
      const { name, namespace = "" } = object.metadata;
      for (const what of held(object as unknown as Service)) {
        holders.set(what, { namespace, name });
      }
    }
    return this.#holders = holders;
  }
}

/** Cluster IPs and node ports of a Service. */
function held({ spec }: Service): string[] {
  const ports = (spec?.ports ?? []).map(({ nodePort }) => nodePort ?? 0);
  return [
    ...(spec?.clusterIPs ?? []).filter((address) => address !== "None"),
    ...[...ports, spec?.healthCheckNodePort ?? 0]
      .filter((port) => port !== 0).map(String),
  ];
}

function addressText(address: number): string {
  return [24, 16, 8, 0].map((shift) => (address >>> shift) & 255).join(".");
}
