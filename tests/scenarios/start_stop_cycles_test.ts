import assert from "node:assert/strict";
import process from "node:process";
import { test } from "node:test";
import { VirtualClock } from "@coracle/dev";
import { ApiServer } from "@coracle/dev/apiserver";
import { Client, Operator, silentLogger } from "@coracle/operator/core";
import { ConfigMap } from "@coracle/operator/kinds";
import { LeakGuard } from "../support/leaks.ts";
import { partOfRounds } from "../support/part_of_rounds.ts";

/** Each cycle is checked by itself; many show what adds up. */
const CYCLES = partOfRounds(400);

test("An operator that is started and stopped many times leaves nothing behind", async () => {
  const clock = new VirtualClock({ quietTurns: 2 });
  const server = await ApiServer.start({ port: false, clock });
  await server.client.create(ConfigMap, {
    metadata: { namespace: "default", name: "a" },
  });
  const client = new Client({ transport: server.transport }, { clock });
  const signals = () =>
    process.listenerCount("SIGTERM") + process.listenerCount("SIGINT");
  const before = signals();
  const done = async (work: Promise<unknown>) => {
    let isDone = false;
    const ended = work.then(() => isDone = true);
    await clock.runUntil(() => isDone);
    await ended;
  };
  let runs = 0;
  for (let cycle = 0; cycle < CYCLES; cycle++) {
    const leaks = new LeakGuard();
    const operator = new Operator({
      client,
      clock,
      logger: silentLogger,
      ...cycle % 4 === 0 && {
        leaderElection: { name: "cycles", namespace: "default" },
      },
    });
    operator.register(ConfigMap, { reconcile: () => void runs++ });
    const earlier = runs;
    await done(operator.start());
    // The others are stopped while their first run is due.
    if (cycle % 2 === 0) await clock.runUntil(() => runs > earlier);
    await done(operator.stop());
    leaks.check(clock);
    assert.equal(server.faults.cutWatches(), 0, "a watch is left");
  }
  assert.ok(runs >= CYCLES / 2);
  assert.equal(signals(), before);
  await server.stop();
});
