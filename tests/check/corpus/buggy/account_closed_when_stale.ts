/**
 * Seeded bug: an account outside of the cluster is closed while the object says
 * that it is not wanted. An operator that sees that from before closes an account
 * that is wanted.
 *
 * Kind: Sieve, stale state; misuse of the API (cached read treated as truth for
 * a deletion).
 */
import { defineKind, Operator, patchStatus } from "@coracle/operator";
import { z } from "zod";
import type { CorpusEntry } from "../entry.ts";

export const entry: CorpusEntry = {
  bug: {
    plans: ["stale"],
    write: "DELETE http://accounts.example.com/sample",
  },
  expects: [],
};

const Gadget = defineKind({
  group: "corpus.coracle.dev",
  version: "v1",
  kind: "Gadget",
  spec: z.object({ account: z.boolean().default(true) }),
  status: z.object({ account: z.boolean() }).partial(),
});

const known = new Map<string, boolean>();

const operator: Operator = new Operator();
operator.register(Gadget, {
  async reconcile({ metadata: { name }, spec: { account } }) {
    if (known.get(name) === account) return;
    const method = account ? "PUT" : "DELETE";
    await fetch(`http://accounts.example.com/${name}`, { method })
      .catch(() => {}); // The accounts may be away.
    known.set(name, account);
    return patchStatus({ account });
  },
}, { install: true });
export default operator;
