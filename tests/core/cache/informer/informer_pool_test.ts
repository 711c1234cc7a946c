import assert from "node:assert/strict";
import { test } from "node:test";
import { InformerPool, MemoryBudget } from "@coracle/operator/core";
import { ConcurrencyLimit } from "../../../../core/pace.ts";
import { Widget } from "../../../support/fake_watch_call.ts";
import { shardSelector } from "../../../support/shard_selector.ts";
import { FakeWatchServer } from "../../../support/fake_watch_server.ts";
import { inTime } from "../../../support/in_time.ts";
import { until } from "../../../support/until.ts";
import { neverAnswer, refuse } from "../../../support/watch_faults.ts";

/** Runs a test with a pool over a fake server, and stops both after it. */
async function withPool(
  run: (
    parts: { server: FakeWatchServer; pool: InformerPool },
  ) => Promise<void>,
): Promise<void> {
  const server = await FakeWatchServer.start();
  const pool = new InformerPool(await server.client());
  try {
    await run({ server, pool });
  } finally {
    await pool.stop();
    await server.stop();
  }
}

test("InformerPool shares informers of the same selection, by namespace", () =>
  withPool(async ({ server, pool }) => {
    server.put("default/a", { labels: { app: "web" } });
    const first = pool.acquire(Widget, {
      namespaces: ["one", "default"],
      labelSelector: "app=web",
    });
    const second = pool.acquire({ ...Widget }, {
      namespaces: ["default", "one", "one"],
      labelSelector: { matchLabels: { app: "web" } },
      prune: [],
    });
    await Promise.all([first.informer.synced, second.informer.synced]);
    assert.equal(pool.size, 2);
    assert.equal(server.calls.length, 2);
    assert.equal(
      first.informer.get("default/a"),
      second.informer.get("default/a"),
    );
  }));

test("InformerPool does not share informers of different selections", () =>
  withPool(async ({ server, pool }) => {
    pool.acquire(Widget);
    pool.acquire(Widget, { namespaces: ["default"] });
    pool.acquire(Widget, { labelSelector: "app=web" });
    pool.acquire(Widget, { fieldSelector: "metadata.name=a" });
    pool.acquire(Widget, { metadataOnly: true });
    pool.acquire(Widget, { bounded: true, shared: true });
    pool.acquire(Widget, { prune: ["metadata.managedFields"] });
    pool.acquire({ ...Widget, version: "v2" });
    pool.acquire(Widget, { client: await server.client() });
    pool.acquire(Widget, {
      shardSelector: shardSelector({ index: 0, count: 2 }),
    });
    assert.equal(pool.size, 10);
  }));

test("InformerPool shares informers that prune the same in another order", () =>
  withPool(({ pool }) => {
    pool.acquire(Widget, { prune: ["spec.size", "metadata.managedFields"] });
    pool.acquire(Widget, { prune: ["metadata.managedFields", "spec.size"] });
    assert.equal(pool.size, 1);
    return Promise.resolve();
  }));

test("InformerPool shares bounded informers only where a lease asks for it", () =>
  withPool(({ pool }) => {
    pool.acquire(Widget, { bounded: true });
    pool.acquire(Widget, { bounded: true });
    assert.equal(pool.size, 2);
    pool.acquire(Widget, { bounded: true, shared: true });
    pool.acquire(Widget, { bounded: true, shared: true });
    assert.equal(pool.size, 3);
    pool.acquire(Widget, { shared: false });
    pool.acquire(Widget, { shared: false });
    assert.equal(pool.size, 5);
    return Promise.resolve();
  }));

test("InformerPool gives the bytes of a released informer back to the budget", () =>
  withPool(async ({ server, pool }) => {
    const budget = new MemoryBudget("1MiB");
    const owned = new InformerPool(await server.client(), { budget });
    try {
      server.put("default/a");
      server.put("default/b");
      const first = owned.acquire(Widget);
      const second = owned.acquire(Widget, { labelSelector: "app!=web" });
      await Promise.all([first.informer.synced, second.informer.synced]);
      const both = budget.used;
      await first.release();
      assert.equal(budget.used, both / 2);
      await second.release();
      assert.equal(budget.used, 0);
    } finally {
      await owned.stop();
    }
    assert.equal(pool.size, 0);
  }));

