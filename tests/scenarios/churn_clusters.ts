/**
 * Lets clusters join, leave, hang, lose their connections and change credentials at
 * random, over real sockets, while their objects change; checks that no object runs
 * twice at a time, and that in the end each has run with its last version.
 *
 * Usage: `npm run test:clusters -- [--seconds N] [--seed N]`; a minute by default.
 *
 * @module
 */
import assert from "node:assert/strict";
import process from "node:process";
import { configFromText } from "../../core/config/load_config.ts";
import { ConfigMap } from "../../core/kinds/core_v1.ts";
import { silentLogger } from "../../core/logger.ts";
import { Operator } from "../../core/operator/operator.ts";
import { ApiServer } from "../../dev/apiserver/server.ts";
import { Random } from "../soak/random.ts";
import { ClusterList } from "../support/cluster_list.ts";
import { commandLine } from "../support/command_line.ts";
import { until } from "../support/until.ts";

const CLUSTERS = 6;
/** Objects that are changed in each cluster. */
const OBJECTS = 10;
/** Longest pause between two changes, in milliseconds. */
const PAUSE_MS = 40;
/** Longest runs: most are short, and some outlast a leave and the next join. */
const RUN_MS = 60;
const LONG_RUN_MS = 4_000;
/** Time for which a request hangs, in milliseconds. */
const HANG_MS = 60_000;
/** Time in which all must have run after the last change, in milliseconds. */
const LIMIT_MS = 120_000;
const NAMESPACE = "default";

const { integer } = commandLine("test clusters", {
  seconds: { type: "string" },
  seed: { type: "string" },
});
const seconds = integer("seconds", 1) ?? 60;
const seed = integer("seed") ?? Math.floor(Math.random() * 2 ** 32);
const random = new Random(seed);
const pause = (limit: number) =>
  new Promise((resolve) => setTimeout(resolve, random.below(limit)));

const home = await ApiServer.start({ port: false });
const servers = new Map<string, ApiServer>();
for (let index = 0; index < CLUSTERS; index++) {
  const server = await ApiServer.start({ seed: index });
  servers.set(`cluster-${index}`, server);
  for (let number = 0; number < OBJECTS; number++) {
    await server.client.create(ConfigMap, {
      metadata: { namespace: NAMESPACE, name: `object-${number}` },
      data: { value: "0" },
    });
  }
}

/** Users of the clusters; a cluster without one has left. */
const users = new Map<string, number>();
const list = new ClusterList();
async function tell(): Promise<void> {
  list.set(
    await Promise.all(
      Array.from(users, async ([name, user]) => ({
        name,
        target: await configFromText(
          servers.get(name)!.kubeconfigFor({
            name: `user-${user}`,
            groups: ["system:masters"],
          }),
        ),
      })),
    ),
  );
}

const running = new Set<string>();
const fouls: string[] = [];
/** Last version of each object that a run has ended with. */
const seen = new Map<string, string | undefined>();
let runs = 0;
const operator = new Operator({ client: home.client, logger: silentLogger });
const controller = operator.register(ConfigMap, {
  async reconcile({ metadata: { name, resourceVersion } }, { cluster }) {
    const key = `${cluster}/${name}`;
    if (running.has(key)) fouls.push(key);
    running.add(key);
    runs++;
    // Ignores its signal, as a reconciler that is not well-behaved.
    await pause(random.below(8) === 0 ? LONG_RUN_MS : RUN_MS);
    running.delete(key);
    seen.set(key, resourceVersion);
  },
}, { clusters: list.source, namespaces: [NAMESPACE] });

const counts = { join: 0, leave: 0, rotate: 0, hang: 0, drop: 0, change: 0 };
async function act(): Promise<void> {
  const name = random.pick([...servers.keys()]);
  const server = servers.get(name)!;
  const kind = random.below(20);
  if (kind === 0 && users.delete(name)) {
    counts.leave++;
    await tell();
    if (random.below(2) === 0) return;
    await pause(PAUSE_MS);
    users.set(name, 0);
    counts.join++;
    await tell();
  } else if (kind <= 2) {
    const user = users.get(name);
    counts[user === undefined ? "join" : "rotate"]++;
    users.set(name, (user ?? 0) + 1);
    await tell();
  } else if (kind === 3) {
    counts.hang++;
    server.faults.stallWatches();
    server.faults.add({
      verb: random.pick(["list", "watch"] as const),
      count: 1 + random.below(3),
      effect: { delay: HANG_MS },
    });
  } else if (kind === 4) {
    counts.drop++;
    server.faults.dropConnections();
  } else {
    counts.change++;
    const object = `object-${random.below(OBJECTS)}`;
    await changeOf(server, object);
  }
}

function changeOf(server: ApiServer, name: string): Promise<unknown> {
  return server.client.patch(ConfigMap, { namespace: NAMESPACE, name }, {
    data: { value: String(counts.change) },
  });
}

try {
  await operator.start();
  const end = performance.now() + seconds * 1_000;
  while (performance.now() < end) {
    await act();
    await pause(PAUSE_MS);
  }
  for (const [name, server] of servers) {
    server.faults.clear();
    server.faults.dropConnections();
    users.set(name, users.get(name) ?? 0);
  }
  await tell();
  const late = async () => {
    const missing: string[] = [];
    for (const [name, { client }] of servers) {
      const { items } = await client.list(ConfigMap, { namespace: NAMESPACE });
      for (const { metadata } of items) {
        const key = `${name}/${metadata.name}`;
        if (seen.get(key) !== metadata.resourceVersion) missing.push(key);
      }
    }
    return missing;
  };
  await until(
    "each object has run with its last version",
    async () => (await late()).length === 0,
    { within: LIMIT_MS, every: 200 },
  ).catch(async (error) => {
    const { clusters } = controller.health();
    throw new Error(
      `Objects were lost with --seed ${seed}: ${await late()}: ${
        JSON.stringify(clusters)
      }`,
      { cause: error },
    );
  });
  assert.deepEqual(fouls, [], `objects ran twice at a time, --seed ${seed}`);
} finally {
  await operator.stop();
  for (const server of servers.values()) await server.stop();
  await home.stop();
}
process.stdout.write(
  `Nothing was lost, and nothing ran twice at a time, in ${seconds} s with --seed ${seed}: ${runs} runs, ${
    JSON.stringify(counts)
  }\n`,
);
