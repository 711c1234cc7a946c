/** Faults that users of other operator frameworks have reported, tried here. */
import {
  type Context,
  defineKind,
  keepFinalizer,
  noUpdate,
  type ObjectOf,
  Operator,
  type OperatorOptions,
  type Reconciler,
  setStatus,
} from "@coracle/operator";
import { ConfigMap } from "@coracle/operator/kinds";
import { type TestCluster, VirtualClock, withTestCluster } from "@coracle/dev";
import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";

const Pump = defineKind({
  group: "reported.coracle.dev",
  version: "v1",
  kind: "Pump",
  spec: z.object({ level: z.int() }),
  status: z.object({ level: z.int(), note: z.string() }).partial(),
});
type Pump = ObjectOf<typeof Pump>;
type Options = Parameters<Operator["register"]>[2];

/** Runs a test with controllers of pumps, a clock and one pump. */
function pumps(
  reconcilers: readonly Reconciler<Pump>[],
  act: (cluster: TestCluster, key: Key) => Promise<void>,
  options: object = {},
): () => Promise<void> {
  return withTestCluster({
    cluster: "embedded",
    kinds: [Pump],
    clock: new VirtualClock(),
    operator(given: OperatorOptions) {
      const operator = new Operator({ ...given, probes: undefined });
      reconcilers.forEach((reconciler, at) => {
        operator.register(Pump, reconciler, {
          name: `pumps-${at}`,
          finalizer: `reported.coracle.dev/${at}`,
          ...options as Options,
        });
      });
      return operator;
    },
  }, async (cluster) => {
    const key = { name: "a", namespace: cluster.namespace };
    await cluster.client.create(Pump, { metadata: key, spec: { level: 1 } });
    await act(cluster, key);
  });
}

interface Key {
  readonly name: string;
  readonly namespace: string;
}

const level = (client: Context<Pump>["client"], key: Key, value: number) =>
  client.patch(Pump, key, { spec: { level: value } });

const seen = () => {
  const levels: number[] = [];
  return { levels, last: () => levels.at(-1) };
};

for (const [text, note] of [["changes", "new"], ["changes nothing", ""]]) {
  const runs = seen();
  let changes = 1;
  test(
    `A change of the spec during a run whose status write ${text} has a run`,
    pumps([{
      async reconcile({ spec, metadata }, ctx) {
        runs.levels.push(spec.level);
        if (changes-- > 0) {
          const { name, namespace = "" } = metadata;
          await level(ctx.client, { name, namespace }, 2);
        }
        return note ? setStatus({ note }) : setStatus({});
      },
    }], async ({ until }) => {
      await until(() => runs.last() === 2);
    }),
  );
}

test(
  "The last of many quick changes has a run",
  (() => {
    const runs = seen();
    return pumps([{
      reconcile: ({ spec }) => void runs.levels.push(spec.level),
    }], async ({ client, until }, key) => {
      for (let at = 2; at <= 40; at++) await level(client, key, at);
      await until(() => runs.last() === 40);
    });
  })(),
);

test(
  "What is rescheduled ends with its object, which has no finalizer",
  (() => {
    const runs = seen();
    return pumps([{
      reconcile({ spec }) {
        runs.levels.push(spec.level);
        return noUpdate().rescheduleAfter("1s");
      },
    }], async ({ client, until, clock }, key) => {
      await until(() => runs.levels.length > 3);
      const { metadata } = await client.get(Pump, key);
      assert.equal(metadata.finalizers, undefined);
      await client.delete(Pump, key);
      await until(async () => await client.find(Pump, key) === undefined);
      await (clock as VirtualClock).advance("2s");
      const { length } = runs.levels;
      await (clock as VirtualClock).advance("1m");
      assert.equal(runs.levels.length, length);
    });
  })(),
);

test(
  "An object goes when the cleanups of two controllers are done, and not before",
  (() => {
    const done: string[] = [];
    let isHeld = true;
    return pumps([
      {
        reconcile: () => undefined,
        cleanup: () => void done.push("first"),
      },
      {
        reconcile: () => undefined,
        cleanup() {
          if (isHeld) throw new Error("not yet");
          done.push("second");
        },
      },
    ], async ({ client, until, clock }, key) => {
      const finalizers = async () =>
        (await client.find(Pump, key))?.metadata.finalizers?.length;
      await until(async () => await finalizers() === 2);
      await client.delete(Pump, key);
      await until(async () => await finalizers() === 1);
      await (clock as VirtualClock).advance("1m");
      assert.equal(await finalizers(), 1);
      isHeld = false;
      await until(async () => await client.find(Pump, key) === undefined);
      assert.deepEqual([...new Set(done)].toSorted(), ["first", "second"]);
    });
  })(),
);

