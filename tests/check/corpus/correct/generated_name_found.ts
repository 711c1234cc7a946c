/** Correct: an object with a generated name is found by its owner. */
import { defineKind, Operator, patchStatus } from "@coracle/operator";
import { ConfigMap } from "@coracle/operator/kinds";
import { z } from "zod";
import type { CorpusEntry } from "../entry.ts";

export const entry: CorpusEntry = { expects: ["ConfigMap sample-*"] };

const Gadget = defineKind({
  group: "corpus.coracle.dev",
  version: "v1",
  kind: "Gadget",
  spec: z.object({ color: z.string() }),
  status: z.object({ made: z.boolean() }).partial(),
});

const operator: Operator = new Operator();
operator.register(Gadget, {
  async reconcile({ metadata: { name, uid }, spec: { color } }, ctx) {
    const made = await ctx.secondaries(ConfigMap);
    if (made[0] !== undefined) {
      await ctx.patch(ConfigMap, made[0].metadata.name, { data: { color } });
      return patchStatus({ made: true });
    }
    // Older objects may be cached, so the server is asked before one is made.
    const { items } = await ctx.client.list(ConfigMap, {
      namespace: "default",
    });
    const isOwn = items.some(({ metadata }) =>
      metadata.ownerReferences?.some((owner) => owner.uid === uid)
    );
    if (isOwn) throw new Error("The object is not cached yet");
    await ctx.create(ConfigMap, {
      metadata: { generateName: `${name}-` },
      data: { color },
    });
    return patchStatus({ made: true });
  },
}, { owns: [ConfigMap], install: true });
export default operator;
