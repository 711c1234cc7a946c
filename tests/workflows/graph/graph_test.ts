import assert from "node:assert/strict";
import { test } from "node:test";
import { GraphError, orderNodes } from "../../../workflows/graph/graph.ts";

function node(name: string, ...dependsOn: string[]) {
  return { name, dependsOn };
}

test("orderNodes puts nodes behind their dependencies, in the order of definition", () => {
  const nodes = [node("c", "a", "b"), node("b", "a"), node("a")];
  const names = orderNodes(nodes).map(({ name }) => name);
  assert.deepEqual(names, ["a", "b", "c"]);
});

test("orderNodes refuses a cycle and names its path [F41]", () => {
  assert.throws(
    () => orderNodes([node("x", "a"), node("a", "b"), node("b", "a")]),
    (error: unknown) => {
      assert.ok(error instanceof GraphError);
      assert.deepEqual(error.cycle, ["a", "b", "a"]);
      assert.match(error.message, /a -> b -> a/);
      return true;
    },
  );
  assert.throws(() => orderNodes([node("a", "a")]), /a -> a/);
});

test("orderNodes refuses unknown and duplicate names", () => {
  assert.throws(
    () => orderNodes([node("a", "b")]),
    /received "b", known are a/,
  );
  assert.throws(() => orderNodes([node("a"), node("a")]), /received "a" twice/);
});
