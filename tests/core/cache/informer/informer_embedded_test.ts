import assert from "node:assert/strict";
import { test } from "node:test";
import { TestCluster, VirtualClock } from "@coracle/dev";
import type { FaultEffect } from "@coracle/dev/apiserver";
import {
  Client,
  Informer,
  type InformerOptions,
  untyped,
} from "@coracle/operator/client";
import {
  ConfigMap,
  CustomResourceDefinition,
  Namespace,
} from "@coracle/operator/kinds";
import { type Random, seededRandom } from "../../../../dev/apiserver/random.ts";
import { stateOf } from "../../../support/fake_watch_call.ts";
import { ON_REAL_CLUSTER } from "../../../support/scenario_cluster.ts";

interface Parts {
  readonly cluster: TestCluster;
  /** A client on the clock of the test. */
  readonly client: Client;
  readonly clock: VirtualClock;
  readonly informer: Informer<ConfigMap>;
  /** Lets time pass until the cache shows what the server has. */
  settled(): Promise<void>;
}

/** The ConfigMaps of a test; a real cluster puts one of its own beside them. */
const selection = { labelSelector: "of=test" };

/** Runs a test with an informer over the embedded server, or a real one. */
async function withCluster(
  run: (parts: Parts) => Promise<void>,
  options: InformerOptions = {},
): Promise<void> {
  const clock = new VirtualClock();
  const cluster = await TestCluster.start({ clock, server: { seed: 7 } });
  const { transport, namespace } = cluster;
  const client = new Client({ transport }, { clock });
  const informer = new Informer(client, ConfigMap, {
    namespaces: [namespace],
    ...selection,
    clock,
    random: () => 0.5,
    ...options,
  });
  // State of the objects from the events of a handler alone, by key.
  const mirror = new Map<string, string>();
  informer.addHandler(({ type, key, header }) => {
    if (type === "deleted") mirror.delete(key);
    else mirror.set(key, header.resourceVersion);
  });
  const settled = async () => {
    const state = async () => {
      const { items } = await cluster.client.list(ConfigMap, {
        namespace,
        ...selection,
      });
      return JSON.stringify(stateOf(items));
    };
    await cluster.until(async () =>
      informer.hasSynced &&
      JSON.stringify(stateOf(informer.list())) === await state()
    );
    const entries = [...mirror].toSorted(([a], [b]) => a < b ? -1 : 1);
    assert.equal(JSON.stringify(Object.fromEntries(entries)), await state());
  };
  try {
    await run({ cluster, client, clock, informer, settled });
  } finally {
    await informer.stop();
    await cluster.stop();
  }
}

function below(random: Random, limit: number): number {
  return Math.floor(random.next() * limit);
}

async function write(
  { client, namespace }: TestCluster,
  random: Random,
): Promise<void> {
  const key = { namespace, name: `c${below(random, 6)}` };
  if (below(random, 4) === 0) {
    await client.delete(ConfigMap, key).catch(() => {});
    return;
  }
  await client.apply(ConfigMap, {
    metadata: { ...key, labels: { of: "test" } },
    data: { value: String(below(random, 1_000)) },
  }, { fieldManager: "test", force: true });
}

/** The faults that befall lists and watches. */
const EFFECTS: readonly FaultEffect[] = [
  { status: 500 },
  { status: 429, retryAfter: 2 },
  { status: 503, retryAfter: 1 },
  { reset: "request" },
  { cutAfter: 0 },
  { cutAfter: 700 },
  { stallAfter: 1 },
  { expired: true },
  { withoutEndBookmark: true },
  { delay: 20_000 },
  { delay: 120_000 },
];

for (const watchList of [true, false]) {
  const how = watchList ? "streams" : "pages";
  test(`Informer follows a server through all its faults, by ${how}`, () =>
    withCluster(async ({ cluster, clock, informer, settled }) => {
      const { faults, server } = cluster;
      const random = seededRandom(42);
      await write(cluster, random);
      informer.start();
      for (const effect of EFFECTS) {
        const rules = ["list", "watch"].map((verb) =>
          faults.add({ verb, resource: "configmaps", effect, count: 2 })
        );
        for (let round = 0; round < 6; round++) {
          await write(cluster, random);
          await clock.advance(below(random, 20_000));
          if (round === 2) faults.cutWatches();
          if (round === 4) server?.faults.compact();
          if (round === 4) faults.endWatches();
        }
        for (const rule of rules) rule.remove();
        await settled();
      }
    }, { reconnect: { watchList, pageSize: 2 } }));
}

