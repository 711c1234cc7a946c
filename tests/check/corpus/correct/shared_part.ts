/** Correct: a shared object is deleted with the last of those that need it. */
import { defineKind, Operator, watch } from "@coracle/operator";
import { ConfigMap } from "@coracle/operator/kinds";
import { z } from "zod";
import type { CorpusEntry } from "../entry.ts";

export const entry: CorpusEntry = { expects: ["ConfigMap shared"] };

const Gadget = defineKind({
  group: "corpus.coracle.dev",
  version: "v1",
  kind: "Gadget",
  spec: z.object({ color: z.string() }),
});

const operator: Operator = new Operator();
operator.register(Gadget, {
  async reconcile({ metadata: { name, uid = "" } }, ctx) {
    // Each gadget is an owner, by a field manager of its own.
    const apiVersion = "corpus.coracle.dev/v1";
    const ownerReferences = [{ apiVersion, kind: "Gadget", name, uid }];
    await ctx.client.apply(ConfigMap, {
      metadata: { namespace: "default", name: "shared", ownerReferences },
      data: { made: "by gadgets" },
    }, { fieldManager: `gadget-${name}`, force: true });
  },
}, { watches: [watch(ConfigMap, { readOnly: false })], install: true });
export default operator;
