/**
 * Seeded bug: an object without an owner is never deleted, since there is neither
 * a cleanup nor a finalizer.
 *
 * Kind: misuse of the API (missing finalizer).
 */
import { defineKind, Operator } from "@coracle/operator";
import { ConfigMap } from "@coracle/operator/kinds";
import { z } from "zod";
import type { CorpusEntry } from "../entry.ts";

export const entry: CorpusEntry = {
  bug: {
    plans: ["none"],
    write: "apply ConfigMap default/sample-entry",
  },
  expects: ["ConfigMap sample-entry"],
};

const Gadget = defineKind({
  group: "corpus.coracle.dev",
  version: "v1",
  kind: "Gadget",
  spec: z.object({ color: z.string() }),
});

const operator: Operator = new Operator();
operator.register(Gadget, {
  async reconcile({ metadata, spec: { color } }, ctx) {
    await ctx.apply(ConfigMap, {
      metadata: { name: `${metadata.name}-entry` },
      data: { color },
    }, { owned: false });
  },
}, { install: true });
export default operator;
