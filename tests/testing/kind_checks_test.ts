import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import { checkConversion, checkRules } from "@coracle/dev";
import { defineKind, immutable, rule } from "@coracle/operator/crd";
import { Fleet } from "../core/conversion/versioned_kind.ts";

const names = {
  group: "sea.example.org",
  version: "v1",
  kind: "Pool",
} as const;

interface Pool {
  readonly spec: {
    readonly min: number;
    readonly max: number;
    readonly class?: string;
  };
}

function pool(
  twin: (self: Pool, old: Pool | undefined) => boolean,
  text: string,
) {
  return defineKind({
    ...names,
    spec: z.object({
      min: z.int().min(0).max(9),
      max: z.int().min(0).max(9),
      class: z.enum(["a", "b"]).optional(),
    }),
    rules: [rule(text, { twin }), immutable(".spec.class")],
  });
}

test("checkRules() tries a rule and its twin on objects that break it", async () => {
  const [checked, ...others] = await checkRules(
    pool(({ spec }) => spec.max >= spec.min, "self.spec.max >= self.spec.min"),
  );
  assert.equal(others.length, 0);
  assert.ok(checked && checked.held > 3 && checked.broken > 3);
});

test("checkRules() tries a transition rule on changes", async () => {
  const [checked] = await checkRules(pool(
    ({ spec }, old) => spec.class === old?.spec.class,
    "self.?spec.?class == oldSelf.?spec.?class",
  ));
  assert.ok(checked && checked.held > 3 && checked.broken > 3);
});

test("checkRules() names the object on which a twin disagrees", async () => {
  await assert.rejects(
    checkRules(
      pool(({ spec }) => spec.max > spec.min, "self.spec.max >= self.spec.min"),
    ),
    /Cannot trust the twin of self.spec.max >= self.spec.min: the rule holds and the twin returns false: received \{"self":\{/,
  );
  await assert.rejects(checkRules(Fleet), /a rule with a twin: received Fleet/);
});

const versions = (
  up: (spec: { size: string }) => unknown,
  down: (spec: { size: number }) => unknown,
  spec: z.ZodType<{ size: string }> = z.object({
    size: z.string().regex(/^[1-9]\d?$/),
  }),
) =>
  defineKind({
    ...names,
    spec: z.object({ size: z.int().min(1).max(99) }),
    versions: [{
      name: "v1beta1",
      spec,
      up: ({ spec }) => ({ spec: up(spec) as { size: number } }),
      down: ({ spec }) => ({ spec: down(spec) as { size: string } }),
    }],
  });

test("checkConversion() converts objects of each version there and back", async () => {
  const report = await checkConversion(
    versions(
      ({ size }) => ({ size: +size }),
      ({ size }) => ({ size: `${size}` }),
    ),
  );
  assert.ok(report.conversions > 5, `${report.conversions}`);
  assert.deepEqual(report.kept, []);
});

for (
  const [what, kind, message] of [
    [
      "an object that a function cannot take",
      versions(
        ({ size }) => {
          if (!/^\d+$/.test(size)) throw new Error(`no number: ${size}`);
          return { size: Number(size) };
        },
        ({ size }) => ({ size: `${size}` }),
        z.object({ size: z.string() }),
      ),
      /v1beta1 → v1 fails: up of v1beta1 has thrown Error: no number: a, for \{"spec":\{"size":"a"\}\}/,
    ],
    [
      "a result that the other version refuses",
      versions(({ size }) => ({ size: -size }), ({ size }) => ({
        size: `${-size}`,
      })),
      /v1beta1 → v1 gives what spec\.size: .*greater than or equal to 1/,
    ],
    [
      "a result with a field that the server drops",
      versions(
        ({ size }) => ({ size: +size, sise: 1 }),
        ({ size }) => ({ size: `${size}` }),
      ),
      /v1beta1 → v1 gives what spec.sise is no field of v1/,
    ],
  ] as const
) {
  test(`checkConversion() refuses ${what}`, async () => {
    await assert.rejects(checkConversion(kind), (error: Error) => {
      assert.match(error.message, /^Cannot convert Pool between its versions/);
      assert.match(error.message, message);
      return true;
    });
  });
}

test("checkConversion() says which fields an annotation keeps", async () => {
  const size = "5";
  const example = {
    apiVersion: "sea.example.org/v1alpha1",
    kind: "Fleet",
    metadata: { name: "a" },
    spec: { size, colour: "red" },
  };
  await assert.rejects(
    checkConversion(Fleet, { examples: [example] }),
    /v1alpha1 → v1beta1 fails: up of v1alpha1 has thrown Error: no size: a/,
  );
});
