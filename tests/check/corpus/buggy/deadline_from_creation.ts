/**
 * Seeded bug: an object that is not provided ten minutes after its creation is
 * given up. After an outage of the API server the operator never provides it.
 *
 * Kind: Acto, no recovery from an error state.
 */
import { defineKind, Operator, patchStatus } from "@coracle/operator";
import { ConfigMap } from "@coracle/operator/kinds";
import { z } from "zod";
import type { CorpusEntry } from "../entry.ts";

export const entry: CorpusEntry = {
  bug: {
    plans: ["throttle", "clock"],
    write: "ConfigMap default/sample-part",
  },
  expects: ["ConfigMap sample-part"],
};

const Gadget = defineKind({
  group: "corpus.coracle.dev",
  version: "v1",
  kind: "Gadget",
  spec: z.object({ color: z.string() }),
  status: z.object({ phase: z.string() }).partial(),
});

const operator: Operator = new Operator();
operator.register(Gadget, {
  async reconcile({ metadata, spec: { color }, status }, ctx) {
    const age = Date.now() - Date.parse(metadata.creationTimestamp ?? "");
    if (age > 600_000 && status?.phase !== "Ready") {
      return patchStatus({ phase: "GivenUp" });
    }
    await ctx.patch(Gadget, metadata.name, { status: { phase: "Busy" } }, {
      subresource: "status",
    });
    await ctx.apply(ConfigMap, {
      metadata: { name: `${metadata.name}-part` },
      data: { color },
    });
    return patchStatus({ phase: "Ready" });
  },
}, { owns: [ConfigMap], install: true });
export default operator;
