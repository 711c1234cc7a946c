import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock, withTestCluster } from "@coracle/dev";
import { ApiError, patchStatus } from "@coracle/operator/core";
import { removesDefinitions } from "../support/remove_objects.ts";
import {
  GREETER,
  Greeting,
  greetingOperator,
  Greetings,
} from "./greeting_operator.ts";

removesDefinitions(Greeting);

test(
  "A reconciler that throws is retried and delays no other object",
  () => {
    let left = 3;
    return withTestCluster(
      {
        kinds: [Greeting],
        clock: new VirtualClock(),
        operator: (given) =>
          greetingOperator(given, {
            reconciler: {
              reconcile(greeting, ctx) {
                if (greeting.metadata.name === "bad" && left-- > 0) {
                  throw new Error("not yet");
                }
                return GREETER.reconcile(greeting, ctx);
              },
            },
          }),
      },
      async (cluster) => {
        const greetings = new Greetings(cluster);
        await greetings.ask("bad", "one");
        await greetings.ask("good", "two");
        await greetings.says("good", "two");
        const early = cluster.clock.now();
        await greetings.says("bad", "one");
        assert(cluster.clock.now() > early, "the retry did not wait");
        assert.equal(left, -1);
        assert.match(cluster.log, /not yet/);
      },
    )();
  },
);

test("A reconciler that throws undefined is logged with that", () =>
  withTestCluster(
    {
      kinds: [Greeting],
      clock: new VirtualClock(),
      operator: (given) =>
        greetingOperator(given, {
          reconciler: {
            reconcile() {
              throw undefined;
            },
          },
        }),
    },
    async (cluster) => {
      await new Greetings(cluster).ask("a", "x");
      await cluster.until(() =>
        cluster.log.includes('"error":"the run has thrown undefined"')
      );
    },
  )());

test("A final failure is reported in the status without a retry", () => {
  let runs = 0;
  return withTestCluster(
    {
      kinds: [Greeting],
      clock: new VirtualClock(),
      operator: (given) =>
        greetingOperator(given, {
          reconciler: {
            reconcile() {
              runs++;
              throw new TypeError("wrong for good");
            },
            onError: (_, error) =>
              patchStatus({ said: String(error) }).withoutRetry(),
          },
        }),
    },
    async (cluster) => {
      const { client, namespace, clock } = cluster;
      await new Greetings(cluster).ask("a", "x");
      await cluster.until(async () => {
        const found = await client.get(Greeting, { namespace, name: "a" });
        return found.status?.said === "TypeError: wrong for good";
      });
      assert(clock instanceof VirtualClock);
      await clock.advance(3_600_000);
      assert.equal(runs, 1);
    },
  )();
});

test(
  "A reconciler that never returns delays a stop by the grace period only",
  () => {
    let reason: unknown;
    let began = false;
    return withTestCluster(
      {
        kinds: [Greeting],
        clock: new VirtualClock(),
        operator: (given) =>
          greetingOperator(given, {
            operator: { shutdownGrace: "7s" },
            reconciler: {
              reconcile(_, ctx) {
                began = true;
                ctx.signal.addEventListener("abort", () => {
                  reason = ctx.signal.reason;
                });
                return new Promise<never>(() => {});
              },
            },
          }),
      },
      async (cluster) => {
        await new Greetings(cluster).ask("a", "x");
        await cluster.until(() => began);
        const start = cluster.clock.now();
        await cluster.stopOperator();
        const waited = cluster.clock.now() - start;
        assert(waited >= 7_000 && waited < 20_000, `waited ${waited} ms`);
        assert(reason instanceof Error, "its signal did not fire");
      },
    )();
  },
);

test("An object that violates its schema is refused by field and does not run", () =>
  withTestCluster(
    { kinds: [Greeting], operator: greetingOperator },
    async (cluster) => {
      const { client, namespace } = cluster;
      await assert.rejects(
        client.create(Greeting, {
          metadata: { namespace, name: "empty" },
          spec: { text: "" },
        }),
        (error: unknown) => {
          assert(ApiError.is(error) && error.isInvalid);
          assert.deepEqual(
            error.details.causes?.map(({ field }) => field),
            ["spec.text"],
          );
          return true;
        },
      );
      const greetings = new Greetings(cluster);
      await greetings.ask("fine", "hello");
      await greetings.says("fine", "hello");
      assert.doesNotMatch(cluster.log, /empty/);
    },
  )());
