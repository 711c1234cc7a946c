import assert from "node:assert/strict";
import { test } from "node:test";
import { fc } from "../../../support/property.ts";
import { PartSharing } from "../../../../core/cache/store/part_sharing.ts";
import { jsonText } from "../../../support/json_documents.ts";

function assertFrozen(value: unknown): void {
  if (typeof value !== "object" || value === null) return;
  assert.ok(Object.isFrozen(value));
  for (const part of Object.values(value)) assertFrozen(part);
}

test("PartSharing returns frozen values equal to the parsed ones, keys in order", () => {
  const sharing = new PartSharing();
  fc.assert(
    fc.property(fc.array(jsonText, { maxLength: 8 }), (texts) => {
      for (const text of texts) {
        const shared = sharing.share(JSON.parse(text));
        assert.deepEqual(shared, JSON.parse(text));
        assert.equal(JSON.stringify(shared), JSON.stringify(JSON.parse(text)));
        assertFrozen(shared);
      }
    }),
    { numRuns: 300 },
  );
});

test("PartSharing shares equal parts, but not merely similar ones", () => {
  const sharing = new PartSharing();
  const share = (value: unknown) =>
    sharing.share(JSON.parse(JSON.stringify(value))) as Record<string, unknown>;
  const named = (name: string) =>
    share({ name, labels: { app: "web", list: [1, { x: "y" }] } });
  const first = named("a");
  const { bytes } = sharing;
  const one = named("b");
  const two = named("c");
  assert.notEqual(first["labels"], one["labels"]);
  assert.equal(one["labels"], two["labels"]);
  assert.notEqual(one, two);
  assert.ok(sharing.bytes < bytes / 2);
  for (
    const other of [
      { app: "web", list: [1, { x: "z" }] },
      { list: [1, { x: "y" }], app: "web" },
      { app: "web", list: { 0: 1, 1: { x: "y" } } },
      { app: "web" },
    ]
  ) {
    assert.deepEqual(share({ labels: other })["labels"], other);
    assert.equal(
      JSON.stringify(share({ labels: other })["labels"]),
      JSON.stringify(other),
    );
  }
  share({ n: [-0] });
  assert.ok(Object.is(share({ n: [-0] })["n"], share({ n: [-0] })["n"]));
});

test("PartSharing does not replace unique parts", () => {
  const sharing = new PartSharing();
  const first = { part: { a: 1 } };
  const second = { part: { a: 1 } };
  sharing.share({ part: { a: 1 } });
  sharing.share(first);
  const shared = sharing.share(second, new Set([second.part]));
  assert.equal(shared.part, second.part);
  assert.notEqual(shared.part, first.part);
});
