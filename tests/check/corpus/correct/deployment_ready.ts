/** Correct: the status follows the readiness of a Deployment. */
import { defineKind, Operator, patchStatus } from "@coracle/operator";
import { Deployment } from "@coracle/operator/kinds";
import { z } from "zod";
import type { CorpusEntry } from "../entry.ts";

export const entry: CorpusEntry = { expects: ["Deployment sample"] };

const Gadget = defineKind({
  group: "corpus.coracle.dev",
  version: "v1",
  kind: "Gadget",
  spec: z.object({ image: z.string() }),
  status: z.object({ ready: z.boolean() }).partial(),
});

const operator: Operator = new Operator();
operator.register(Gadget, {
  async reconcile({ metadata: { name }, spec: { image } }, ctx) {
    const labels = { app: name };
    const { status } = await ctx.apply(Deployment, {
      metadata: { name },
      spec: {
        selector: { matchLabels: labels },
        template: {
          metadata: { labels },
          spec: { containers: [{ name: "main", image }] },
        },
      },
    });
    return patchStatus({ ready: (status?.readyReplicas ?? 0) > 0 });
  },
}, { owns: [Deployment], install: true });
export default operator;
