/**
 * Seeded bug: a conflict is taken as if somebody else had done the work. The label
 * of the object is never written, because the change that conflicted with it is no
 * new generation, so that no event calls the operator again.
 *
 * Kind: Acto, changes that are not propagated; Sieve, indirect.
 */
import { ApiError, defineKind, Operator } from "@coracle/operator";
import { z } from "zod";
import type { CorpusEntry } from "../entry.ts";

export const entry: CorpusEntry = {
  bug: {
    plans: ["conflict"],
    write: "update Gadget default/sample",
  },
  expects: ["Gadget sample color"],
};

const Gadget = defineKind({
  group: "corpus.coracle.dev",
  version: "v1",
  kind: "Gadget",
  spec: z.object({ color: z.string() }),
});

const operator: Operator = new Operator();
operator.register(Gadget, {
  async reconcile(gadget, ctx) {
    const { metadata, spec: { color } } = gadget;
    if (metadata.labels?.["color"] === color) return;
    const labels = { ...metadata.labels, color };
    await ctx.replace(Gadget, { ...gadget, metadata: { ...metadata, labels } })
      .catch((error) => {
        if (!(error instanceof ApiError && error.isConflict)) throw error;
      });
  },
}, { install: true });
export default operator;