test("InformerPool that is stopped has no informer that still stops", () =>
  withPool(async ({ pool }) => {
    const [first, second] = [
      pool.acquire(Widget),
      pool.acquire(Widget, {
        labelSelector: "app=web",
      }),
    ];
    await Promise.all([first.informer.synced, second.informer.synced]);
    void first.release();
    const health = second.informer.health;
    await pool.stop();
    assert.deepEqual(
      health.call(second.informer).watches.map(({ state }) => state),
      ["stopped"],
    );
    await Promise.all([first.release(), second.release()]);
    assert.equal(pool.size, 0);
  }));

test("InformerPool that is stopped ends the loops and waits of its leases", () =>
  withPool(async ({ server, pool }) => {
    server.script("watch", neverAnswer);
    const { informer, release } = pool.acquire(Widget);
    const handler = informer.addHandler(() => {});
    const next = informer.events().next();
    const ended = inTime(
      "loops and waits end",
      Promise.allSettled([informer.synced, handler.synced, next]),
      5_000,
    );
    await pool.stop();
    assert.deepEqual((await ended).map(({ status }) => status), [
      "rejected",
      "rejected",
      "fulfilled",
    ]);
    assert.equal((await next).done, true);
    await assert.rejects(informer.open(["other"]), /it was stopped/);
    assert.equal(pool.size, 0);
    await release();
  }));

test("InformerPool stops an informer with its last lease, and starts it again", () =>
  withPool(async ({ server, pool }) => {
    const first = pool.acquire(Widget);
    const second = pool.acquire(Widget);
    await first.informer.synced;
    await first.release();
    await first.release();
    assert.equal(server.watches, 1);
    server.put("default/a");
    await until("the change arrived", () => second.informer.has("default/a"));
    await second.release();
    assert.equal(pool.size, 0);
    await until("the watch is closed", () => server.watches === 0);
    const third = pool.acquire(Widget);
    await third.informer.synced;
    assert.equal(third.informer.has("default/a"), true);
  }));

test("InformerPool gives a lease during the last release an informer that runs", () =>
  withPool(async ({ server, pool }) => {
    server.put("default/a");
    const first = pool.acquire(Widget);
    await first.informer.synced;
    const released = first.release();
    const second = pool.acquire(Widget);
    await Promise.all([released, second.informer.synced]);
    assert.equal(pool.size, 1);
    server.put("default/b");
    await until(
      "the new informer shows a change",
      () => second.informer.has("default/b"),
    );
  }));

test("InformerLease removes its handlers, loops and indexes on release", () =>
  withPool(async ({ server, pool }) => {
    server.put("default/a", { labels: { app: "web" } });
    const first = pool.acquire(Widget);
    const second = pool.acquire(Widget);
    first.informer.addIndex("app", { byLabel: "app" });
    second.informer.addIndex("app", { byFunction: () => ["same"] });
    let indexed = 0;
    first.informer.addIndex("counted", {
      byFunction: () => [String(indexed++)],
    });
    const seen: string[] = [];
    const registration = first.informer.addHandler(({ key }) => {
      seen.push(`first ${key}`);
    });
    second.informer.addHandler(({ key }) => {
      seen.push(`second ${key}`);
    });
    await registration.synced;
    assert.equal(first.informer.byIndex("app", "web").length, 1);
    assert.equal(second.informer.byIndex("app", "web").length, 0);
    assert.equal(second.informer.byIndex("app", "same").length, 1);
    const loop = first.informer.events();
    await loop.next();
    const next = loop.next();
    await first.release();
    assert.equal((await next).done, true);
    seen.length = indexed = 0;
    server.put("default/b");
    await until("the change arrived", () => seen.length > 0);
    assert.equal(indexed, 0);
    assert.deepEqual(seen, ["second default/b"]);
    assert.equal(second.informer.byIndex("app", "same").length, 2);
    assert.throws(() => first.informer.byIndex("app", "web"), RangeError);
    assert.throws(() => first.informer.addHandler(() => {}), /it was stopped/);
  }));

