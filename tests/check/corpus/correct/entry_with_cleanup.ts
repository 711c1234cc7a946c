/**
 * Correct: an object without an owner is deleted by the cleanup, if it is that of
 * the object that is deleted and not of a later one of the same name. It is not
 * made for an object that the cache still has and the server has not.
 */
import { defineKind, Operator, watch } from "@coracle/operator";
import { ConfigMap } from "@coracle/operator/kinds";
import { byLabel } from "@coracle/operator/sources";
import { z } from "zod";
import type { CorpusEntry } from "../entry.ts";

export const entry: CorpusEntry = { expects: ["ConfigMap sample-entry"] };

const Gadget = defineKind({
  group: "corpus.coracle.dev",
  version: "v1",
  kind: "Gadget",
  spec: z.object({ color: z.string() }),
});
const NAME = "corpus.coracle.dev/gadget";
const UID = "corpus.coracle.dev/uid";

const operator: Operator = new Operator();
operator.register(Gadget, {
  async reconcile({ metadata: { namespace, name, uid = "" }, spec }, ctx) {
    const newest = await ctx.client.find(Gadget, { namespace, name });
    if (newest?.metadata.uid !== uid) return;
    const labels = { [NAME]: name, [UID]: uid };
    await ctx.apply(ConfigMap, {
      metadata: { name: `${name}-entry`, labels },
      data: { color: spec.color },
    }, { owned: false });
  },
  async cleanup({ metadata: { namespace, name, uid } }, ctx) {
    const key = { namespace, name: `${name}-entry` };
    const entry = await ctx.client.find(ConfigMap, key);
    if (entry?.metadata.labels?.[UID] !== uid) return;
    await ctx.delete(ConfigMap, key.name, { uid: entry?.metadata.uid });
  },
}, {
  watches: [watch(ConfigMap, { mapper: byLabel(NAME), readOnly: false })],
  install: true,
});
export default operator;
