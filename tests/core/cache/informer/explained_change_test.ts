import { fc } from "../../../support/property.ts";
import assert from "node:assert/strict";
import { test } from "node:test";
import type { UntypedObject } from "@coracle/operator/client";
import { isExplainedBy } from "../../../../core/cache/informer/explained_change.ts";

function object(parts: Record<string, unknown>, version = "1"): UntypedObject {
  const { metadata, ...rest } = parts;
  return {
    metadata: { name: "a", resourceVersion: version, ...metadata as object },
    ...rest,
  };
}

test("isExplainedBy accepts a change of the sent fields only", () => {
  const before = object({ spec: { size: 1, color: "red" }, status: {} });
  const after = object({ spec: { size: 2, color: "red" }, status: {} }, "2");
  assert.equal(isExplainedBy({ spec: { size: 2 } }, before, after), true);
  assert.equal(isExplainedBy({ spec: { color: "red" } }, before, after), false);
  assert.equal(isExplainedBy({}, before, after), false);
});

test("isExplainedBy detects a status that another client wrote", () => {
  const before = object({ spec: { size: 1 }, status: { ready: 0 } });
  const after = object({ spec: { size: 1 }, status: { ready: 1 } }, "2");
  assert.equal(isExplainedBy({ spec: { size: 1 } }, before, after), false);
  assert.equal(isExplainedBy({ status: { ready: 1 } }, before, after), true);
});

test("isExplainedBy accepts a new generation unless only the status was sent", () => {
  const before = object({ metadata: { generation: 1 }, spec: { size: 1 } });
  const after = object({ metadata: { generation: 2 }, spec: { size: 2 } }, "2");
  assert.equal(isExplainedBy({ spec: { size: 2 } }, before, after), true);
  assert.equal(isExplainedBy({ status: {}, spec: 0 }, before, after), true);
  const same = object({ metadata: { generation: 2 }, spec: { size: 1 } }, "2");
  assert.equal(isExplainedBy({ status: {} }, before, same), false);
});

test("isExplainedBy detects elements that another client added or removed", () => {
  const before = object({ spec: { size: 1 }, list: [1] });
  for (const list of [[1, 2], [], [2]]) {
    const after = object({ spec: { size: 2 }, list }, "2");
    assert.equal(isExplainedBy({ spec: { size: 2 } }, before, after), false);
    assert.equal(
      isExplainedBy({ spec: { size: 2 }, list }, before, after),
      true,
    );
  }
});

test("isExplainedBy compares nothing within a sent list or plain value", () => {
  const before = object({
    metadata: { labels: { a: "1" } },
    ports: [{ port: 1 }],
  });
  const after = object({
    metadata: { labels: { a: "1", b: "2" } },
    ports: [{ port: 1, protocol: "TCP" }],
  }, "2");
  const metadata = { labels: { b: "2" } };
  assert.equal(isExplainedBy({ metadata, ports: [] }, before, after), true);
  assert.equal(isExplainedBy({ metadata }, before, after), false);
  assert.equal(
    isExplainedBy({ metadata: null, ports: 1 }, before, after),
    true,
  );
});

test("isExplainedBy detects a change of fields named as those of each object", () => {
  for (const name of ["constructor", "toString", "__proto__"]) {
    const data = (value: string) => Object.fromEntries([[name, value]]);
    const before = object({ data: data("ours") });
    const after = object({ data: data("theirs") }, "2");
    const sent = { data: { size: "1" } };
    assert.equal(isExplainedBy(sent, before, after), false, name);
    assert.equal(isExplainedBy(sent, object({ data: {} }), after), false, name);
    assert.equal(isExplainedBy(sent, before, object({ data: {} })), false);
    assert.equal(isExplainedBy({ data: data("") }, before, after), true, name);
  }
});

test("isExplainedBy accepts a change with its own fields, and no change with any", () => {
  const value = fc.jsonValue({ maxDepth: 3 });
  fc.assert(
    fc.property(
      fc.dictionary(fc.constantFrom("spec", "status", "data"), value),
      fc.constantFrom("spec", "status", "data"),
      value,
      (parts, field, changed) => {
        const before = object(parts);
        const after = object({ ...parts, [field]: changed }, "2");
        assert.equal(isExplainedBy({ [field]: true }, before, after), true);
        assert.equal(isExplainedBy({}, before, object(parts, "2")), true);
        const isSame = JSON.stringify(before) ===
          JSON.stringify({ ...after, metadata: before.metadata });
        if (!isSame && !(field in parts)) {
          assert.equal(isExplainedBy({}, before, after), false);
        }
      },
    ),
  );
});