test(
  "A cleanup that goes on later keeps the finalizer until it is done",
  (() => {
    let runs = 0;
    return pumps([{
      reconcile: () => undefined,
      cleanup: () =>
        ++runs < 3 ? keepFinalizer().rescheduleAfter("10s") : undefined,
    }], async ({ client, until }, key) => {
      await until(async () =>
        (await client.get(Pump, key)).metadata.finalizers !== undefined
      );
      await client.delete(Pump, key);
      await until(async () => await client.find(Pump, key) === undefined);
      assert.equal(runs, 3);
    });
  })(),
);

test(
  "A finalizer goes although others write at the same time, and a write conflicts",
  (() => {
    return pumps([{
      reconcile: () => undefined,
      async cleanup({ metadata: { name, namespace = "" } }, { client }) {
        for (let at = 0; at < 3; at++) {
          await client.patch(Pump, { name, namespace }, {
            metadata: { labels: { at: String(at) } },
          });
        }
      },
    }], async ({ client, until, faults }, key) => {
      await until(async () =>
        (await client.get(Pump, key)).metadata.finalizers !== undefined
      );
      faults.add({
        verb: "patch",
        resource: "pumps",
        skip: 3,
        count: 2,
        effect: { conflict: true },
      });
      await client.delete(Pump, key);
      await until(async () => await client.find(Pump, key) === undefined);
    });
  })(),
);

test(
  "A run that is due in an hour comes at once after a change",
  (() => {
    const runs = seen();
    return pumps([{
      reconcile({ spec }) {
        runs.levels.push(spec.level);
        return noUpdate().rescheduleAfter("1h");
      },
    }], async ({ client, until, clock }, key) => {
      await until(() => runs.last() === 1);
      const before = clock.now();
      await level(client, key, 2);
      await until(() => runs.last() === 2);
      assert.ok(clock.now() - before < 60_000);
    });
  })(),
);

test(
  "What a run has created is among the secondaries of the run after it",
  (() => {
    const counts: number[] = [];
    return pumps([{
      async reconcile(_, ctx) {
        const { length } = await ctx.secondaries(ConfigMap);
        counts.push(length);
        if (length > 0) return undefined;
        await ctx.create(ConfigMap, { metadata: { generateName: "part-" } });
        return noUpdate().rescheduleAfter(0);
      },
    }], async ({ client, until, clock }, { namespace }) => {
      await until(() => counts.length > 1);
      await (clock as VirtualClock).advance("1m");
      const { items } = await client.list(ConfigMap, { namespace });
      const parts = items.filter(({ metadata }) =>
        metadata.name.startsWith("part-")
      );
      assert.equal(parts.length, 1);
      assert.deepEqual([...new Set(counts)], [0, 1]);
    }, { owns: [ConfigMap] });
  })(),
);

test(
  "What is deleted while a watch is cut and expires is in no cache",
  (() => {
    const known: number[] = [];
    return pumps([{
      async reconcile(_, ctx) {
        const { length } = await ctx.secondaries(ConfigMap);
        if (known.push(length) === 1) {
          await ctx.apply(ConfigMap, { metadata: { name: "part" } });
        }
        return noUpdate().rescheduleAfter("1m");
      },
    }], async ({ client, until, faults }, key) => {
      await until(() => known.includes(1));
      const part = { name: "part", namespace: key.namespace };
      faults.add({
        verb: "watch",
        resource: "configmaps",
        count: 3,
        effect: { status: 503 },
      });
      faults.cutWatches({ resource: "configmaps" });
      await client.delete(ConfigMap, part);
      faults.compact();
      await until(() => known.at(-1) === 0);
      assert.ok(known.length < 10);
    }, { owns: [ConfigMap] });
  })(),
);

test(
  "A run beyond a rate limit comes when the period ends, and not before",
  (() => {
    const times: number[] = [];
    let now = () => 0;
    return pumps([{
      reconcile() {
        times.push(now());
        return noUpdate().rescheduleAfter("1s");
      },
    }], async ({ until, clock }) => {
      now = () => clock.now();
      times.length = 0;
      await until(() => times.length > 4);
      const gaps = times.slice(1).map((at, n) => at - times[n]!);
      // Two runs in ten seconds: one after a second, one at the end of the period.
      const sum = gaps[1]! + gaps[2]!;
      assert.ok(sum >= 9_000 && sum <= 11_000, `${gaps}`);
    }, { rateLimit: { limit: 2, period: "10s" } });
  })(),
);
