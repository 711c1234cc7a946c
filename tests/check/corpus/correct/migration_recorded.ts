/** Correct: each migration is an object of its own, which stays as the record. */
import { defineKind, Operator } from "@coracle/operator";
import { ConfigMap } from "@coracle/operator/kinds";
import { z } from "zod";
import type { CorpusEntry } from "../entry.ts";

export const entry: CorpusEntry = { expects: ["ConfigMap sample-migration"] };

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
      metadata: { name: `${name}-migration` },
      data: { to: "1" },
    });
    await ctx.apply(ConfigMap, { metadata: { name }, data: { color } });
  },
}, { owns: [ConfigMap], install: true });
export default operator;
