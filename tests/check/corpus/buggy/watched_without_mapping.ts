/**
 * Seeded bug: the kind is watched with a mapper that looks for a label which the
 * operator never sets. If somebody edits the object, no run follows.
 *
 * Kind: misuse of the API (watch without mapping); Acto, drift that stays.
 */
import { defineKind, type ObjectOf, Operator, watch } from "@coracle/operator";
import { ConfigMap } from "@coracle/operator/kinds";
import { byLabel } from "@coracle/operator/sources";
import { z } from "zod";
import type { CorpusEntry } from "../entry.ts";

export const entry: CorpusEntry = {
  bug: {
    plans: ["delete", "edit"],
    write: "apply ConfigMap default/sample-part",
  },
  expects: ["ConfigMap sample-part"],
};

const Gadget = defineKind({
  group: "corpus.coracle.dev",
  version: "v1",
  kind: "Gadget",
  spec: z.object({ color: z.string() }),
});
const mapper = byLabel<ObjectOf<typeof Gadget>, ConfigMap>(
  "corpus.coracle.dev/gadget",
);

const operator: Operator = new Operator();
operator.register(Gadget, {
  async reconcile({ metadata: { name }, spec: { color } }, ctx) {
    await ctx.apply(ConfigMap, {
      metadata: { name: `${name}-part`, labels: { app: name } },
      data: { color },
    });
  },
}, {
  watches: [watch(ConfigMap, { mapper, readOnly: false })],
  maxInterval: false,
  install: true,
});
export default operator;
