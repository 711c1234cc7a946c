import assert from "node:assert/strict";
import { test } from "node:test";
import { Graph, GraphError } from "../../../workflows/graph/graph.ts";

function node(name: string, ...dependsOn: string[]) {
  return { name, dependsOn };
}

test("Graph orders nodes behind what they depend on, stable in the order of definition", () => {
  const graph = new Graph([node("c", "a", "b"), node("b", "a"), node("a")]);
  assert.deepEqual(graph.order.map(({ name }) => name), ["a", "b", "c"]);
  const [a] = graph.order;
  assert.deepEqual(graph.dependentsOf(a!).map(({ name }) => name), ["c", "b"]);
  assert.deepEqual(
    graph.dependenciesOf(graph.order[2]!),
    graph.order.slice(0, 2),
  );
});

test("Graph refuses a cycle and names its path [F41]", () => {
  assert.throws(
    () => new Graph([node("x", "a"), node("a", "b"), node("b", "a")]),
    (error: unknown) => {
      assert.ok(error instanceof GraphError);
      assert.deepEqual(error.cycle, ["a", "b", "a"]);
      assert.match(error.message, /a -> b -> a/);
      return true;
    },
  );
  assert.throws(() => new Graph([node("a", "a")]), /a -> a/);
});

test("Graph refuses unknown and duplicate names", () => {
  assert.throws(() => new Graph([node("a", "b")]), /received "b", known are a/);
  assert.throws(() => new Graph([node("a"), node("a")]), /received "a" twice/);
});
