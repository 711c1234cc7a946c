/**
 * Correct: an object is named by the spec; others of the same owner are deleted,
 * after a look at the newest state.
 */
import { defineKind, Operator } from "@coracle/operator";
import { ConfigMap } from "@coracle/operator/kinds";
import { z } from "zod";
import type { CorpusEntry } from "../entry.ts";

export const entry: CorpusEntry = { expects: ["ConfigMap sample-a"] };

const Gadget = defineKind({
  group: "corpus.coracle.dev",
  version: "v1",
  kind: "Gadget",
  spec: z.object({ title: z.enum(["a", "b"]) }),
});

const operator: Operator = new Operator();
operator.register(Gadget, {
  async reconcile({ metadata: { name, namespace, uid } }, ctx) {
    const newest = await ctx.client.find(Gadget, { namespace, name });
    if (newest?.metadata.uid !== uid) return;
    const wanted = `${name}-${newest?.spec.title}`;
    await ctx.apply(ConfigMap, { metadata: { name: wanted }, data: {} });
    for (const { metadata } of await ctx.secondaries(ConfigMap)) {
      if (metadata.name === wanted) continue;
      await ctx.delete(ConfigMap, metadata.name, { uid: metadata.uid });
    }
  },
}, { owns: [ConfigMap], install: true });
export default operator;
