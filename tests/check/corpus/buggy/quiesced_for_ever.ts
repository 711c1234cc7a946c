/**
 * Seeded bug: for an upgrade the server is scaled to zero, and afterwards to what
 * it had before, which only a local variable knows. Killed in between, the
 * operator leaves it at zero.
 *
 * Kind: Sieve, intermediate state.
 */
import { defineKind, Operator } from "@coracle/operator";
import { ConfigMap } from "@coracle/operator/kinds";
import { z } from "zod";
import type { CorpusEntry } from "../entry.ts";

export const entry: CorpusEntry = {
  bug: {
    plans: ["crash"],
    write: "patch ConfigMap default/sample-server",
  },
  expects: ["ConfigMap sample-server"],
};

const Gadget = defineKind({
  group: "corpus.coracle.dev",
  version: "v1",
  kind: "Gadget",
  spec: z.object({ version: z.string() }),
});

const operator: Operator = new Operator();
operator.register(Gadget, {
  async reconcile({ metadata: { name }, spec: { version } }, ctx) {
    const server = `${name}-server`;
    const stored = await ctx.get(ConfigMap, server);
    if (stored === undefined) {
      const metadata = { name: server };
      await ctx.create(ConfigMap, {
        metadata,
        data: { version, members: "3" },
      });
    } else if (stored.data?.["version"] !== version) {
      const members = stored.data?.["members"];
      await ctx.patch(ConfigMap, server, { data: { members: "0" } });
      await ctx.patch(ConfigMap, server, { data: { version } });
      await ctx.patch(ConfigMap, server, { data: { members } });
    }
  },
}, { owns: [ConfigMap], install: true });
export default operator;
