import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { fc } from "../../support/property.ts";
import {
  type ListHeader,
  ListScanner,
} from "../../../core/json/list_scanner.ts";
import { TooLongError } from "../../../core/json/line_splitter.ts";
import type { ObjectHeader } from "../../../core/json/object_header.ts";
import { assertHeader, hasHeader } from "../../support/expected_header.ts";
import {
  damaged,
  jsonText,
  kubernetesText,
  objectText,
  spelling,
} from "../../support/json_documents.ts";

interface Page {
  readonly header: ListHeader;
  readonly items: readonly ObjectHeader[];
}

/** Scans a page in chunks of repeated sizes. */
function read(
  text: string,
  sizes: readonly number[],
  scanner: ListScanner = new ListScanner(),
): Page {
  const bytes = Buffer.from(text);
  const items: ObjectHeader[] = [];
  let at = 0;
  for (let i = 0; at < bytes.length; i++) {
    const size = (sizes[i % sizes.length] ?? 0) + 1;
    // A copy, overwritten afterwards: the scanner must not keep a chunk.
    const chunk = Buffer.from(bytes.subarray(at, at + size));
    scanner.push(chunk);
    while (scanner.next()) items.push(scanner.header.copy());
    chunk.fill("]");
    at += size;
  }
  return { header: scanner.finish(), items };
}

const good = kubernetesText.filter((text) => hasHeader(JSON.parse(text)));
const itemsText = fc.oneof(
  { weight: 1, arbitrary: fc.constant("null") },
  {
    weight: 5,
    arbitrary: fc.array(good, { maxLength: 4 }).map((items) =>
      `[ ${items.join(" ,\n")}]`
    ),
  },
);
const listMetadata = objectText(fc.array(fc.oneof(
  fc.tuple(spelling("resourceVersion"), spelling("12")),
  fc.tuple(spelling("continue"), spelling("to/ken==")),
  fc.tuple(spelling("remainingItemCount"), fc.nat().map(String)),
  fc.tuple(spelling("selfLink"), jsonText),
)));
const members = fc.array(fc.oneof(
  fc.tuple(spelling("metadata"), fc.oneof(listMetadata, fc.constant("null"))),
  fc.tuple(spelling("kind"), spelling("PodList")),
  fc.tuple(spelling("apiVersion"), spelling("v1")),
  fc.tuple(spelling("other"), jsonText),
));
const listText = objectText(
  fc.tuple(members, spelling("items"), itemsText, members).map((
    [before, key, items, after],
  ) => [...before, [key, items] as const, ...after]),
);

test("ListScanner returns items and list header as JSON.parse does, for any chunks", () => {
  fc.assert(
    fc.property(
      listText,
      fc.array(fc.nat(200), { minLength: 1, maxLength: 5 }),
      (text, sizes) => {
        const list = JSON.parse(Buffer.from(text).toString());
        const { header, items } = read(text, sizes);
        assert.equal(items.length, list.items?.length ?? 0);
        items.forEach((item, i) => assertHeader(item, list.items[i]));
        assert.deepEqual(header, {
          kind: list.kind ?? "",
          resourceVersion: list.metadata?.resourceVersion ?? "",
          continue: list.metadata?.continue ?? "",
        });
      },
    ),
    { numRuns: 300 },
  );
});

test("ListScanner returns the same with a chunk boundary at every byte", () => {
  const text =
    ` {"items" : [{"metadata":{"name":"a\\"}]"},"x":[[]]} , {"metadata":{"name":"b"}}], "metadata":{"continue":"c\\\\"},"n":-1.5e3 } \n`;
  for (let first = 0; first < text.length; first++) {
    for (const sizes of [[first, text.length], [first, 0], [0]]) {
      const { header, items } = read(text, sizes);
      assert.deepEqual(items.map((item) => item.name), ['a"}]', "b"]);
      assert.equal(header.continue, "c\\");
    }
  }
});

test("ListScanner finds long values with a chunk boundary at every byte", () => {
  const long = `${"\\\\".repeat(40)}"[}`;
  const item = (name: string) =>
    JSON.stringify({ metadata: { name }, spec: [[long], { [long]: {} }] });
  const text = `{"items":[${item("a")},${item("b")}],"x":[["${
    "y".repeat(70)
  }"]]}`;
  for (let first = 0; first < text.length; first++) {
    const { items } = read(text, [first, text.length]);
    assert.deepEqual(items.map((item) => item.name), ["a", "b"]);
  }
});

