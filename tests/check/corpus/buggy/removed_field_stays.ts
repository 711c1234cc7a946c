/**
 * Seeded bug: labels are merged into those of the object. A label that the spec no
 * longer has stays.
 *
 * Kind: Acto, removed values that stay.
 */
import { defineKind, Operator } from "@coracle/operator";
import { ConfigMap } from "@coracle/operator/kinds";
import { z } from "zod";
import type { CorpusEntry } from "../entry.ts";

export const entry: CorpusEntry = {
  bug: {
    plans: ["none"],
    write: "ConfigMap default/sample-part",
  },
  expects: ["ConfigMap sample-part"],
};

const Gadget = defineKind({
  group: "corpus.coracle.dev",
  version: "v1",
  kind: "Gadget",
  spec: z.object({ labels: z.record(z.string(), z.string()).default({}) }),
});

const operator: Operator = new Operator();
operator.register(Gadget, {
  async reconcile({ metadata: { name }, spec: { labels } }, ctx) {
    const part = `${name}-part`;
    const stored = await ctx.get(ConfigMap, part);
    if (stored === undefined) {
      await ctx.create(ConfigMap, { metadata: { name: part, labels } });
    } else {
      await ctx.patch(ConfigMap, part, { metadata: { labels } });
    }
  },
}, { owns: [ConfigMap], install: true });
export default operator;
