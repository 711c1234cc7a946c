/**
 * Seeded bug: when a member is gone, its volume is deleted only if the status
 * says that the removal began; the status is written after the removal. Killed in
 * between, the operator leaves the volume.
 *
 * Kind: Sieve, intermediate state.
 */
import { defineKind, Operator, patchStatus } from "@coracle/operator";
import { ConfigMap, PersistentVolumeClaim } from "@coracle/operator/kinds";
import { z } from "zod";
import type { CorpusEntry } from "../entry.ts";

export const entry: CorpusEntry = {
  bug: {
    plans: ["crash"],
    write: "delete PersistentVolumeClaim default/sample-member",
  },
  expects: [
    "ConfigMap sample-member",
    "PersistentVolumeClaim sample-member",
  ],
};

const Gadget = defineKind({
  group: "corpus.coracle.dev",
  version: "v1",
  kind: "Gadget",
  spec: z.object({ present: z.boolean().default(true) }),
  status: z.object({ leaving: z.boolean() }).partial(),
});

const operator: Operator = new Operator();
operator.register(Gadget, {
  async reconcile({ metadata: { name }, spec, status }, ctx) {
    const metadata = { name: `${name}-member` };
    if (spec.present) {
      await ctx.apply(PersistentVolumeClaim, {
        metadata,
        spec: {
          accessModes: ["ReadWriteOnce"],
          resources: { requests: { storage: "1Gi" } },
        },
      });
      await ctx.apply(ConfigMap, { metadata, data: {} });
      return patchStatus({ leaving: false });
    }
    if (await ctx.get(ConfigMap, metadata.name) !== undefined) {
      await ctx.delete(ConfigMap, metadata.name);
      return patchStatus({ leaving: true }).rescheduleAfter("10s");
    }
    if (!status?.leaving) return;
    await ctx.delete(PersistentVolumeClaim, metadata.name);
    return patchStatus({ leaving: false });
  },
}, { owns: [ConfigMap, PersistentVolumeClaim], install: true });
export default operator;
