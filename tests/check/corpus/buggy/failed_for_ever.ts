/**
 * Seeded bug: a value that is not possible sets the phase Failed, and an object
 * that has failed is left alone. A value that is possible again does not help.
 *
 * Kind: Acto, no recovery from an error state.
 */
import { defineKind, Operator, patchStatus } from "@coracle/operator";
import { ConfigMap } from "@coracle/operator/kinds";
import { z } from "zod";
import type { CorpusEntry } from "../entry.ts";

export const entry: CorpusEntry = {
  bug: {
    plans: ["none"],
    write: "Gadget default/sample/status",
  },
  expects: ["ConfigMap sample-part"],
};

const Gadget = defineKind({
  group: "corpus.coracle.dev",
  version: "v1",
  kind: "Gadget",
  spec: z.object({ mode: z.enum(["small", "impossible"]) }),
  status: z.object({ phase: z.string() }).partial(),
});

const operator: Operator = new Operator();
operator.register(Gadget, {
  async reconcile({ metadata: { name }, spec: { mode }, status }, ctx) {
    if (status?.phase === "Failed") return;
    if (mode === "impossible") return patchStatus({ phase: "Failed" });
    await ctx.apply(ConfigMap, {
      metadata: { name: `${name}-part` },
      data: { mode },
    });
    return patchStatus({ phase: "Ready" });
  },
}, { owns: [ConfigMap], install: true });
export default operator;
