/**
 * Seeded bug: the status says that the job was made before it is made. Killed in
 * between, the operator never makes it.
 *
 * Kind: misuse of the API; Sieve, intermediate state.
 */
import { defineKind, Operator } from "@coracle/operator";
import { ConfigMap } from "@coracle/operator/kinds";
import { z } from "zod";
import type { CorpusEntry } from "../entry.ts";

export const entry: CorpusEntry = {
  bug: {
    plans: ["crash"],
    write: "create ConfigMap default/sample-setup",
  },
  expects: ["ConfigMap sample-setup"],
};

const Gadget = defineKind({
  group: "corpus.coracle.dev",
  version: "v1",
  kind: "Gadget",
  spec: z.object({ color: z.string() }),
  status: z.object({ started: z.boolean() }).partial(),
});

const operator: Operator = new Operator();
operator.register(Gadget, {
  async reconcile({ metadata: { name }, spec, status }, ctx) {
    if (status?.started) return;
    await ctx.patch(Gadget, name, { status: { started: true } }, {
      subresource: "status",
    });
    await ctx.create(ConfigMap, {
      metadata: { name: `${name}-setup` },
      data: { color: spec.color },
    });
  },
}, { owns: [ConfigMap], install: true });
export default operator;
