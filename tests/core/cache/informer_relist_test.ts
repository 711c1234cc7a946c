import assert from "node:assert/strict";
import { test } from "node:test";
import { MemoryBudget } from "../../../core/cache/memory_budget.ts";
import { withInformer } from "../../support/informer_case.ts";

const OBJECTS = 300;

for (const watchList of [true, false]) {
  const how = watchList ? "a stream" : "pages";
  const budget = new MemoryBudget("1GiB");
  test(`Informer relists by ${how} after 410 without a second copy of anything`, () =>
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
