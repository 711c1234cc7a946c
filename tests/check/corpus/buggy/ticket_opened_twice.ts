/**
 * Seeded bug: a ticket is opened outside of the cluster for each run that has no
 * ticket in its object; the object is made afterwards. If making it is refused,
 * the operator opens a ticket for each retry.
 *
 * Kind: misuse of the API (non-idempotent external call).
 */
import { defineKind, Operator } from "@coracle/operator";
import { ConfigMap } from "@coracle/operator/kinds";
import { z } from "zod";
import type { CorpusEntry } from "../entry.ts";

export const entry: CorpusEntry = {
  bug: {
    plans: ["refuse", "crash", "throttle"],
    write: "POST http://tickets.example.com/",
  },
  expects: ["ConfigMap sample-ticket"],
};

const Gadget = defineKind({
  group: "corpus.coracle.dev",
  version: "v1",
  kind: "Gadget",
  spec: z.object({ color: z.string() }),
});

const operator: Operator = new Operator();
operator.register(Gadget, {
  async reconcile({ metadata: { name } }, ctx) {
    if (await ctx.get(ConfigMap, `${name}-ticket`) !== undefined) return;
    await fetch("http://tickets.example.com/", { method: "POST" })
      .catch(() => {}); // The tickets may be away.
    await ctx.create(ConfigMap, { metadata: { name: `${name}-ticket` } });
  },
}, { owns: [ConfigMap], install: true });
export default operator;
