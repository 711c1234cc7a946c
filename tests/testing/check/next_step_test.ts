import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import {
  type Context,
  defineKind,
  type ObjectOf,
  Operator,
  setStatus,
} from "@coracle/operator/core";
import { ConfigMap } from "@coracle/operator/kinds";
import { checkOperator } from "../../../dev/testing/check/check_operator.ts";

const Account = defineKind({
  group: "test.coracle.dev",
  version: "v1",
  kind: "Account",
  spec: z.object({ size: z.int() }),
  status: z.object({ isOpen: z.boolean() }).partial(),
});
type Account = ObjectOf<typeof Account>;

const account = {
  apiVersion: "test.coracle.dev/v1",
  kind: "Account",
  metadata: { name: "ann", namespace: "default" },
  spec: { size: 1 },
};
const URL_OF_ANN = "http://bank.test/ann";

/** Titles of what the plans of a kind find in an operator with a cleanup. */
async function titles(
  kind: "down" | "cascade",
  cleanup: (account: Account, ctx: Context<Account>) => Promise<void>,
): Promise<readonly string[]> {
  const { findings, coverage } = await checkOperator({
    kinds: [Account],
    only: [kind],
    operator(cluster) {
      const operator = new Operator(cluster);
      operator.register(Account, {
        async reconcile({ metadata: { name }, spec }, ctx) {
          await ctx.apply(ConfigMap, {
            metadata: { name },
            data: { size: String(spec.size) },
          });
          await fetch(URL_OF_ANN, { method: "PUT", signal: ctx.signal });
          return setStatus({ isOpen: true });
        },
        cleanup,
      }, { owns: [ConfigMap] });
      return operator;
    },
    externals: () => Promise.resolve(new Response()),
    workload: [{ apply: account }, { delete: account }],
  });
  assert.ok((coverage.byKind[kind] ?? 0) > 0, JSON.stringify(coverage));
  return findings.map(({ title, disturbance }) => `${title}; ${disturbance}`);
}

async function close({ signal }: Context<Account>): Promise<void> {
  await fetch(URL_OF_ANN, { method: "DELETE", signal });
}

test("What was made before a kill is removed if its object goes meanwhile", async () => {
  const found = await titles("down", async ({ status }, ctx) => {
    if (status?.isOpen) await close(ctx);
  });
  assert.equal(found.length, 1, found.join("\n"));
  assert.match(
    found[0] ?? "",
    /^nobody deletes what was made outside the cluster: "DELETE http:\/\/bank\.test\/ann" is done never, in the reference once; the operator is killed at a write, and is down during the next step: /,
  );
  assert.deepEqual(await titles("down", (_, ctx) => close(ctx)), []);
});

test("A cleanup that needs a part of its object is found where the parts go first", async () => {
  const found = await titles("cascade", async ({ metadata }, ctx) => {
    await ctx.client.get(ConfigMap, {
      name: metadata.name,
      namespace: metadata.namespace ?? "",
    });
    await close(ctx);
  });
  assert.match(
    found[0] ?? "",
    /^Account default\/ann is deleted, but its finalizers stay: .*; an object is deleted after its parts: delete Account default\/ann$/,
  );
  assert.deepEqual(await titles("cascade", (_, ctx) => close(ctx)), []);
});
