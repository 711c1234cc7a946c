import assert from "node:assert/strict";
import { test } from "node:test";
import { fc } from "../../support/property.ts";
import { wholeRange } from "../../../core/json/byte_range.ts";
import {
  FieldReader,
  parseFieldPath,
} from "../../../core/json/field_reader.ts";
import { jsonText } from "../../support/json_documents.ts";

/** All paths of a value with their values. */
function* fields(value: unknown, path = ""): Generator<[string, unknown]> {
  if (path !== "") yield [path, value];
  if (typeof value !== "object" || value === null) return;
  for (const [key, part] of Object.entries(value)) {
    const step = Array.isArray(value) ? key : JSON.stringify(key);
    yield* fields(part, `${path}[${step}]`);
  }
}

test("FieldReader returns each field as JSON.parse does", () => {
  fc.assert(
    fc.property(jsonText, (text) => {
      const source = wholeRange(text);
      const value = JSON.parse(new TextDecoder().decode(source.bytes));
      for (const [path, expected] of fields(value)) {
        assert.deepEqual(new FieldReader(path).value(source), expected, path);
        const missing = new FieldReader(`${path}["none"]`);
        assert.equal(missing.value(source), undefined);
      }
    }),
  );
});

test("FieldReader rejects a path that selects several fields", () => {
  assert.throws(() => new FieldReader("spec.containers[*].name"), RangeError);
});

test("parseFieldPath parses names, quoted names, elements and wildcards", () => {
  assert.deepEqual(parseFieldPath('a-1.b["c.d\\"]"][12].e[*]'), [
    { key: "a-1" },
    { key: "b" },
    { key: 'c.d"]' },
    { index: 12 },
    { key: "e" },
    { each: true },
  ]);
});