for (const watchList of [true, false]) {
  const how = watchList ? "streams" : "pages";
  test(`Informer waits minutes while a server warms its caches, by ${how}`, () =>
    withCluster(async ({ cluster, clock, informer, settled }) => {
      const { faults } = cluster;
      const random = seededRandom(9);
      for (let index = 0; index < 8; index++) await write(cluster, random);
      const refuse = () =>
        ["list", "watch"].map((verb) =>
          faults.add({
            verb,
            resource: "configmaps",
            effect: { status: 429, retryAfter: 30 },
          })
        );
      const starting = refuse();
      informer.start();
      await clock.advance(5 * 60_000);
      assert.equal(informer.hasSynced, false);
      assert.match(
        informer.health().watches[0]?.lastError?.message ?? "",
        /429|[Tt]oo many requests/,
      );
      const asked = starting.reduce((sum, rule) => sum + rule.hits, 0);
      assert.ok(asked > 2 && asked <= 11, `${asked} requests in 5 min`);
      for (const rule of starting) rule.remove();
      await settled();

      const running = refuse();
      faults.endWatches();
      const cached = JSON.stringify(stateOf(informer.list()));
      await clock.advance(3 * 60_000);
      assert.equal(JSON.stringify(stateOf(informer.list())), cached);
      for (const rule of running) rule.remove();
      for (let index = 0; index < 4; index++) await write(cluster, random);
      await settled();
      assert.ok(running.some(({ hits }) => hits > 1));
    }, { reconnect: { watchList, pageSize: 2 } }));
}

for (const keepData of [true, false]) {
  const how = keepData ? "with its data" : "without its data";
  const skip = ON_REAL_CLUSTER && !keepData &&
    "a real cluster does not lose its data";
  test(
    `Informer recovers after the server was down, ${how}`,
    { skip },
    () =>
      withCluster(async ({ cluster, clock, informer, settled }) => {
        const { client, namespace, faults } = cluster;
        const random = seededRandom(3);
        for (let index = 0; index < 8; index++) await write(cluster, random);
        informer.start();
        await settled();
        const back = faults.restart({ downFor: 30_000, keepData });
        await clock.advance(31_000);
        await back;
        if (!keepData) {
          await client.create(Namespace, { metadata: { name: namespace } });
        }
        for (let index = 0; index < 4; index++) await write(cluster, random);
        await settled();
      }),
  );
}

test("Informer waits for a kind that is not defined yet", () =>
  withCluster(async ({ cluster, client, clock }) => {
    const { namespace } = cluster;
    const group = `${namespace}.example.dev`;
    const kind = untyped({ group, version: "v1", kind: "Late" });
    const informer = new Informer(client, kind, { clock });
    informer.start();
    await clock.advance(5_000);
    assert.equal(informer.hasSynced, false);
    assert.match(
      informer.health().watches[0]?.lastError?.message ?? "",
      /example\.dev/,
    );
    const key = { name: `lates.${group}` };
    await cluster.client.create(CustomResourceDefinition, {
      metadata: key,
      spec: {
        group,
        names: { kind: "Late", plural: "lates" },
        scope: "Namespaced",
        versions: [{
          name: "v1",
          served: true,
          storage: true,
          schema: {
            openAPIV3Schema: {
              type: "object",
              "x-kubernetes-preserve-unknown-fields": true,
            },
          },
        }],
      },
    });
    await cluster.until(() => informer.hasSynced);
    await cluster.client.create(kind, { metadata: { namespace, name: "a" } });
    await cluster.until(() => informer.has(`${namespace}/a`));
    await informer.stop();
    await cluster.client.delete(CustomResourceDefinition, key);
  }));
