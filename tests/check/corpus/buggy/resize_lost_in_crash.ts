/**
 * Seeded bug: whether to resize is read from the runner that a resize deletes
 * first. Killed after that deletion, the operator never resizes the volume.
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
    write: "patch ConfigMap default/sample-volume",
  },
  expects: ["ConfigMap sample-runner", "ConfigMap sample-volume"],
};

const Gadget = defineKind({
  group: "corpus.coracle.dev",
  version: "v1",
  kind: "Gadget",
  spec: z.object({ size: z.string() }),
});

const operator: Operator = new Operator();
operator.register(Gadget, {
  async reconcile({ metadata: { name }, spec: { size } }, ctx) {
    const [runner, volume] = [`${name}-runner`, `${name}-volume`];
    const running = await ctx.get(ConfigMap, runner);
    if (running !== undefined && running.data?.["size"] !== size) {
      await ctx.delete(ConfigMap, runner);
      await ctx.patch(ConfigMap, volume, { data: { size } });
    }
    if (await ctx.get(ConfigMap, volume) === undefined) {
      const metadata = { name: volume };
      await ctx.create(ConfigMap, { metadata, data: { size } });
    }
    await ctx.apply(ConfigMap, { metadata: { name: runner }, data: { size } });
  },
}, { owns: [ConfigMap], install: true });
export default operator;
