/**
 * Seeded bug: the hash of the configuration is recorded before the configuration
 * is written, and decides whether to write. Killed in between, the operator never
 * writes it.
 *
 * Kind: Sieve, intermediate state; Acto, changes that are not propagated.
 */
import { defineKind, Operator } from "@coracle/operator";
import { ConfigMap } from "@coracle/operator/kinds";
import { z } from "zod";
import type { CorpusEntry } from "../entry.ts";

export const entry: CorpusEntry = {
  bug: {
    plans: ["crash"],
    write: "apply ConfigMap default/sample-config",
  },
  expects: ["ConfigMap sample-config"],
};

const Gadget = defineKind({
  group: "corpus.coracle.dev",
  version: "v1",
  kind: "Gadget",
  spec: z.object({ color: z.string() }),
});
const HASH = "corpus.coracle.dev/hash";

const operator: Operator = new Operator();
operator.register(Gadget, {
  async reconcile({ metadata, spec: { color } }, ctx) {
    if (metadata.annotations?.[HASH] === `hash-of-${color}`) return;
    await ctx.patch(Gadget, metadata.name, {
      metadata: { annotations: { [HASH]: `hash-of-${color}` } },
    });
    await ctx.apply(ConfigMap, {
      metadata: { name: `${metadata.name}-config` },
      data: { color },
    });
  },
}, { owns: [ConfigMap], install: true });
export default operator;
