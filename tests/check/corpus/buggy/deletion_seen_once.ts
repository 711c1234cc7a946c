/**
 * Seeded bug: there is no finalizer; an object without an owner is deleted when
 * the deletion is seen. An operator that is down then never sees it.
 *
 * Kind: misuse of the API (missing finalizer); Sieve, unobserved state.
 */
import { defineKind, Operator } from "@coracle/operator";
import { ConfigMap } from "@coracle/operator/kinds";
import { z } from "zod";
import type { CorpusEntry } from "../entry.ts";

export const entry: CorpusEntry = {
  bug: {
    plans: ["crash", "missed", "refuse"],
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
    const name = `${metadata.name}-entry`;
    if (ctx.deleted) return void await ctx.delete(ConfigMap, name);
    await ctx.apply(ConfigMap, { metadata: { name }, data: { color } }, {
      owned: false,
    });
  },
}, { allEvents: true, install: true });
export default operator;
