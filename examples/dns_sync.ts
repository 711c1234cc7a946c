/**
 * Keeps the records of a DNS zone the same as the Services and Ingresses with the
 * annotation `dns.example.com/hostname`: a job without a primary. Changes of many
 * objects at once cause one sync, and an hourly one mends what others changed.
 * With `--once` it syncs once and ends, for a CronJob of a cluster.
 *
 * ZONE_URL is the API of the zone: `GET` gives its records as an object of host
 * names and addresses, and `PUT` replaces them.
 */
import process from "node:process";
import {
  type KubernetesObject,
  Operator,
  type OperatorOptions,
  watch,
} from "@coracle/operator";
import { Ingress, Service } from "@coracle/operator/kinds";

const HOSTNAME = "dns.example.com/hostname";
const ZONE = process.env["ZONE_URL"] ?? "http://127.0.0.1:8053/zone";

type Records = Record<string, string[]>;

/** Object with addresses of a load balancer. */
interface Balanced extends KubernetesObject {
  status?: {
    loadBalancer?: {
      ingress?: readonly { ip?: string; hostname?: string }[];
    };
  };
}

/** Names of an object: those of its annotation, and of the rules of an Ingress. */
function hostsOf({ metadata, spec }: Balanced & { spec?: unknown }): string[] {
  const named = metadata.annotations?.[HOSTNAME]?.split(",") ?? [];
  const { rules = [] } = Object(spec) as NonNullable<Ingress["spec"]>;
  const ruled = rules.flatMap(({ host }) => host ?? []);
  return [...new Set([...named.map((name) => name.trim()), ...ruled])];
}

/** Records of all objects that have an address, in a stable order. */
export function recordsOf(objects: readonly Balanced[]): Records {
  const records = new Map<string, Set<string>>();
  for (const object of objects) {
    if (object.metadata.annotations?.[HOSTNAME] === undefined) continue;
    const addresses = (object.status?.loadBalancer?.ingress ?? [])
      .flatMap(({ ip, hostname }) => ip ?? hostname ?? []);
    for (const host of addresses.length > 0 ? hostsOf(object) : []) {
      const known = records.get(host) ?? new Set();
      for (const address of addresses) known.add(address);
      records.set(host, known);
    }
  }
  return Object.fromEntries(
    [...records].sort(([a], [b]) => a < b ? -1 : 1)
      .map(([host, addresses]) => [host, [...addresses].sort()]),
  );
}

/** Operator that syncs the zone, which a test may answer for. */
export function operator(
  options: OperatorOptions = {},
  ask: (url: string, init: RequestInit) => Promise<Response> = fetch,
): Operator {
  const made = new Operator({
    leaderElection: { name: "dns" },
    ...options,
  });
  const zone = async (init: RequestInit) => {
    const response = await ask(ZONE, init);
    if (response.ok) return await response.text();
    throw new Error(`Cannot sync the zone: it answers ${response.status}`);
  };
  made.job("dns", {
    watches: [watch(Service), watch(Ingress)],
    debounce: "2s",
    every: "1h",
    timeout: "30s",
  }, async (ctx) => {
    const objects = [...await ctx.list(Service), ...await ctx.list(Ingress)];
    const { signal } = ctx;
    const wanted = JSON.stringify(recordsOf(objects as unknown as Balanced[]));
    if (await zone({ signal }) === wanted) return;
    await zone({ method: "PUT", body: wanted, signal });
    ctx.log.info("Wrote the zone", { objects: objects.length });
  });
  return made;
}

if (import.meta.main) {
  await operator().run({ once: process.argv.includes("--once") });
}
