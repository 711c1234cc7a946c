import assert from "node:assert/strict";
import { test } from "node:test";
import { requireReady } from "@coracle/operator/workflows";
import { isOutcome } from "../../../workflows/conditions/outcome.ts";
import { Release } from "../../support/release_kind.ts";

const SELF: Release = {
  metadata: { namespace: "default", name: "web" },
  spec: { version: "2" },
};
const CONDITION = {
  type: "Ready",
  status: "True",
  reason: "Done",
  message: "",
  lastTransitionTime: "2026-01-01T00:00:00Z",
} as const;

/** A dependency named db as the cluster has it. */
function database(status: Release["status"]): Release {
  return {
    metadata: { namespace: "default", name: "db", generation: 3 },
    spec: { version: "1" },
    status,
  };
}

/** Why a dependent has to wait; undefined if it has not. */
async function waitFor(
  reference: Parameters<typeof requireReady>[1][number],
  ...found: readonly Release[]
): Promise<string | undefined> {
  const get = (_kind: unknown, name?: string, namespace?: string) =>
    Promise.resolve(
      found.find(({ metadata }) =>
        metadata.name === name && metadata.namespace === namespace
      ),
    );
  const ctx = { key: SELF.metadata, get: get as never };
  try {
    await requireReady(Release, [reference], { object: SELF, ctx });
    return undefined;
  } catch (error) {
    if (!isOutcome(error, "waiting")) throw error;
    assert.equal(error.reason, "DependencyNotReady");
    assert.equal(error.after, 30_000);
    return error.message;
  }
}

test("A dependency that is missing, unready or of an old generation is waited for [F41]", async () => {
  const db = { name: "db" };
  assert.equal(await waitFor(db), "Release default/db does not exist");
  const ready = { conditions: [CONDITION], observedGeneration: 3 };
  assert.equal(await waitFor(db, database(ready)), undefined);
  for (
    const status of [
      undefined,
      { ...ready, observedGeneration: 2 },
      { ...ready, conditions: [{ ...CONDITION, status: "False" as const }] },
      { ...ready, conditions: [] },
    ]
  ) {
    assert.equal(
      await waitFor(db, database(status)),
      "Release default/db is not ready",
    );
  }
});

test("A dependency in another namespace is looked for there [F41]", async () => {
  assert.equal(
    await waitFor({ name: "db", namespace: "data" }, database({})),
    "Release data/db does not exist",
  );
});

test("An expression decides in place of Ready, and knows both objects [F41]", async () => {
  const db = (readyExpr: string) => ({ name: "db", readyExpr });
  const found = database({ revision: "2" });
  assert.equal(
    await waitFor(db("dep.status.revision == self.spec.version"), found),
    undefined,
  );
  assert.equal(
    await waitFor(db("dep.metadata.generation > 3"), found),
    "Release default/db is not ready by its expression",
  );
  assert.match(
    await waitFor(db("dep.status.nothing == 'x'"), found) ?? "",
    /^Release default\/db is not ready by its expression: /,
  );
  await assert.rejects(
    waitFor(db("dep..status"), found),
    (error) =>
      isOutcome(error, "stalled") && error.reason === "InvalidExpression",
  );
});

test("requireReady looks at each dependency, and waits for the interval", async () => {
  const ready = database({ conditions: [CONDITION], observedGeneration: 3 });
  const get = (_kind: unknown, name?: string) =>
    Promise.resolve(name === "db" ? ready : undefined);
  const ctx = { key: SELF.metadata, get: get as never };
  await assert.rejects(
    requireReady(Release, [{ name: "db" }, { name: "cache" }], {
      object: SELF,
      ctx,
      interval: "5s",
    }),
    (error: unknown) =>
      isOutcome(error, "waiting") && error.after === 5_000 &&
      error.message === "Release default/cache does not exist",
  );
});
