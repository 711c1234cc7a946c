/**
 * Seeded bug: the time of the run is written into an object twice a minute.
 *
 * Kind: misuse of the API (writes without a change); Acto, no stable state.
 */
import { defineKind, noUpdate, Operator } from "@coracle/operator";
import { ConfigMap } from "@coracle/operator/kinds";
import { z } from "zod";
import type { CorpusEntry } from "../entry.ts";

export const entry: CorpusEntry = {
  bug: {
    plans: ["none"],
    write: "apply ConfigMap default/sample-part",
  },
  isAlone: true,
  expects: ["ConfigMap sample-part"],
};

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
      metadata: { name: `${name}-part` },
      data: { color, seen: new Date().toISOString() },
    });
    return noUpdate().rescheduleAfter("30s");
  },
}, { owns: [ConfigMap], install: true });
export default operator;
