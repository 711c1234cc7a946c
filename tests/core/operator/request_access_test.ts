import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@coracle/dev";
import { type Client, jsonLogger } from "@coracle/operator/client";
import { RequestAccess } from "../../../core/operator/request_access.ts";

const TOKEN = "very-secret";

interface Answers {
  authenticated: boolean;
  allowed: boolean;
  error?: Error | undefined;
}

/** Access whose reviews are answered by the test. */
function reviewed(given: Partial<Answers> = {}) {
  const answers: Answers = { authenticated: true, allowed: true, ...given };
  const clock = new VirtualClock();
  const asked: string[] = [];
  const lines: string[] = [];
  const client = {
    create(
      { kind }: { readonly kind: string },
      { spec }: { readonly spec: unknown },
    ) {
      asked.push(kind);
      if (answers.error) return Promise.reject(answers.error);
      const { authenticated, allowed } = answers;
      const user = { username: "jane", groups: ["readers"] };
      return Promise.resolve(
        kind === "TokenReview"
          ? { spec, status: { authenticated, user } }
          : { spec, status: { allowed } },
      );
    },
  } as unknown as Client;
  const access = new RequestAccess({
    client,
    clock,
    log: jsonLogger({ level: "debug", write: (line) => lines.push(line) }),
    signal: new AbortController().signal,
  });
  const refusal = async (
    path = "/metrics",
    authorization: string | undefined = `Bearer ${TOKEN}`,
  ) => (await access.refusal({ method: "GET", path, authorization }))?.status;
  return { answers, asked, clock, lines, refusal };
}

test("RequestAccess reviews a token once a minute and a right every five", async () => {
  const { asked, clock, refusal } = reviewed();
  const counts = () =>
    ["TokenReview", "SubjectAccessReview"].map((kind) =>
      asked.filter((one) => one === kind).length
    );
  for (const after of [0, 59_999]) {
    await clock.advance(after);
    assert.equal(await refusal(), undefined);
    assert.deepEqual(counts(), [1, 1]);
  }
  await clock.advance(1);
  assert.equal(await refusal(), undefined);
  assert.deepEqual(counts(), [2, 1]);
  await clock.advance(239_999);
  assert.equal(await refusal(), undefined);
  assert.deepEqual(counts(), [3, 1]);
  await clock.advance(1);
  assert.equal(await refusal(), undefined);
  assert.deepEqual(counts(), [3, 2]);
  assert.equal(await refusal("/debug/why"), undefined);
  assert.deepEqual(counts(), [3, 3]);
});

test("RequestAccess asks again about a denied right after half a minute", async () => {
  const { answers, asked, clock, refusal } = reviewed({ allowed: false });
  assert.equal(await refusal(), 403);
  answers.allowed = true;
  await clock.advance(29_999);
  assert.equal(await refusal(), 403);
  assert.equal(asked.length, 2);
  await clock.advance(1);
  assert.equal(await refusal(), undefined);
});

test("RequestAccess refuses what is no known token, and asks nothing without one", async () => {
  const { asked, refusal } = reviewed({ authenticated: false });
  for (const header of ["", "Basic YTpi", "Bearer", "Bearer a b"]) {
    assert.equal(await refusal("/metrics", header), 401, header);
  }
  assert.deepEqual(asked, []);
  assert.equal(await refusal(), 401);
  assert.deepEqual(asked, ["TokenReview"]);
});

test("RequestAccess lets nobody in while reviews fail, and logs no token", async () => {
  const { answers, lines, refusal } = reviewed({
    error: new Error("As asked"),
  });
  assert.equal(await refusal(), 503);
  assert.match(lines[0] ?? "", /Cannot review the access.*As asked/);
  answers.error = undefined;
  assert.equal(await refusal(), undefined);
  assert.ok(!lines.join().includes(TOKEN));
});

test("RequestAccess lets twenty requests wait for reviews, and asks once for all", async () => {
  const { asked, refusal } = reviewed();
  const statuses = await Promise.all(
    Array.from({ length: 21 }, () => refusal()),
  );
  assert.deepEqual(statuses, [...Array(20).fill(undefined), 429]);
  assert.deepEqual(asked, ["TokenReview", "SubjectAccessReview"]);
});
