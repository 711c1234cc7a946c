/**
 * Seeded bug: two certificates are issued together if the first one is missing.
 * Killed between them, the operator never issues the second.
 *
 * Kind: Sieve, intermediate state.
 */
import { defineKind, Operator } from "@coracle/operator";
import { Secret } from "@coracle/operator/kinds";
import { z } from "zod";
import type { CorpusEntry } from "../entry.ts";

export const entry: CorpusEntry = {
  bug: {
    plans: ["crash"],
    write: "create Secret default/sample-internal",
  },
  expects: ["Secret sample-tls", "Secret sample-internal"],
};

const Gadget = defineKind({
  group: "corpus.coracle.dev",
  version: "v1",
  kind: "Gadget",
  spec: z.object({ host: z.string() }),
});

const operator: Operator = new Operator();
operator.register(Gadget, {
  async reconcile({ metadata: { name }, spec: { host } }, ctx) {
    if (await ctx.get(Secret, `${name}-tls`) !== undefined) return;
    for (const suffix of ["tls", "internal"]) {
      await ctx.create(Secret, {
        metadata: { name: `${name}-${suffix}` },
        stringData: { certificate: `for ${host}` },
      });
    }
  },
}, { owns: [Secret], install: true });
export default operator;
