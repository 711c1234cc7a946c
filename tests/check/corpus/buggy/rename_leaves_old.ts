/**
 * Seeded bug: the status takes the new name before the object of the old name is
 * deleted. Killed in between, the operator has forgotten the old name.
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
    write: "delete ConfigMap default/sample-",
  },
  expects: ["ConfigMap sample-a"],
};

const Gadget = defineKind({
  group: "corpus.coracle.dev",
  version: "v1",
  kind: "Gadget",
  spec: z.object({ title: z.enum(["a", "b"]) }),
  status: z.object({ title: z.string() }).partial(),
});

const operator: Operator = new Operator();
operator.register(Gadget, {
  async reconcile({ metadata: { name }, spec: { title }, status }, ctx) {
    await ctx.apply(ConfigMap, {
      metadata: { name: `${name}-${title}` },
      data: { title },
    });
    const old = status?.title;
    if (old === title) return;
    await ctx.patch(Gadget, name, { status: { title } }, {
      subresource: "status",
    });
    if (old !== undefined) await ctx.delete(ConfigMap, `${name}-${old}`);
  },
}, { owns: [ConfigMap], install: true });
export default operator;
