/**
 * Seeded bug: the operator waits five minutes for its pods, and then says Failed
 * forever, even when they become ready later.
 *
 * Kind: Acto, no recovery from an error state.
 */
import { defineKind, Operator, patchStatus } from "@coracle/operator";
import { Deployment } from "@coracle/operator/kinds";
import { z } from "zod";
import type { CorpusEntry } from "../entry.ts";

export const entry: CorpusEntry = {
  bug: {
    plans: ["late"],
    write: "Gadget default/sample/status",
  },
  expects: ["Deployment sample"],
};

const Gadget = defineKind({
  group: "corpus.coracle.dev",
  version: "v1",
  kind: "Gadget",
  spec: z.object({ image: z.string() }),
  status: z.object({ phase: z.string(), polls: z.int() }).partial(),
});

const operator: Operator = new Operator();
operator.register(Gadget, {
  async reconcile({ metadata: { name }, spec: { image }, status }, ctx) {
    const labels = { app: name };
    const { status: found } = await ctx.apply(Deployment, {
      metadata: { name },
      spec: {
        selector: { matchLabels: labels },
        template: {
          metadata: { labels },
          spec: { containers: [{ name: "main", image }] },
        },
      },
    });
    if (status?.phase === "Failed") return;
    if ((found?.readyReplicas ?? 0) > 0) {
      return patchStatus({ phase: "Ready", polls: 0 });
    }
    const polls = (status?.polls ?? 0) + 1;
    if (polls > 5) return patchStatus({ phase: "Failed", polls: 0 });
    return patchStatus({ phase: "Waiting", polls }).rescheduleAfter("1m");
  },
}, { install: true });
export default operator;
