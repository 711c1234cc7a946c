import type { Client, Transport } from "@coracle/operator/client";
import { silentLogger } from "@coracle/operator/client";
import { installCrd } from "@coracle/operator/crd";
import { ConfigMap, Deployment } from "@coracle/operator/kinds";
import type { PlanReport } from "../../../dev/testing/plan/plan_report.ts";
import { planFor, readThrough } from "./cluster_copy.ts";
import { Site } from "./fixtures/site.ts";
import { operator as oldOperator } from "./fixtures/site_old.ts";
import { operator as newOperator } from "./fixtures/site_new.ts";
import { happenedBetween, planned, runUntil } from "./happened.ts";

/** Outcome of {@linkcode upgrade}. */
export interface Upgrade {
  readonly report: PlanReport;
  readonly planned: ReturnType<typeof planned>;
  readonly happened: ReturnType<typeof happenedBetween>;
}

/**
 * Prepares a cluster with an old version of an operator, plans its new version,
 * and then runs that one. Site `bravo` is refused by its definition; of `alpha`
 * another manager has set the replicas.
 */
export async function upgrade(
  client: Client,
  { planned: transport, kinds, namespace }: {
    /** Transport that the plan reads through. */
    readonly planned: Transport;
    readonly kinds?: readonly { group: string; kind: string }[];
    readonly namespace: string;
  },
): Promise<Upgrade> {
  const options = {
    client,
    namespaces: [namespace],
    logger: silentLogger,
  };
  await installCrd(client, Site);
  for (const name of ["alpha", "bravo", "charlie"]) {
    await client.create(Site, {
      metadata: { namespace, name },
      spec: { html: `<p>${name}`, fail: name === "bravo" || undefined },
    });
  }
  const statusOf = async (name: string) =>
    (await client.get(Site, { namespace, name })).status;
  await runUntil(oldOperator(options), async () => {
    const all = ["alpha", "bravo", "charlie"].map(statusOf);
    return (await Promise.all(all)).every((status) => status?.level === 1);
  });
  await client.apply(Deployment, {
    metadata: { namespace, name: "alpha" },
    spec: {
      replicas: 3,
      selector: { matchLabels: { app: "alpha" } },
      template: {
        metadata: { labels: { app: "alpha" } },
        spec: { containers: [{ name: "web" }] },
      },
    },
  } as never, { fieldManager: "autoscaler", force: true });
  const reading = { namespaces: [namespace], kinds };
  const before = await readThrough(transport, reading);
  const report = await planFor(transport, "site_new", {
    reading: { namespaces: [namespace] },
  });
  await runUntil(newOperator(options), async () => {
    const { items } = await client.list(ConfigMap, { namespace });
    const all = ["alpha", "charlie"].map(statusOf);
    return (await Promise.all(all)).every((status) => status?.level === 2) &&
      !items.some(({ metadata }) => metadata.name.endsWith("-legacy"));
  });
  const after = await readThrough(transport, reading);
  return {
    report,
    planned: planned(report),
    happened: happenedBetween(before, after),
  };
}
