import * as clientNode from "@kubernetes/client-node";
import assert from "node:assert/strict";
import { test } from "node:test";
import { projectText } from "./shipped_files.ts";

/** Exported names of client-node, and those of the methods of its classes. */
function clientNodeNames(): ReadonlySet<string> {
  const names = new Set(Object.keys(clientNode));
  for (const value of Object.values(clientNode)) {
    if (typeof value !== "function") continue;
    for (const name of Object.getOwnPropertyNames(value.prototype ?? {})) {
      names.add(name);
    }
  }
  return names;
}

/** Names in the table that are no values of client-node. */
const OTHERS: readonly string[] = ["on", "setTimeout", "Date", "IntOrString"];

test("The guide for client-node names functions and classes that it has", () => {
  const known = clientNodeNames();
  const left = [
    ...projectText("docs/from-client-node.md")
      .matchAll(/^\| (`.*?) +\|/gm),
  ].map(([, cell = ""]) => cell);
  const used = left.flatMap((cell) =>
    [...cell.matchAll(/[a-z]\w*(?=\()|\b[A-Z]\w+/g)].map(([name]) => name)
  ).filter((name) => !OTHERS.includes(name));
  assert(used.length > 10, `only ${used.length} names were found`);
  assert.deepEqual(used.filter((name) => !known.has(name)), []);
});
