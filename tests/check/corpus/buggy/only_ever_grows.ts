/**
 * Seeded bug: the number of members follows the spec upwards only.
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
    write: "ConfigMap default/sample-part",
  },
  expects: ["ConfigMap sample-part"],
};

const Gadget = defineKind({
  group: "corpus.coracle.dev",
  version: "v1",
  kind: "Gadget",
  spec: z.object({ members: z.int().min(1).max(9).default(5) }),
});

const operator: Operator = new Operator();
operator.register(Gadget, {
  async reconcile({ metadata: { name }, spec }, ctx) {
    const metadata = { name: `${name}-part` };
    const stored = await ctx.get(ConfigMap, metadata.name);
    const members = Math.max(
      Number(stored?.data?.["members"] ?? 0),
      spec.members,
    );
    const data = { members: `${members}` };
    await ctx.apply(ConfigMap, { metadata, data });
  },
}, { owns: [ConfigMap], install: true });
export default operator;
