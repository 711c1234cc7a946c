import assert from "node:assert/strict";
import { Gadget } from "../support/operator_case.ts";
import { type ProcessCase, processScenario } from "../support/process_case.ts";

function run(one: ProcessCase, identity: string, lease = "3s"): void {
  one.run("tests/scenarios/leader_operator.ts", identity, { LEASE: lease });
}

async function block(one: ProcessCase, duration: number): Promise<void> {
  const key = { namespace: "default", name: "a" };
  const spec = { value: `block ${duration}` };
  await one.server.client.patch(Gadget, key, { spec });
}

processScenario(
  "Of several processes only the leader writes, through stops, kills and ends [LeaderElectionE2E]",
  async (one) => {
    await one.create("a");
    run(one, "a");
    await one.writesAgain("a");
    run(one, "b");

    // The leader stands still for longer than its lease, and wakes up again.
    one.freeze("a");
    await one.writesAgain("b");
    one.thaw("a");
    await one.writesAgain("b");

    // The leader is killed, so that its lease must expire.
    await one.kill("b");
    await one.writesAgain("a");

    // The leader ends in order.
    run(one, "c");
    assert.equal(await one.end("a"), 0);
    await one.writesAgain("c");
    assert.deepEqual(one.chronicle.usurpations, []);
    assert.equal(await one.end("c"), 0);
  },
);

processScenario(
  "A leader whose event loop is busy for longer than the renew deadline goes on to lead",
  async (one) => {
    await one.create("a");
    run(one, "a", "6s");
    await one.writesAgain("a");
    run(one, "b", "6s");
    await block(one, 3_500);
    await one.writesAgain("a");
    assert.deepEqual(one.chronicle.holders, ["a"]);
    assert.deepEqual(one.chronicle.usurpations, []);
  },
);

processScenario(
  "A leader whose event loop is busy for longer than its lease steps down, and can lead again",
  async (one) => {
    await one.create("a");
    run(one, "a");
    await one.writesAgain("a");
    run(one, "b");
    // The one that takes over is busy in its turn, so that both wake up too late.
    await block(one, 9_000);
    await one.until(
      "b leads, and then a",
      () => one.chronicle.holders.join() === "a,b,a",
    );
    await one.writesAgain("a");
    assert.deepEqual(one.chronicle.usurpations, []);
  },
);
