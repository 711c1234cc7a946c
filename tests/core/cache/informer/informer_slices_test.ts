import assert from "node:assert/strict";
import { test } from "node:test";
import { Client, Informer } from "@coracle/operator/client";
import { Widget } from "../../../support/fake_watch_call.ts";
import { FakeWatchServer } from "../../../support/fake_watch_server.ts";
import { memoryTransport } from "../../../support/memory_transport.ts";
import { until } from "../../../support/until.ts";

/** Objects enough for many slices; their events cost what a handler costs. */
const OBJECTS = 2_000;
/** Time that a handler spends on an event, in milliseconds. */
const COST = 0.1;

/** Counts the turns that others get while something is under way. */
function countTurns(): { readonly turns: number; stop(): void } {
  let running = true;
  const counter = { turns: 0, stop: () => void (running = false) };
  const turn = () => {
    counter.turns++;
    if (running) setImmediate(turn);
  };
  setImmediate(turn);
  return counter;
}

for (const watchList of [true, false]) {
  const how = watchList ? "a stream" : "a list";
  test(`Informer yields to other work while ${how} is read and swept`, async () => {
    const server = await FakeWatchServer.start();
    const pace = { pieceSize: 1 << 20, isSlow: false };
    const client = new Client({ transport: memoryTransport(server, pace) });
    for (let index = 0; index < OBJECTS; index++) {
      server.put(`default/w${index}`);
    }
    let deleted = 0;
    const informer = new Informer(client, Widget, { reconnect: { watchList } });
    informer.addHandler(({ type }) => {
      const end = performance.now() + COST;
      while (performance.now() < end);
      if (type === "deleted") deleted++;
    });
    try {
      const reading = countTurns();
      await informer.start().synced;
      reading.stop();
      // 2000 events of 0.1 ms in slices of 6 ms are 33 rests.
      assert.ok(reading.turns >= 20, `${reading.turns} turns while reading`);
      server.loseData();
      server.put("default/new");
      server.endWatches();
      await until("the relist begins", () => deleted > 0, { every: 1 });
      const sweeping = countTurns();
      await until("all were deleted", () => deleted === OBJECTS, { every: 1 });
      sweeping.stop();
      assert.ok(sweeping.turns >= 10, `${sweeping.turns} turns while sweeping`);
    } finally {
      await informer.stop();
      await server.stop();
    }
  });
}
