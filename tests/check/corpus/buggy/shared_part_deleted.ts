/**
 * Seeded bug: objects share a part, which the cleanup of any of them deletes.
 *
 * Kind: Acto, misoperation; Sieve, stale state.
 */
import { defineKind, Operator } from "@coracle/operator";
import { ConfigMap } from "@coracle/operator/kinds";
import { z } from "zod";
import type { CorpusEntry } from "../entry.ts";

export const entry: CorpusEntry = {
  bug: {
    plans: ["none"],
    write: "delete ConfigMap default/shared",
  },
  expects: ["ConfigMap shared"],
};

const Gadget = defineKind({
  group: "corpus.coracle.dev",
  version: "v1",
  kind: "Gadget",
  spec: z.object({ color: z.string() }),
});

const operator: Operator = new Operator();
operator.register(Gadget, {
  async reconcile(_, ctx) {
    await ctx.apply(ConfigMap, {
      metadata: { name: "shared" },
      data: { made: "by gadgets" },
    }, { owned: false });
  },
  async cleanup(_, ctx) {
    await ctx.delete(ConfigMap, "shared");
  },
}, { install: true });
export default operator;
