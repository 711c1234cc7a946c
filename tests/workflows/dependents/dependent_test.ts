import assert from "node:assert/strict";
import { test } from "node:test";
import { ApiError } from "@coracle/operator/client";
import {
  attemptAll,
  BULK_CONCURRENCY,
  type DependentResult,
  reconcileAll,
} from "../../../workflows/dependents/dependent.ts";

const { signal } = new AbortController();

test("reconcileAll removes what is unwanted first, and reports the main change", async () => {
  const done: string[] = [];
  const operations = async (
    ...given: readonly DependentResult<string>["operation"][]
  ) => {
    const desired = new Map(given.map((one, at) => [`${at}`, one]));
    const { operation, resource } = await reconcileAll(desired, {
      signal,
      unwanted: [() => Promise.resolve(void done.push("removed"))],
      reconcile(operation, key) {
        done.push(key);
        return Promise.resolve({
          operation,
          resource: operation === "none" ? undefined : operation as string,
        });
      },
    });
    return [operation, ...resource?.keys() ?? []];
  };
  assert.deepEqual(await operations("updated", "none", "created"), [
    "created",
    "0",
    "2",
  ]);
  assert.deepEqual(done, ["removed", "0", "1", "2"]);
  assert.deepEqual(await operations("none", "updated"), ["updated", "1"]);
  assert.deepEqual(await operations("none"), ["none"]);
});

/** Number of steps that run although the first one fails. */
async function runAfter(error: unknown, abort = false): Promise<number> {
  let ran = 0;
  const life = new AbortController();
  const later = () => Promise.resolve(void ran++);
  const first = () => {
    if (abort) life.abort();
    return Promise.reject(error);
  };
  await assert.rejects(
    attemptAll([[first, later], [later]], { signal: life.signal }),
    (thrown) => thrown === error,
  );
  return ran;
}

test("attemptAll goes on unless an error concerns all steps", async () => {
  const answer = (status: number) =>
    new ApiError("Refused", { status, reason: "Any" });
  for (const status of [401, 429, 500, 503]) {
    assert.equal(await runAfter(answer(status)), 0, `${status}`);
  }
  for (const status of [403, 404, 409, 422]) {
    assert.equal(await runAfter(answer(status)), 2, `${status}`);
  }
  assert.equal(await runAfter(new Error("a")), 2);
  assert.equal(await runAfter(new Error("a", { cause: 1 })), 0);
  assert.equal(await runAfter(new Error("a"), true), 0);
});

test("attemptAll runs a stage at once, and names its first error", async () => {
  let [running, most] = [0, 0];
  const step = (name: string, turns: number) => async () => {
    most = Math.max(most, ++running);
    for (let turn = 0; turn < turns; turn++) await undefined;
    running--;
    throw new Error(name);
  };
  await assert.rejects(
    attemptAll([[step("a", 9), step("b", 1), step("c", 5)]], {
      signal,
      concurrency: BULK_CONCURRENCY,
    }),
    ({ message, errors }: AggregateError) => {
      assert.equal(message, "a; and 2 more failed");
      assert.deepEqual(errors.map(String), [
        "Error: a",
        "Error: b",
        "Error: c",
      ]);
      return true;
    },
  );
  assert.equal(most, 3);
});

test("reconcileAll begins with what is wanted when the rest is removed", async () => {
  const done: string[] = [];
  const remove = (name: string, turns: number) => async () => {
    for (let turn = 0; turn < turns; turn++) await undefined;
    done.push(name);
  };
  await reconcileAll(new Map([["a", 1], ["b", 2]]), {
    signal,
    concurrency: BULK_CONCURRENCY,
    unwanted: [remove("slow", 9), remove("fast", 1)],
    reconcile(_one, key) {
      done.push(key);
      return Promise.resolve({ operation: "none", resource: undefined });
    },
  });
  assert.deepEqual(done, ["fast", "slow", "a", "b"]);
});

test("attemptAll takes no step after one that concerns all, whatever the others throw", async () => {
  let late = 0;
  const fail = (status: number, turns: number) => async () => {
    for (let turn = 0; turn < turns; turn++) await undefined;
    throw new ApiError("Refused", { status, reason: "Any" });
  };
  const run = () => Promise.resolve(void late++);
  const steps = [fail(500, 1), fail(403, 9), run, run];
  await assert.rejects(attemptAll([steps], { signal, concurrency: 2 }));
  assert.equal(late, 0);
});
