/**
 * Seeded bug: an object is made without its owner, which a second request adds.
 * Killed in between, the operator finds the object and leaves it as it is.
 *
 * Kind: Sieve, intermediate state.
 */
import { defineKind, Operator } from "@coracle/operator";
import { ConfigMap } from "@coracle/operator/kinds";
import { z } from "zod";
import type { CorpusEntry } from "../entry.ts";

export const entry: CorpusEntry = {
  bug: {
    plans: ["crash"],
    write: "patch ConfigMap default/sample-part",
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
  async reconcile(
    { apiVersion = "", kind = "", metadata, spec: { color } },
    ctx,
  ) {
    const part = `${metadata.name}-part`;
    if (await ctx.client.find(ConfigMap, { ...metadata, name: part })) return;
    const { name, uid = "" } = metadata;
    await ctx.create(ConfigMap, { metadata: { name: part }, data: { color } }, {
      owned: false,
    });
    const ownerReferences = [{ apiVersion, kind, name, uid, controller: true }];
    await ctx.patch(ConfigMap, part, { metadata: { ownerReferences } });
  },
}, { owns: [ConfigMap], install: true });
export default operator;
