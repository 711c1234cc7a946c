/**
 * The module that the runner gives `deno test` for the examples of doc comments:
 * each code block of the files that are its arguments is a test. The blocks are
 * modules of one process, whose entry points they share: `deno test --doc` loads
 * these again for every block.
 *
 * @module
 */

import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import process from "node:process";
import { pathToFileURL } from "node:url";
import { PROJECT } from "./child_process.ts";

const DOC_REGEXP = /\/\*\*[^]*?\*\//g;
/** Blocks of TypeScript, but those that are marked to be ignored. */
const BLOCK_REGEXP = /^ *\* ```ts\n([^]*?)^ *\* ```$/gm;

/** A code block of a doc comment. */
interface Example {
  /** Line of its first line in the file. */
  readonly line: number;
  readonly code: string;
}

function examplesOf(text: string): readonly Example[] {
  return Array.from(
    text.matchAll(DOC_REGEXP),
    (doc) =>
      Array.from(doc[0].matchAll(BLOCK_REGEXP), (block) => {
        const before = text.slice(0, doc.index + block.index);
        return {
          line: before.split("\n").length + 1,
          code: (block[1] ?? "").replaceAll(/^ *\* ?/gm, ""),
        };
      }),
  ).flat();
}

const { Deno } = globalThis as unknown as {
  Deno: { test(name: string, play: () => Promise<void>): void };
};

for (const file of process.argv.slice(2)) {
  for (const { line, code } of examplesOf(readFileSync(file, "utf8"))) {
    // Errors have the line of the file.
    const path = join(PROJECT, ".cache/examples", file, `${line}.ts`);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, "\n".repeat(line - 1) + code);
    Deno.test(`${file}:${line}`, async () => {
      await import(pathToFileURL(path).href);
    });
  }
}
