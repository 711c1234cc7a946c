import assert from "node:assert/strict";
import { test } from "node:test";
import { ApiError, type KubernetesObject } from "@coracle/operator/client";
import {
  retryOnConflict,
  type WriteOfState,
} from "../../../core/client/retry_on_conflict.ts";

function object(resourceVersion: string, uid = "1"): KubernetesObject {
  return { metadata: { name: "a", uid, resourceVersion } };
}

const conflict = new ApiError("Cannot write: conflict", {
  status: 409,
  reason: "Conflict",
});

/** Writes that are refused, and reads that show a new version each time. */
function refused(
  error: unknown,
  more: Partial<WriteOfState<never, never>> = {},
) {
  let version = 1;
  const calls: string[] = [];
  const result = retryOnConflict(object("1"), {
    send({ metadata }) {
      calls.push(`send ${metadata.resourceVersion}`);
      return Promise.reject(error);
    },
    read() {
      calls.push("read");
      return Promise.resolve(object(`${++version}`));
    },
    pause() {
      calls.push("pause");
      return Promise.resolve();
    },
    ...more as object,
  });
  return { calls, result };
}

test("retryOnConflict writes from the latest state, and pauses after the second time", async () => {
  const { calls, result } = refused(conflict, { attempts: 3 });
  await assert.rejects(
    result,
    (error) =>
      ApiError.is(error) && error.isConflict &&
      error.message ===
        "Cannot write: conflict; other clients changed the object 3 times in a row",
  );
  assert.deepEqual(calls, [
    "send 1",
    "read",
    "send 2",
    "pause",
    "read",
    "send 3",
  ]);
});

test("retryOnConflict tries five times by default", async () => {
  const { calls, result } = refused(conflict);
  await assert.rejects(result);
  assert.equal(calls.filter((call) => call.startsWith("send")).length, 5);
});

test("retryOnConflict takes 422 for a conflict only of a patch with tests", async () => {
  const failed = new ApiError("Test failed", { status: 422 });
  for (const hasTests of [false, true]) {
    const { calls, result } = refused(failed, { hasTests, attempts: 2 });
    await assert.rejects(result);
    assert.equal(calls.includes("read"), hasTests);
  }
  const causes = [{ field: "spec.size", message: "Required value" }];
  const details = { causes };
  const invalid = new ApiError("Invalid", { status: 422, details });
  const { calls, result } = refused(invalid, { hasTests: true });
  await assert.rejects(result, (error) => error === invalid);
  assert.deepEqual(calls, ["send 1"]);
});

test("retryOnConflict passes on an error that is no conflict", async () => {
  for (
    const error of [
      new ApiError("Forbidden", { status: 403 }),
      new ApiError("Exists", { status: 409, reason: "AlreadyExists" }),
      new Error("The connection is lost"),
    ]
  ) {
    const { calls, result } = refused(error);
    await assert.rejects(result, (received) => received === error);
    assert.deepEqual(calls, ["send 1"]);
  }
});

test("retryOnConflict does not repeat a refusal of an unchanged object", async () => {
  const read = () => Promise.resolve(object("1"));
  const { calls, result } = refused(conflict, { read } as object);
  await assert.rejects(result, (error) => {
    assert.ok(error instanceof Error && !ApiError.is(error));
    assert.equal(error.cause, conflict);
    assert.match(error.message, /schema, a webhook, a policy or a quota/);
    return true;
  });
  assert.deepEqual(calls, ["send 1"]);
});

test("retryOnConflict repeats for an object that was created again", async () => {
  const read = () => Promise.resolve(object("1", "2"));
  const { calls, result } = refused(conflict, { read, attempts: 2 } as object);
  await assert.rejects(result);
  assert.deepEqual(calls, ["send 1", "send 1"]);
});

test("retryOnConflict ends where the write has become pointless", async () => {
  const read = () => Promise.resolve(undefined);
  const { calls, result } = refused(conflict, { read } as object);
  assert.equal(await result, undefined);
  assert.deepEqual(calls, ["send 1"]);
});
