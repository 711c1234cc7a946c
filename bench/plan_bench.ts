/**
 * Plan of an operator: seconds and processor time beyond the listing, and peak RSS
 * of the process of the plan. Either few of 100,000 objects are the operator's, or
 * all are, and an upgrade from an older version changes each of them. The operator
 * makes, changes or deletes four objects for each site.
 *
 * @module
 */
import process from "node:process";
import { configFromText } from "@coracle/operator/client";
import { clientSettings } from "../core/client/client_options.ts";
import { openConnection } from "../core/client/connection.ts";
import { planOperator } from "../dev/testing/plan/plan_operator.ts";
import { fixture, readThrough } from "../tests/testing/plan/cluster_copy.ts";
import {
  type Bench,
  type Measure,
  type Subject,
  verify,
} from "./support/bench.ts";
import { cpuTime, peakRss } from "./support/sampling.ts";
import { startChildServer } from "./support/child_server.ts";

/** Objects of a cluster. */
interface Load {
  /** Sites, which the operator reconciles. */
  readonly sites: number;
  /** ConfigMaps that are none of the operator's. */
  readonly others: number;
  /** Whether the objects are those of an older version, which is planned as well. */
  readonly isUpgrade?: boolean;
}

async function run(load: Load): Promise<readonly Measure[]> {
  const server = await startChildServer<string>(
    "plan_server_process.ts",
    load.sites,
    load.others,
    load.isUpgrade ? "old" : "none",
  );
  const config = await configFromText(server.ready);
  const transport = openConnection(config, clientSettings(config, {}));
  const now = performance.now.bind(performance);
  let listed = 0;
  let listedBy = 0;
  const shown = new Set<string>();
  const start = now();
  const startedBy = cpuTime();
  const report = await planOperator({
    file: fixture("site_new"),
    ...load.isUpgrade && { from: fixture("site_old") },
    duration: 3_600_000,
    hosts: [],
    async read(kinds, { primaries }) {
      const begun = now();
      const begunBy = cpuTime();
      try {
        return await readThrough(transport, {
          kinds,
          primaries,
          onProgress: (resource) => shown.add(resource),
        });
      } finally {
        listed += now() - begun;
        listedBy += cpuTime() - begunBy;
      }
    },
    onProgress: (text) => shown.add(text),
  });
  const spent = now() - start;
  const spentBy = cpuTime() - startedBy;
  await transport.close();
  await server.stop();
  const { sites, others } = load;
  verify(report.cluster.objects >= sites + others, "all objects are read");
  verify(report.changes.length === 5 * sites, "each site has five changes");
  verify(shown.has("configmaps"), "progress is shown");
  return [
    { unit: "s beyond the listing", value: (spent - listed) / 1e3 },
    { unit: "s of processors beyond it", value: (spentBy - listedBy) / 1e6 },
    { unit: "s of the listing", value: listed / 1e3 },
    peakRss(),
  ];
}

function subject(load: Load): Subject {
  const { sites, others, isUpgrade } = load;
  return {
    name: isUpgrade
      ? `upgrade of ${5 * sites} objects`
      : `${sites} sites, ${others} others`,
    run: () => run(load),
  };
}

export const bench: Bench = {
  name: "plan",
  what:
    "coracle plan for 100,000 objects, and --from an older version for objects that all change; the server beside it",
  rounds: 1,
  subjects: process.platform === "linux"
    ? [
      subject({ sites: 500, others: 99_500 }),
      ...[400, 1_000, 2_000].map((sites) =>
        subject({ sites, others: 0, isUpgrade: true })
      ),
    ]
    : [],
};
