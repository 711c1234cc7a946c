/**
 * Seeded bug: an object is made without looking whether it exists, and its
 * existence is an error. If the answer is lost, the operator fails forever.
 *
 * Kind: Sieve, intermediate state.
 */
import { defineKind, Operator, patchStatus } from "@coracle/operator";
import { ConfigMap } from "@coracle/operator/kinds";
import { z } from "zod";
import type { CorpusEntry } from "../entry.ts";

export const entry: CorpusEntry = {
  bug: {
    plans: ["lost", "crash"],
    write: "create ConfigMap default/sample-part",
  },
  expects: ["ConfigMap sample-part"],
};

const Gadget = defineKind({
  group: "corpus.coracle.dev",
  version: "v1",
  kind: "Gadget",
  spec: z.object({ color: z.string() }),
  status: z.object({ made: z.boolean() }).partial(),
});

const operator: Operator = new Operator();
operator.register(Gadget, {
  async reconcile({ metadata: { name }, spec: { color }, status }, ctx) {
    if (status?.made) return;
    await ctx.create(ConfigMap, {
      metadata: { name: `${name}-part` },
      data: { color },
    });
    return patchStatus({ made: true });
  },
}, { owns: [ConfigMap], install: true });
export default operator;
