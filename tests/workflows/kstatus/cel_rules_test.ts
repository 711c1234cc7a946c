import assert from "node:assert/strict";
import { test } from "node:test";
import { celRules, statusOf } from "@coracle/operator/workflows";

type CelHealthCheck = Parameters<typeof celRules>[0][number];

const CHECK: CelHealthCheck = {
  group: "example.com",
  kind: "Gadget",
  inProgress: `status.phase == "Starting" || status.busy`,
  failed: `status.phase == "Broken" || status.busy`,
  current: `status.phase == "Running"`,
};

/** The state of a gadget by these checks. */
async function stateOf(
  status: unknown,
  checks: readonly CelHealthCheck[] = [CHECK],
  metadata: Record<string, unknown> = {},
): Promise<string> {
  const gadget = {
    apiVersion: "example.com/v1",
    kind: "Gadget",
    metadata: { name: "one", ...metadata },
    status,
  };
  const { status: state, reason } = statusOf(gadget, {
    rules: await celRules(checks),
  });
  return reason === "" ? state : `${state} ${reason}`;
}

test("CEL health checks are asked for in progress, then failed, then current [K13]", async () => {
  const busy = false;
  assert.equal(
    await stateOf({ phase: "Starting", busy }),
    "InProgress InProgress",
  );
  assert.equal(await stateOf({ phase: "Broken", busy }), "Failed Failed");
  assert.equal(await stateOf({ phase: "Running", busy }), "Current");
  assert.equal(
    await stateOf({ phase: "Running", busy: true }),
    "InProgress InProgress",
  );
  assert.equal(await stateOf({ phase: "Else", busy }), "InProgress InProgress");
});

test("A generation that is not observed goes before every CEL health check [K13]", async () => {
  const status = { phase: "Running", busy: false, observedGeneration: 1 };
  assert.equal(
    await stateOf(status, [CHECK], { generation: 2 }),
    "InProgress LatestGenerationNotObserved",
  );
  assert.equal(await stateOf(status, [CHECK], { generation: 1 }), "Current");
});

test("A CEL health check decides over the object's own conditions [K13]", async () => {
  const conditions = [{ type: "Stalled", status: "True" }];
  const status = { phase: "Running", busy: false, conditions };
  assert.equal(await stateOf(status), "Current");
});

test("A CEL health check of a kind takes precedence over that of its group [K13]", async () => {
  const group = { group: "example.com", current: "has(status.ok)" };
  assert.equal(await stateOf({ ok: 1 }, [group]), "Current");
  assert.equal(
    await stateOf({ ok: 1, phase: "Broken", busy: false }, [group, CHECK]),
    "Failed Failed",
  );
});

test("A CEL health check that fails makes the state Unknown [K13]", async () => {
  assert.equal(await stateOf({}), "Unknown ExpressionFailed");
  assert.equal(
    await stateOf({ n: 1 }, [{ ...CHECK, inProgress: "status.n" }]),
    "Unknown ExpressionFailed",
  );
});

test("CEL health checks compare whole numbers as integers [K13]", async () => {
  const check = {
    group: "example.com",
    kind: "Gadget",
    current: "status.ready == spec.replicas && status.ready % 2 == 1",
  };
  const gadget = {
    apiVersion: "example.com/v1",
    kind: "Gadget",
    metadata: { name: "one" },
    spec: { replicas: 3 },
    status: { ready: 3 },
  };
  const rules = await celRules([check]);
  assert.equal(statusOf(gadget, { rules }).status, "Current");
});

test("celRules refuses what makes no sense [K13]", async () => {
  await assert.rejects(
    celRules([{ ...CHECK, current: " " }]),
    /health check for example.com\/Gadget: "current" must be an expression/,
  );
  await assert.rejects(
    celRules([CHECK, CHECK]),
    /received two for example.com\/Gadget/,
  );
  await assert.rejects(
    celRules([{ ...CHECK, failed: "status. ==" }]),
    SyntaxError,
  );
  await assert.rejects(
    celRules([{ ...CHECK, failed: "x".repeat(10_001) }]),
    /at most 10000 characters/,
  );
});
