import { fc } from "../../support/property.ts";

/** Field names that occur in several random documents, some of them special. */
export const fieldNames: fc.Arbitrary<string> = fc.constantFrom(
  "a",
  "b",
  "c",
  "a/b",
  "m~n",
  "",
  "__proto__",
  "constructor",
);

/** Small JSON documents over few names and values, so that many are equal. */
export const jsonValues: fc.Arbitrary<unknown> = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 4, depthSize: "small" },
    fc.constantFrom(null, true, false, 0, 1, -1, 2.5, "", "x", "y"),
    fc.array(tie("value"), { maxLength: 4 }),
    fc.array(fc.tuple(fieldNames, tie("value")), { maxLength: 4 })
      .map((entries) => Object.fromEntries(entries)),
  ),
})).value;

/** Small JSON documents whose root is an object. */
export const jsonObjects: fc.Arbitrary<Record<string, unknown>> = fc
  .array(fc.tuple(fieldNames, jsonValues), { maxLength: 5 })
  .map((entries) => Object.fromEntries(entries));
