import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { wholeRange } from "../../../core/json/byte_range.ts";
import { EventScanner } from "../../../core/json/event_scanner.ts";
import type { ObjectHeader } from "../../../core/json/object_header.ts";
import { Pruner } from "../../../core/json/prune.ts";
import { prunedText } from "../../support/pruned_text.ts";

function headerOf(object: unknown): ObjectHeader {
  const text = typeof object === "string" ? object : JSON.stringify(object);
  const bytes = Buffer.from(`  ${text}]`);
  return new EventScanner().scanObject({
    bytes,
    start: 2,
    end: bytes.length - 1,
  });
}

function versionOf(resourceVersion: string): number {
  return headerOf({ metadata: { resourceVersion } }).versionNumber;
}

test("ObjectHeader has the number of an exact resourceVersion only", () => {
  for (const version of ["0", "1", "10", "999", "123456789012345"]) {
    assert.equal(versionOf(version), Number(version));
  }
  for (
    const version of [
      "",
      "01",
      "00",
      "1234567890123456",
      "-1",
      "1.5",
      "1e3",
      "1:",
      "é",
    ]
  ) assert.equal(versionOf(version), NaN, version);
  assert.equal(headerOf({}).versionNumber, NaN);
});

test("ObjectHeader reads a generation of any spelling", () => {
  const generation = (text: string) =>
    headerOf(`{"metadata":{"generation":${text}}}`).generation;
  for (const text of ["0", "-5", "7", "1.5", "2e3", "1234567890123456"]) {
    assert.equal(generation(text), Number(text));
  }
  assert.equal(generation("null"), undefined);
});

test("ObjectHeader reads absent fields and null as empty or absent", () => {
  const fields = {
    name: null,
    namespace: null,
    resourceVersion: null,
    labels: null,
    annotations: null,
    finalizers: null,
    ownerReferences: null,
    deletionTimestamp: null,
  };
  for (
    const header of [
      headerOf({}),
      headerOf({ metadata: null, kind: null }),
      headerOf({ metadata: fields }),
    ]
  ) {
    assert.equal(header.kind, "");
    assert.equal(header.keyText, "");
    assert.equal(header.resourceVersion, "");
    assert.equal(header.deletionTimestamp, undefined);
    assert.deepEqual(header.labels, {});
    assert.deepEqual(header.annotations, {});
    assert.deepEqual(header.finalizers, []);
    assert.deepEqual(header.ownerReferences, []);
    assert.equal(header.label("a"), undefined);
    assert.equal(header.annotation("a"), undefined);
    assert.equal(header.hasFinalizer("a"), false);
    assert.equal(header.range("labels"), undefined);
    assert.equal(header.isEscaped("name"), false);
    const { start, end } = header.string("name");
    assert.equal(end - start, 0);
  }
});

test("ObjectHeader reads one label, annotation and finalizer among others", () => {
  const header = headerOf(`{"apiVersion":"v1","metadata":{"name":"\\u0061b",
    "labels":{"a":"1","é":"2","b":"3","a":"4"},"annotations":{"x":"y","ab":"z"},
    "finalizers":["x/y","é"],"namespace":"n"}}`);
  assert.equal(header.apiVersion, "v1");
  assert.equal(header.label("a"), "4", "the last of repeated keys");
  assert.equal(header.label("é"), "2");
  assert.equal(header.label("b"), "3");
  assert.equal(header.label("c"), undefined);
  assert.equal(header.annotation("x"), "y");
  assert.equal(header.annotation("a"), undefined);
  assert.ok(header.hasFinalizer("x/y") && header.hasFinalizer("é"));
  assert.ok(!header.hasFinalizer("x") && !header.hasFinalizer("x/y/"));
  assert.ok(header.isEscaped("name") && !header.isEscaped("namespace"));
  const { bytes, start, end } = header.string("namespace");
  assert.equal(Buffer.from(bytes).toString("utf8", start, end), "n");
  assert.equal(header.keyText, "n/ab");
});

test("ObjectHeader.copy keeps all of a header when the scanner goes on", () => {
  const twice =
    '{"metadata":{},"metadata":{"name":"a","resourceVersion":"3","managedFields":[]}}';
  const header = headerOf(twice);
  const copy = header.copy();
  assert.ok(copy.repeatsMetadata);
  assert.equal(copy.versionNumber, 3);
  assert.equal(copy.isPartial, false);
  assert.equal(copy.generation, undefined);
  assert.deepEqual(
    copy.cutStarts.map((cut) => cut < 0 ? cut : cut + 2),
    header.cutStarts,
  );
  assert.deepEqual([copy.keyText, copy.resourceVersion], ["a", "3"]);
  header.isPartial = true;
  assert.ok(header.copy().isPartial);
  const other = headerOf({ metadata: { name: "b" } }).copy(copy);
  assert.equal(other, copy, "in the memory of the former copy");
  assert.ok(!other.repeatsMetadata);
  assert.deepEqual([other.keyText, other.resourceVersion], ["b", ""]);
});

test("ObjectHeader forgets what it has decoded when the scanner goes on", () => {
  const scanner = new EventScanner();
  const read = (name: string, resourceVersion: string) => {
    const text = JSON.stringify({ metadata: { name, resourceVersion } });
    const header = scanner.scanObject(wholeRange(text));
    assert.deepEqual(
      [header.keyText, header.resourceVersion],
      [name, resourceVersion],
    );
  };
  read("a", "1");
  read("b", "2");
});

test("A repeated metadata field is pruned wherever it is", () => {
  const pruner = new Pruner(["metadata.managedFields"]);
  const scanner = new EventScanner();
  for (
    const text of [
      '{"metadata":{"managedFields":[1],"name":"a","managedFields":[2]}}',
      '{"metadata":{"name":"a","managedFields":[1],"uid":"u","managedFields":[2]}}',
      '{"metadata":{"managedFields":[1]},"metadata":{"managedFields":[2],"name":"a"}}',
    ]
  ) {
    const range = scanner.scanObject(wholeRange(text));
    const { managedFields: _, ...metadata } = JSON.parse(text).metadata;
    assert.deepEqual(JSON.parse(prunedText(pruner, range)), { metadata });
  }
});

test("EventScanner takes the type and object of an event among other members", () => {
  const scanner = new EventScanner();
  const text =
    '{"other":"DELETED","object":{"apiVersion":"v1"},"type":"ADDED","more":[1]}';
  assert.equal(scanner.scan(wholeRange(text)), "ADDED");
  assert.equal(scanner.header.apiVersion, "v1");
  for (
    const wrong of [
      '{"type":"ADDED"}',
      '{"type":"ADDED","object":{},"object":[{}]}',
      '{"object":{}}',
      '{"type":null,"object":{}}',
      '\u0001{"type":"ADDED","object":{}}',
      '{"type":"ADDED","object":{"metadata":{"name":"a","name":1}}}',
    ]
  ) assert.throws(() => scanner.scan(wholeRange(wrong)), SyntaxError, wrong);
});

test("ObjectHeader.copy grows into the memory of a copy that is too small", () => {
  const small = headerOf({ metadata: { name: "a" } }).copy();
  const name = "a-name-of-many-letters";
  const { keyText, end } = headerOf({ metadata: { name } }).copy(small);
  assert.equal(keyText, name);
  assert.equal(end, JSON.stringify({ metadata: { name } }).length);
});
