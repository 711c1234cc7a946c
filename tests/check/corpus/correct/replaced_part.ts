/** Correct: a read and changed object is replaced; a conflict is an error. */
import { defineKind, Operator } from "@coracle/operator";
import { ConfigMap } from "@coracle/operator/kinds";
import { z } from "zod";
import type { CorpusEntry } from "../entry.ts";

export const entry: CorpusEntry = { expects: ["ConfigMap sample-part"] };

const Gadget = defineKind({
  group: "corpus.coracle.dev",
  version: "v1",
  kind: "Gadget",
  spec: z.object({ color: z.string() }),
});

const operator: Operator = new Operator();
operator.register(Gadget, {
  async reconcile({ metadata: { name }, spec: { color } }, ctx) {
    const part = `${name}-part`;
    const stored = await ctx.get(ConfigMap, part);
    if (stored === undefined) {
      const metadata = { name: part };
      await ctx.create(ConfigMap, { metadata, data: { color } });
    } else await ctx.replace(ConfigMap, { ...stored, data: { color } });
  },
}, { owns: [ConfigMap], install: true });
export default operator;
