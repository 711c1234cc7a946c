/** Correct: the volume is resized by its own size, before the runner. */
import { defineKind, Operator } from "@coracle/operator";
import { ConfigMap } from "@coracle/operator/kinds";
import { z } from "zod";
import type { CorpusEntry } from "../entry.ts";

export const entry: CorpusEntry = {
  expects: ["ConfigMap sample-runner", "ConfigMap sample-volume"],
};

const Gadget = defineKind({
  group: "corpus.coracle.dev",
  version: "v1",
  kind: "Gadget",
  spec: z.object({ size: z.string() }),
});

const operator: Operator = new Operator();
operator.register(Gadget, {
  async reconcile({ metadata: { name }, spec: { size } }, ctx) {
    for (const part of ["volume", "runner"]) {
      await ctx.apply(ConfigMap, {
        metadata: { name: `${name}-${part}` },
        data: { size },
      });
    }
  },
}, { owns: [ConfigMap], install: true });
export default operator;
