import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@coracle/dev";
import type { Context, KubernetesObject } from "@coracle/operator/core";
import { type Expectation, Expectations } from "@coracle/operator/sources";
import { recordedContext } from "../support/source_context.ts";

type Ctx = Context<KubernetesObject>;

/** Expectations with a context in place of a controller. */
async function started(): Promise<{
  readonly expectations: Expectations<KubernetesObject>;
  readonly clock: VirtualClock;
  /** Keys of the primaries that were triggered. */
  readonly triggered: string[];
}> {
  const clock = new VirtualClock();
  await clock.advance(60_000);
  const context = recordedContext(clock, [primary("a"), primary("b")]);
  const expectations = new Expectations<KubernetesObject>();
  await expectations.start(context);
  return { expectations, clock, triggered: context.triggered };
}

function primary(name: string): KubernetesObject {
  return { metadata: { namespace: "default", name } };
}

function contextOf(name: string): Ctx {
  return { key: { namespace: "default", name } } as Ctx;
}

function ready(
  isFulfilled: () => boolean,
  name = "ready",
): Expectation<KubernetesObject> {
  return { name, timeout: "10s", isFulfilled };
}

const A = [primary("a"), contextOf("a")] as const;
const B = [primary("b"), contextOf("b")] as const;

test("Expectations has the status none without an expectation [J39]", async () => {
  const { expectations } = await started();
  assert.deepEqual(await expectations.check(...A), { status: "none" });
  assert.equal(expectations.size, 0);
  assert.equal(expectations.name, "expectations");
});

test("Expectations is pending until fulfilled, and fulfilled once [J38]", async () => {
  const { expectations } = await started();
  let fulfilled = false;
  expectations.set(A[1], ready(() => fulfilled));
  assert.equal(expectations.size, 1);
  const pending = { status: "pending", name: "ready" };
  assert.deepEqual(await expectations.check(...A), pending);
  fulfilled = true;
  const done = { status: "fulfilled", name: "ready" };
  assert.deepEqual(await expectations.check(...A), done);
  assert.deepEqual(await expectations.check(...A), { status: "none" });
  assert.equal(expectations.size, 0);
});

test("Expectations triggers a run after the timeout, and stays timed out until removed [J40]", async () => {
  const { expectations, clock, triggered } = await started();
  expectations.set(A[1], ready(() => false));
  await clock.advance(9_999);
  assert.deepEqual(triggered, []);
  await clock.advance(1);
  assert.deepEqual(triggered, ["default/a"]);
  const late = { status: "timedOut", name: "ready" };
  assert.deepEqual(await expectations.check(...A), late);
  assert.deepEqual(await expectations.check(...A), late);
  expectations.remove(A[1]);
  assert.deepEqual(await expectations.check(...A), { status: "none" });
});

test("Expectations of different primaries are separate [J41]", async () => {
  const { expectations } = await started();
  expectations.set(A[1], ready(() => true, "first"));
  expectations.set(B[1], ready(() => false, "second"));
  assert.equal((await expectations.check(...A)).status, "fulfilled");
  assert.deepEqual(await expectations.check(...B), {
    status: "pending",
    name: "second",
  });
});

test("Expectations replaces an expectation with its timeout [J42]", async () => {
  const { expectations, clock, triggered } = await started();
  expectations.set(A[1], ready(() => false, "first"));
  await clock.advance(6_000);
  expectations.set(A[1], ready(() => false, "second"));
  await clock.advance(6_000);
  assert.deepEqual(triggered, []);
  assert.equal((await expectations.check(...A)).name, "second");
  await clock.advance(4_000);
  assert.deepEqual(triggered, ["default/a"]);
});

test("Expectations checks a state, or sets an expectation if it is not reached [J43]", async () => {
  const { expectations } = await started();
  const met = await expectations.checkOrSet(...A, {
    ...ready(() => true),
    isFulfilled: () => Promise.resolve(true),
  });
  assert.deepEqual(met, { status: "fulfilled", name: "ready" });
  assert.equal(expectations.size, 0);
  let fulfilled = false;
  const check = () => expectations.checkOrSet(...A, ready(() => fulfilled));
  assert.equal((await check()).status, "pending");
  assert.equal((await check()).status, "pending");
  assert.equal(expectations.size, 1);
  fulfilled = true;
  assert.equal((await check()).status, "fulfilled");
});

test("Expectations are removed with their primary and with the controller", async () => {
  const { expectations, clock, triggered } = await started();
  expectations.set(A[1], ready(() => false));
  const { key } = A[1];
  expectations.onPrimary({ type: "modified", key, object: A[0] });
  assert.equal(expectations.size, 1);
  expectations.onPrimary({ type: "deleted", key, object: undefined });
  assert.equal(expectations.size, 0);
  expectations.set(B[1], ready(() => false));
  await expectations.stop();
  assert.equal(expectations.size, 0);
  await clock.advance(60_000);
  assert.deepEqual(triggered, []);
  assert.throws(
    () => expectations.set(B[1], ready(() => false)),
    /among the sources of a running controller/,
  );
});

test("Expectations rejects an invalid timeout", async () => {
  const { expectations } = await started();
  const invalid = {
    ...ready(() => true),
    timeout: "soon" as Expectation<never>["timeout"],
  };
  assert.throws(() => expectations.set(A[1], invalid), RangeError);
  await assert.rejects(expectations.checkOrSet(...A, invalid), RangeError);
});

test("Expectations keeps one that was set while an earlier one was checked", async () => {
  const { expectations, clock, triggered } = await started();
  const slow = Promise.withResolvers<boolean>();
  expectations.set(A[1], {
    name: "first",
    timeout: "10s",
    isFulfilled: () => slow.promise,
  });
  const checked = expectations.check(...A);
  expectations.set(A[1], ready(() => false, "second"));
  slow.resolve(true);
  assert.deepEqual(await checked, { status: "fulfilled", name: "first" });
  assert.deepEqual(await expectations.check(...A), {
    status: "pending",
    name: "second",
  });
  await clock.advance(10_000);
  assert.deepEqual(triggered, ["default/a"], "its timeout triggers a run");
});

test("Expectations ignores an expectation for a primary that is deleted", async () => {
  const { expectations, clock } = await started();
  expectations.set(contextOf("deleted"), ready(() => false));
  assert.equal(expectations.size, 0);
  assert.equal(clock.pendingTimers, 0);
});

test("Expectations passes primary and context on, and starts no late wait again", async () => {
  const { expectations, clock } = await started();
  const given: unknown[] = [];
  const expectation: Expectation<KubernetesObject> = {
    ...ready(() => false),
    isFulfilled: (...parts) => {
      given.push(...parts);
      return false;
    },
  };
  await expectations.checkOrSet(...A, expectation);
  await clock.advance(10_000);
  const late = { status: "timedOut", name: "ready" };
  assert.deepEqual(await expectations.checkOrSet(...A, expectation), late);
  assert.deepEqual(await expectations.check(...A), late);
  assert.deepEqual(given, [...A, ...A, ...A]);
});
