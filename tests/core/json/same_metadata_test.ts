import assert from "node:assert/strict";
import { test } from "node:test";
import { prunedText } from "../../support/pruned_text.ts";
import { fc } from "../../support/property.ts";
import { wholeRange } from "../../../core/json/byte_range.ts";
import { EventScanner } from "../../../core/json/event_scanner.ts";
import { Pruner } from "../../../core/json/prune.ts";
import {
  differInStatus,
  hasSameMetadata,
} from "../../../core/json/object_header.ts";

const scanner = new EventScanner();
const pruner = new Pruner(["metadata.managedFields"]);

/** Whether a received state has the metadata of a stored one. */
function isSame(kept: string, received: string): boolean {
  const range = wholeRange(prunedText(pruner, wholeRange(kept)));
  return hasSameMetadata(scanner.scanObject(wholeRange(received)), range);
}

/** JSON of an object as a server writes it. */
function object(
  version: string,
  changes: { metadata?: object; status?: unknown; fields?: unknown } = {},
): string {
  const { metadata = {}, status = 1, fields = [version] } = changes;
  return JSON.stringify({
    kind: "Pod",
    apiVersion: "v1",
    metadata: {
      name: "web",
      namespace: "default",
      resourceVersion: version,
      generation: 3,
      labels: { app: "web" },
      ...metadata,
      managedFields: fields,
    },
    status,
  });
}

test("hasSameMetadata is true if only the status changed", () => {
  assert(isSame(object("17"), object("18", { status: { a: ["}", 2] } })));
  assert(isSame(object("17", { fields: [] }), object("99", { fields: [1] })));
});

test("hasSameMetadata is true without managed fields, and for any digits", () => {
  const none = JSON.stringify({
    metadata: { name: "a", resourceVersion: "1" },
  });
  assert(isSame(none, none));
  assert(!isSame(none, none.replace('"a"', '"b"')));
  for (const version of ["100", "909", "199"]) {
    assert(isSame(object(version), object("555")), version);
    assert(isSame(object("555"), object(version)), version);
  }
  for (const version of ["1/0", "1:0", "-10"]) {
    assert(!isSame(object(version), object("555")), version);
  }
});

test("hasSameMetadata compares objects anywhere in their bytes", () => {
  const stored = prunedText(pruner, wholeRange(object("17")));
  const received = object("18", { fields: [1, 2] });
  for (
    const [before, offset] of [[0, 7], [7, 0], [5, 300], [300, 5]] as const
  ) {
    const at = (text: string, start: number) => {
      const bytes = new TextEncoder().encode(" ".repeat(start) + text + "]]");
      return { bytes, start, end: bytes.length - 2 };
    };
    const header = scanner.scanObject(at(received, before));
    assert(hasSameMetadata(header, at(stored, offset)));
    assert(!hasSameMetadata(header, at(stored.replace("web", "wib"), offset)));
    const { bytes, start } = at(stored, offset);
    // Bytes after the end do not count, and those of another object neither.
    assert(!hasSameMetadata(header, { bytes, start, end: start + 100 }));
  }
});

test("hasSameMetadata takes managed fields before the version, as of CRDs", () => {
  const custom = (version: string, fields: unknown, label = "web") =>
    JSON.stringify({
      apiVersion: "v1",
      kind: "Page",
      metadata: {
        labels: { app: label },
        managedFields: fields,
        name: "web",
        resourceVersion: version,
        uid: "u",
      },
    });
  assert(isSame(custom("17", [1]), custom("18", [1, 2, 3])));
  assert(!isSame(custom("17", [1]), custom("18", [1], "other")));
});

test("hasSameMetadata is false if metadata changed, was added or removed", () => {
  const finalizers = { metadata: { finalizers: ["a"] } };
  const marked = { metadata: { deletionTimestamp: "2026-01-01T00:00:00Z" } };
  for (const change of [{ metadata: { generation: 4 } }, finalizers, marked]) {
    assert(!isSame(object("17"), object("18", change)));
    assert(!isSame(object("17", change), object("18")));
  }
});

