import assert from "node:assert/strict";
import { test } from "node:test";
import { fc } from "../../support/property.ts";
import { parseLabelSelector } from "../../../core/api/label_selector.ts";
import { readLabelQuery } from "../../../dev/apiserver/request/label_query.ts";

/** The requirements in one order of values. */
function normal(requirements: ReturnType<typeof readLabelQuery>): unknown {
  return requirements.map(({ key, operator, values }) => ({
    key,
    operator,
    values: [...values].sort(),
  }));
}

const word = fc.constantFrom("a", "b-c", "x.io/d", "1", "E_f");
const value = fc.constantFrom("v", "", "w-1", "7");
const requirement = fc.oneof(
  word,
  word.map((key) => `!${key}`),
  fc.tuple(word, fc.constantFrom("=", "==", "!=", " = "), value)
    .map((parts) => parts.join("")),
  fc.tuple(
    word,
    fc.constantFrom(" in ", " notin "),
    fc.array(value, {
      minLength: 1,
      maxLength: 3,
    }),
  ).map(([key, operator, values]) => `${key}${operator}(v,${values})`),
  word.map((key) => `${key}>5`),
);

test("readLabelQuery accepts the same selectors as the client's parser", () => {
  fc.assert(
    fc.property(fc.array(requirement, { maxLength: 4 }), (parts) => {
      const text = parts.join(",");
      assert.deepEqual(
        normal(readLabelQuery(text)),
        normal(parseLabelSelector(text)),
        text,
      );
    }),
  );
});

const wrong: [string, string][] = [
  [
    "a in (",
    "unable to parse requirement: found '', expected: ',', ')' or identifier",
  ],
  ["a in b", "unable to parse requirement: found 'b' expected: '('"],
  ["a,,b", "found ',', expected: identifier after ','"],
  ["=b", "found '=', expected: !, identifier, or 'end of string'"],
  ["a=b c", "found 'c', expected: ',' or 'end of string'"],
  ["!=x", "found '!=', expected: !, identifier, or 'end of string'"],
];

test("readLabelQuery reads an empty value list as the empty value", () => {
  assert.deepEqual(normal(readLabelQuery("a in ()")), [
    { key: "a", operator: "In", values: [""] },
  ]);
});

for (const [text, message] of wrong) {
  test(`readLabelQuery explains what is wrong with ${text}`, () => {
    assert.throws(() => readLabelQuery(text), { message });
  });
}
