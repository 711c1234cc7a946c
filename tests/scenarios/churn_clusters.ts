/**
 * Lets clusters join, leave, hang, lose their connections and change credentials at
 * random, over real sockets, while their objects change; checks that no object runs
 * twice at a time, and that in the end each has run with its last version.
 *
 * Usage: `npm run test:clusters -- [--seconds N] [--seed N] [--real]`; a minute by
 * default. With `--real` one more cluster is a real control plane, behind a proxy that
 * cuts, resets, freezes and slows its connections.
 *
 * @module
 */
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import process from "node:process";
import { parse } from "yaml";
import { Client } from "../../core/client/client.ts";
import type { ClientTarget } from "../../core/client/client_options.ts";
import { configFromText } from "../../core/config/load_config.ts";
import { ConfigMap, ServiceAccount } from "../../core/kinds/core_v1.ts";
import { ClusterRoleBinding } from "../../core/kinds/rbac_v1.ts";
import { silentLogger } from "../../core/logger.ts";
import { Operator } from "../../core/operator/operator.ts";
import { ApiServer } from "../../dev/apiserver/server.ts";
import { startControlPlane } from "../cluster/control_plane.ts";
import { Random } from "../soak/random.ts";
import { RoughProxy } from "../soak/rough_proxy.ts";
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

const { integer, values } = commandLine("test clusters", {
  seconds: { type: "string" },
  seed: { type: "string" },
  real: { type: "boolean" },
});
const seconds = integer("seconds", 1) ?? 60;
const seed = integer("seed") ?? Math.floor(Math.random() * 2 ** 32);
const random = new Random(seed);
const pause = (limit: number) =>
  new Promise((resolve) => setTimeout(resolve, random.below(limit)));

/** Cluster that joins and leaves. */
interface Churned {
  readonly client: Client;
  /** Target with the credentials of a user, which are new for each number. */
  target(user: number): Promise<ClientTarget>;
  /** Makes some requests hang, or cuts all connections. */
  disturb(how: "hang" | "drop"): void;
  /** Ends all disturbance, with the connections that it is about. */
  calm(): void;
  stop(): Promise<void>;
}

async function embedded(number: number): Promise<Churned> {
  const server = await ApiServer.start({ seed: number });
  const { client, faults } = server;
  return {
    client,
    target: (user) =>
      configFromText(
        server.kubeconfigFor({
          name: `user-${user}`,
          groups: ["system:masters"],
        }),
      ),
    disturb(how) {
      if (how === "drop") return void faults.dropConnections();
      faults.stallWatches();
      faults.add({
        verb: random.pick(["list", "watch"] as const),
        count: 1 + random.below(3),
        effect: { delay: HANG_MS },
      });
    },
    calm() {
      faults.clear();
      faults.dropConnections();
    },
    stop: () => server.stop(),
  };
}

/** A real control plane, whose users have tokens of one ServiceAccount. */
async function real(): Promise<Churned> {
  const plane = await startControlPlane();
  if (plane === undefined) {
    throw new Error("Cannot start a control plane: it needs a Go toolchain");
  }
  const text = await readFile(plane.kubeconfig, "utf8");
  const client = new Client(await configFromText(text));
  const kubeconfig = parse(text);
  const { cluster } = kubeconfig.clusters[0];
  const proxy = await RoughProxy.start({
    target: cluster.server,
    ...{ random, period: 1_000 },
  });
  const account = { namespace: NAMESPACE, name: "churn" };
  await client.create(ServiceAccount, { metadata: account });
  await client.create(ClusterRoleBinding, {
    metadata: { name: account.name },
    roleRef: {
      apiGroup: "rbac.authorization.k8s.io",
      kind: "ClusterRole",
      name: "cluster-admin",
    },
    subjects: [{ kind: "ServiceAccount", ...account }],
  });
  return {
    client,
    async target() {
      const { status: { token } } = await client.createSubresource<
        { readonly status: { readonly token: string } }
      >(ServiceAccount, account, "token", {
        apiVersion: "authentication.k8s.io/v1",
        kind: "TokenRequest",
        spec: {},
      });
      return await configFromText(JSON.stringify({
        ...kubeconfig,
        clusters: [{
          ...kubeconfig.clusters[0],
          cluster: { ...cluster, server: proxy.url },
        }],
        users: [{ ...kubeconfig.users[0], user: { token } }],
      }));
    },
    disturb() {}, // The proxy does, all the time.
    calm: () => proxy.calm(),
    async stop() {
      await proxy.stop();
      await client.delete(ClusterRoleBinding, { name: account.name });
      await client.delete(ServiceAccount, account);
      for (let number = 0; number < OBJECTS; number++) {
        const name = `object-${number}`;
        await client.delete(ConfigMap, { namespace: NAMESPACE, name });
      }
      await client.close();
      await plane.stop();
    },
  };
}

const home = await ApiServer.start({ port: false });
const churned = new Map<string, Churned>();
for (let number = 0; number < CLUSTERS; number++) {
  churned.set(`cluster-${number}`, await embedded(number));
}
if (values.real) churned.set("real", await real());
for (const [, { client }] of churned) {
  for (let number = 0; number < OBJECTS; number++) {
    await client.create(ConfigMap, {
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
        target: await churned.get(name)!.target(user),
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
  const name = random.pick([...churned.keys()]);
  const cluster = churned.get(name)!;
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
  } else if (kind <= 4) {
    const how = kind === 3 ? "hang" : "drop";
    counts[how]++;
    cluster.disturb(how);
  } else {
    counts.change++;
    const object = `object-${random.below(OBJECTS)}`;
    await changeOf(cluster, object);
  }
}

function changeOf({ client }: Churned, name: string): Promise<unknown> {
  return client.patch(ConfigMap, { namespace: NAMESPACE, name }, {
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
  for (const [name, cluster] of churned) {
    cluster.calm();
    users.set(name, users.get(name) ?? 0);
  }
  await tell();
  const late = async () => {
    const missing: string[] = [];
    for (const [name, { client }] of churned) {
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
  for (const cluster of churned.values()) await cluster.stop();
  await home.stop();
}
process.stdout.write(
  `Nothing was lost, and nothing ran twice at a time, in ${seconds} s with --seed ${seed}: ${runs} runs, ${
    JSON.stringify(counts)
  }\n`,
);
