/**
 * Seeded bug: two controllers of one kind write the same field with different
 * values, and each change triggers the other one.
 *
 * Kind: Acto, no stable state.
 */
import { defineKind, Operator, watch } from "@coracle/operator";
import { ConfigMap } from "@coracle/operator/kinds";
import { byLabel } from "@coracle/operator/sources";
import { z } from "zod";
import type { CorpusEntry } from "../entry.ts";

export const entry: CorpusEntry = {
  bug: {
    plans: ["none"],
    write: "ConfigMap default/sample-part",
  },
  isAlone: true,
  expects: ["ConfigMap sample-part"],
};

const Gadget = defineKind({
  group: "corpus.coracle.dev",
  version: "v1",
  kind: "Gadget",
  spec: z.object({ color: z.string() }),
});

const operator: Operator = new Operator();
for (const tone of ["light", "dark"]) {
  operator.register(Gadget, {
    async reconcile({ metadata: { name }, spec: { color } }, ctx) {
      const labels = { gadget: name };
      await ctx.apply(ConfigMap, {
        metadata: { name: `${name}-part`, labels },
        data: { color: `${tone} ${color}` },
      }, { owned: false });
    },
    async cleanup({ metadata: { name } }, ctx) {
      await ctx.delete(ConfigMap, `${name}-part`);
    },
  }, {
    name: tone,
    finalizer: `corpus.coracle.dev/${tone}`,
    watches: [watch(ConfigMap, { mapper: byLabel("gadget"), readOnly: false })],
    install: true,
  });
}
export default operator;
