/**
 * Seeded bug: the object is made if it is missing, and never changed. A change of
 * the spec does not reach it.
 *
 * Kind: Acto, changes that are not propagated.
 */
import { defineKind, Operator } from "@coracle/operator";
import { ConfigMap } from "@coracle/operator/kinds";
import { z } from "zod";
import type { CorpusEntry } from "../entry.ts";

export const entry: CorpusEntry = {
  bug: {
    plans: ["none"],
    write: "create ConfigMap default/sample-part",
  },
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
    const part = `${name}-part`;
    if (await ctx.get(ConfigMap, part) !== undefined) return;
    const metadata = { name: part };
    await ctx.create(ConfigMap, { metadata, data: { color } });
  },
}, { owns: [ConfigMap], install: true });
export default operator;
