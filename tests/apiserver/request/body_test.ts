import assert from "node:assert/strict";
import { test } from "node:test";
import { parseBody } from "../../../dev/apiserver/request/body.ts";
import { parseYaml } from "../../../dev/apiserver/request/yaml_body.ts";
import { fc } from "../../support/property.ts";

const encoder = new TextEncoder();

test("A body of YAML that is JSON has the values that YAML gives it", async () => {
  const names = fc.constantFrom("a", "b", "y", "<<", "1", "é");
  const { object } = fc.letrec((tie) => ({
    object: fc.dictionary(names, tie("value"), { noNullPrototype: true }),
    value: fc.oneof(
      { maxDepth: 3 },
      fc.string(),
      fc.constantFrom("yes", "1e3", "0x1f", "~", "\u00e9", "\\", "\n", "a: b"),
      fc.integer(),
      fc.double({ noNaN: true, noDefaultInfinity: true }),
      fc.boolean(),
      fc.constant(null),
      fc.array(tie("value")),
      tie("object"),
    ),
  }));
  await fc.assert(
    fc.asyncProperty(object, async (value) => {
      const text = JSON.stringify(value);
      const expected = await parseYaml(text).then(
        (parsed) => ({ value: parsed.value, warnings: parsed.problems }),
        () => undefined,
      );
      if (expected === undefined) return;
      const { value: read, warnings } = await parseBody(
        encoder.encode(text),
        "yaml",
      );
      assert.deepEqual({ value: read, warnings }, expected);
    }),
  );
});

test("A body of YAML names duplicate fields if it looks like JSON", async () => {
  const twice = await parseBody(encoder.encode('{"a":1,"a":2}'), "yaml");
  assert.deepEqual(twice.value, { a: 2 });
  assert.deepEqual(twice.warnings, ['line 1: key "a" already set in map']);
});
