/** Correct: one owned object, applied in each run, and a status. */
import { defineKind, Operator, patchStatus } from "@coracle/operator";
import { ConfigMap } from "@coracle/operator/kinds";
import { z } from "zod";
import type { CorpusEntry } from "../entry.ts";

export const entry: CorpusEntry = { expects: ["ConfigMap sample-part"] };

const Gadget = defineKind({
  group: "corpus.coracle.dev",
  version: "v1",
  kind: "Gadget",
  spec: z.object({ color: z.string(), loud: z.boolean().default(false) }),
  status: z.object({ text: z.string() }).partial(),
});

const operator: Operator = new Operator();
operator.register(Gadget, {
  async reconcile({ metadata: { name }, spec: { color, loud } }, ctx) {
    const text = loud ? color.toUpperCase() : color;
    await ctx.apply(ConfigMap, {
      metadata: { name: `${name}-part` },
      data: { text },
    });
    return patchStatus({ text });
  },
}, { owns: [ConfigMap], install: true });
export default operator;
