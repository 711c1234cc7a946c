/**
 * Seeded bug: a condition is set to Unknown at the beginning of each run and to
 * True at its end, and a run follows each minute.
 *
 * Kind: misuse of the API (conditions that flap).
 */
import { defineKind, Operator, patchStatus } from "@coracle/operator";
import { z } from "zod";
import type { CorpusEntry } from "../entry.ts";

export const entry: CorpusEntry = {
  bug: {
    plans: ["none"],
    write: "Gadget default/sample/status",
  },
  isAlone: true,
  expects: [],
};

const Gadget = defineKind({
  group: "corpus.coracle.dev",
  version: "v1",
  kind: "Gadget",
  spec: z.object({ color: z.string() }),
  status: z.object({ ready: z.enum(["True", "Unknown"]) }).partial(),
});

const operator: Operator = new Operator();
operator.register(Gadget, {
  async reconcile({ metadata: { name } }, ctx) {
    await ctx.patch(Gadget, name, { status: { ready: "Unknown" } }, {
      subresource: "status",
    });
    return patchStatus({ ready: "True" }).rescheduleAfter("1m");
  },
}, { install: true });
export default operator;
