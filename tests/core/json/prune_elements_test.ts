import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { fc } from "../../support/property.ts";
import { mutableCopy } from "../../../core/json/prune.ts";
import { wholeRange } from "../../../core/json/byte_range.ts";
import { EventScanner } from "../../../core/json/event_scanner.ts";
import { prunedText } from "../../support/pruned_text.ts";
import { parseFieldPath } from "../../../core/json/field_path.ts";
import { Pruner } from "../../../core/json/prune.ts";
import {
  jsonText,
  objectText,
  spelling,
} from "../../support/json_documents.ts";

interface Entry {
  readonly manager?: unknown;
}
interface Managed {
  readonly metadata?: { managedFields?: unknown };
}

const MANAGERS = ["page", 'a "b"\\', "é😀", "", "]", "__proto__"];

function pathOf(managers: readonly string[]): string {
  const texts = managers.map((manager) => JSON.stringify(manager));
  return `metadata.managedFields[manager!=${texts.join()}]`;
}

/** Definition of the kept elements. */
function expected(text: string, managers: readonly string[]): unknown {
  const object = JSON.parse(text) as Managed | null;
  const list = object?.metadata?.managedFields;
  if (Array.isArray(list) && object?.metadata && !Array.isArray(object)) {
    object.metadata.managedFields = list.filter((entry: Entry | null) =>
      !Array.isArray(entry) && managers.some((name) => entry?.manager === name)
    );
  }
  return object;
}

const manager = fc.constantFrom(...MANAGERS, "other");
/** Entry with its fields in any order, some of them repeated. */
const entry = objectText(fc.array(
  fc.oneof(
    fc.tuple(spelling("manager"), manager.chain(spelling)),
    fc.tuple(
      fc.constantFrom("manager", "operation", "fieldsV1").chain(spelling),
      jsonText,
    ),
  ),
  { maxLength: 4 },
));
const list = fc.array(
  fc.oneof({ weight: 6, arbitrary: entry }, { weight: 1, arbitrary: jsonText }),
  { maxLength: 5 },
).map((entries) => `[ ${entries.join(" ,\n")}\t]`);
const metadata = objectText(fc.array(
  fc.oneof(
    fc.tuple(
      spelling("managedFields"),
      fc.oneof({ weight: 8, arbitrary: list }, {
        weight: 1,
        arbitrary: jsonText,
      }),
    ),
    fc.tuple(
      fc.constantFrom("name", "labels", "annotations").chain(spelling),
      jsonText,
    ),
  ),
  { maxLength: 5 },
));
const document = objectText(fc.array(
  fc.oneof(
    { weight: 4, arbitrary: fc.tuple(spelling("metadata"), metadata) },
    {
      weight: 1,
      arbitrary: fc.tuple(
        fc.constantFrom("spec", "kind").chain(spelling),
        jsonText,
      ),
    },
  ),
  { maxLength: 3 },
));
const managers = fc.uniqueArray(manager, { minLength: 1, maxLength: 3 });

test("Pruner keeps elements of some managers, as filtering the parsed object does", () => {
  let left = 0;
  fc.assert(
    fc.property(document, managers, (text, managers) => {
      const result = prunedText(
        new Pruner([pathOf(managers)]),
        wholeRange(text),
      );
      if (result.length < text.length) left++;
      assert.deepEqual(JSON.parse(result), expected(text, managers));
    }),
    { numRuns: 1500 },
  );
  assert.ok(left > 100, "many documents have elements to leave out");
});

test("Pruner does not change the bytes of kept elements", () => {
  const own = '{ "fieldsV1" : {"f:a":{ }},\n"mana\\u0067er":"pag\\u0065" }';
  const text =
    `{"metadata":{"managedFields":[{"manager":"x"}, ${own} ,{"manager":"y"}],"name":"a"}}`;
  assert.equal(
    prunedText(new Pruner([pathOf(["page"])]), wholeRange(text)),
    `{"metadata":{"managedFields":[${own}],"name":"a"}}`,
  );
});

