import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import {
  defineKind,
  type ObjectOf,
  Operator,
  patchStatus,
} from "@coracle/operator/core";
import { checkOperator } from "../../../dev/testing/check/check_operator.ts";

const Account = defineKind({
  group: "test.coracle.dev",
  version: "v1",
  kind: "Account",
  spec: z.object({ size: z.int() }),
  status: z.object({ id: z.string() }).partial(),
});

const ACCOUNTS = "http://bank.test/accounts";

/** Sends a request, and fails unless it is answered with success. */
async function send(
  method: string,
  url: string,
  signal: AbortSignal,
): Promise<Response> {
  const response = await fetch(url, { method, signal });
  if (response.ok || method === "DELETE" && response.status === 404) {
    return response;
  }
  throw new Error(`Cannot ${method} ${url}: ${response.status}`);
}

/** How an operator makes the account of an object; returns its id. */
type Makes = (
  account: ObjectOf<typeof Account>,
  signal: AbortSignal,
) => Promise<string | undefined>;

/** Findings about an operator of accounts, by plans at its requests. */
async function findings(
  make: Makes,
  {
    remove = (id, signal) => send("DELETE", `${ACCOUNTS}/${id}`, signal),
    only = ["call"],
  }: {
    readonly remove?: (id: string, signal: AbortSignal) => Promise<unknown>;
    readonly only?: readonly string[];
  } = {},
) {
  const account = (size: number) => ({
    apiVersion: "test.coracle.dev/v1",
    kind: "Account",
    metadata: { name: "ann", namespace: "default" },
    spec: { size },
  });
  return await checkOperator({
    kinds: [Account],
    only,
    operator(cluster) {
      const operator = new Operator(cluster);
      operator.register(Account, {
        async reconcile(account, { signal }) {
          const id = await make(account, signal);
          return id === undefined ? undefined : patchStatus({ id });
        },
        async cleanup({ status }, { signal }) {
          if (status?.id) await remove(status.id, signal);
        },
      });
      return operator;
    },
    externals: ({ method }) =>
      Promise.resolve(
        method === "POST"
          ? Response.json({ id: crypto.randomUUID().slice(0, 13) })
          : new Response("{}"),
      ),
    workload: [
      { apply: account(1) },
      { apply: account(2) },
      { delete: account(2) },
    ],
  });
}

test("An account whose lost answer makes a second one is found, with its harm", async () => {
  const { findings: found, coverage } = await findings(
    async ({ status }, signal) => {
      if (status?.id) return undefined;
      const { id } = await (await send("POST", ACCOUNTS, signal)).json();
      return id;
    },
  );
  assert.ok((coverage.byKind["call"] ?? 0) >= 8, JSON.stringify(coverage));
  const [first] = found;
  assert.equal(
    first?.title,
    `"POST ${ACCOUNTS}" is done 2 times outside the cluster, in the reference once, and nobody deletes what the other has made`,
  );
  assert.match(
    first.disturbance,
    /^a request outside of the cluster is disturbed: POST \S+, which is done, but its answer is lost$/,
  );
  assert.match(first.plan, /\/call:call=1,how=lost$/);
  // Lost, killed and twice have the same cause.
  assert.equal(found.length, 1, found.map(({ title }) => title).join());
});

test("An account that a refused removal leaves behind is found", async () => {
  const { findings: found } = await findings(
    async ({ metadata }, signal) => {
      await send("PUT", `${ACCOUNTS}/${metadata.name}`, signal);
      return metadata.name;
    },
    {
      remove: (id, signal) =>
        send("DELETE", `${ACCOUNTS}/${id}`, signal).catch(() => {}),
    },
  );
  assert.deepEqual(found.map(({ title }) => title), [
    `nobody deletes what was made outside the cluster: "DELETE ${ACCOUNTS}/ann" is done never, in the reference once`,
  ]);
});

test("An account with a random name that is written down first is no finding", async () => {
  const { findings: found, plans } = await findings(
    async ({ metadata, status }, signal) => {
      const id = status?.id;
      if (id === undefined) return crypto.randomUUID().slice(0, 13);
      await send("PUT", `${ACCOUNTS}/${id}/of/${metadata.name}`, signal);
      return undefined;
    },
    { only: ["call", "crash", "lost", "refuse"] },
  );
  assert.deepEqual(found.map(({ title }) => title), []);
  assert.ok(plans > 10, `${plans}`);
});
