/**
 * Seeded bug: backups whose gadget is not in the cache are deleted. If the backup
 * is seen before its gadget, the operator deletes what is wanted.
 *
 * Kind: Sieve, stale and unobserved state; misuse of the API (cached read
 * treated as truth for a deletion).
 */
import { defineKind, Operator, watch } from "@coracle/operator";
import { ConfigMap, Secret } from "@coracle/operator/kinds";
import { byFunction } from "@coracle/operator/sources";
import { z } from "zod";
import type { CorpusEntry } from "../entry.ts";

export const entry: CorpusEntry = {
  bug: {
    plans: ["stale"],
    write: "delete Secret default/sample-2-backup",
  },
  expects: ["Secret sample-backup"],
};

const Gadget = defineKind({
  group: "corpus.coracle.dev",
  version: "v1",
  kind: "Gadget",
  spec: z.object({ backups: z.boolean().default(true) }),
});
const labels = { app: "gadget" };

const operator: Operator = new Operator();
operator.register(Gadget, {
  async reconcile({ metadata: { name }, spec: { backups } }, ctx) {
    await ctx.apply(ConfigMap, { metadata: { name, labels }, data: {} });
    const metadata = { name: `${name}-backup`, labels };
    if (backups) await ctx.apply(Secret, { metadata }, { owned: false });
    const wanted = new Set(
      (await ctx.list(Gadget)).filter(({ spec }) => spec.backups)
        .map((one) => `${one.metadata.name}-backup`),
    );
    for (const one of await ctx.list(Secret)) {
      if (one.metadata.labels?.["app"] !== "gadget") continue;
      if (wanted.has(one.metadata.name)) continue;
      await ctx.delete(Secret, one.metadata.name);
    }
  },
  async cleanup({ metadata }, ctx) {
    await ctx.delete(Secret, `${metadata.name}-backup`);
  },
}, {
  owns: [ConfigMap],
  watches: [watch(Secret, { mapper: byFunction(() => []), readOnly: false })],
  install: true,
});
export default operator;
