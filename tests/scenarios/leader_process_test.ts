import assert from "node:assert/strict";
import { Gadget } from "../support/operator_fixture.ts";
import {
  type ProcessFixture,
  processScenario,
} from "../support/process_fixture.ts";

/** What a process logs that waits for the lease of another. */
const FOLLOWS = /A leader was elected/;

function run(fixture: ProcessFixture, identity: string, lease = "3s"): void {
  fixture.run("tests/scenarios/leader_operator.ts", identity, { LEASE: lease });
}

async function block(fixture: ProcessFixture, duration: number): Promise<void> {
  const key = { namespace: "default", name: "a" };
  const spec = { value: `block ${duration}` };
  await fixture.server.client.patch(Gadget, key, { spec });
}

processScenario(
  "Only the leader writes, through freezes, kills and stops [LeaderElectionE2E]",
  async (fixture) => {
    await fixture.create("a");
    run(fixture, "a");
    await fixture.writesAgain("a");
    run(fixture, "b");

    // The leader is frozen for longer than its lease, and continues.
    fixture.freeze("a");
    await fixture.writesAgain("b");
    fixture.thaw("a");
    await fixture.writesAgain("b");

    // The leader is killed, so that its lease must expire.
    await fixture.kill("b");
    await fixture.writesAgain("a");

    // The leader is asked to stop.
    run(fixture, "c");
    assert.equal(await fixture.end("a"), 0);
    await fixture.writesAgain("c");
    assert.deepEqual(fixture.chronicle.usurpations, []);
    assert.equal(await fixture.end("c"), 0);
  },
);

processScenario(
  "A leader that is blocked beyond its renew deadline remains the leader",
  async (fixture) => {
    await fixture.create("a");
    run(fixture, "a", "6s");
    await fixture.writesAgain("a");
    run(fixture, "b", "6s");
    await fixture.says("b", FOLLOWS);
    await block(fixture, 3_500);
    await fixture.writesAgain("a");
    assert.deepEqual(fixture.chronicle.holders, ["a"]);
    assert.deepEqual(fixture.chronicle.usurpations, []);
  },
);

processScenario(
  "A leader that is blocked beyond its lease steps down and can lead again",
  async (fixture) => {
    await fixture.create("a");
    run(fixture, "a");
    await fixture.writesAgain("a");
    run(fixture, "b");
    await fixture.says("b", FOLLOWS);
    // The next leader is blocked in turn, so that both continue too late.
    await block(fixture, 9_000);
    await fixture.until(
      "b leads, and then a",
      () => fixture.chronicle.holders.join() === "a,b,a",
    );
    // In the meantime b continues.
    for (let i = 0; i < 15; i++) await fixture.writesAgain("a");
    assert.deepEqual(fixture.chronicle.holders, ["a", "b", "a"]);
    assert.deepEqual(fixture.chronicle.usurpations, []);
  },
);
