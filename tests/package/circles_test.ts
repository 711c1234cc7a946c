import assert from "node:assert/strict";
import { posix } from "node:path";
import { test } from "node:test";
import { projectText, shippedSources } from "./shipped_files.ts";

const IMPORT_REGEXP = /(?:\bfrom|\bimport\(|^import)\s*"(\.[^"]+)"/gm;

/** Files that each shipped file imports, types included. */
function importGraph(): ReadonlyMap<string, readonly string[]> {
  return new Map(
    shippedSources().map((file) => {
      const code = projectText(file).replaceAll(/^\s*(?:\/\/|\/?\*).*$/gm, "");
      const targets = [...code.matchAll(IMPORT_REGEXP)]
        .map(([, specifier = ""]) =>
          posix.join(posix.dirname(file), specifier)
        );
      return [file, [...new Set(targets)]];
    }),
  );
}

/**
 * Groups of files that import each other, directly or by way of others
 * (strongly connected components by Tarjan's algorithm).
 */
export function circles(
  graph: ReadonlyMap<string, readonly string[]>,
): readonly (readonly string[])[] {
  const found: (readonly string[])[] = [];
  const order = new Map<string, number>();
  const lowest = new Map<string, number>();
  const path: string[] = [];
  const onPath = new Set<string>();
  const enter = (file: string) => {
    const index = order.size;
    order.set(file, index);
    lowest.set(file, index);
    path.push(file);
    onPath.add(file);
    for (const target of graph.get(file) ?? []) {
      if (!order.has(target)) enter(target);
      else if (!onPath.has(target)) continue;
      lowest.set(
        file,
        Math.min(lowest.get(file) ?? 0, lowest.get(target) ?? 0),
      );
    }
    if (lowest.get(file) !== index) return;
    const group = path.splice(path.indexOf(file));
    for (const member of group) onPath.delete(member);
    if (group.length > 1 || graph.get(file)?.includes(file)) {
      found.push(group.toSorted());
    }
  };
  for (const file of graph.keys()) if (!order.has(file)) enter(file);
  return found;
}

test("Shipped files do not import each other in circles, types included", () => {
  const graph = importGraph();
  const edges = [...graph.values()].flat().length;
  assert(edges > graph.size, `only ${edges} imports were found`);
  assert.deepEqual(circles(graph), []);
});

test("circles finds indirect circles", () => {
  const graph = new Map([
    ["a", ["b"]],
    ["b", ["c", "d"]],
    ["c", ["a"]],
    ["d", ["e"]],
    ["e", []],
    ["f", ["f"]],
  ]);
  assert.deepEqual(circles(graph), [["a", "b", "c"], ["f"]]);
});
