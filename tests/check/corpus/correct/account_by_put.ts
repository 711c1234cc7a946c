/** Correct: what is outside of the cluster is written so that it may be repeated. */
import { defineKind, Operator, patchStatus } from "@coracle/operator";
import { z } from "zod";
import type { CorpusEntry } from "../entry.ts";

export const entry: CorpusEntry = { expects: [] };

const Gadget = defineKind({
  group: "corpus.coracle.dev",
  version: "v1",
  kind: "Gadget",
  spec: z.object({ color: z.enum(["red", "blue"]) }),
  status: z.object({ color: z.string() }).partial(),
});

const operator: Operator = new Operator();
operator.register(Gadget, {
  async reconcile({ metadata: { name }, spec: { color }, status }) {
    if (status?.color === color) return;
    await fetch(`http://accounts.example.com/${name}`, {
      method: "PUT",
      body: JSON.stringify({ color }),
    }).catch(() => {}); // The accounts may be away.
    return patchStatus({ color });
  },
}, { install: true });
export default operator;
