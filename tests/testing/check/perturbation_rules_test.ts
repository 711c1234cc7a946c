import assert from "node:assert/strict";
import { test } from "node:test";
import type { ObjectKey } from "@coracle/operator/client";
import {
  type Perturbation,
  Perturbations,
  type PerturbedWorld,
} from "../../../dev/testing/check/perturbations.ts";
import { WorldClock } from "../../../dev/testing/check/world_clock.ts";

/** Lease, as far as the tests read it. */
interface LeaseObject {
  readonly metadata: ObjectKey;
  readonly spec: Readonly<Record<string, unknown>>;
}

/** Perturbations of a world without a server, at half a second. */
function perturbed(
  all: readonly Perturbation[],
  leases: readonly LeaseObject[] = [],
) {
  const clock = new WorldClock();
  clock.moveTo(500);
  const patched: unknown[] = [];
  const world = {
    clock,
    outside: clock.view(),
    client: {
      list: () => Promise.resolve({ items: leases }),
      patch(_kind: unknown, key: ObjectKey, { spec }: LeaseObject) {
        const { holderIdentity, leaseTransitions } = spec;
        patched.push([
          key.namespace,
          key.name,
          holderIdentity,
          leaseTransitions,
        ]);
        return Promise.resolve({});
      },
    },
    twin() {},
    disturbLeases() {},
    edit: () => Promise.resolve(),
  } as object as PerturbedWorld;
  const found = new Perturbations(all);
  found.attach(world);
  /** Lets time pass, with its timers. */
  const advance = (milliseconds: number) => {
    const end = clock.now() + milliseconds;
    while (clock.fireNext(end));
    clock.moveTo(end);
  };
  const effect = (
    verb: string,
    resource = "secrets",
    query = "?limit=500&resourceVersion=0",
  ) => found.effect({ verb, resource, path: `/api/v1/${resource}${query}` });
  return { found, clock, advance, effect, patched };
}

test("A perturbation affects the repetitions of its write, as often as it says", async () => {
  const { found } = perturbed([{ do: "conflict", write: 2, times: 2 }]);
  const answers: unknown[] = [];
  for (const [write, target] of ["x", "x", "y", "x", "x"].entries()) {
    const verdict = await found.beforeWrite(write + 1, target);
    answers.push(verdict.effect);
  }
  const conflict = { conflict: true };
  assert.deepEqual(answers, [
    undefined,
    conflict,
    undefined,
    conflict,
    undefined,
  ]);
  assert.deepEqual(found.hits, [2]);
});

test("A refusal has its code, by default that of missing rights", async () => {
  for (const [code, status] of [[undefined, 403], [503, 503]] as const) {
    const { found } = perturbed([{ do: "refuse", write: 1, code }]);
    const { effect, fault } = await found.beforeWrite(1, "x");
    assert.deepEqual([effect, fault], [{ status }, "refuse"]);
  }
});

test("A throttled server refuses all requests for a time, and no longer", async () => {
  const { found, advance, effect } = perturbed([{
    do: "throttle",
    write: 1,
    ms: 1_000,
  }]);
  assert.equal(effect("get"), undefined);
  await found.beforeWrite(1, "x");
  assert.equal(found.until, 1_500);
  const refused = { status: 429, retryAfter: 1 };
  assert.deepEqual([effect("get"), effect("list")], [refused, refused]);
  advance(999);
  assert.deepEqual(effect("get"), refused);
  advance(1);
  assert.equal(effect("get"), undefined);
});

test("A throttled server refuses requests for Leases for a minute only", async () => {
  const { found, advance, effect } = perturbed([{
    do: "throttle",
    write: 1,
    ms: 3_600_000,
  }]);
  assert.equal(found.endangersLeases, false);
  await found.beforeWrite(1, "x");
  const refused = { status: 429, retryAfter: 1 };
  advance(59_999);
  assert.deepEqual(effect("get", "leases"), refused);
  assert.equal(found.endangersLeases, true);
  advance(2);
  assert.equal(effect("get", "leases"), undefined);
  assert.equal(found.endangersLeases, false);
  assert.deepEqual(effect("get", "pods"), refused);
});

test("A server lags in lists and watches of one resource, until it has caught up", () => {
  const { found, advance, effect } = perturbed([{
    do: "stale",
    revision: 7,
    resource: "secrets",
    ms: 100,
  }]);
  let released = 0;
  found.staleWatch(() => released++);
  for (const verb of ["list", "watch"]) {
    assert.deepEqual(effect(verb), { staleAt: 7 });
    assert.equal(effect(verb, "pods"), undefined);
  }
  assert.equal(effect("get"), undefined);
  // A list without a version is answered from the newest state.
  for (const query of ["", "?limit=500", "?resourceVersion="]) {
    assert.equal(effect("list", "secrets", query), undefined);
  }
  assert.equal(found.until, 600);
  advance(99);
  assert.equal(released, 0);
  advance(1);
  assert.deepEqual([effect("list"), released, found.until], [undefined, 1, 0]);
});

