/**
 * Values of the wrong type at public functions: each is refused with one line
 * that says what cannot be done and why.
 */
import assert from "node:assert/strict";
import type { Context } from "../../core/controller/context.ts";
import { ConfigMap } from "../../core/kinds/mod.ts";
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
  let checked = false;
  const check = async (ctx: Context<Gadget>) => {
    for (const method of ["apply", "create", "replace"] as const) {
      const write = (object: never) => ctx[method](ConfigMap, object);
      await refuses(method, write);
      await refuses(method, (metadata) => write({ metadata } as never));
      await refuses(
        method,
        (name) => write({ metadata: { name } } as never),
        // The object has no resourceVersion to be replaced.
        method === "replace" ? [] : ["x"],
      );
    }
    for (
      const method of ["get", "list", "secondary", "secondaries"] as const
    ) await refuses(method, (kind) => ctx[method](kind));
    await refuses("name", (name) => ctx.get(ConfigMap, name), [undefined, "x"]);
    await refuses("namespace", (namespace) => ctx.list(ConfigMap, namespace), [
      undefined,
      "x",
    ]);
    await refuses("delete", (key) => ctx.delete(ConfigMap, key), ["x"]);
    await refuses("modify", (change) => ctx.modify(ConfigMap, "x", change));
    checked = true;
  };
  const { runs } = await startGadgets(fixture, async (_gadget, ctx) => {
    await check(ctx);
  }, { retry: false });
  await fixture.create("a");
  await fixture.until(() => runs.length === 1);
  await fixture.settle();
  assert(checked, fixture.log.map(({ fields }) => fields["error"]).join());
});
