import assert from "node:assert/strict";
import { test } from "node:test";
import { fc } from "../../support/property.ts";
import { z } from "zod";
import { validateSchema } from "../../../dev/apiserver/crd/schema/schema_validator.ts";
import { structuralCauses } from "../../../dev/apiserver/crd/definition_rules/crd_rules.ts";
import { loadPatterns } from "../../../dev/apiserver/cel/pattern.ts";
import { structuralSchemaOf } from "../../../core/crd/structural_schema.ts";

await loadPatterns();

/** Schema with values that it should accept. */
interface Sample {
  readonly schema: z.ZodType;
  readonly values: fc.Arbitrary<unknown>;
}

const LETTERS = fc.stringMatching(/^[a-z]{1,6}$/);
const TIMES = fc.date({ noInvalidDate: true, min: new Date(0) })
  .map((date) => date.toISOString());

const LEAVES: readonly Sample[] = [
  { schema: z.string(), values: fc.string() },
  { schema: z.string().min(1).max(6), values: LETTERS },
  { schema: z.string().regex(/^[a-z]+$/), values: LETTERS },
  {
    schema: z.string().startsWith("a").endsWith("b"),
    values: fc.constant("ab"),
  },
  { schema: z.int(), values: fc.integer() },
  { schema: z.int().min(-2).lt(9), values: fc.integer({ min: -2, max: 8 }) },
  {
    schema: z.number(),
    values: fc.double({ noNaN: true, noDefaultInfinity: true }),
  },
  { schema: z.boolean(), values: fc.boolean() },
  { schema: z.enum(["a", "b"]), values: fc.constantFrom("a", "b") },
  { schema: z.literal([1, 2]), values: fc.constantFrom(1, 2) },
  { schema: z.literal(["x", 1]), values: fc.constantFrom("x", 1) },
  {
    schema: z.union([z.int(), z.string()]),
    values: fc.oneof(fc.integer(), fc.string()),
  },
  {
    schema: z.union([z.int().min(1), z.enum(["auto", "a+b"])]),
    values: fc.oneof(fc.integer({ min: 1 }), fc.constantFrom("auto", "a+b")),
  },
  {
    schema: z.union([z.string().regex(/^a/), z.string().max(2)]),
    values: fc.oneof(LETTERS.map((text) => `a${text}`), fc.constant("zz")),
  },
  { schema: z.iso.datetime(), values: TIMES },
  { schema: z.iso.date(), values: TIMES.map((time) => time.slice(0, 10)) },
  { schema: z.uuid(), values: fc.uuid() },
  { schema: z.ipv4(), values: fc.ipV4() },
  {
    schema: z.ipv6(),
    values: fc.constantFrom("::", "fe80::1", "2001:db8::ff"),
  },
  { schema: z.unknown(), values: fc.jsonValue() },
];

/** Schemas of all kinds around those of one depth less. */
function samples(depth: number): fc.Arbitrary<Sample> {
  const leaf = fc.constantFrom(...LEAVES);
  if (depth === 0) return leaf;
  const inner = samples(depth - 1);
  return fc.oneof(
    leaf,
    inner.map(({ schema, values }) => ({
      schema: schema.nullable(),
      values: fc.option(values),
    })),
    inner.map(({ schema, values }) => ({
      schema: z.array(schema).max(3),
      values: fc.array(values, { maxLength: 3 }),
    })),
    inner.map(({ schema, values }) => ({
      schema: z.record(z.string(), schema),
      values: fc.dictionary(LETTERS, values, { maxKeys: 3 }),
    })),
    fc.dictionary(LETTERS, fc.tuple(inner, fc.boolean()), { maxKeys: 4 })
      .map(objectSample),
  );
}

function objectSample(
  fields: Readonly<Record<string, readonly [Sample, boolean]>>,
): Sample {
  const entries = Object.entries(fields);
  const required = entries.filter(([, [, optional]]) => !optional);
  return {
    schema: z.object(Object.fromEntries(
      entries.map((
        [name, [{ schema }, optional]],
      ) => [name, optional ? schema.optional() : schema]),
    )),
    values: fc.record(
      Object.fromEntries(entries.map(([name, [{ values }]]) => [name, values])),
      { requiredKeys: required.map(([name]) => name) },
    ),
  };
}

const PAIRS = samples(3).chain(({ schema, values }) =>
  values.map((value) => ({ schema, value }))
);

test("structuralSchemaOf() creates valid schemas that accept the same as zod", () => {
  fc.assert(
    fc.property(PAIRS, ({ schema, value }) => {
      const whole = z.object({ field: schema });
      const object = JSON.parse(JSON.stringify({ field: value })) as object;
      fc.pre(whole.safeParse(object).success);
      const structural = structuralSchemaOf(whole, "spec");
      assert.deepEqual(structuralCauses(structural, "schema"), []);
      assert.deepEqual(validateSchema(object, structural), []);
    }),
    { numRuns: 500 },
  );
});
