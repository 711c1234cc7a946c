/**
 * Seeded bug: a migration that is done is deleted, and that it was done is only
 * known to the process. Killed afterwards, the operator runs it again.
 *
 * Kind: misuse of the API (state in module variables); Sieve, intermediate
 * state.
 */
import { defineKind, Operator } from "@coracle/operator";
import { ConfigMap } from "@coracle/operator/kinds";
import { z } from "zod";
import type { CorpusEntry } from "../entry.ts";

export const entry: CorpusEntry = {
  bug: {
    plans: ["crash"],
    write: "create ConfigMap default/sample-migration",
  },
  expects: ["ConfigMap sample"],
};

const Gadget = defineKind({
  group: "corpus.coracle.dev",
  version: "v1",
  kind: "Gadget",
  spec: z.object({ version: z.string() }),
});
const migrated = new Map<string, string>();

const operator: Operator = new Operator();
operator.register(Gadget, {
  async reconcile({ metadata: { name, uid = "" }, spec: { version } }, ctx) {
    const migration = `${name}-migration`;
    if (migrated.get(uid) !== version) {
      const metadata = { name: migration };
      await ctx.create(ConfigMap, { metadata, data: { version } });
      await ctx.delete(ConfigMap, migration);
      migrated.set(uid, version);
    }
    await ctx.apply(ConfigMap, { metadata: { name }, data: { version } });
  },
}, { owns: [ConfigMap], install: true });
export default operator;
