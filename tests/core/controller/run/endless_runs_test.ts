import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock, withTestCluster } from "@coracle/dev";
import {
  type Duration,
  Operator,
  patchStatus,
  type Reconciler,
  silentLogger,
} from "@coracle/operator/core";
import { ConfigMap } from "@coracle/operator/kinds";
import { sleep } from "../../../../core/clock.ts";
import { EndlessRuns } from "../../../../core/controller/run/run_observers.ts";
import type { Run } from "../../../../core/controller/run/run.ts";
import { Gadget } from "../../../support/operator_fixture.ts";

const GADGET = {
  apiVersion: "sample.coracle.dev/v1",
  kind: "Gadget",
  metadata: { name: "a" },
  spec: { value: "first" },
};

const WARNING = "The runs of an object follow one another without a pause";

/** Warnings about runs without a pause that an operator logs in a time. */
async function warnings(
  reconcile: Reconciler<Gadget>["reconcile"],
  { within = "12s" }: { readonly within?: Duration } = {},
): Promise<readonly string[]> {
  const lines: string[] = [];
  await withTestCluster({
    cluster: "embedded",
    kinds: [Gadget],
    clock: new VirtualClock(),
    operator(options) {
      const warn = (message: string, fields: object = {}) => {
        if (message === WARNING) lines.push(JSON.stringify(fields));
      };
      const logger = { ...options.logger, warn, with: () => logger };
      const operator = new Operator({ ...options, logger });
      operator.register(Gadget, { reconcile }, { owns: [ConfigMap] });
      return operator;
    },
  }, async (cluster) => {
    await cluster.apply(GADGET);
    await cluster.clock.advance(within);
  })();
  return lines;
}

test("An object rescheduled after milliseconds that mean seconds is named once", async () => {
  const [line, ...others] = await warnings(() =>
    patchStatus({ value: "Done" }).rescheduleAfter(100)
  );
  assert.match(line ?? "", /"object":"[^"]+\/a","cause":"reschedule"/);
  assert.match(line ?? "", /rescheduleAfter\(\\"10s\\"\) for seconds/);
  assert.deepEqual(others, []);
});

test("An object whose run triggers the next one by the client is named", async () => {
  const [line] = await warnings(async ({ metadata }, { client, clock }) => {
    const { namespace = "", name } = metadata;
    await sleep(50, { clock });
    const value = String(clock.now());
    await client.patch(Gadget, { namespace, name }, { spec: { value } });
  });
  assert.match(line ?? "", /"cause":"modified.*those by ctx\.client do/);
});

test("An object that pauses for a second between its runs is not named", async () => {
  const reconcile = () =>
    patchStatus({ value: "Done" }).rescheduleAfter("1100ms");
  const lines = await warnings(reconcile, { within: "3m" });
  assert.deepEqual(lines, []);
});

/** Numbers of runs at which a warning is logged, of runs that begin so often. */
async function warnedAt(
  { pause, runs }: { readonly pause: number; readonly runs: number },
): Promise<readonly number[]> {
  const clock = new VirtualClock();
  const warned: number[] = [];
  let count = 0;
  const warn = () => warned.push(count);
  const observer = new EndlessRuns<Gadget>({
    log: { ...silentLogger, warn },
  });
  for (let run = 0; run < runs; run++) {
    count++;
    const startedAt = clock.now();
    const cause = { type: "modified", events: 1 };
    const times = { startedAt, endedAt: startedAt, waited: 0 };
    observer.ended({ key: "default/a", ...times, cause } as unknown as Run<
      Gadget
    >);
    await clock.advance(pause);
  }
  return warned;
}

test("EndlessRuns warns at run 100 after five seconds, else at run 1,000, once an hour", async () => {
  assert.deepEqual(await warnedAt({ pause: 1_000, runs: 101 }), [100]);
  assert.deepEqual(await warnedAt({ pause: 1_001, runs: 101 }), []);
  assert.deepEqual(await warnedAt({ pause: 1, runs: 4_900 }), [1_000]);
  assert.deepEqual(await warnedAt({ pause: 0, runs: 999 }), []);
  assert.deepEqual(await warnedAt({ pause: 0, runs: 1_000 }), [1_000]);
  assert.deepEqual(await warnedAt({ pause: 10, runs: 502 }), [501]);
  assert.deepEqual(await warnedAt({ pause: 900, runs: 4_101 }), [100, 4_100]);
});

test("EndlessRuns warns if very many objects run in turn, and wait for each other", async () => {
  const clock = new VirtualClock();
  let warned = 0;
  const observer = new EndlessRuns<Gadget>({
    log: { ...silentLogger, warn: () => warned++ },
  });
  const cause = { type: "modified", events: 1 };
  for (let run = 0; run < 110 && warned === 0; run++) {
    for (let i = 0; i < 4_000; i++) {
      const startedAt = clock.now();
      const times = { startedAt, endedAt: startedAt, waited: 10_000 };
      observer.ended({ key: `default/${i}`, ...times, cause } as unknown as Run<
        Gadget
      >);
    }
    await clock.advance(10_000);
  }
  assert.equal(warned, 1);
});
