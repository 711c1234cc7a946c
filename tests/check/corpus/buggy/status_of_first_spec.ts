/**
 * Seeded bug: the status keeps the color that was seen first. It looks as if no
 * later change was worked on.
 *
 * Kind: misuse of the API (status that is never observed); Acto, status.
 */
import { defineKind, Operator } from "@coracle/operator";
import { ConfigMap } from "@coracle/operator/kinds";
import { z } from "zod";
import type { CorpusEntry } from "../entry.ts";

export const entry: CorpusEntry = {
  bug: {
    plans: ["none"],
    write: "Gadget default/sample/status",
  },
  expects: ["ConfigMap sample-part"],
};

const Gadget = defineKind({
  group: "corpus.coracle.dev",
  version: "v1",
  kind: "Gadget",
  spec: z.object({ color: z.string() }),
  status: z.object({ seen: z.string() }).partial(),
});

const operator: Operator = new Operator();
operator.register(Gadget, {
  async reconcile({ metadata, spec: { color }, status }, ctx) {
    await ctx.apply(ConfigMap, {
      metadata: { name: `${metadata.name}-part` },
      data: { color },
    });
    if (status?.seen !== undefined) return;
    await ctx.patch(Gadget, metadata.name, { status: { seen: color } }, {
      subresource: "status",
    });
  },
}, { owns: [ConfigMap], install: true });
export default operator;
