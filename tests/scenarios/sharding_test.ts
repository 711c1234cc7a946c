import assert from "node:assert/strict";
import { Client } from "../../core/client/client.ts";
import { patchStatus } from "../../core/controller/result.ts";
import type { Operator } from "../../core/operator/operator.ts";
import {
  Gadget,
  type OperatorCase,
  scenario,
} from "../support/operator_case.ts";

/** Sees to it that no object runs in two replicas at once. */
class Referee {
  readonly running: Map<string, string> = new Map();
  readonly runs: Map<string, string[]> = new Map();
  readonly fouls: string[] = [];

  begin(key: string, replica: string): void {
    const other = this.running.get(key);
    if (other !== undefined) {
      this.fouls.push(`${key} in ${other} and ${replica}`);
    }
    this.running.set(key, replica);
    this.runs.set(key, [...this.runs.get(key) ?? [], replica]);
  }

  end(key: string): void {
    this.running.delete(key);
  }
}

interface Replica {
  readonly operator: Operator;
  /** Cuts the replica off, or lets it through again. */
  cut(off: boolean): void;
}

function replica(
  one: OperatorCase,
  identity: string,
  referee: Referee,
): Replica {
  let isCut = false;
  const { transport } = one;
  const client = new Client({
    transport: {
      send: (request) =>
        isCut
          ? Promise.reject(new Error(`Cannot send: ${identity} is cut off`))
          : transport.send(request),
      close: () => Promise.resolve(),
    },
    namespace: "default",
  }, { clock: one.clock });
  const operator = one.operator({
    client,
    sharding: { name: "shards", identity },
  });
  operator.register(Gadget, {
    async reconcile(gadget, ctx) {
      const { name } = gadget.metadata;
      referee.begin(name, identity);
      try {
        await new Promise<void>((resolve) => {
          const timer = one.clock.setTimer(resolve, 500);
          ctx.signal.addEventListener("abort", () => {
            timer.cancel();
            resolve();
          });
        });
        ctx.signal.throwIfAborted();
      } finally {
        referee.end(name);
      }
      return patchStatus({ value: `${gadget.spec.value} by ${identity}` });
    },
  }, { maxInterval: "1s", concurrency: 100 });
  return { operator, cut: (off) => isCut = off };
}

async function owners(one: OperatorCase): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const { status } of (await one.client.list(Gadget)).items) {
    const owner = status?.value?.split(" by ")[1] ?? "nobody";
    counts[owner] = (counts[owner] ?? 0) + 1;
  }
  return counts;
}

scenario(
  "Replicas share the objects, hand them over when one comes, goes or is cut off, and none runs twice",
  async (one) => {
    const referee = new Referee();
    const names = Array.from({ length: 40 }, (_, index) => `gadget-${index}`);
    for (const name of names) await one.create(name);
    const a = replica(one, "a", referee);
    const b = replica(one, "b", referee);
    const c = replica(one, "c", referee);

    await one.start(a.operator);
    await one.until(async () => (await owners(one))["a"] === 40);

    await one.start(b.operator);
    await one.start(c.operator);
    await one.until(async () => {
      const counts = await owners(one);
      return ["a", "b", "c"].every((name) => (counts[name] ?? 0) >= 5);
    });

    await one.done(b.operator.stop());
    await one.until(async () => (await owners(one))["b"] === undefined);

    c.cut(true);
    await one.until(async () => (await owners(one))["a"] === 40);
    const before = referee.runs.get("gadget-0")?.length ?? 0;
    await one.until(() =>
      (referee.runs.get("gadget-0")?.length ?? 0) > before + 2
    );

    c.cut(false);
    await one.until(async () => ((await owners(one))["c"] ?? 0) >= 5);
    for (const name of names) await one.change(name, { value: "second" });
    await one.until(async () =>
      (await one.client.list(Gadget)).items.every(({ status }) =>
        status?.value?.startsWith("second")
      )
    );
    assert.deepEqual(referee.fouls, []);
  },
);

scenario("Sharding and leader election exclude each other", (one) => {
  assert.throws(
    () =>
      one.operator({ sharding: { name: "a" }, leaderElection: { name: "b" } }),
    /there is no leader/,
  );
  return Promise.resolve();
});
