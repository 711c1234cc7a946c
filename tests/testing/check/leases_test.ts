import assert from "node:assert/strict";
import process from "node:process";
import { test } from "node:test";
import type { Perturbation } from "../../../dev/testing/check/perturbations.ts";
import type { TraceEntry } from "../../../dev/testing/check/trace.ts";
import { World } from "../../../dev/testing/check/world.ts";
import { copier, loadCopier, runCopier, statusOf } from "./copier_world.ts";

const IDLE_MS = 600_000;

/** Requests for Leases of an electing operator that is idle for ten minutes. */
async function leaseRequests(perturbation?: Perturbation): Promise<{
  readonly idle: number;
  readonly byIncarnation: ReadonlyMap<number, number>;
  readonly trace: readonly TraceEntry[];
}> {
  process.env["COPIER_LEASE"] = "yes";
  const world = await World.start({
    seed: 1,
    load: loadCopier,
    perturbations: perturbation === undefined ? [] : [perturbation],
  });
  try {
    const requests = () =>
      world.trace.filter((entry) =>
        entry.type === "request" && entry.resource === "leases"
      );
    await world.quiet();
    await world.apply(copier("a"));
    await world.quiet();
    const before = requests().length;
    await world.advance(IDLE_MS);
    const byIncarnation = new Map<number, number>();
    for (const { incarnation } of requests() as { incarnation: number }[]) {
      byIncarnation.set(incarnation, (byIncarnation.get(incarnation) ?? 0) + 1);
    }
    return {
      idle: requests().length - before,
      byIncarnation,
      trace: [...world.trace],
    };
  } finally {
    await world.end();
    delete process.env["COPIER_LEASE"];
  }
}

const hasStopped = (trace: readonly TraceEntry[]) =>
  trace.some((entry) =>
    entry.type === "log" && entry.message === "Stopped leading"
  );

test("A leader that is alone renews no Lease, and leads on", async () => {
  const { idle, trace } = await leaseRequests();
  assert.equal(idle, 0);
  assert.equal(hasStopped(trace), false);
  const status = trace.find((entry) =>
    entry.type === "request" && entry.subresource === "status"
  );
  assert.ok(status?.type === "request" && status.code === 200);
});

test("A leader beside a second replica renews its Lease, and stays the leader", async () => {
  const { idle, byIncarnation, trace } = await leaseRequests({
    do: "twins",
    write: 2,
  });
  // Every two seconds, and the other one looks as often.
  assert.ok(idle > 500, `${idle}`);
  assert.ok((byIncarnation.get(1) ?? 0) > 290, `${[...byIncarnation]}`);
  assert.equal(hasStopped(trace), false);
});

test("A throttled leader loses its Lease, takes it again, and is at peace", async () => {
  const { idle, trace } = await leaseRequests({
    do: "throttle",
    write: 3,
    ms: 60_000,
  });
  assert.equal(hasStopped(trace), true);
  assert.equal(idle, 0);
  const [last] = trace.filter((entry) =>
    entry.type === "request" && entry.subresource === "status"
  ).reverse();
  assert.ok(last?.type === "request" && last.code === 200);
});

test("A leader that is throttled for an hour leads again after a minute", async () => {
  const { idle, byIncarnation, trace } = await leaseRequests({
    do: "throttle",
    write: 3,
    ms: 3_600_000,
  });
  assert.equal(hasStopped(trace), true);
  assert.equal(idle, 0);
  assert.ok((byIncarnation.get(1) ?? 0) < 80, `${[...byIncarnation]}`);
  // It tries its write again and again, and nobody else is in its way.
  const refused = trace.filter((entry) =>
    entry.type === "request" && entry.resource === "secrets" &&
    entry.code === 429 && entry.at > 600_000
  );
  assert.ok(refused.length > 0);
});

test("A sharded replica takes over from the one before, killed or deposed", async () => {
  process.env["COPIER_LEASE"] = "sharding";
  try {
    for (
      const perturbation of [
        { do: "crash", write: 3, place: "after" },
        { do: "leader", write: 3 },
      ] as const
    ) {
      const run = await runCopier([perturbation]);
      const { text } = statusOf(run) as { readonly text?: string } ?? {};
      assert.equal(text, "a", perturbation.do);
    }
  } finally {
    delete process.env["COPIER_LEASE"];
  }
});
