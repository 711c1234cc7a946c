import assert from "node:assert/strict";
import { test } from "node:test";
import { Informer, MemoryBudget } from "@coracle/operator/client";
import type { PooledInformerOptions } from "../../../../core/cache/informer/informer_options.ts";
import { ConcurrencyLimit } from "../../../../core/pace.ts";
import { Widget } from "../../../support/fake_watch_call.ts";
import { toNextTimer, withInformer } from "../../../support/informer_case.ts";
import { until } from "../../../support/until.ts";

const OBJECTS = 300;

for (const watchList of [true, false]) {
  const how = watchList ? "a stream" : "pages";
  const budget = new MemoryBudget("1GiB");
  test(`Informer relists by ${how} after 410 without a second copy`, () =>
    withInformer(async ({ server, informer, events, sync, settled }) => {
      for (let i = 0; i < OBJECTS; i++) {
        server.put(`default/w${i}`, { padding: 4_000 });
      }
      await sync();
      const before = budget.used;
      let most = 0;
      let looking = true;
      const look = () => {
        most = Math.max(most, budget.used);
        if (looking) setImmediate(look);
      };
      look();
      events.length = 0;
      server.endWatches();
      server.put("default/w7", { padding: 4_000 });
      server.delete("default/w8");
      server.compact();
      await settled();
      looking = false;
      assert.equal(informer.health().watches[0]?.relists, 1);
      assert.deepEqual(events.toSorted(), [
        "deleted default/w8 relist unknown",
        "updated default/w7 relist",
      ]);
      assert.ok(most < 1.02 * before, `${most} bytes, ${before} before`);
    }, { budget, reconnect: { watchList, pageSize: 50 } }));
}

test("Informer waits for its turn to relist, and stops while it waits", async () => {
  const relists = new ConcurrencyLimit(1);
  await relists.enter();
  await withInformer(async ({ server, informer, sync, until }) => {
    server.put("default/a");
    await sync(); // a first state does not wait
    const calls = () => server.calls.length;
    server.endWatches();
    server.put("default/a");
    server.compact();
    await until("it waits", () => relists.waiting === 1);
    const before = calls();
    server.put("default/b");
    assert.equal(calls(), before, "nothing is requested before");
    await informer.stop();
    assert.equal(relists.waiting, 0);
  }, { relists } as PooledInformerOptions);
  relists.leave();
});

for (const watchList of [true, false]) {
  const how = watchList ? "a stream" : "pages";
  test(`Informers that share a queue relist by ${how} one after the other`, async () => {
    const relists = new ConcurrencyLimit(1);
    await withInformer(async ({ server, client, clock, sync, settled }) => {
      server.put("default/a");
      const others = ["one", "two"].map(() =>
        new Informer(client, Widget, {
          clock,
          random: () => 0.5,
          relists,
          reconnect: { watchList },
        } as PooledInformerOptions)
      );
      try {
        await sync();
        await Promise.all(others.map((other) => other.start().synced));
        for (let outage = 0; outage < 2; outage++) {
          server.endWatches();
          server.put("default/a");
          server.compact();
          await settled();
          const versions = () =>
            others.map((other) => other.resourceVersion("default/a"));
          await until("all have relisted", async () => {
            await toNextTimer(clock);
            return versions().every((version) => version === server.version);
          }, { every: 1 });
        }
      } finally {
        for (const other of others) await other.stop();
      }
    }, { relists, reconnect: { watchList } } as PooledInformerOptions);
  });
}
