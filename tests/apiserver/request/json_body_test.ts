import assert from "node:assert/strict";
import { test } from "node:test";
import { writeJson } from "../../../dev/apiserver/exact_json.ts";
import { fc } from "../../support/property.ts";
import {
  MAX_DEPTH,
  parseJson,
} from "../../../dev/apiserver/request/json_body.ts";

const encode = (text: string) => new TextEncoder().encode(text);

test("parseJson reads what JSON.parse reads, for any JSON", () => {
  fc.assert(fc.property(fc.json({ maxDepth: 6 }), (text) => {
    const written = writeJson(parseJson(encode(text)).value);
    assert.deepEqual(
      JSON.parse(written),
      JSON.parse(JSON.stringify(JSON.parse(text))),
    );
  }));
});

test("parseJson rejects what JSON.parse rejects", () => {
  for (const text of ["", "{", '{"a":1,}', "nope", '{"a"', "[1 2]"]) {
    assert.throws(() => parseJson(encode(text)), SyntaxError, text);
  }
  assert.throws(() => parseJson(Uint8Array.of(0x22, 0xff, 0x22)), SyntaxError);
});

test("parseJson names duplicate fields, and the last one wins", () => {
  const { value, duplicates } = parseJson(encode(
    '{"a":{"b":1,"c":[{"d":1},{"d":"x,:{\\"","d":2}],"b":3},"a":{"b":"b","\\u0062":4}}',
  ));
  assert.deepEqual(duplicates, ["a.c[1].d", "a.b", "a"]);
  assert.deepEqual(value, { a: { b: 4 } });
});

test("parseJson names duplicate fields behind megabytes of text", () => {
  for (const part of ["a", "a\\n"]) {
    const text = `{"a":"${part.repeat(1_000_000)}","b":1,"b":1e999}`;
    assert.throws(() => parseJson(encode(text)), /number 1e999/);
    const valid = encode(text.replace("1e999", "2"));
    assert.deepEqual(parseJson(valid).duplicates, ["b"]);
  }
});

test("parseJson reports no duplicates if there are none", () => {
  const text = '{"a":"x:\\\\","b":[{"a":1},{"a":1}],"c":{"a":{"a":":"}}}';
  assert.deepEqual(parseJson(encode(text)).duplicates, []);
});

test("parseJson limits the depth", () => {
  const nested = (depth: number) => "[".repeat(depth) + "]".repeat(depth);
  assert.ok(parseJson(encode(nested(MAX_DEPTH))));
  for (const depth of [MAX_DEPTH + 1, 1_000_000]) {
    assert.throws(() => parseJson(encode(nested(depth))), /max depth/);
  }
  assert.ok(parseJson(encode(`{"a":"${"[".repeat(1_000)}"}`)));
});

test("parseJson keeps a key __proto__ as a field", () => {
  const { value } = parseJson(encode('{"__proto__":{"polluted":true}}'));
  assert.equal(Object.hasOwn(value as object, "__proto__"), true);
  assert.equal(({} as Record<string, unknown>).polluted, undefined);
});
