import assert from "node:assert/strict";
import type {
  HeaderField,
  ObjectHeader,
} from "../../core/json/object_header.ts";

/**
 * Expected header of a parsed object, computed from the definition without the
 * scanner.
 *
 * @module
 */

type Json = Record<string, unknown>;

const STRINGS = ["name", "namespace", "uid", "resourceVersion"] as const;
const LISTS = ["finalizers", "ownerReferences", "managedFields"] as const;
const MAPS = ["labels", "annotations"] as const;

function isObject(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function own(object: Json, key: string): unknown {
  return Object.hasOwn(object, key) ? object[key] : undefined;
}

/** Whether a value has the header of a Kubernetes object. */
export function hasHeader(object: unknown): object is Json {
  const absent = (value: unknown) => value === undefined || value === null;
  if (!isObject(object)) return false;
  const metadata = own(object, "metadata") ?? {};
  if (!isObject(metadata)) return false;
  const string = (value: unknown) => absent(value) || typeof value === "string";
  const { generation } = metadata;
  return string(own(object, "kind")) && string(own(object, "apiVersion")) &&
    [...STRINGS, "deletionTimestamp"].every((key) =>
      string(own(metadata, key))
    ) &&
    ["name", "namespace"].every((key) =>
      !String(own(metadata, key)).includes("/")
    ) &&
    LISTS.every((key) => {
      const value = own(metadata, key);
      return absent(value) || Array.isArray(value);
    }) &&
    MAPS.every((key) => {
      const value = own(metadata, key);
      return absent(value) || isObject(value);
    }) &&
    (absent(generation) || typeof generation === "number");
}

/** Whether a value is a watch event. */
export function isWatchEvent(
  event: unknown,
): event is { type: string; object: Json } {
  return isObject(event) && hasHeader(own(event, "object")) &&
    ["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"]
      .includes(own(event, "type") as string);
}

/** Asserts that a header equals the parsed object. */
export function assertHeader(header: ObjectHeader, object: Json): void {
  const metadata = (own(object, "metadata") ?? {}) as Json;
  for (const key of ["kind", "apiVersion"] as const) {
    assert.equal(header[key], own(object, key) ?? "", key);
  }
  for (const key of STRINGS) {
    assert.equal(header[key], own(metadata, key) ?? "", key);
  }
  for (const key of ["generation", "deletionTimestamp"] as const) {
    assert.equal(header[key], own(metadata, key) ?? undefined, key);
  }
  for (const key of [...LISTS, ...MAPS]) {
    const range = header.range(key);
    const text = range === undefined ? "null" : new TextDecoder("utf-8", {
      ignoreBOM: true,
    }).decode(range.bytes.subarray(range.start, range.end));
    assert.deepEqual(JSON.parse(text), own(metadata, key) ?? null, key);
    assert.equal(header.has(key as HeaderField), text !== "null", key);
  }
  for (const finalizer of (own(metadata, "finalizers") ?? []) as unknown[]) {
    if (typeof finalizer === "string") {
      assert.ok(header.hasFinalizer(finalizer), finalizer);
    }
  }
  for (const key of MAPS) {
    const read = key === "labels" ? "label" : "annotation";
    const map = (own(metadata, key) ?? {}) as Json;
    for (const [name, value] of Object.entries(map)) {
      assert.deepEqual(header[read](name), value, name);
    }
    assert.equal(header[read]("not there"), map["not there"]);
  }
}
