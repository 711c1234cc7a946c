/**
 * Seeded bug: an error of the cleanup is logged, and the finalizer removed. After
 * a refused deletion the object stays forever.
 *
 * Kind: misuse of the API; Sieve, unobserved state.
 */
import { defineKind, Operator } from "@coracle/operator";
import { ConfigMap } from "@coracle/operator/kinds";
import { z } from "zod";
import type { CorpusEntry } from "../entry.ts";

export const entry: CorpusEntry = {
  bug: {
    plans: ["refuse"],
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
  async reconcile({ metadata: { name }, spec: { color } }, ctx) {
    await ctx.apply(ConfigMap, {
      metadata: { name: `${name}-entry` },
      data: { color },
    }, { owned: false });
  },
  async cleanup({ metadata: { name } }, ctx) {
    await ctx.delete(ConfigMap, `${name}-entry`).catch((error) => {
      ctx.log.warn("The entry cannot be deleted", { error });
    });
  },
}, { install: true });
export default operator;
