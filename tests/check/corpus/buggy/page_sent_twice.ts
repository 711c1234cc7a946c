/**
 * Seeded bug: a message is sent before it is recorded as sent, without a key that
 * the receiver could know it by. Killed in between, the operator sends it twice.
 *
 * Kind: misuse of the API (non-idempotent external call).
 */
import { defineKind, Operator, patchStatus } from "@coracle/operator";
import { z } from "zod";
import type { CorpusEntry } from "../entry.ts";

export const entry: CorpusEntry = {
  bug: {
    plans: ["crash", "refuse", "lost"],
    write: "POST http://pager.example.com/messages",
  },
  expects: [],
};

const Gadget = defineKind({
  group: "corpus.coracle.dev",
  version: "v1",
  kind: "Gadget",
  spec: z.object({ color: z.string() }),
  status: z.object({ sent: z.string() }).partial(),
});

const operator: Operator = new Operator();
operator.register(Gadget, {
  async reconcile({ spec: { color }, status }) {
    if (status?.sent === color) return;
    await fetch("http://pager.example.com/messages", {
      method: "POST",
      body: JSON.stringify({ color }),
    }).catch(() => {}); // The pager may be away.
    return patchStatus({ sent: color });
  },
}, { install: true });
export default operator;
