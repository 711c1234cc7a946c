/**
 * Seeded bug: the server is restarted only in the run that changed its
 * configuration. Killed after that change, the operator never restarts it.
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
    write: "apply ConfigMap default/sample-server",
  },
  expects: ["ConfigMap sample-config", "ConfigMap sample-server"],
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
    const config = await ctx.get(ConfigMap, `${name}-config`);
    if (config?.data?.["color"] === color) return;
    await ctx.apply(ConfigMap, {
      metadata: { name: `${name}-config` },
      data: { color },
    });
    await ctx.apply(ConfigMap, {
      metadata: { name: `${name}-server` },
      data: { restartedFor: color },
    });
  },
}, { owns: [ConfigMap], install: true });
export default operator;
