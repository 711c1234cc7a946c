import assert from "node:assert/strict";
import { test } from "node:test";
import { fc } from "../../support/property.ts";
import { intersect } from "../../../core/crd/intersection.ts";
import type { JsonSchema } from "../../../core/crd/json_schema.ts";

interface Part {
  readonly pattern: string | undefined;
  readonly parts: readonly Part[];
  /** Whether it stands behind a reference. */
  readonly referred: boolean;
}

const { part } = fc.letrec<{ part: Part }>((tie) => ({
  part: fc.record({
    pattern: fc.option(fc.constantFrom("^a", "b", "c$", "d"), {
      nil: undefined,
    }),
    parts: fc.oneof(
      { depthSize: "small", withCrossShrink: true },
      fc.constant([]),
      fc.array(tie("part"), { maxLength: 3 }),
    ),
    referred: fc.boolean(),
  }),
}));

test("intersect keeps each pattern and names each reference, however deep", () => {
  fc.assert(
    fc.property(fc.array(part, { minLength: 1, maxLength: 3 }), (parts) => {
      const definitions: Record<string, JsonSchema> = {};
      const patterns = new Set<string>();
      const schemaOf = ({ pattern, parts, referred }: Part): JsonSchema => {
        if (pattern !== undefined) patterns.add(pattern);
        const schema = {
          type: "string",
          ...pattern !== undefined && { pattern },
          ...parts.length > 0 && { allOf: parts.map(schemaOf) },
        };
        if (!referred) return schema;
        const name = `D${Object.keys(definitions).length}`;
        definitions[name] = schema;
        return { $ref: `#/$defs/${name}` };
      };
      const allOf = parts.map(schemaOf);
      const { node, ...found } = intersect({ allOf }, {
        path: "spec",
        root: { $defs: definitions },
        references: ["#/$defs/Before"],
      });
      const kept = [node.pattern, ...found.patterns].filter((one) =>
        one !== undefined
      );
      assert.deepEqual(new Set(kept), patterns);
      assert.deepEqual(
        [...found.references].sort(),
        Object.keys(definitions).map((name) => `#/$defs/${name}`).sort(),
      );
      assert.equal(node.type, "string");
      assert.equal(node.allOf, undefined);
    }),
  );
});

test("intersect forbids more fields where any member does", () => {
  const context = { path: "spec", root: {}, references: [] };
  const values = { type: "string" };
  for (
    const [one, other, both] of [
      [false, values, false],
      [values, false, false],
      [false, false, false],
      [values, values, values],
    ] as const
  ) {
    const { node } = intersect({
      allOf: [{ additionalProperties: one }, { additionalProperties: other }],
    }, context);
    assert.deepEqual(node.additionalProperties, both);
  }
  assert.throws(
    () => intersect({ allOf: [{ const: "a" }, { const: "" }] }, context),
    /two values of 'const'/,
  );
  assert.throws(
    () => intersect({ allOf: [{ maximum: 1 }, { maximum: "2" }] }, context),
    /two values of 'maximum'/,
  );
});

test("intersect merges one definition eight times on a path, and any number of others", () => {
  const root = { $defs: { A: { type: "string" } } };
  const merge = (merged: readonly string[]) =>
    intersect({ allOf: [{ $ref: "#/$defs/A" }] }, {
      path: "spec",
      root,
      references: [],
      merged,
    }).node;
  const times = (reference: string, count: number) =>
    Array<string>(count).fill(reference);
  assert.deepEqual(merge(times("#/$defs/A", 7)), { type: "string" });
  assert.deepEqual(merge(times("#/$defs/B", 20)), { type: "string" });
  assert.throws(() => merge(times("#/$defs/A", 8)), /it refers to itself/);
});
