import assert from "node:assert/strict";
import { z } from "zod";
import {
  defineKind,
  patchResource,
  patchStatus,
  setStatus,
} from "@coracle/operator/core";
import { mutableCopy } from "../../core/json/prune.ts";
import { scenario } from "../support/operator_fixture.ts";

const NUMBER = z.int().min(-(2 ** 63)).max(2 ** 63);

/** Kind with integers that JavaScript does not hold exactly. */
const Meter = defineKind({
  group: "sample.coracle.dev",
  version: "v1",
  kind: "Meter",
  spec: z.object({
    big: NUMBER,
    label: z.string().optional(),
    marks: z.array(z.object({ at: NUMBER, name: z.string() })),
  }),
  status: z.object({ big: NUMBER, label: z.string() }).partial(),
});

const KEY = { namespace: "default", name: "a" };
const BIG = 2 ** 60;

scenario(
  "What is computed from an object changes no integer beyond 2^53 in it",
  async (fixture) => {
    await fixture.install(Meter);
    const bodies: string[] = [];
    const client = fixture.client.with([(next) => (request) => {
      const isWrite = request.path.includes("/meters/a") && request.body;
      if (isWrite) bodies.push(String(request.body));
      return next(request);
    }]);
    const refusals: unknown[] = [];
    const refuse = (error: unknown) => void refusals.push(error);
    const results = [
      setStatus({ big: BIG }),
      patchResource({ spec: { label: "x" } }, { method: "replace" }),
      patchStatus({ label: "done" }),
    ];
    const operator = fixture.operator({ client });
    operator.register(Meter, {
      async reconcile(meter, ctx) {
        if (meter.spec.label === undefined) {
          await ctx.modify(Meter, "a", ({ spec }) => void (spec.label = "a"));
          await ctx.modify(Meter, "a", ({ spec }) => void spec.marks.shift());
          await ctx.modify(Meter, "a", ({ spec }) => {
            spec.marks.unshift(spec.marks[0]!);
          }).catch(refuse);
          await ctx.replace(Meter, mutableCopy(meter)).catch(refuse);
          await client.replace(Meter, meter).catch(refuse);
        }
        return results.shift() as ReturnType<typeof patchStatus<object>>;
      },
      onError(_meter, error) {
        refuse(error);
      },
    }, { retry: { initial: "1s", jitter: 0 } });
    await fixture.start(operator);
    await fixture.client.create(Meter, {
      metadata: KEY,
      spec: {
        big: BIG,
        marks: [{ at: 1, name: "one" }, { at: BIG, name: "big" }],
      },
    });
    await fixture.until(async () =>
      (await fixture.client.get(Meter, KEY)).status?.label === "done"
    );
    assert.deepEqual(
      refusals.map((error) => /"([^"]+)" is an integer/.exec(`${error}`)?.[1]),
      ["spec.marks.1.at", "spec.big", "spec.big", "status.big", "spec.big"],
    );
    assert.ok(bodies.length >= 2);
    assert.doesNotMatch(bodies.join(), new RegExp(`${BIG}`));
    const { spec } = await fixture.client.get(Meter, KEY);
    assert.equal(spec.label, "a");
  },
);
