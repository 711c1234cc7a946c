/**
 * Seeded bug: an object that somebody else may change is read and copied, without
 * being watched. If the copy is older than the original, nobody notices.
 *
 * Kind: misuse of the API (watch without mapping); Acto, changes that are not
 * propagated.
 */
import { defineKind, Operator } from "@coracle/operator";
import { ConfigMap, Secret } from "@coracle/operator/kinds";
import { z } from "zod";
import type { CorpusEntry } from "../entry.ts";

export const entry: CorpusEntry = {
  bug: {
    plans: ["none"],
    write: "apply ConfigMap default/sample-copy",
  },
  expects: ["ConfigMap sample-copy"],
  examples: [{
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name: "original", namespace: "default" },
    type: "Opaque",
    stringData: { color: "red" },
  }, {
    apiVersion: "corpus.coracle.dev/v1",
    kind: "Gadget",
    metadata: { name: "sample", namespace: "default" },
    spec: { source: "original" },
  }],
};

const Gadget = defineKind({
  group: "corpus.coracle.dev",
  version: "v1",
  kind: "Gadget",
  spec: z.object({ source: z.string() }),
});

const operator: Operator = new Operator();
operator.register(Gadget, {
  async reconcile({ metadata: { name, namespace }, spec: { source } }, ctx) {
    const read = await ctx.client.find(Secret, { namespace, name: source });
    await ctx.apply(ConfigMap, {
      metadata: { name: `${name}-copy` },
      data: read?.data ?? {},
    });
  },
}, { owns: [ConfigMap], maxInterval: false, install: true });
export default operator;
