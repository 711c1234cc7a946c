/**
 * Seeded bug: a conflict is taken as if somebody else had done the work. After a
 * conflict the operator never writes the change.
 *
 * Kind: Acto, changes that are not propagated; Sieve, indirect.
 */
import { ApiError, defineKind, Operator } from "@coracle/operator";
import { ConfigMap } from "@coracle/operator/kinds";
import { z } from "zod";
import type { CorpusEntry } from "../entry.ts";

export const entry: CorpusEntry = {
  bug: {
    plans: ["conflict"],
    write: "update ConfigMap default/sample-part",
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
  async reconcile({ metadata: { name }, spec: { color } }, ctx) {
    const part = `${name}-part`;
    const stored = await ctx.get(ConfigMap, part);
    if (stored === undefined) {
      const metadata = { name: part };
      await ctx.create(ConfigMap, { metadata, data: { color } });
      return;
    }
    await ctx.replace(ConfigMap, { ...stored, data: { color } })
      .catch((error) => {
        if (!(error instanceof ApiError && error.isConflict)) throw error;
      });
  },
}, { owns: [ConfigMap], install: true });
export default operator;
