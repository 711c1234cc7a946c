import assert from "node:assert/strict";
import { test } from "node:test";
import { fc } from "../../support/property.ts";
import { mutableCopy } from "../../../core/json/prune.ts";
import { Pruner } from "../../../core/json/prune.ts";

test("mutableCopy equals its source and shares nothing with it", () => {
  fc.assert(fc.property(fc.jsonValue(), (value) => {
    const frozen = deepFreeze(structuredClone(value));
    const copied = mutableCopy(frozen);
    assert.deepEqual(copied, value);
    change(copied);
    assert.deepEqual(frozen, value);
  }));
});

test("mutableCopy copies __proto__ as a plain field", () => {
  const value = JSON.parse('{"__proto__":{"a":1},"b":2}');
  assert.equal(JSON.stringify(mutableCopy(value)), JSON.stringify(value));
  assert.equal(Object.getPrototypeOf(mutableCopy(value)), Object.prototype);
});

test("mutableCopy leaves out what objects inherit", () => {
  const inherited = { configurable: true, enumerable: true, value: { a: 1 } };
  Object.defineProperty(Object.prototype, "inherited", inherited);
  try {
    assert.deepEqual(Object.keys(mutableCopy({ own: 1 })), ["own"]);
  } finally {
    Reflect.deleteProperty(Object.prototype, "inherited");
  }
});

test("mutableCopy lets reads of pruned fields throw and allows writes of them", () => {
  const object = { metadata: { name: "a" } as Record<string, unknown> };
  new Pruner(["metadata.managedFields"]).guard(object);
  const copied = mutableCopy(Object.freeze(object));
  assert.throws(
    () => copied.metadata["managedFields"],
    /metadata\.managedFields/,
  );
  copied.metadata["managedFields"] = [];
  assert.deepEqual(copied.metadata["managedFields"], []);
  assert.equal(JSON.stringify(object), '{"metadata":{"name":"a"}}');
});

function deepFreeze<T>(value: T): T {
  if (typeof value === "object" && value !== null) {
    Object.values(value).forEach(deepFreeze);
    Object.freeze(value);
  }
  return value;
}

/** Changes all parts of a value. */
function change(value: unknown): void {
  if (typeof value !== "object" || value === null) return;
  for (const part of Object.values(value)) change(part);
  if (Array.isArray(value)) value.push("more");
  else (value as Record<string, unknown>)["more"] = true;
}
