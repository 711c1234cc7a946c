/**
 * Seeded bug: an optional object is made when it is wanted, and not deleted when
 * it is no longer wanted.
 *
 * Kind: Acto, removed values that stay.
 */
import { defineKind, Operator } from "@coracle/operator";
import { Service } from "@coracle/operator/kinds";
import { z } from "zod";
import type { CorpusEntry } from "../entry.ts";

export const entry: CorpusEntry = {
  bug: {
    plans: ["none"],
    write: "apply Service default/sample",
  },
  expects: ["Service sample"],
};

const Gadget = defineKind({
  group: "corpus.coracle.dev",
  version: "v1",
  kind: "Gadget",
  spec: z.object({ exposed: z.boolean().default(true) }),
});

const operator: Operator = new Operator();
operator.register(Gadget, {
  async reconcile({ metadata: { name }, spec: { exposed } }, ctx) {
    if (!exposed) return;
    await ctx.apply(Service, {
      metadata: { name },
      spec: { selector: { app: name }, ports: [{ port: 80 }] },
    });
  },
}, { owns: [Service], install: true });
export default operator;