test("A server that lags in all resources has caught up before the next write", async () => {
  const { found, effect } = perturbed([{
    do: "stale",
    write: 2,
    revision: 7,
    ms: 100,
  }]);
  assert.equal(effect("list"), undefined);
  assert.equal((await found.beforeWrite(1, "x")).crash, undefined);
  const { crash } = await found.beforeWrite(2, "x");
  assert.deepEqual(crash, { place: "after", why: "write 2, after", downMs: 0 });
  assert.deepEqual(effect("list", "pods"), { staleAt: 7 });
  // Until a restarted operator has watched, writes are those of the old one.
  await found.beforeWrite(3, "x");
  assert.deepEqual(effect("list"), { staleAt: 7 });
  let released = 0;
  found.staleWatch(() => released++);
  await found.beforeWrite(4, "x");
  assert.deepEqual([effect("list"), released], [undefined, 1]);
});

test("A first state lingers, and breaks once, at the state before a deletion", () => {
  const { found, advance, effect } = perturbed([{
    do: "linger",
    ms: 10,
    breaks: true,
  }]);
  let ended = 0;
  assert.equal(found.lingers(() => ended++), true);
  advance(9);
  assert.equal(ended, 0);
  advance(1);
  assert.equal(ended, 1);
  assert.equal(found.breaks("secrets", 7), true);
  assert.deepEqual(effect("list"), { staleAt: 6 });
  assert.equal(found.lingers(() => {}), false);
  advance(10);
  assert.equal(found.lingers(() => {}), true);
  assert.equal(found.breaks("secrets", 9), false);
  const calm = perturbed([{ do: "linger", ms: 10 }]).found;
  assert.equal(calm.breaks("secrets", 7), false);
});

/** What becomes of an event of a Secret. */
function outcome(
  found: Perturbations,
  n: number,
  more: Partial<Parameters<Perturbations["onEvent"]>[0]> = {},
) {
  return found.onEvent({
    n,
    group: "",
    resource: "secrets",
    revision: n,
    isInitial: false,
    ...more,
  });
}

test("An event waits until a later one is delivered, or for half a minute", () => {
  const order = [{ do: "order", event: 1, after: 3 }] as const;
  const overtaken = perturbed(order).found;
  assert.equal(overtaken.isDelayed(1), true);
  assert.equal(overtaken.isDelayed(2), false);
  outcome(overtaken, 2);
  assert.equal(overtaken.isDelayed(1), true);
  outcome(overtaken, 3);
  outcome(overtaken, 2);
  assert.equal(overtaken.isDelayed(1), false);
  assert.deepEqual(overtaken.hits, [1]);
  const { found, advance } = perturbed(order);
  assert.equal(found.isDelayed(1), true);
  advance(29_999);
  assert.equal(found.isDelayed(1), true);
  advance(1);
  assert.equal(found.isDelayed(1), false);
});

test("A watch is cut, or expires, before its event and once", () => {
  for (const name of ["cut", "expire"] as const) {
    const { found } = perturbed([{ do: name, event: 2 }]);
    const outcomes = [1, 2, 2, 3].map((n) => outcome(found, n));
    assert.deepEqual(outcomes, [undefined, name, undefined, undefined]);
  }
});

test("Events of a resource are missed between two revisions, but none of a list", () => {
  const missed = { do: "missed", resource: "secrets", from: 2, to: 4 } as const;
  const { found } = perturbed([{ ...missed, group: "" }]);
  assert.deepEqual([1, 2, 3, 4].map((n) => outcome(found, n)), [
    undefined,
    "missed",
    "missed",
    undefined,
  ]);
  assert.equal(outcome(found, 2, { resource: "pods" }), undefined);
  assert.equal(outcome(found, 2, { group: "test.dev" }), undefined);
  assert.equal(outcome(found, 2, { isInitial: true }), undefined);
  found.endGap();
  assert.equal(outcome(found, 2), undefined);
  const anyGroup = perturbed([missed]).found;
  assert.equal(outcome(anyGroup, 2, { group: "test.dev" }), "missed");
});

test("A watch that has missed events is closed once, after a minute", () => {
  const missed = { do: "missed", resource: "secrets", from: 2, to: 9 } as const;
  const { found, advance } = perturbed([missed]);
  let closed = 0;
  const watch = {};
  found.closeLater(watch, () => closed++);
  advance(30_000);
  found.closeLater(watch, () => closed++);
  assert.equal(found.until, 60_500);
  assert.equal(outcome(found, 3), "missed");
  advance(30_000);
  assert.equal(closed, 1);
  assert.equal(outcome(found, 4), undefined, "the list was complete");
  advance(60_000);
  assert.equal(closed, 1);
});

test("A leader is suspended for two minutes, and another leads for one", async () => {
  const lease = (namespace: string, leaseTransitions?: number) => ({
    metadata: { namespace, name: "lease" },
    spec: { leaseTransitions },
  });
  const { found, clock, advance, patched } = perturbed(
    [{ do: "leader", write: 1 }],
    [lease("kube-system", 1), lease("default", 4), lease("other")],
  );
  const verdict = await found.beforeWrite(1, "x");
  assert.deepEqual(verdict, { fault: "leader", wasSuspended: true });
  assert.equal(clock.now(), 120_500);
  assert.deepEqual(patched.splice(0), [
    ["default", "lease", "check", 5],
    ["other", "lease", "check", 1],
  ]);
  advance(59_999);
  assert.deepEqual(patched, []);
  advance(1);
  assert.deepEqual(patched, [
    ["default", "lease", "", 5],
    ["other", "lease", "", 1],
  ]);
});
