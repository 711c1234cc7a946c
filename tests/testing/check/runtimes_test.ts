import assert from "node:assert/strict";
import process from "node:process";
import { test } from "node:test";
import { PROJECT, runCommand } from "../../support/child_process.ts";

const SCRIPT = "tests/testing/check/print_traces.ts";
const RUNTIMES = {
  node: ["node", SCRIPT],
  deno: [
    "deno",
    "run",
    "--no-check",
    "-A",
    "--conditions=@coracle/source",
    SCRIPT,
  ],
  bun: ["bun", SCRIPT],
} as const;

const isNode = !("Deno" in globalThis) && process.versions["bun"] === undefined;

test(
  "A seed has the same trace on Node, Deno and Bun",
  { skip: isNode ? false : "one runtime starts the three" },
  async () => {
    const traces: Record<string, string[]> = {};
    for (const [name, command] of Object.entries(RUNTIMES)) {
      const { code, stdout, stderr } = await runCommand(command, {
        cwd: PROJECT,
      });
      assert.equal(code, 0, `${name}: ${stderr}`);
      traces[name] = stdout.trim().split("\n");
    }
    const { node = [], deno = [], bun = [] } = traces;
    assert(node.length > 150, `There are ${node.length} lines`);
    for (const [index, line] of node.entries()) {
      assert.equal(deno[index], line, `Line ${index + 1} on Deno`);
      assert.equal(bun[index], line, `Line ${index + 1} on Bun`);
    }
    assert.deepEqual([deno.length, bun.length], [node.length, node.length]);
  },
);
