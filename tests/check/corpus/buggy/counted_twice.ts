/**
 * Seeded bug: a change is counted in one object before it is marked as counted in
 * another. Killed in between, the operator counts it twice.
 *
 * Kind: Sieve, intermediate state.
 */
import { defineKind, Operator, patchStatus } from "@coracle/operator";
import { ConfigMap } from "@coracle/operator/kinds";
import { z } from "zod";
import type { CorpusEntry } from "../entry.ts";

export const entry: CorpusEntry = {
  bug: {
    plans: ["crash"],
    write: "apply ConfigMap default/sample-count",
  },
  expects: ["ConfigMap sample-count"],
};

const Gadget = defineKind({
  group: "corpus.coracle.dev",
  version: "v1",
  kind: "Gadget",
  spec: z.object({ color: z.string() }),
  status: z.object({ counted: z.string() }).partial(),
});

const operator: Operator = new Operator();
operator.register(Gadget, {
  async reconcile({ metadata: { name }, spec: { color }, status }, ctx) {
    if (status?.counted === color) return;
    const stored = await ctx.get(ConfigMap, `${name}-count`);
    const changes = Number(stored?.data?.["changes"] ?? 0) + 1;
    await ctx.apply(ConfigMap, {
      metadata: { name: `${name}-count` },
      data: { changes: `${changes}` },
    });
    return patchStatus({ counted: color });
  },
}, { owns: [ConfigMap], install: true });
export default operator;
