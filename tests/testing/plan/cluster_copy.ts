import { Client, systemClock, type Transport } from "@coracle/operator/client";
import { planOperator } from "../../../dev/testing/plan/plan_operator.ts";
import type { PlanReport } from "../../../dev/testing/plan/plan_report.ts";
import { ReadOnlyTransport } from "../../../dev/testing/plan/read_only_transport.ts";
import {
  readCluster,
  type ReadOptions,
} from "../../../dev/testing/plan/read_cluster.ts";
import { Snapshot } from "../../../dev/testing/plan/snapshot.ts";

type Settings = Parameters<typeof planOperator>[0];

/** Path of a fixture of the plans. */
export function fixture(name: string): string {
  return new URL(`./fixtures/${name}.ts`, import.meta.url).pathname;
}

/** Reads a cluster through a client that only reads. */
export async function readThrough(
  inner: Transport,
  options: Partial<ReadOptions> = {},
): Promise<Snapshot> {
  const transport = new ReadOnlyTransport(inner);
  const client = new Client({ transport }, {
    clock: systemClock,
    retry: false,
  });
  const snapshot = new Snapshot();
  const info = await readCluster({ client, transport }, snapshot, {
    kinds: undefined,
    hidesSecrets: false,
    now: Date.now,
    ...options,
  });
  return snapshot.end(info);
}

/** Plans the operator of a fixture for the cluster of a transport. */
export function planFor(
  transport: Transport,
  name: string,
  options: Partial<Settings> & { readonly reading?: Partial<ReadOptions> } = {},
): Promise<PlanReport> {
  const { reading, ...settings } = options;
  return planOperator({
    file: fixture(name),
    duration: 3_600_000,
    hosts: [],
    read: (kinds, { primaries }) =>
      readThrough(transport, { kinds, primaries, ...reading }),
    ...settings,
  });
}
