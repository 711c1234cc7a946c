import assert from "node:assert/strict";
import { test } from "node:test";
import type { FaultEffect } from "../../../core/apiserver/faults/fault_rule.ts";
import { ApiServer } from "../../../core/apiserver/server.ts";
import { Informer } from "../../../core/cache/informer.ts";
import type { InformerOptions } from "../../../core/cache/informer_options.ts";
import type { Client } from "../../../core/client/client.ts";
import { ConfigMap } from "../../../core/kinds/mod.ts";
import { untyped } from "../../../core/api/kind.ts";
import { VirtualClock } from "../../../core/virtual_clock.ts";
import { type Random, seededRandom } from "../../../core/apiserver/random.ts";
import { stateOf } from "../../support/fake_watch_server.ts";

interface Parts {
  readonly server: ApiServer;
  readonly client: Client;
  readonly clock: VirtualClock;
  readonly informer: Informer<ConfigMap>;
  /** What a handler believes from its events alone, by key. */
  readonly mirror: Map<string, string>;
  /** Lets time pass until the cache shows what the server has. */
  settled(): Promise<void>;
}

/** Runs a test with an informer over the embedded server, without a socket. */
async function withEmbedded(
  run: (parts: Parts) => Promise<void>,
  options: InformerOptions = {},
): Promise<void> {
  const clock = new VirtualClock();
  const server = await ApiServer.start({ port: false, clock, seed: 7 });
  const { client } = server;
  const informer = new Informer(client, ConfigMap, {
    namespaces: ["default"],
    clock,
    random: () => 0.5,
    ...options,
  });
  const mirror = new Map<string, string>();
  informer.addHandler(({ type, key, header }) => {
    if (type === "deleted") mirror.delete(key);
    else mirror.set(key, header.resourceVersion);
  });
  try {
    await run({
      server,
      client,
      clock,
      informer,
      mirror,
      async settled() {
        const state = async () => {
          const { items } = await client.list(ConfigMap, {
            namespace: "default",
          });
          return JSON.stringify(stateOf(items));
        };
        await clock.runUntil(async () =>
          informer.hasSynced &&
          JSON.stringify(stateOf(informer.list())) === await state()
        );
        const entries = [...mirror].toSorted(([a], [b]) => a < b ? -1 : 1);
        assert.equal(
          JSON.stringify(Object.fromEntries(entries)),
          await state(),
        );
      },
    });
  } finally {
    await informer.stop();
    await server.stop();
  }
}

function below(random: Random, limit: number): number {
  return Math.floor(random.next() * limit);
}

async function write(client: Client, random: Random): Promise<void> {
  const name = `c${below(random, 6)}`;
  const key = { namespace: "default", name };
  if (below(random, 4) === 0) {
    await client.delete(ConfigMap, key).catch(() => {});
    return;
  }
  await client.apply(ConfigMap, {
    metadata: key,
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
  test(`Informer follows the embedded server through all its faults, by ${how}`, () =>
    withEmbedded(async ({ server, client, clock, informer, settled }) => {
      const random = seededRandom(42);
      await write(client, random);
      informer.start();
      for (const effect of EFFECTS) {
        const rules = ["list", "watch"].map((verb) =>
          server.faults.add({ verb, resource: "configmaps", effect, count: 2 })
        );
        for (let round = 0; round < 6; round++) {
          await write(client, random);
          await clock.advance(below(random, 20_000));
          if (round === 2) server.faults.cutWatches();
          if (round === 4) server.faults.compact();
          if (round === 4) server.faults.endWatches();
        }
        for (const rule of rules) rule.remove();
        await settled();
      }
    }, { reconnect: { watchList, pageSize: 2 } }));
}

test("Informer finds its way after the embedded server was down, with its data and without", () =>
  withEmbedded(async ({ server, client, clock, informer, settled }) => {
    const random = seededRandom(3);
    for (let index = 0; index < 8; index++) await write(client, random);
    informer.start();
    await settled();
    for (const keepData of [true, false]) {
      const back = server.faults.restart({ downFor: 30_000, keepData });
      await clock.advance(31_000);
      await back;
      for (let index = 0; index < 4; index++) await write(client, random);
      await settled();
    }
  }));

test("Informer waits for a kind that is not defined yet", () =>
  withEmbedded(async ({ client, clock }) => {
    const kind = untyped({ group: "example.dev", version: "v1", kind: "Late" });
    const informer = new Informer(client, kind, { clock });
    informer.start();
    await clock.advance(5_000);
    assert.equal(informer.hasSynced, false);
    assert.match(
      informer.health().watches[0]?.lastError?.message ?? "",
      /example\.dev/,
    );
    const Definition = untyped({
      group: "apiextensions.k8s.io",
      version: "v1",
      kind: "CustomResourceDefinition",
    });
    await client.create(Definition, {
      metadata: { name: "lates.example.dev" },
      spec: {
        group: "example.dev",
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
    await clock.runUntil(() => informer.hasSynced);
    await client.create(kind, {
      metadata: { namespace: "default", name: "a" },
    });
    await clock.runUntil(() => informer.has("default/a"));
    await informer.stop();
  }));
