import assert from "node:assert/strict";
import process from "node:process";
import { test } from "node:test";
import { Informer } from "@coracle/operator/client";
import { type Fault, Widget } from "../../../support/fake_watch_call.ts";
import { FakeWatchServer } from "../../../support/fake_watch_server.ts";
import {
  type InformerCase,
  withInformer,
} from "../../../support/informer_case.ts";
import { until } from "../../../support/until.ts";
import {
  fallSilent,
  neverAnswer,
  refuse,
} from "../../../support/watch_faults.ts";

/** States in which an informer is stopped, and how it gets there. */
const STATES: readonly (readonly [
  string,
  (parts: InformerCase) => Promise<void> | void,
])[] = [
  ["before it was started", () => {}],
  ["right after its start", ({ informer }) => void informer.start()],
  [
    "while it asks for its state",
    (parts) => reach(parts, neverAnswer, "connecting"),
  ],
  ["while its state arrives", (parts) => reach(parts, fallSilent, "syncing")],
  [
    "while it waits after a failure",
    (parts) => reach(parts, refuse(500, "InternalError"), "waiting"),
  ],
  ["while it watches", ({ sync }) => sync()],
  ["while it lists again", async (parts) => {
    await parts.sync();
    parts.server.script("watch", refuse(410, "Expired"), fallSilent);
    parts.server.endWatches();
    await parts.until(
      "it lists again",
      () => parts.informer.health().watches[0]?.state === "syncing",
    );
  }],
];

async function reach(
  { server, informer }: InformerCase,
  fault: Fault,
  state: string,
): Promise<void> {
  server.script("watch", fault, fault);
  informer.start();
  await until(
    `it is ${state}`,
    () =>
      server.calls.length > 0 && informer.health().watches[0]?.state === state,
    { every: 1 },
  );
}

for (const [name, reachState] of STATES) {
  test(`Informer stops ${name}, and leaves nothing`, () =>
    withInformer(async (parts) => {
      const { server, informer, clock, events } = parts;
      server.put("default/a");
      await reachState(parts);
      const stopped = informer.stop();
      const before = [...events];
      server.put("default/a");
      await Promise.all([stopped, informer.stop()]);
      assert.equal(clock.pendingTimers, 0);
      assert.equal(informer.health().watches[0]?.state, "stopped");
      await until("no watch is open", () => server.watches === 0, { every: 1 });
      // A request that was on its way may still arrive; no other follows.
      const calls = Math.max(server.calls.length, 1);
      await clock.advance(3_600_000);
      assert.ok(server.calls.length <= calls);
      assert.deepEqual(events, before);
      await informer.stop();
      assert.throws(() => informer.start(), /was stopped/);
      assert.throws(() => informer.addHandler(() => {}), /was stopped/);
      if (!informer.hasSynced) {
        await assert.rejects(informer.synced, /the informer was stopped/);
      }
    }));
}

test("Informer stops although the client never resolves its kind", async () => {
  const never = new Promise<never>(() => {});
  const kind = { ...Widget, plural: undefined };
  const asking = new Informer(
    { request: () => never, resolve: () => never },
    kind,
  );
  asking.start();
  await asking.stop();
  const sending = new Informer(
    { request: () => never, resolve: () => never },
    Widget,
  );
  sending.start();
  await sending.stop();
});

/** How many timers keep the process alive. */
function count(): number {
  return process.getActiveResourcesInfo().filter((name) =>
    name === "Timeout" || name === "Immediate"
  ).length;
}

/** Whether the runtime reports its timers; not every one does. */
function tellsTimers(): boolean {
  if (!("getActiveResourcesInfo" in process)) return false;
  const before = count();
  const timer = setTimeout(() => {}, 1_000);
  const isReported = count() > before;
  clearTimeout(timer);
  return isReported;
}

test("Informer leaves no handle on the machine's clock", {
  skip: !tellsTimers(),
}, async () => {
  const server = await FakeWatchServer.start();
  const client = await server.client();
  server.put("default/a");
  const before = count();
  for (let round = 0; round < 3; round++) {
    const informer = new Informer(client, Widget).start();
    await informer.synced;
    await informer.stop();
  }
  await until("the watches are closed", () => server.watches === 0);
  await until("no timer is left", () => count() <= before);
  await client.close();
  await until("no socket is left", () => server.connections === 0);
  await server.stop();
});
