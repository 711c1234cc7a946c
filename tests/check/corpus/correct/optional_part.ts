/**
 * Correct: an optional object is deleted when it is not wanted, after a look at
 * the newest state.
 */
import { defineKind, Operator } from "@coracle/operator";
import { ConfigMap } from "@coracle/operator/kinds";
import { z } from "zod";
import type { CorpusEntry } from "../entry.ts";

export const entry: CorpusEntry = { expects: ["ConfigMap sample-extra"] };

const Gadget = defineKind({
  group: "corpus.coracle.dev",
  version: "v1",
  kind: "Gadget",
  spec: z.object({ extra: z.boolean().default(true) }),
});

const operator: Operator = new Operator();
operator.register(Gadget, {
  async reconcile({ metadata: { name, namespace }, spec: { extra } }, ctx) {
    const part = `${name}-extra`;
    if (extra) {
      await ctx.apply(ConfigMap, { metadata: { name: part }, data: {} });
      return;
    }
    const stored = await ctx.get(ConfigMap, part);
    if (stored === undefined) return;
    const newest = await ctx.client.find(Gadget, { namespace, name });
    if (newest === undefined || newest.spec.extra) return;
    await ctx.delete(ConfigMap, part, { uid: stored.metadata.uid });
  },
}, { owns: [ConfigMap], install: true });
export default operator;
