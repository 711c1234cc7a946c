import assert from "node:assert/strict";
import { Client, type Operator, patchStatus } from "@coracle/operator/core";
import {
  Gadget,
  type OperatorFixture,
  scenario,
} from "../support/operator_fixture.ts";

/** Checks that no object runs in two replicas at the same time. */
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
  fixture: OperatorFixture,
  identity: string,
  referee: Referee,
): Replica {
  let isCut = false;
  const { transport } = fixture;
  const client = new Client({
    transport: {
      send: (request) =>
        isCut
          ? Promise.reject(new Error(`Cannot send: ${identity} is cut off`))
          : transport.send(request),
      close: () => Promise.resolve(),
    },
    namespace: "default",
  }, { clock: fixture.clock });
  const operator = fixture.operator({
    client,
    sharding: { name: "shards", identity },
  });
  operator.register(Gadget, {
    async reconcile(gadget, ctx) {
      const { name } = gadget.metadata;
      referee.begin(name, identity);
      try {
        await new Promise<void>((resolve) => {
          const timer = fixture.clock.setTimer(resolve, 500);
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
  }, { maxInterval: "2s", concurrency: 100 });
  return { operator, cut: (off) => isCut = off };
}

async function owners(
  fixture: OperatorFixture,
): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const { status } of (await fixture.client.list(Gadget)).items) {
    const owner = status?.value?.split(" by ")[1] ?? "nobody";
    counts[owner] = (counts[owner] ?? 0) + 1;
  }
  return counts;
}

scenario(
  "Replicas share objects and hand them over, and none runs twice",
  async (fixture) => {
    const referee = new Referee();
    const names = Array.from({ length: 32 }, (_, index) => `gadget-${index}`);
    for (const name of names) await fixture.create(name);
    const a = replica(fixture, "a", referee);
    const b = replica(fixture, "b", referee);
    const c = replica(fixture, "c", referee);

    await fixture.start(a.operator);
    await fixture.until(async () => (await owners(fixture))["a"] === 32);

    await fixture.start(b.operator);
    await fixture.start(c.operator);
    await fixture.until(async () => {
      const counts = await owners(fixture);
      return ["a", "b", "c"].every((name) => (counts[name] ?? 0) > 0);
    });

    await fixture.done(b.operator.stop());
    await fixture.until(async () => (await owners(fixture))["b"] === undefined);

    c.cut(true);
    await fixture.until(async () => (await owners(fixture))["a"] === 32);
    const before = referee.runs.get("gadget-0")?.length ?? 0;
    await fixture.until(() =>
      (referee.runs.get("gadget-0")?.length ?? 0) > before + 2
    );

    c.cut(false);
    await fixture.until(async () => ((await owners(fixture))["c"] ?? 0) > 0);
    for (const name of names) await fixture.change(name, { value: "second" });
    await fixture.until(async () =>
      (await fixture.client.list(Gadget)).items.every(({ status }) =>
        status?.value?.startsWith("second")
      )
    );
    assert.deepEqual(referee.fouls, []);
  },
);

scenario(
  "A replica that starts again under its name waits for its earlier runs",
  async (fixture) => {
    const referee = new Referee();
    const names = Array.from({ length: 8 }, (_, index) => `gadget-${index}`);
    for (const name of names) await fixture.create(name);
    const earlier = replica(fixture, "a", referee);
    await fixture.start(earlier.operator);
    await fixture.until(async () => (await owners(fixture))["a"] === 8);
    // It goes on running what it owns until its Lease has expired.
    earlier.cut(true);
    const later = replica(fixture, "a", referee);
    await fixture.start(later.operator);
    for (const name of names) await fixture.change(name, { value: "second" });
    await fixture.until(async () =>
      (await fixture.client.list(Gadget)).items.every(({ status }) =>
        status?.value === "second by a"
      )
    );
    assert.deepEqual(referee.fouls, []);
    earlier.cut(false);
  },
);

scenario("Sharding and leader election exclude each other", (fixture) => {
  assert.throws(
    () =>
      fixture.operator({
        sharding: { name: "a" },
        leaderElection: { name: "b" },
      }),
    /there is no leader/,
  );
  return Promise.resolve();
});
