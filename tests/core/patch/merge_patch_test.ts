import assert from "node:assert/strict";
import { test } from "node:test";
import { fc } from "../../support/property.ts";
import {
  applyMergePatch,
  definedFields,
  diffMergePatch,
} from "../../../core/patch/merge_patch.ts";
import { jsonObjects, jsonValues } from "./json_arbitraries.ts";

/** Removes null fields, which merge patches cannot express. */
function withoutNullFields(value: unknown): unknown {
  if (Array.isArray(value) || typeof value !== "object" || value === null) {
    return value;
  }
  return Object.fromEntries(
    Object.entries(value).filter(([, field]) => field !== null)
      .map(([name, field]) => [name, withoutNullFields(field)]),
  );
}

test("diffMergePatch creates a patch that turns one document into the other", () => {
  fc.assert(fc.property(jsonObjects, jsonObjects, (left, right) => {
    const before = withoutNullFields(left);
    const after = withoutNullFields(right);
    const frozen = structuredClone(before);
    const patched = applyMergePatch(before, diffMergePatch(before, after));
    assert.deepEqual(patched, after);
    assert.deepEqual(before, frozen, "the document was changed");
  }));
});

test("diffMergePatch removes fields that become null, and adds none that are", () => {
  const before = { a: 1, b: { c: 1 }, d: null };
  const after = { a: null, b: { c: null, e: null }, d: null, f: null };
  assert.deepEqual(diffMergePatch(before, after), { a: null, b: { c: null } });
});

test("diffMergePatch creates {} for equal documents", () => {
  fc.assert(fc.property(jsonObjects, (value) => {
    assert.deepEqual(diffMergePatch(value, structuredClone(value)), {});
  }));
});

test("diffMergePatch adds an empty object named __proto__", () => {
  const after = JSON.parse('{"__proto__":{}}');
  assert.deepEqual(diffMergePatch({}, after), after);
});

test("diffMergePatch replaces what is not an object on both sides", () => {
  for (const [before, after] of [[{ a: 1 }, [1]], [[1], { a: 1 }]]) {
    assert.deepEqual(diffMergePatch(before, after), after);
  }
});

test("definedFields leaves out what is undefined, and writes dates as texts", () => {
  const at = new Date(0);
  assert.deepEqual(
    definedFields({ a: undefined, b: { c: undefined, d: 1 }, e: null, at }),
    { b: { d: 1 }, e: null, at: at.toJSON() },
  );
  assert.deepEqual(
    definedFields({ url: new URL("https://a.example/") }),
    { url: "https://a.example/" },
  );
});

test("applyMergePatch is idempotent", () => {
  fc.assert(fc.property(jsonValues, jsonValues, (target, patch) => {
    const once = applyMergePatch(target, patch);
    assert.deepEqual(applyMergePatch(once, patch), once);
  }));
});

/** Examples of RFC 7396, appendix A. */
const examples: [target: unknown, patch: unknown, result: unknown][] = [
  [{ a: "b" }, { a: "c" }, { a: "c" }],
  [{ a: "b" }, { b: "c" }, { a: "b", b: "c" }],
  [{ a: "b" }, { a: null }, {}],
  [{ a: "b", b: "c" }, { a: null }, { b: "c" }],
  [{ a: ["b"] }, { a: "c" }, { a: "c" }],
  [{ a: "c" }, { a: ["b"] }, { a: ["b"] }],
  [{ a: { b: "c" } }, { a: { b: "d", c: null } }, { a: { b: "d" } }],
  [{ a: [{ b: "c" }] }, { a: [1] }, { a: [1] }],
  [["a", "b"], ["c", "d"], ["c", "d"]],
  [{ a: "b" }, ["c"], ["c"]],
  [{ a: "foo" }, null, null],
  [{ a: "foo" }, "bar", "bar"],
  [{ e: null }, { a: 1 }, { e: null, a: 1 }],
  [[1, 2], { a: "b", c: null }, { a: "b" }],
  [{}, { a: { bb: { ccc: null } } }, { a: { bb: {} } }],
];

for (const [target, patch, result] of examples) {
  test(`applyMergePatch of ${JSON.stringify(patch)} to ${JSON.stringify(target)}`, () => {
    assert.deepEqual(applyMergePatch(target, patch), result);
  });
}
