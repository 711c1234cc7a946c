/**
 * Seeded bug: the finalizer is removed before the object without an owner is
 * deleted. Killed in between, the operator leaves that object.
 *
 * Kind: Sieve, intermediate state.
 */
import { defineKind, Operator } from "@coracle/operator";
import { ConfigMap } from "@coracle/operator/kinds";
import { z } from "zod";
import type { CorpusEntry } from "../entry.ts";

export const entry: CorpusEntry = {
  bug: {
    plans: ["none", "crash"],
    write: "delete ConfigMap default/sample-entry",
  },
  expects: ["ConfigMap sample-entry"],
};

const Gadget = defineKind({
  group: "corpus.coracle.dev",
  version: "v1",
  kind: "Gadget",
  spec: z.object({ color: z.string() }),
});

const operator: Operator = new Operator();
operator.register(Gadget, {
  async reconcile({ metadata, spec: { color } }, ctx) {
    const entry = `${metadata.name}-entry`;
    await ctx.addFinalizer("corpus.coracle.dev/entry");
    await ctx.apply(ConfigMap, { metadata: { name: entry }, data: { color } }, {
      owned: false,
    });
  },
  async cleanup({ metadata }, ctx) {
    await ctx.removeFinalizer("corpus.coracle.dev/entry");
    await ctx.removeFinalizer();
    await ctx.delete(ConfigMap, `${metadata.name}-entry`);
  },
}, { install: true });
export default operator;