test("hasSameMetadata is false for metadata written differently", () => {
  const { kind, ...rest } = JSON.parse(object("17"));
  assert(!isSame(JSON.stringify({ ...rest, kind }), object("18")));
  assert(!isSame(object("9"), object("10")));
  assert(!isSame(object("a1"), object("11")));
  assert(!isSame("{}", object("11")));
});

test("hasSameMetadata is true only if the parsed metadata is equal", () => {
  const metadata = fc.record({
    resourceVersion: fc.constantFrom("1", "2", '"', "}"),
    labels: fc.constantFrom(undefined, {}, { a: "1" }, { a: "2" }),
    annotations: fc.constantFrom(
      undefined,
      { a: '"},{' },
      { b: "}" },
      { long: `${"long".repeat(40)}1` },
      { long: `${"long".repeat(40)}2` },
    ),
    finalizers: fc.constantFrom(undefined, [], ["a"]),
    managedFields: fc.constantFrom(undefined, [], [{ a: 1 }]),
  }, { requiredKeys: [] }).chain((value) =>
    fc.shuffledSubarray(Object.entries(value)).map(Object.fromEntries)
  );
  const any = fc.record({ metadata, spec: fc.constantFrom(1, "x", {}) });
  let same = 0;
  fc.assert(
    fc.property(any, any, (kept, received) => {
      if (!isSame(JSON.stringify(kept), JSON.stringify(received))) return;
      same++;
      const compared = [kept, received].map((value) => {
        const { resourceVersion: _version, managedFields: _fields, ...rest } =
          JSON.parse(JSON.stringify(value)).metadata;
        return rest;
      });
      assert.deepEqual(compared[0], compared[1]);
    }),
    { numRuns: 5_000 },
  );
  assert(same > 0);
});

/** Whether two states, the second without `managedFields`, differ in status. */
function onlyStatus(after: string, before: string): boolean {
  const former = wholeRange(prunedText(pruner, wholeRange(before)));
  const header = scanner.scanObject(wholeRange(after)).copy();
  return differInStatus(header, scanner.scanObject(former));
}

test("differInStatus is true only if everything but the status is equal", () => {
  const texts = [
    object("17"),
    object("18", { status: { a: ["}", 2] } }),
    object("18", { status: { a: 1 }, fields: [1] }),
    object("18", { metadata: { generation: 4 } }),
    object("18", { metadata: { finalizers: ["a"] } }),
  ];
  const rest = [
    { status: undefined },
    { spec: 1 },
    { spec: 2 },
    { spec: 1, status: undefined },
  ];
  texts.push(
    ...texts.flatMap((text) =>
      rest.map((fields) => JSON.stringify({ ...JSON.parse(text), ...fields }))
    ),
  );
  // Status between the metadata and another field, and metadata given twice.
  texts.push(...texts.map((text) => text.replace(/}$/, ',"z":1}')));
  texts.push(...texts.map((text) => `${text.slice(0, -1)},"metadata":{}}`));
  const content = (text: string) => {
    const { metadata, status: _status, ...others } = JSON.parse(text);
    const { resourceVersion: _, managedFields: _fields, ...kept } = metadata;
    return [kept, others];
  };
  const isRepeated = (text: string) => text.endsWith('"metadata":{}}');
  let same = 0;
  for (const after of texts) {
    for (const before of texts) {
      if (!onlyStatus(after, before)) continue;
      same++;
      assert.deepEqual(content(after), content(before));
      assert(!isRepeated(after) && !isRepeated(before));
    }
  }
  assert(same > 20, `${same}`);
  assert(onlyStatus(texts[1]!, texts[0]!));
  assert(
    onlyStatus(
      texts[0]!,
      JSON.stringify({
        ...JSON.parse(texts[0]!),
        status: undefined,
      }),
    ),
    "without a former status",
  );
});

test("EventScanner detects repeated metadata", () => {
  const twice = '{"metadata":{"name":"a"},"metadata":{"name":"b"}}';
  assert(scanner.scanObject(wholeRange(twice)).repeatsMetadata);
  assert(!scanner.scanObject(wholeRange(object("1"))).repeatsMetadata);
});
