import assert from "node:assert/strict";
import { test } from "node:test";
import { TestCluster, VirtualClock } from "@coracle/dev";
import { Operator, type Timer } from "@coracle/operator/core";
import { ConfigMap, Secret } from "@coracle/operator/kinds";
import { Gadget } from "../support/operator_fixture.ts";

/** Clock that counts the timers that fire. */
class CountingClock extends VirtualClock {
  fired = 0;

  override setTimer(callback: () => void, delay: number): Timer {
    return super.setTimer(() => {
      this.fired++;
      callback();
    }, delay);
  }
}

test("An idle operator fires at most ten timers a virtual day", async () => {
  const clock = new CountingClock();
  let runs = 0;
  const cluster = await TestCluster.start({
    cluster: "embedded",
    kinds: [Gadget],
    clock,
    operator(options) {
      const operator = new Operator(options);
      operator.register(Gadget, {
        async reconcile({ metadata: { name } }, ctx) {
          runs++;
          await ctx.apply(ConfigMap, { metadata: { name } });
        },
        cleanup() {},
      }, { owns: [ConfigMap, Secret] });
      return operator;
    },
  });
  await cluster.apply({
    apiVersion: "sample.coracle.dev/v1",
    kind: "Gadget",
    metadata: { name: "a" },
    spec: { value: "x" },
  });
  await cluster.clock.advance("1h");
  runs = 0;
  clock.fired = 0;
  await cluster.clock.advance("24h");
  assert.ok(clock.fired <= 10, `${clock.fired} timers fired`);
  assert.ok(runs >= 2, "The interval of runs has passed twice");
  // What happens after so long is seen at once.
  const key = { name: "a", namespace: cluster.namespace };
  await cluster.client.delete(ConfigMap, key);
  await cluster.until(() => cluster.client.find(ConfigMap, key));
  await clock.jump("240h");
  await cluster.client.delete(ConfigMap, key);
  await cluster.until(() => cluster.client.find(ConfigMap, key));
  await cluster.stop();
});
