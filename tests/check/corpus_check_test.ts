import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { partOfRounds } from "../support/part_of_rounds.ts";
import { corpus, verdictOf } from "./corpus/corpus.ts";

/** Plans of a correct operator; `npm run check:corpus` runs all of them. */
const PLANS = 8;
/** Members of the corpus; each runtime takes one. */
const SHARE = 12;

// Each runtime takes another part, so that CI checks a quarter of the corpus;
// with fewer rounds it is a part of that.
const part = "Deno" in globalThis ? 1 : "Bun" in globalThis ? 2 : 0;

const share = (await corpus()).filter(({ entry }, at) =>
  at % SHARE === part && entry.isAlone !== true
);
const count = Math.max(2, partOfRounds(share.length));
const members = [...share.slice(0, count - 1), ...share.slice(-1)];

test("Each runtime checks at least four members of the corpus", () => {
  assert.ok(share.length >= 4);
});

for (const member of members) {
  const isBuggy = member.entry.bug !== undefined;
  const wanted = isBuggy ? "has its bug found and replayed" : "is not reported";
  test(`Corpus: ${member.name} ${wanted}`, async () => {
    const verdict = await verdictOf(member, { plans: isBuggy ? 150 : PLANS });
    const { findings, proof, isReplayed } = verdict;
    const titles = findings.map(({ title, plan }) => `${plan}: ${title}`);
    assert.equal(proof !== undefined, isBuggy, titles.join("\n"));
    assert.equal(isReplayed, isBuggy, proof?.plan);
    if (!isBuggy) assert.deepEqual(titles, []);
  });
}

test("The guide's table names each seeded bug of the corpus", async () => {
  const guide = await readFile(
    new URL("../../docs/check.md", import.meta.url),
    "utf8",
  );
  const rows = guide.matchAll(/^\| `([a-z_]+)` +\| [^|]+\| [^|]*\|$/gm);
  const named = new Set([...rows].map(([, name]) => `buggy/${name}`));
  const buggy = (await corpus()).filter(({ entry }) => entry.bug !== undefined);
  const missing = buggy.filter(({ name }) => !named.has(name));
  assert.deepEqual(missing.map(({ name }) => name), []);
});
