/**
 * Seeded bug: what has to be deleted is kept in a module variable until a later
 * run deletes it. Killed in between, the operator has forgotten it.
 *
 * Kind: misuse of the API (state in module variables); Sieve, intermediate
 * state.
 */
import { defineKind, noUpdate, Operator } from "@coracle/operator";
import { ConfigMap } from "@coracle/operator/kinds";
import { z } from "zod";
import type { CorpusEntry } from "../entry.ts";

export const entry: CorpusEntry = {
  bug: {
    plans: ["crash"],
    write: "delete ConfigMap default/sample-",
  },
  expects: ["ConfigMap sample-a"],
};

const Gadget = defineKind({
  group: "corpus.coracle.dev",
  version: "v1",
  kind: "Gadget",
  spec: z.object({ title: z.enum(["a", "b"]) }),
});
const leftovers = new Map<string, Set<string>>();

const operator: Operator = new Operator();
operator.register(Gadget, {
  async reconcile({ metadata: { name, uid = "" }, spec: { title } }, ctx) {
    const old = leftovers.get(uid) ?? new Set();
    leftovers.set(uid, old);
    old.delete(`${name}-${title}`);
    await ctx.apply(ConfigMap, {
      metadata: { name: `${name}-${title}` },
      data: { title },
    });
    for (const one of old) await ctx.delete(ConfigMap, one);
    old.clear();
    old.add(`${name}-${title}`);
    return noUpdate();
  },
}, { owns: [ConfigMap], install: true });
export default operator;
