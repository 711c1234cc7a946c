import assert from "node:assert/strict";
import { test } from "node:test";
import {
  type ProfileNode,
  timesOf,
} from "../../bench/support/profile_parts.ts";

function node(
  id: number,
  functionName: string,
  url: string,
  children: readonly number[] = [],
): ProfileNode {
  return { id, callFrame: { functionName, url, lineNumber: 0 }, children };
}

/** Times of parts, from nodes that are sampled once each. */
function partTimes(nodes: readonly ProfileNode[]): Record<string, number> {
  const samples = nodes.map(({ id }) => id);
  const timeDeltas = [0, ...nodes.map(() => 100)];
  const { parts } = timesOf({ nodes, samples, timeDeltas });
  return Object.fromEntries(parts.map(({ name, time }) => [name, time]));
}

test("A profile's time goes to the parts of files, without waiting", () => {
  const nodes = [
    node(1, "(root)", "", [2, 3, 4, 5]),
    node(2, "scan", "file:///home/a/core/json/event_scanner.ts"),
    node(3, "(garbage collector)", ""),
    node(4, "(idle)", ""),
    node(5, "toString", "file:///home/a/core/queue/place_times.ts"),
  ];
  assert.deepEqual(partTimes(nodes), {
    other: 100,
    scan: 100,
    "garbage collection": 100,
    queue: 100,
  });
});

test("A profile's functions without a part count for their caller's", () => {
  const nodes = [
    node(1, "readJson", "file:///home/a/core/client/response.ts", [2, 3]),
    node(2, "utf8Slice", ""),
    node(3, "scan", "file:///home/a/core/json/event_scanner.ts", [4]),
    node(4, "encode", "node:internal/encoding"),
  ];
  assert.deepEqual(partTimes(nodes), { answer: 400 });
});