test("ListScanner says after how many items a page is wrong, and at what byte", () => {
  const message = (text: string) => {
    try {
      read(text, [1000]);
    } catch (error) {
      return (error as Error).message;
    }
    return "";
  };
  assert.equal(
    message('{"items":[{"metadata":{}},1]}'),
    "Cannot read a list: it must be a list in JSON: received 0x31 after 1 items",
  );
  assert.equal(
    message('{"items":[{},{}],"items":[]}'),
    'Cannot read a list: "items" must not be repeated: received 0x5b after 2 items',
  );
  assert.equal(
    message('{"items":[{}]'),
    "Cannot read a list: it must be complete: received the end after 1 items",
  );
});

test("ListScanner reads a list that has neither metadata nor items", () => {
  for (const text of ["{}", '{"items":null}', '{"metadata":null}']) {
    const { header, items } = read(text, [3]);
    assert.deepEqual(header, { kind: "", resourceVersion: "", continue: "" });
    assert.equal(items.length, 0);
  }
});

test("ListScanner rejects items that do not follow a colon", () => {
  for (const text of ['{"items"[]}', '{"items"[{"metadata":{}}]}']) {
    assert.throws(() => read(text, [100]), SyntaxError);
  }
});

test("ListScanner rejects each truncated page", () => {
  const text = '{"kind":"List","items":[{"metadata":{}}],"metadata":{}}';
  for (let end = 0; end < text.length; end++) {
    assert.throws(() => read(text.slice(0, end), [3]), SyntaxError);
  }
});

test("ListScanner never accepts a damaged page", () => {
  fc.assert(
    fc.property(damaged(listText), fc.nat(100), (text, size) => {
      let page: Page;
      try {
        page = read(text, [size]);
      } catch (error) {
        assert.ok(error instanceof SyntaxError, String(error));
        return;
      }
      let list;
      try {
        list = JSON.parse(Buffer.from(text).toString());
      } catch {
        return; // broken within a value that was leapt over
      }
      assert.equal(page.items.length, list.items?.length ?? 0);
      page.items.forEach((item, i) => assertHeader(item, list.items[i]));
    }),
    { numRuns: 400 },
  );
});

test("ListScanner reads a Status that a server sends instead of a list", () => {
  const { header, items } = read(
    '{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","code":410}',
    [9],
  );
  assert.equal(header.kind, "Status");
  assert.equal(items.length, 0);
});

test("ListScanner rejects repeated items and items that are not objects", () => {
  for (
    const text of [
      '{"items":[],"items":[]}',
      '{"items":{}}',
      '{"items":"none"}',
      '{"items":[1]}',
      "{1:2}",
      "{null:2}",
      '{"a":1,2:3}',
      '{"items":[{"metadata":{}},]}',
      "[]",
      "{} {}",
    ]
  ) {
    assert.throws(() => read(text, [1000]), SyntaxError, text);
  }
});

test("ListScanner rejects an item over the limit before it is complete", () => {
  const scanner = new ListScanner(100);
  const text = `{"items":[{"metadata":{"name":"${"x".repeat(200)}`;
  assert.throws(
    () => read(text, [40], scanner),
    (error: unknown) => TooLongError.is(error) && error.size <= 150,
  );
});

test("ListScanner reads a page of real Pods in chunks of any size", () => {
  const lines = readFileSync(
    new URL("../../../bench/data/pods.ndjson", import.meta.url),
    "utf8",
  ).trim().split("\n");
  const text =
    `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":[${
      lines.join(",")
    }]}`;
  for (const size of [1_000, 16_383, 65_535, 3_000_000]) {
    const { header, items } = read(text, [size]);
    assert.equal(header.resourceVersion, "9");
    assert.equal(items.length, lines.length);
    items.forEach((item, i) => assertHeader(item, JSON.parse(lines[i] ?? "")));
  }
});

test("ListScanner takes items up to its limit, and names what is too long", () => {
  const item = '{"metadata":{"name":"a"}}';
  const limited = (text: string) => () =>
    read(text, [1_000], new ListScanner(item.length));
  assert.equal(limited(`{"items":[${item}]}`)().items.length, 1);
  assert.throws(
    limited(`{"items":[${item.replace('a"', 'ab"')}]}`),
    /^TooLongError: Cannot read an item of a list/,
  );
  assert.throws(
    limited(`{"metadata":{"resourceVersion":"1234567890"},"items":[]}`),
    /^TooLongError: Cannot read a member of a list/,
  );
});

test("ListScanner takes white space after a number, and no comma at an end", () => {
  assert.equal(
    read('{"kind":"List","more":5 \n,"items":[]}', [3]).items.length,
    0,
  );
  const wrong = [
    '{"kind":"List","items":[],}',
    '{"kind":"List","items":[{"metadata":{"name":"a"}},]}',
    '{"kind":"List","more":5x,"items":[]}',
    '{"kind":"List","more":[1},"items":[]}',
    '{"kind":"List","items":[]}{',
  ];
  for (const text of wrong) assert.throws(() => read(text, [7]), SyntaxError);
});
