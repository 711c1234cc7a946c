/**
 * Prints random doc comments of shipped code, each with nothing but the name and
 * the kind of its symbol: a reader who does not know the code judges whether
 * they can be understood.
 *
 * `npm run docs:sample -- --seed 1` draws 100; `--count N` another number. The
 * same seed on the same tree prints the same. Generated files are left out.
 *
 * @module
 */

import { readFileSync } from "node:fs";
import process from "node:process";
import { docComments } from "./doc_comments.ts";
import { isGenerated, shippedFiles } from "./shipped_code.ts";
import { commandLine } from "../tests/support/command_line.ts";

/** A generator of numbers from 0 to 1 (mulberry32). */
function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = state + 0x6d2b79f5 >>> 0;
    let mixed = Math.imul(state ^ state >>> 15, state | 1);
    mixed ^= mixed + Math.imul(mixed ^ mixed >>> 7, mixed | 61);
    return ((mixed ^ mixed >>> 14) >>> 0) / 2 ** 32;
  };
}

/** Draws entries of a list, each at most once. */
function drawn<T>(
  list: readonly T[],
  count: number,
  seed: number,
): readonly T[] {
  const random = seeded(seed);
  const rest = [...list];
  for (let at = 0; at < Math.min(count, rest.length); at++) {
    const other = at + Math.floor(random() * (rest.length - at));
    const [a, b] = [rest[at] as T, rest[other] as T];
    rest[at] = b;
    rest[other] = a;
  }
  return rest.slice(0, count);
}

const { integer } = commandLine("print a sample", {
  seed: { type: "string", default: "1" },
  count: { type: "string", default: "100" },
});
const seed = integer("seed");
const comments = shippedFiles().flatMap((file) => {
  const text = readFileSync(file, "utf8");
  return isGenerated(text) ? [] : docComments(text, file);
});
const sample = drawn(comments, integer("count", 1), seed);
const lines = sample.map(({ symbol, kind, text }, index) =>
  `${index + 1}. ${symbol} (${kind})\n${text.replaceAll(/^(?=.)/gm, "    ")}\n`
);
process.stdout.write(
  `${sample.length} of ${comments.length} doc comments, seed ${seed}\n\n${
    lines.join("\n")
  }`,
);
