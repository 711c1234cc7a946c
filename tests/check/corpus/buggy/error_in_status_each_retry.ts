/**
 * Seeded bug: each failed run writes its time into the status and is repeated
 * after ten seconds, for as long as the value is wrong.
 *
 * Kind: misuse of the API (hot loop on error); Acto, misoperation.
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
  isAlone: true,
  expects: ["ConfigMap sample-part"],
};

const Gadget = defineKind({
  group: "corpus.coracle.dev",
  version: "v1",
  kind: "Gadget",
  spec: z.object({ mode: z.enum(["small", "impossible"]) }),
  status: z.object({ error: z.string() }).partial(),
});

const operator: Operator = new Operator();
operator.register(Gadget, {
  async reconcile({ metadata: { name }, spec: { mode } }, ctx) {
    if (mode === "impossible") {
      const error = `${new Date().toISOString()}: this is not possible`;
      return patchStatus({ error }).rescheduleAfter("10s");
    }
    await ctx.apply(ConfigMap, {
      metadata: { name: `${name}-part` },
      data: { mode },
    });
    return patchStatus({ error: "" });
  },
}, { owns: [ConfigMap], install: true });
export default operator;
