/**
 * Seeded bug: an error of a write is logged, and the run succeeds. After a refused
 * write the operator never writes it.
 *
 * Kind: Acto, no recovery from an error state; misuse of the API.
 */
import { defineKind, Operator, patchStatus } from "@coracle/operator";
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
  status: z.object({ ready: z.boolean() }).partial(),
});

const operator: Operator = new Operator();
operator.register(Gadget, {
  async reconcile({ metadata: { name }, spec: { color } }, ctx) {
    try {
      await ctx.apply(ConfigMap, {
        metadata: { name: `${name}-part` },
        data: { color },
      });
    } catch (error) {
      ctx.log.warn("The part cannot be written", { error });
    }
    return patchStatus({ ready: true });
  },
}, { owns: [ConfigMap], install: true });
export default operator;
