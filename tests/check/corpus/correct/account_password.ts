/** Correct: a password is made once, kept in a Secret, and then set outside. */
import { defineKind, Operator } from "@coracle/operator";
import { Secret } from "@coracle/operator/kinds";
import { randomBytes } from "node:crypto";
import { z } from "zod";
import type { CorpusEntry } from "../entry.ts";

export const entry: CorpusEntry = { expects: ["Secret sample-password"] };

const Gadget = defineKind({
  group: "corpus.coracle.dev",
  version: "v1",
  kind: "Gadget",
  spec: z.object({ color: z.enum(["red", "blue"]) }),
});

const operator: Operator = new Operator();
operator.register(Gadget, {
  async reconcile({ metadata, spec: { color } }, ctx) {
    const name = `${metadata.name}-password`;
    // The cache may not show it yet, and it must not be made again.
    const { namespace } = metadata;
    const secret = await ctx.client.find(Secret, { name, namespace });
    const password = secret?.data?.["password"] ??
      randomBytes(18).toString("base64");
    await ctx.apply(Secret, { metadata: { name }, data: { password } });
    await fetch(`http://accounts.example.com/${metadata.name}`, {
      method: "PUT",
      body: JSON.stringify({ color, password }),
    }).catch(() => {}); // The accounts may be away.
  },
}, { owns: [Secret], install: true });
export default operator;
