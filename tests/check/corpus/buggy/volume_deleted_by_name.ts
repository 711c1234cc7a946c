/**
 * Seeded bug: the cleanup deletes a volume by its name. An operator that sees the
 * deletion of an earlier object of that name deletes the volume of the present
 * one.
 *
 * Kind: Sieve, stale state.
 */
import { defineKind, Operator } from "@coracle/operator";
import { PersistentVolumeClaim } from "@coracle/operator/kinds";
import { z } from "zod";
import type { CorpusEntry } from "../entry.ts";

export const entry: CorpusEntry = {
  bug: {
    plans: ["stale"],
    write: "delete PersistentVolumeClaim default/sample-data",
  },
  expects: ["PersistentVolumeClaim sample-data"],
};

const Gadget = defineKind({
  group: "corpus.coracle.dev",
  version: "v1",
  kind: "Gadget",
  spec: z.object({ color: z.string() }),
});

const operator: Operator = new Operator();
operator.register(Gadget, {
  async reconcile({ metadata }, ctx) {
    await ctx.apply(PersistentVolumeClaim, {
      metadata: { name: `${metadata.name}-data` },
      spec: {
        accessModes: ["ReadWriteOnce"],
        resources: { requests: { storage: "1Gi" } },
      },
    }, { owned: false });
  },
  async cleanup({ metadata }, ctx) {
    await ctx.delete(PersistentVolumeClaim, `${metadata.name}-data`);
  },
}, { install: true });
export default operator;
