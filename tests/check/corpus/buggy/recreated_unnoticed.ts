/**
 * Seeded bug: what was provided is remembered by name and never forgotten. If an
 * object is deleted and made again, the operator provides nothing for the new one.
 *
 * Kind: Sieve, unobserved state; misuse of the API (state in module variables).
 */
import { defineKind, Operator } from "@coracle/operator";
import { ConfigMap } from "@coracle/operator/kinds";
import { z } from "zod";
import type { CorpusEntry } from "../entry.ts";

export const entry: CorpusEntry = {
  bug: {
    plans: ["none", "missed"],
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
const provided = new Set<string>();

const operator: Operator = new Operator();
operator.register(Gadget, {
  async reconcile({ metadata: { name }, spec: { color } }, ctx) {
    if (provided.has(name)) return;
    const part = `${name}-part`;
    if (
      await ctx.client.find(ConfigMap, {
        namespace: "default",
        name: part,
      }) === undefined
    ) {
      const metadata = { name: part };
      await ctx.create(ConfigMap, { metadata, data: { color } });
    }
    provided.add(name);
  },
}, { install: true });
export default operator;
