import assert from "node:assert/strict";
import { test } from "node:test";
import { TestCluster, VirtualClock } from "@coracle/dev";
import { inTime } from "../support/in_time.ts";

test("A condition that never holds ends the wait after seconds", async () => {
  const cluster = await TestCluster.start({ clock: new VirtualClock() });
  const { now } = performance;
  let calls = 0;
  // Each call takes a second of real time, as one with requests might.
  performance.now = () => now.call(performance) + calls * 1_000;
  try {
    const wait = cluster.until(() => ++calls < 0, { within: "2m" });
    await assert.rejects(wait, ({ message, cause }: Error) => {
      assert.match(
        message,
        // Deno prints functions without some of their spaces.
        /did not hold within 2m: received \(\) ?=> ?\+\+calls/,
      );
      // The library's own code says nothing about what was waited for.
      assert.doesNotMatch(String(cause), /=>/);
      return true;
    });
    assert(calls < 20, `It was called ${calls} times`);
  } finally {
    performance.now = now;
    await cluster.stop();
  }
});

test("A condition that has held ends the wait, though it holds only once", async () => {
  const clock = new VirtualClock();
  const cluster = await TestCluster.start({ clock });
  try {
    clock.setTimer(() => {}, 10);
    let asked = 0;
    const found = await cluster.until(() => ++asked === 2 && "found");
    assert.equal(found, "found");
    assert.equal(asked, 2);
  } finally {
    await cluster.stop();
  }
});

test("A promise that takes longer than an hour completes within its limit", async () => {
  const clock = new VirtualClock();
  const cluster = await TestCluster.start({ clock });
  const restart = () =>
    cluster.server!.faults.restart({ downFor: 2 * 3_600_000 });
  try {
    await cluster.complete(restart(), { within: "3h" });
    assert(clock.now() >= 2 * 3_600_000);
    await assert.rejects(
      cluster.complete(restart()),
      /not settled within 1h, set another limit with \{ within \}[^]*The log/,
    );
    // A later promise completes.
    const timer = new Promise<void>((resolve) =>
      void clock.setTimer(resolve, 2 * 3_600_000)
    );
    await inTime("it completes", cluster.complete(timer, { within: "3h" }));
  } finally {
    await cluster.stop();
  }
});

test("Misspelt limits and objects without a kind are refused", async () => {
  const cluster = await TestCluster.start({ clock: new VirtualClock() });
  const misspelt = { timeout: "5s" } as never;
  try {
    await assert.rejects(
      cluster.until(() => true, misspelt),
      /until\(\): there is no option "timeout", only within/,
    );
    await assert.rejects(
      cluster.complete(Promise.resolve(), misspelt),
      /complete\(\): there is no option "timeout", only within/,
    );
    for (const more of [{}, { kind: "Pod" }, { apiVersion: "v1" }]) {
      await assert.rejects(
        cluster.apply({ ...more, metadata: { name: "a" } } as never),
        /"apiVersion" and "kind" must be set: received one with .*metadata/,
      );
    }
    await assert.rejects(
      cluster.apply(null as never),
      /^TypeError: .*apply\(\).*"object" must be an object/,
    );
  } finally {
    await cluster.stop();
  }
});
