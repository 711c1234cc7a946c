/** Correct: an impossible value is reported in the status, and can be mended. */
import { defineKind, Operator, patchStatus } from "@coracle/operator";
import { ConfigMap } from "@coracle/operator/kinds";
import { z } from "zod";
import type { CorpusEntry } from "../entry.ts";

export const entry: CorpusEntry = { expects: ["ConfigMap sample-part"] };

const Gadget = defineKind({
  group: "corpus.coracle.dev",
  version: "v1",
  kind: "Gadget",
  spec: z.object({ mode: z.enum(["small", "impossible"]) }),
  status: z.object({ phase: z.string(), error: z.string() }).partial(),
});

const operator: Operator = new Operator();
operator.register(Gadget, {
  async reconcile({ metadata: { name }, spec: { mode } }, ctx) {
    const isPossible = mode !== "impossible";
    await ctx.apply(ConfigMap, {
      metadata: { name: `${name}-part` },
      data: { mode: isPossible ? mode : "paused" },
    });
    return isPossible
      ? patchStatus({ phase: "Ready", error: null })
      : patchStatus({ phase: "Failed", error: "this mode is not possible" });
  },
}, { owns: [ConfigMap], install: true });
export default operator;