test("An informer without namespaces rejects an invalid index already", () =>
  withPool(({ pool }) => {
    const { informer } = pool.acquire(Widget, { namespaces: [] });
    assert.throws(
      () => informer.addIndex("app", {} as { byLabel: "app" }),
      /Cannot add the index "app": it must have one of/,
    );
    return Promise.resolve();
  }));

test("An echo is delivered to other leases, and not to that of its author", () =>
  withPool(async ({ server, pool }) => {
    server.put("default/a");
    const first = pool.acquire(Widget);
    const second = pool.acquire(Widget);
    const seen: string[] = [];
    const writer = first.informer.addHandler(({ type, initial }) => {
      if (!initial) seen.push(`writer ${type}`);
    });
    const other = second.informer.addHandler(({ type, initial }) => {
      if (!initial) seen.push(`other ${type}`);
    });
    await Promise.all([writer.synced, other.synced]);
    const write = writer.beginWrite("default/a");
    write.succeed(server.put("default/a"));
    assert.deepEqual(seen, ["other updated"]);
    server.delete("default/a");
    await until("the deletion arrived", () => seen.length === 3);
    assert.deepEqual(seen.slice(1).toSorted(), [
      "other deleted",
      "writer deleted",
    ]);
  }));

test("A lease gets no event of a namespace that it has left to others", () =>
  withPool(async ({ server, pool }) => {
    const leaving = pool.acquire(Widget, { namespaces: ["one", "two"] });
    const staying = pool.acquire(Widget, { namespaces: ["one"] });
    const seen: string[] = [];
    for (const [name, { informer }] of Object.entries({ leaving, staying })) {
      informer.addHandler(({ key }) => void seen.push(`${name} ${key}`));
    }
    await Promise.all([leaving.informer.synced, staying.informer.synced]);
    await leaving.informer.changeNamespaces(["two"]);
    server.put("one/a");
    await until("the others get it", () => seen.length > 0);
    server.put("two/b");
    await until("the next one arrived", () => seen.length > 1);
    assert.deepEqual(seen, ["staying one/a", "leaving two/b"]);
  }));

test("InformerPool relists within the limit that it is given", async () => {
  const server = await FakeWatchServer.start();
  let entered = 0;
  const relists = new ConcurrencyLimit(2);
  const { enter } = relists;
  relists.enter = (signal) => {
    entered++;
    return enter.call(relists, signal);
  };
  const pool = new InformerPool(await server.client(), { relists });
  try {
    const { informer } = pool.acquire(Widget);
    await informer.synced;
    assert.equal(entered, 0);
    server.script("watch", refuse(410, "Expired"));
    server.endWatches("reset");
    await until("it relists", () => entered === 1);
  } finally {
    await pool.stop();
    await server.stop();
  }
});

test("A leased informer that is stopped still reads the last state", () =>
  withPool(async ({ server, pool }) => {
    server.put("default/a");
    const first = pool.acquire(Widget);
    const second = pool.acquire(Widget);
    await Promise.all([first.informer.synced, second.informer.synced]);
    await first.informer.stop();
    assert.equal(pool.size, 1, "the other lease watches on");
    await second.informer.stop();
    assert.equal(pool.size, 0);
    await first.release();
    assert.deepEqual([...first.informer.keys()], []);
    assert.equal(second.informer.get("default/a")?.metadata.name, "a");
    assert.deepEqual([...second.informer.keys()], ["default/a"]);
    await second.release();
    assert.deepEqual([...second.informer.keys()], []);
  }));

test("InformerPool stops all informers, and leases no others", () =>
  withPool(async ({ server, pool }) => {
    const lease = pool.acquire(Widget);
    await lease.informer.synced;
    await pool.stop();
    await until("the watch is closed", () => server.watches === 0);
    assert.throws(() => pool.acquire(Widget), /the pool was stopped/);
    await lease.release();
  }));
