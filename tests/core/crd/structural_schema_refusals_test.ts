import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import type { StandardSchema } from "@coracle/operator/crd";
import { structuralSchemaOf } from "../../../core/crd/structural_schema.ts";

interface Tree {
  readonly name: string;
  readonly children: readonly Tree[];
}
const Tree: z.ZodType<Tree> = z.object({
  name: z.string(),
  get children() {
    return z.array(Tree);
  },
});

const REFUSED: readonly (readonly [string, StandardSchema, RegExp])[] = [
  [
    "a union of objects",
    z.discriminatedUnion("type", [
      z.object({ type: z.literal("a"), x: z.string() }),
      z.object({ type: z.literal("b"), y: z.int() }),
    ]),
    /for spec\.field: a union of objects has none/,
  ],
  [
    "a union of several types, deep within",
    z.array(z.record(z.string(), z.union([z.string(), z.boolean()]))),
    /for spec\.field\[\]\.\*: a value must have one type.*string, boolean/,
  ],
  [
    "a recursive type",
    Tree,
    /for spec\.field\.children\[\]: the type contains/,
  ],
  ["recursive JSON", z.json(), /the type contains itself/],
  [
    "a pattern that Go does not know",
    z.string().regex(/^(?!x)/),
    /for spec\.field: the API server's regular expressions/,
  ],
  ["a duration of ISO 8601", z.iso.duration(), /spec\.field.*look-around/],
  ["a bigint", z.bigint(), /for spec\.field: JSON has no bigint.*z\.int\(\)/],
  ["a Map", z.map(z.string(), z.string()), /no maps, so write z\.record\(\)/],
  [
    "a Date",
    z.date(),
    /for spec\.field: JSON has no dates, so write z\.iso\.datetime\(\)/,
  ],
  [
    "a nullable Date with a default in a list",
    z.array(z.date().nullable().default(new Date(0))),
    /for spec\.field\[\]: JSON has no dates/,
  ],
  ["a Date from text", z.coerce.date(), /JSON has no dates/],
  [
    "a transformed value",
    z.string().transform((value) => value.length),
    /for spec\.field: the server stores values as they are written.*"pipe"$/,
  ],
  [
    "an optional transformed value in a union",
    z.union([z.string(), z.string().transform(Number).optional()]),
    /for spec\.field: the server stores/,
  ],
  [
    "a preprocessed value",
    z.preprocess(String, z.string()),
    /the server stores/,
  ],
  ["a codec", z.stringbool(), /the server stores values/],
  ["a promise", z.promise(z.string()), /JSON has no promises/],
  [
    "a type of TypeScript without a schema",
    z.custom<string>(),
    /for spec\.field: a type of TypeScript alone has no schema.*\.meta\(/,
  ],
  [
    "a type of TypeScript with words alone",
    z.custom<string>().meta({ description: "a word" }),
    /for spec\.field: a type of TypeScript alone has no schema/,
  ],
  ["null alone", z.null(), /for spec\.field: null alone is not a type/],
  [
    "nothing",
    z.never(),
    /for spec\.field: a negation has no structural schema/,
  ],
  [
    "named fields beside typed others",
    z.object({ a: z.string() }).catchall(z.int()),
    /for spec\.field: an object with named fields/,
  ],
  [
    "a misspelt extension",
    z.string().meta({ "x-kubernetes-list-typ": "set" }),
    /for spec\.field: Kubernetes has no such extension.*list-typ/,
  ],
];

for (const [what, schema, message] of REFUSED) {
  test(`structuralSchemaOf() refuses ${what} and names the path`, () => {
    assert.throws(
      () =>
        structuralSchemaOf(z.object({ field: schema as z.ZodType }), "spec"),
      (error: unknown) =>
        error instanceof TypeError && message.test(error.message),
    );
  });
}
