import assert from "node:assert/strict";
import { test } from "node:test";
import {
  GraphError,
  mermaid,
  orderNodes,
} from "../../../workflows/graph/graph.ts";

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

test("orderNodes names only the nodes of a cycle, not those beside its path", () => {
  const nodes = [node("x"), node("a", "x", "b"), node("b", "a")];
  assert.throws(
    () => orderNodes([node("c", "a"), ...nodes]),
    (error: unknown) => {
      assert.ok(error instanceof GraphError);
      assert.deepEqual(error.cycle, ["a", "b", "a"]);
      return true;
    },
  );
});

test("orderNodes visits a node once, however many paths lead to it", () => {
  let visits = 0;
  const visited = (name: string, dependsOn: string[]) => ({
    name,
    get dependsOn() {
      visits++;
      return dependsOn;
    },
  });
  const layers = Array.from({ length: 9 }, (_, index) => {
    const below = index === 0 ? [] : [`a${index - 1}`, `b${index - 1}`];
    return [visited(`a${index}`, below), visited(`b${index}`, below)];
  });
  const names = orderNodes(layers.reverse().flat()).map(({ name }) => name);
  assert.equal(names[0], "a0");
  assert.deepEqual([names.length, visits], [18, 18]);
});

test("mermaid draws each dependency once, and escapes quotes", () => {
  assert.equal(
    mermaid([node('a"b'), node("c", 'a"b', 'a"b')]),
    'flowchart TD\n  n0["a#quot;b"]\n  n1["c"]\n  n0 --> n1\n',
  );
});
