/**
 * Values of the wrong type at public functions: each is refused with one line
 * that says what cannot be done and why.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import {
  kindFromCrd,
  TestCluster,
  VirtualClock,
  withTestCluster,
} from "@coracle/dev";
import { type Context, crdPresent, Operator } from "@coracle/operator";
import { checkStatus, crdManifest, defineKind } from "@coracle/operator/crd";
import { ConfigMap, schemaOf } from "@coracle/operator/kinds";
import { Expectations } from "@coracle/operator/sources";
import { startGadgets } from "../support/gadget_runs.ts";
import { type Gadget, scenario } from "../support/operator_fixture.ts";

const WRONG: readonly unknown[] = [undefined, null, 5, "x", {}, [], true];

/** Cannot ACTION: WHY[: received VALUE], in one line. */
const REFUSAL = /^Cannot [^\n]+?: [^\n]+$/;
/** Errors of the runtime that begin in the same way. */
const RAW = /^Cannot (read propert|destructure|use 'in'|convert|mix)/;

/** Asserts that a call refuses all values but those that it takes. */
async function refuses(
  what: string,
  call: (value: never) => unknown,
  takes: readonly unknown[] = [],
): Promise<void> {
  for (const value of WRONG) {
    const given = `${what}: ${JSON.stringify(value)}`;
    const isTaken = takes.some((taken) =>
      JSON.stringify(taken) === JSON.stringify(value)
    );
    try {
      await call(value as never);
    } catch (error) {
      const { message } = error as Error;
      assert.match(message, REFUSAL, given);
      assert.doesNotMatch(message, RAW, given);
      continue;
    }
    assert(isTaken, `${given} is accepted`);
  }
}

scenario("Methods of ctx refuse values of wrong types", async (fixture) => {
  const outcomes: unknown[] = [];
  const check = async (ctx: Context<Gadget>) => {
    for (const method of ["apply", "create", "replace"] as const) {
      const write = (object: never) =>
        (ctx[method] as typeof ctx.apply).call(ctx, ConfigMap, object);
      await refuses(method, write);
      await refuses(method, (metadata) => write({ metadata } as never));
      await refuses(
        method,
        (name) => write({ metadata: { name } } as never),
        // The object has no resourceVersion to be replaced.
        method === "replace" ? [] : ["x"],
      );
    }
    const { events } = ctx;
    await refuses("normal", (reason) => events.normal(reason, "x"), ["x"]);
    await refuses("warning", (text) => events.warning("x", text), ["x"]);
    const misspelt = { onec: true } as never;
    assert.throws(
      () => events.normal("x", "y", misspelt),
      /an Event, options: there is no option "onec": did you mean "once"\?/,
    );
    await refuses("get", (kind) => ctx.get(kind));
    await refuses("list", (kind) => ctx.list(kind));
    await refuses("secondary", (kind) => ctx.secondary(kind));
    await refuses("name", (name) => ctx.get(ConfigMap, name), ["x"]);
    await refuses("namespace", (namespace) => ctx.list(ConfigMap, namespace), [
      undefined,
      "x",
    ]);
    await refuses("delete", (key) => ctx.delete(ConfigMap, key), ["x"]);
    await refuses("modify", (change) => ctx.modify(ConfigMap, "x", change));
  };
  await startGadgets(fixture, async (_gadget, ctx) => {
    outcomes.push(await check(ctx).catch((error: unknown) => error));
  });
  await fixture.create("a");
  await fixture.until(() => outcomes.length > 0);
  assert.deepEqual(outcomes, [undefined]);
});

const Lamp = defineKind({
  group: "sample.coracle.dev",
  version: "v1",
  kind: "Lamp",
  spec: z.object({}),
});

test("Functions about kinds refuse values of wrong types", async () => {
  await refuses("schemaOf", schemaOf);
  await refuses("crdManifest", crdManifest);
  await refuses("crdPresent", crdPresent);
  await refuses("checkStatus", (kind) => checkStatus(kind, {}));
  const crd = crdManifest(Lamp);
  const { spec } = crd;
  await refuses("kindFromCrd", kindFromCrd);
  await refuses("version", (version) => kindFromCrd(crd, version), [undefined]);
  for (const part of ["group", "names", "versions"] as const) {
    await refuses(
      part,
      (value) => kindFromCrd({ ...crd, spec: { ...spec, [part]: value } }),
      part === "group" ? ["x"] : [],
    );
  }
  await refuses(
    "a version",
    (one) => kindFromCrd({ ...crd, spec: { ...spec, versions: [one] } }),
  );
  await refuses(
    "scope",
    (scope) => kindFromCrd({ ...crd, spec: { ...spec, scope } }),
    [undefined],
  );
});

test("Operators and controllers refuse values of wrong types", async () => {
  await refuses("config", (config) => new Operator({ config }), [undefined]);
  const register = (options: never) =>
    new Operator().register(Lamp, { reconcile() {} }, options);
  for (const option of ["owns", "watches", "sources"] as const) {
    const set = (value: unknown) => register({ [option]: value } as never);
    await refuses(option, set, [undefined, []]);
    await refuses(option, (entry) => set([entry]));
  }
  await refuses("retry", (retry) => register({ retry } as never), [
    undefined,
    {},
  ]);
  await refuses("Expectations", (name) => new Expectations(name), [
    undefined,
    "x",
  ]);
  const expectations = new Expectations();
  const ctx = { key: { name: "a" } } as never;
  const check = expectations.checkOrSet.bind(expectations, Lamp as never, ctx);
  await refuses("an expectation", check);
});

test("The test kit refuses values of wrong types", async () => {
  await refuses("VirtualClock", (options) => new VirtualClock(options), [
    undefined,
    {},
  ]);
  await refuses("start", (start) => new VirtualClock({ start }), [undefined]);
  const clock = new VirtualClock();
  await refuses("advance", (time) => clock.advance(time), [5]);
  await refuses("runUntil", (condition) => clock.runUntil(condition));
  await refuses("body", (body) => withTestCluster({}, body));
  for (const option of ["kinds", "objects", "rights"] as const) {
    await refuses(
      option,
      (entry) => TestCluster.start({ [option]: [entry] }),
    );
  }
  const cluster = await TestCluster.start();
  await refuses("until", (condition) => cluster.until(condition));
  await refuses("apply", (object) => cluster.apply(object));
  await cluster.stop();
});
