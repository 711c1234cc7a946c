import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@coracle/dev";
import { ApiServer, type ApiServerOptions } from "@coracle/dev/apiserver";
import { silentLogger } from "@coracle/operator/client";
import { WorkQueue } from "../../../dev/apiserver/controllers/work_queue.ts";
import { answerOf } from "../../../dev/apiserver/settle.ts";
import { until } from "../../support/until.ts";
import { ApiSession } from "../support/api_session.ts";

const N = "/api/v1/namespaces";
const HOOKS =
  "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
const CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

async function withClock(
  work: (session: ApiSession, clock: VirtualClock) => Promise<void>,
  options: ApiServerOptions = {},
): Promise<void> {
  const clock = new VirtualClock();
  const server = await ApiServer.start({ port: false, clock, ...options });
  try {
    await work(new ApiSession(server), clock);
  } finally {
    await server.stop();
  }
  assert.equal(clock.pendingTimers, 0);
}

test("deletions that a webhook fails are tried again until it answers", async () => {
  let isUp = false;
  const services: ApiServerOptions["services"] = {
    "ops/guard": (review) => {
      if (!isUp) throw new Error("down");
      const { uid } = review.request;
      return { ...review, response: { uid, allowed: true } };
    },
  };
  await withClock(async (session, clock) => {
    await session.create(N, { metadata: { name: "x" } });
    await session.create(`${N}/x/configmaps`, { metadata: { name: "a" } });
    const { metadata: { uid } } = await session.create(
      `${N}/default/secrets`,
      { metadata: { name: "owner" } },
    );
    const owner = { apiVersion: "v1", kind: "Secret", name: "owner", uid };
    await session.create(`${N}/default/configmaps`, {
      metadata: { name: "part", ownerReferences: [owner] },
    });
    await session.create(HOOKS, {
      metadata: { name: "guard" },
      webhooks: [{
        name: "guard.example.com",
        sideEffects: "None",
        admissionReviewVersions: ["v1"],
        clientConfig: { service: { namespace: "ops", name: "guard" } },
        rules: [{
          apiGroups: [""],
          apiVersions: ["v1"],
          operations: ["DELETE"],
          resources: ["configmaps"],
        }],
      }],
    });
    await session.send("DELETE", `${N}/default/secrets/owner`);
    await session.send("DELETE", `${N}/x`);
    await clock.advance(1_000);
    const { body } = await session.send("GET", `${N}/x`);
    const failure = body.status.conditions.find((
      { type }: { type: string },
    ) => type === "NamespaceDeletionContentFailure");
    assert.equal(failure.reason, "ContentDeletionFailed");
    assert.match(
      failure.message,
      /^Failed to delete all .*, 1 remaining: .*guard/,
    );
    isUp = true;
    await clock.advance(5_000);
    for (const path of [`${N}/x`, `${N}/default/configmaps/part`]) {
      assert.equal((await session.send("GET", path)).status, 404, path);
    }
  }, { services });
});

test("work with too many calls of webhooks is tried again", async () => {
  const clock = new VirtualClock();
  const done = new Set<number>();
  const queue = new WorkQueue<string>(
    { logger: silentLogger, clock },
    "Cannot work",
    () => {
      for (let index = 0; index < 1_500; index++) {
        if (done.has(index)) continue;
        answerOf(String(index), () => Promise.resolve());
        done.add(index);
      }
    },
  );
  queue.add("all");
  await until("a retry waits", () => clock.pendingTimers === 1);
  await clock.advance(5);
  await until("the work is done", () => done.size === 1_500);
  assert.equal(clock.pendingTimers, 0);
  queue.stop();
});

test("a namespace made again at once is a new one", () =>
  withClock(async (session, clock) => {
    await clock.settle();
    const { pendingTimers } = clock;
    for (let round = 0; round < 2; round++) {
      await session.create(N, { metadata: { name: "x" } });
      await clock.settle();
      const account = `${N}/x/serviceaccounts/default`;
      assert.equal((await session.send("GET", account)).status, 200);
      await session.send("DELETE", `${N}/x`);
      await session.send("PUT", `${N}/x/finalize`, {
        metadata: { name: "x" },
        spec: { finalizers: [] },
      });
      assert.equal((await session.send("GET", `${N}/x`)).status, 404);
      await session.send("DELETE", account);
    }
    assert.equal(clock.pendingTimers, pendingTimers);
  }));

test("a definition made again at once keeps no timer of the first one", () =>
  withClock(async (session, clock) => {
    await clock.settle();
    const { pendingTimers } = clock;
    for (let round = 0; round < 2; round++) {
      await session.create(CRDS, {
        metadata: { name: "widgets.example.com" },
        spec: {
          group: "example.com",
          scope: "Namespaced",
          names: { plural: "widgets", kind: "Widget" },
          versions: [{
            name: "v1",
            served: true,
            storage: true,
            schema: { openAPIV3Schema: { type: "object" } },
          }],
        },
      });
      await session.send("DELETE", `${CRDS}/widgets.example.com`);
      await clock.settle();
    }
    assert.equal(clock.pendingTimers, pendingTimers);
  }));
