/**
 * Correct: an object without an owner is deleted by the cleanup, if it is that of
 * the object that is deleted and not of a later one of the same name.
 */
import { defineKind, Operator } from "@coracle/operator";
import { ConfigMap } from "@coracle/operator/kinds";
import { z } from "zod";
import type { CorpusEntry } from "../entry.ts";

export const entry: CorpusEntry = { expects: ["ConfigMap sample-entry"] };

const Gadget = defineKind({
  group: "corpus.coracle.dev",
  version: "v1",
  kind: "Gadget",
  spec: z.object({ color: z.string() }),
});
const UID = "corpus.coracle.dev/uid";

const operator: Operator = new Operator();
operator.register(Gadget, {
  async reconcile({ metadata: { name, uid = "" }, spec: { color } }, ctx) {
    await ctx.apply(ConfigMap, {
      metadata: { name: `${name}-entry`, labels: { [UID]: uid } },
      data: { color },
    }, { owned: false });
  },
  async cleanup({ metadata: { namespace, name, uid } }, ctx) {
    const key = { namespace, name: `${name}-entry` };
    const entry = await ctx.client.find(ConfigMap, key);
    if (entry?.metadata.labels?.[UID] !== uid) return;
    await ctx.delete(ConfigMap, key.name, { uid: entry?.metadata.uid });
  },
}, {
  owns: [ConfigMap],
  install: true,
});
export default operator;
