/** Correct: a Secret of somebody else is copied, and watched by reference. */
import { defineKind, type ObjectOf, Operator, watch } from "@coracle/operator";
import { ConfigMap, Secret } from "@coracle/operator/kinds";
import { z } from "zod";
import type { CorpusEntry } from "../entry.ts";

export const entry: CorpusEntry = {
  expects: ["ConfigMap sample-copy"],
  examples: [{
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name: "original", namespace: "default" },
    type: "Opaque",
    stringData: { color: "red" },
  }, {
    apiVersion: "corpus.coracle.dev/v1",
    kind: "Gadget",
    metadata: { name: "sample", namespace: "default" },
    spec: { source: "original" },
  }],
};

const Gadget = defineKind({
  group: "corpus.coracle.dev",
  version: "v1",
  kind: "Gadget",
  spec: z.object({ source: z.string() }),
});
type Gadget = ObjectOf<typeof Gadget>;

const operator: Operator = new Operator();
operator.register(Gadget, {
  async reconcile({ metadata: { name }, spec: { source } }, ctx) {
    const read = await ctx.get(Secret, source);
    await ctx.apply(ConfigMap, {
      metadata: { name: `${name}-copy` },
      data: read?.data ?? {},
    });
  },
}, {
  owns: [ConfigMap],
  watches: [
    watch<Gadget, Secret>(Secret, {
      references: ({ metadata: { namespace }, spec: { source } }) => [
        { namespace, name: source },
      ],
    }),
  ],
  install: true,
});
export default operator;
