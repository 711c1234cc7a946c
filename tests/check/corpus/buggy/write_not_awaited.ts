/**
 * Seeded bug: a write is not awaited. If it is refused, the run has succeeded
 * already, and the error is not handled.
 *
 * Kind: misuse of the API.
 */
import { defineKind, Operator, patchStatus } from "@coracle/operator";
import { ConfigMap } from "@coracle/operator/kinds";
import { z } from "zod";
import type { CorpusEntry } from "../entry.ts";

export const entry: CorpusEntry = {
  bug: {
    plans: ["refuse"],
    write: "apply ConfigMap default/sample-part",
  },
  isAlone: true,
  expects: ["ConfigMap sample-part"],
};

const Gadget = defineKind({
  group: "corpus.coracle.dev",
  version: "v1",
  kind: "Gadget",
  spec: z.object({ color: z.string() }),
  status: z.object({ ready: z.boolean() }).partial(),
});

const operator: Operator = new Operator();
operator.register(Gadget, {
  reconcile({ metadata: { name }, spec: { color } }, ctx) {
    ctx.client.apply(ConfigMap, {
      metadata: { name: `${name}-part`, namespace: "default" },
      data: { color },
    }, { fieldManager: "gadget", force: true });
    return patchStatus({ ready: true });
  },
}, { install: true });
export default operator;
