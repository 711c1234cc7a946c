/**
 * Seeded bug: a set whose size is another one is deleted and made again. An
 * operator that sees the earlier size deletes the set that fits.
 *
 * Kind: Sieve, stale state.
 */
import { defineKind, Operator } from "@coracle/operator";
import { Secret } from "@coracle/operator/kinds";
import { z } from "zod";
import type { CorpusEntry } from "../entry.ts";

export const entry: CorpusEntry = {
  bug: {
    plans: ["stale"],
    write: "delete Secret default/sample-set",
  },
  expects: ["Secret sample-set"],
};

const Gadget = defineKind({
  group: "corpus.coracle.dev",
  version: "v1",
  kind: "Gadget",
  spec: z.object({ size: z.string() }),
});

const operator: Operator = new Operator();
operator.register(Gadget, {
  async reconcile({ metadata: { name }, spec: { size } }, ctx) {
    const set = `${name}-set`;
    const stored = await ctx.get(Secret, set);
    const labels = stored?.metadata.labels;
    if (labels?.["size"] === size) return;
    if (stored !== undefined) await ctx.delete(Secret, set);
    await ctx.create(Secret, { metadata: { name: set, labels: { size } } });
  },
}, { owns: [Secret], install: true });
export default operator;
