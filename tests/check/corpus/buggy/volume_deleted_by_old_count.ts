/**
 * Seeded bug: volumes over the wanted number are deleted by the number that the
 * cache has. An operator that sees an earlier, lower number deletes a volume that
 * is in use.
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
    write: "delete PersistentVolumeClaim default/sample-",
  },
  expects: ["PersistentVolumeClaim sample-0"],
};

const Gadget = defineKind({
  group: "corpus.coracle.dev",
  version: "v1",
  kind: "Gadget",
  spec: z.object({ members: z.int().min(1).max(3).default(2) }),
});

const operator: Operator = new Operator();
operator.register(Gadget, {
  async reconcile({ metadata: { name }, spec: { members } }, ctx) {
    for (let at = 0; at < members; at++) {
      await ctx.apply(PersistentVolumeClaim, {
        metadata: { name: `${name}-${at}` },
        spec: {
          accessModes: ["ReadWriteOnce"],
          resources: { requests: { storage: "1Gi" } },
        },
      });
    }
    for (const one of await ctx.secondaries(PersistentVolumeClaim)) {
      if (Number(one.metadata.name.split("-").at(-1)) < members) continue;
      await ctx.delete(PersistentVolumeClaim, one.metadata.name);
    }
  },
}, { owns: [PersistentVolumeClaim], install: true });
export default operator;
