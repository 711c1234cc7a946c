/**
 * Seeded bug: the cleanup fails if the object that it deletes is gone already. If
 * somebody else deleted it, the finalizer stays forever.
 *
 * Kind: Acto, stuck deletions; Sieve, indirect.
 */
import { defineKind, Operator } from "@coracle/operator";
import { ConfigMap } from "@coracle/operator/kinds";
import { z } from "zod";
import type { CorpusEntry } from "../entry.ts";

export const entry: CorpusEntry = {
  bug: {
    plans: ["delete", "crash", "lost"],
    write: "delete Gadget default/sample",
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
    await ctx.apply(ConfigMap, {
      metadata: { name: `${name}-part` },
      data: { color },
    }, { owned: false });
  },
  async cleanup({ metadata: { name, namespace } }, ctx) {
    await ctx.client.get(ConfigMap, { name: `${name}-part`, namespace });
    await ctx.delete(ConfigMap, `${name}-part`);
  },
}, { install: true });
export default operator;
