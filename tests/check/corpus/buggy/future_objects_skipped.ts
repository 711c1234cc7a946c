/**
 * Seeded bug: an object that is younger than the clock allows is skipped, and
 * nothing runs again. If the clock is put back, the operator provides nothing.
 *
 * Kind: Acto, no recovery from an error state (clocks).
 */
import { defineKind, noUpdate, Operator, patchStatus } from "@coracle/operator";
import { ConfigMap } from "@coracle/operator/kinds";
import { z } from "zod";
import type { CorpusEntry } from "../entry.ts";

export const entry: CorpusEntry = {
  bug: {
    plans: ["clock"],
    write: "apply ConfigMap default/sample-part",
  },
  expects: ["ConfigMap sample-part"],
};

const Gadget = defineKind({
  group: "corpus.coracle.dev",
  version: "v1",
  kind: "Gadget",
  spec: z.object({ color: z.string() }),
  status: z.object({ phase: z.string() }).partial(),
});

const operator: Operator = new Operator();
operator.register(Gadget, {
  async reconcile({ metadata, spec: { color }, status }, ctx) {
    if (status?.phase === undefined) {
      return patchStatus({ phase: "Accepted" }).rescheduleAfter("10s");
    }
    const age = Date.now() - Date.parse(metadata.creationTimestamp ?? "");
    if (age < 0) return noUpdate();
    await ctx.apply(ConfigMap, {
      metadata: { name: `${metadata.name}-part` },
      data: { color },
    });
    return noUpdate();
  },
}, { owns: [ConfigMap], maxInterval: false, install: true });
export default operator;
