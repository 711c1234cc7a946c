/**
 * Seeded bug: retries are switched off. After a refused write the operator never
 * writes it.
 *
 * Kind: misuse of the API; Acto, no recovery from an error state.
 */
import { defineKind, Operator } from "@coracle/operator";
import { ConfigMap } from "@coracle/operator/kinds";
import { z } from "zod";
import type { CorpusEntry } from "../entry.ts";

export const entry: CorpusEntry = {
  bug: {
    plans: ["refuse"],
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
    await ctx.apply(ConfigMap, {
      metadata: { name: `${name}-part` },
      data: { color },
    });
  },
}, { owns: [ConfigMap], retry: false, maxInterval: false, install: true });
export default operator;
