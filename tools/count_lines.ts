/**
 * Counts lines and files of shipped code by folder and by package.
 *
 * `npm run count:lines` prints a table; `npm run count:lines -- --json` the same
 * as JSON.
 *
 * @module
 */

import { readFileSync } from "node:fs";
import process from "node:process";
import { commandLine } from "../tests/support/command_line.ts";
import { shippedFiles } from "./shipped_code.ts";

interface Count {
  readonly lines: number;
  readonly files: number;
}

const { values } = commandLine("count lines", { json: { type: "boolean" } });
const lines = new Map<string, number>();
for (const file of shippedFiles()) {
  const text = readFileSync(file, "utf8");
  lines.set(file, text.split("\n").length - 1);
}

function sum(within: (file: string) => boolean): Count {
  const counted = [...lines].filter(([file]) => within(file));
  return {
    lines: counted.reduce((total, [, count]) => total + count, 0),
    files: counted.length,
  };
}

/** The folder that a file is counted with; those of core one by one. */
function folderOf(file: string): string {
  const parts = file.split("/");
  const isSplit = /^(?:core|dev)$/.test(parts[0] ?? "") && parts.length > 2;
  return parts.slice(0, isSplit ? 2 : 1).join("/");
}

const folders = [...new Set([...lines.keys()].map(folderOf))].toSorted();
const counts: Record<string, Count> = {
  ...Object.fromEntries(
    folders.map((folder) => [folder, sum((file) => folderOf(file) === folder)]),
  ),
  "@coracle/operator": sum((file) => !file.startsWith("dev/")),
  "@coracle/operator without core/kinds": sum((file) =>
    !/^(?:dev|core\/kinds)\//.test(file)
  ),
  "@coracle/dev": sum((file) => file.startsWith("dev/")),
};

if (values.json) {
  process.stdout.write(`${JSON.stringify(counts, null, 2)}\n`);
} else {
  for (const [name, { lines, files }] of Object.entries(counts)) {
    process.stdout.write(
      `${name.padEnd(42)}${String(lines).padStart(7)} lines ${
        String(files).padStart(4)
      } files\n`,
    );
  }
}
