/**
 * Seeded bug: a changed service is deleted and made again, but it is made only if
 * the status has another port, which was written before. Killed after the
 * deletion, the operator never makes it again.
 *
 * Kind: Sieve, intermediate state.
 */
import { defineKind, Operator } from "@coracle/operator";
import { Service } from "@coracle/operator/kinds";
import { z } from "zod";
import type { CorpusEntry } from "../entry.ts";

export const entry: CorpusEntry = {
  bug: {
    plans: ["crash"],
    write: "create Service default/sample",
  },
  expects: ["Service sample"],
};

const Gadget = defineKind({
  group: "corpus.coracle.dev",
  version: "v1",
  kind: "Gadget",
  spec: z.object({ port: z.int().min(1000).max(2000) }),
  status: z.object({ port: z.int() }).partial(),
});

const operator: Operator = new Operator();
operator.register(Gadget, {
  async reconcile({ metadata: { name }, spec: { port }, status }, ctx) {
    if (status?.port === port) return;
    await ctx.delete(Service, name);
    await ctx.patch(Gadget, name, { status: { port } }, {
      subresource: "status",
    });
    await ctx.create(Service, {
      metadata: { name },
      spec: { selector: { app: name }, ports: [{ port }] },
    });
  },
}, { owns: [Service], install: true });
export default operator;
