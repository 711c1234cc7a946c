/**
 * Seeded bug: an object is named by the spec; after a change of that name the
 * object of the old name stays.
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
    write: "apply ConfigMap default/sample-",
  },
  expects: ["ConfigMap sample-a"],
};

const Gadget = defineKind({
  group: "corpus.coracle.dev",
  version: "v1",
  kind: "Gadget",
  spec: z.object({ title: z.enum(["a", "b"]) }),
});

const operator: Operator = new Operator();
operator.register(Gadget, {
  async reconcile({ metadata: { name }, spec: { title } }, ctx) {
    const metadata = { name: `${name}-${title}` };
    await ctx.apply(ConfigMap, { metadata, data: { title } });
  },
}, { owns: [ConfigMap], install: true });
export default operator;
