/**
 * Seeded bug: an object with a generated name is known only by the status, which
 * is written afterwards. Killed in between, the operator makes a second one.
 *
 * Kind: misuse of the API; Sieve, intermediate state.
 */
import { defineKind, Operator, patchStatus } from "@coracle/operator";
import { ConfigMap } from "@coracle/operator/kinds";
import { z } from "zod";
import type { CorpusEntry } from "../entry.ts";

export const entry: CorpusEntry = {
  bug: {
    plans: ["crash", "lost"],
    write: "create ConfigMap default/sample-",
  },
  expects: ["ConfigMap sample-*"],
};

const Gadget = defineKind({
  group: "corpus.coracle.dev",
  version: "v1",
  kind: "Gadget",
  spec: z.object({ color: z.string() }),
  status: z.object({ child: z.string() }).partial(),
});

const operator: Operator = new Operator();
operator.register(Gadget, {
  async reconcile({ metadata: { name }, spec, status }, ctx) {
    if (status?.child !== undefined) return;
    const made = await ctx.create(ConfigMap, {
      metadata: { generateName: `${name}-` },
      data: { color: spec.color },
    });
    return patchStatus({ child: made.metadata.name });
  },
}, { owns: [ConfigMap], install: true });
export default operator;
