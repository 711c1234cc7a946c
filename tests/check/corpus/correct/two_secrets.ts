/** Correct: two objects that are applied independently. */
import { defineKind, Operator } from "@coracle/operator";
import { Secret } from "@coracle/operator/kinds";
import { z } from "zod";
import type { CorpusEntry } from "../entry.ts";

export const entry: CorpusEntry = {
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
    for (const suffix of ["tls", "internal"]) {
      await ctx.apply(Secret, {
        metadata: { name: `${name}-${suffix}` },
        data: { certificate: btoa(`for ${host}`) },
      });
    }
  },
}, { owns: [Secret], install: true });
export default operator;
