/**
 * Whatever comes and goes in a cache, nothing of it stays in the memory of a
 * program that runs for months.
 *
 * @module
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Client, InformerLease } from "@coracle/operator/core";
import { ApiServer } from "../../../../dev/apiserver/server.ts";
import { InformerPool } from "../../../../core/cache/informer/informer_pool.ts";
import { MemoryBudget } from "../../../../core/cache/store/memory_budget.ts";
import { ConfigMap, Namespace } from "../../../../core/kinds/mod.ts";
import { growthOf } from "../../../support/growth.ts";
import { until } from "../../../support/until.ts";

const ROUNDS = 6;
const SOON = { every: 1 };

interface Parts {
  readonly client: Client;
  readonly pool: InformerPool;
  readonly server: ApiServer;
  /** Lease of all ConfigMaps, which stays. */
  readonly steady: InformerLease<ConfigMap>;
}

/** Repeats a round beside a lease that stays, and asserts that nothing grows. */
function testGrowth(
  title: string,
  prepare: (parts: Parts) => (number: number) => Promise<void>,
): void {
  test(title, async () => {
    const server = await ApiServer.start({ port: false });
    const { client } = server;
    for (const name of ["one", "two"]) {
      await client.create(Namespace, { metadata: { name } });
    }
    const pool = new InformerPool(client, {
      budget: new MemoryBudget("1MiB"),
    });
    const steady = pool.acquire(ConfigMap);
    try {
      await steady.informer.synced;
      const round = prepare({ client, pool, server, steady });
      const { size } = pool;
      assert.deepEqual(await growthOf(ROUNDS, round), []);
      assert.equal(pool.size, size, "informers");
    } finally {
      await pool.stop();
      await server.stop();
    }
  });
}

testGrowth(
  "Leases of informers that are returned leave nothing",
  ({ pool }) => async () => {
    const selection = { namespaces: ["one", "two"] };
    const steady = pool.acquire(ConfigMap);
    const first = pool.acquire(ConfigMap, selection);
    const second = pool.acquire(ConfigMap, selection);
    const alone = pool.acquire(ConfigMap, { bounded: true });
    for (const { informer } of [steady, first, second, alone]) {
      informer.addIndex("app", { byLabel: "app" });
      informer.addHandler(() => {});
      void informer.events().next();
      await informer.synced;
    }
    assert.equal(pool.size, 4);
    await Promise.all([first.release(), first.release()]);
    assert.equal(pool.size, 4, "the other lease has them");
    await Promise.all([second, alone, steady].map((one) => one.release()));
    assert.equal(pool.size, 1);
    // Left before it has synced.
    const early = pool.acquire(ConfigMap, { labelSelector: "app=web" });
    const refused = assert.rejects(early.informer.synced);
    await early.release();
    await refused;
  },
);

testGrowth(
  "Handlers, loops and indexes that are removed leave nothing",
  ({ steady: { informer } }) => {
    const { signal } = new AbortController();
    return async () => {
      const registration = informer.addHandler(() => {});
      await registration.synced;
      const early = informer.addHandler(() => {});
      early.remove();
      await assert.rejects(early.synced, /was removed/);
      registration.remove();
      informer.addIndex("app", { byLabel: "app" });
      informer.removeIndex("app");
      const loop = informer.events({ signal });
      void loop.next();
      await loop.return?.();
      const abort = new AbortController();
      const aborted = informer.events({ signal: abort.signal }).next();
      abort.abort();
      assert.equal((await aborted).done, true);
    };
  },
);

testGrowth(
  "Own writes leave nothing, however they and their objects end",
  ({ client, steady: { informer } }) => {
    const registration = informer.addHandler(() => {});
    const loop = informer.events();
    const read = async () => {
      for await (const _event of loop);
    };
    void read();
    const gone = (name: string) =>
      until(`${name} is gone`, () => !informer.has(`default/${name}`), SOON);
    return async (number) => {
      const key = (what: string) => ({
        namespace: "default",
        name: `${what}-${number}`,
      });
      const write = async (what: string, value: string) => {
        const own = registration.beginWrite(key(what));
        own.succeed(
          await client.apply(ConfigMap, {
            metadata: key(what),
            data: { value },
          }),
        );
      };
      // Echoes arrive, and that of a write that changes nothing never does.
      for (const value of ["first", "second", "second"]) {
        await write("echoed", value);
      }
      registration.beginWrite(key("failed")).fail();
      // The object is deleted while a write is under way.
      await write("deleted", "first");
      const late = registration.beginWrite(key("deleted"));
      const last = await client.apply(ConfigMap, {
        metadata: key("deleted"),
        data: { value: "last" },
      });
      await client.delete(ConfigMap, key("deleted"));
      await gone(key("deleted").name);
      late.succeed(last);
      // A handler is removed while its write is under way.
      const other = informer.addHandler(() => {});
      const open = other.beginWrite(key("echoed"));
      other.remove();
      open.fail();
      await client.delete(ConfigMap, key("echoed"));
      await gone(key("echoed").name);
    };
  },
);

testGrowth(
  "Namespaces that an informer leaves and visits again leave nothing",
  ({ client, pool }) => {
    const { informer } = pool.acquire(ConfigMap, { namespaces: ["one"] });
    informer.addIndex("app", { byLabel: "app" });
    const registration = informer.addHandler(() => {});
    return async (number) => {
      const key = { namespace: "one", name: `a-${number}` };
      await client.create(ConfigMap, { metadata: key });
      await until("it is seen", () => informer.has(key), SOON);
      const open = registration.beginWrite(key);
      await informer.changeNamespaces(["two"]);
      assert.equal(informer.has(key), false);
      await informer.open(undefined);
      await informer.attach(undefined);
      await informer.keep(undefined);
      await until("it is seen again", () => informer.has(key), SOON);
      open.fail();
      await informer.changeNamespaces(["one"]);
      await client.delete(ConfigMap, key);
      await until("it is gone", () => !informer.has(key), SOON);
    };
  },
);
