/**
 * Seeded bug: an object is provided in runs that its creation caused, and in no
 * others. Killed before the write, the operator never provides it.
 *
 * Kind: Sieve, intermediate and unobserved state (edge-triggered work).
 */
import { defineKind, Operator } from "@coracle/operator";
import { ConfigMap } from "@coracle/operator/kinds";
import { z } from "zod";
import type { CorpusEntry } from "../entry.ts";

export const entry: CorpusEntry = {
  bug: {
    plans: ["crash", "refuse", "throttle"],
    write: "apply ConfigMap default/sample-part",
  },
  expects: ["ConfigMap sample-part"],
};

const Gadget = defineKind({
  group: "corpus.coracle.dev",
  version: "v1",
  kind: "Gadget",
  spec: z.object({ color: z.string() }),
});

const operator: Operator = new Operator();
operator.register(Gadget, {
  async reconcile({ metadata: { name }, spec: { color } }, ctx) {
    if (!["added", "modified"].includes(ctx.cause.type)) return;
    await ctx.apply(ConfigMap, {
      metadata: { name: `${name}-part` },
      data: { color },
    });
  },
}, { install: true });
export default operator;