test("Pruner finds the same elements with and without a scanned header", () => {
  const scanner = new EventScanner();
  const named = metadata.map((text) =>
    text.replace("{", () => '{"name":"a","resourceVersion":"1",')
      .replace(/,\s*\}$/, "}")
  );
  fc.assert(
    fc.property(named, managers, fc.nat(9), (metadata, managers, offset) => {
      const text = `${" ".repeat(offset)}{"metadata":${metadata}}`;
      const bytes = Buffer.from(text);
      const range = { bytes, start: offset, end: bytes.length };
      const pruner = new Pruner([
        pathOf(managers),
        'metadata.annotations["a"]',
      ]);
      let header;
      try {
        header = scanner.scanObject(range);
      } catch {
        return; // the name is of another type
      }
      const whole = prunedText(pruner, {
        bytes,
        start: offset,
        end: bytes.length,
      });
      for (const source of [header, header.copy()]) {
        assert.equal(prunedText(pruner, source), whole);
      }
    }),
    { numRuns: 500 },
  );
});

test("Pruner removes the entries of other managers from real objects", () => {
  for (const kind of ["deployments", "pods"]) {
    const lines = readFileSync(
      new URL(`../../../bench/data/${kind}.ndjson`, import.meta.url),
      "utf8",
    ).trim().split("\n");
    for (const line of lines) {
      const own = '{"manager":"page","operation":"Apply","fieldsV1":{}}';
      const text = line.replace(
        '"managedFields":[',
        (start) => `${start}${own},`,
      );
      const result = prunedText(
        new Pruner([pathOf(["page"])]),
        wholeRange(text),
      );
      assert.deepEqual(JSON.parse(result), expected(text, ["page"]));
      assert.match(result, /"managedFields":\[\{"manager":"page"[^\]]*\}\]/);
      assert.ok(
        result.length < line.length * 0.75,
        `${kind}: ${result.length}`,
      );
    }
  }
});

test("Pruner lets a partial list be read, but not written back", () => {
  const own = { manager: "page", fieldsV1: { "f:spec": {} } };
  const object = {
    metadata: { name: "a", managedFields: [own] as unknown },
  };
  const parts = new Pruner([pathOf(["page"])]).guard(object);
  assert.deepEqual([...parts], [object.metadata]);
  const copied = mutableCopy(Object.freeze(object));
  for (const { metadata } of [object, copied]) {
    assert.deepEqual(metadata.managedFields, [own]);
    assert.equal(Object.isFrozen(metadata.managedFields), true);
    assert.equal(JSON.stringify({ metadata }), '{"metadata":{"name":"a"}}');
    assert.deepEqual({ ...metadata }, { name: "a" });
  }
  copied.metadata.managedFields = [];
  assert.deepEqual(copied.metadata, { name: "a", managedFields: [] });
  const without = { metadata: { name: "a" } };
  new Pruner([pathOf(["page"])]).guard(without);
  assert.equal("managedFields" in without.metadata, false);
});

test("Pruner accepts steps that keep elements only at the end, after a name", () => {
  assert.deepEqual(parseFieldPath(pathOf(['a","b', "c]"])).at(-1), {
    field: "manager",
    except: ['a","b', "c]"],
  });
  for (
    const path of [
      'a[b!="c"].d',
      'a[*][b!="c"]',
      '[b!="c"]',
      'a[b!="c"][d!="e"]',
    ]
  ) assert.throws(() => new Pruner([path]), RangeError, path);
  for (
    const path of [
      "a[b!=]",
      "a[b!=c]",
      'a[!="c"]',
      'a[b!="c",]',
      'a[b!="\\x"]',
      'a[b="c"]',
    ]
  ) assert.throws(() => new Pruner([path]), SyntaxError, path);
  const both = new Pruner(['a[b!="c","d"]', 'a[b!="d"]', "a[*].e"]);
  const text = '{"a":[{"b":"c"},{"b":"d","e":1},{"b":"d"},7]}';
  assert.equal(
    prunedText(both, wholeRange(text)),
    '{"a":[{"b":"d"},{"b":"d"}]}',
  );
});
