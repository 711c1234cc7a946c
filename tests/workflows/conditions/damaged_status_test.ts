import assert from "node:assert/strict";
import { test } from "node:test";
import { type Kind, silentLogger, systemClock } from "@coracle/operator/client";
import type { Context } from "@coracle/operator/core";
import {
  type Conditioned,
  intervalSchedule,
  isReady,
  REQUESTED_AT,
  summarized,
} from "@coracle/operator/workflows";
import { applyMergePatch } from "../../../core/patch/merge_patch.ts";
import { fc } from "../../support/property.ts";

const Site: Kind<Conditioned> = {
  group: "example.com",
  version: "v1",
  kind: "Site",
};

const garbage = fc.oneof(
  fc.jsonValue({ maxDepth: 2 }),
  fc.constantFrom<unknown>(
    [null],
    [{}, { type: "Ready" }],
    [{ type: 5 }, { type: "Ready", status: "True" }, { type: "Ready" }],
    [{ type: "Stalled", status: "True", reason: 5 }],
    [{ type: "Synced", status: "True" }],
    [{ type: "Synced", status: "True", reason: "Done", message: 7 }],
  ),
);

test("summarized settles whatever is in the fields of its status", async () => {
  const fields = [
    "conditions",
    "observedGeneration",
    "lastHandledReconcileAt",
    "lastHandledForceAt",
  ];
  const reconciler = summarized(Site, {
    schedule: () => intervalSchedule("1m"),
  }, [(step) => {
    step.set({ type: "Built", status: "True", reason: "Done" });
  }]);
  const damaged = fc.oneof(
    garbage,
    fc.dictionary(fc.constantFrom(...fields), garbage, { minKeys: 1 }),
  );
  await fc.assert(fc.asyncProperty(damaged, async (status) => {
    let stored = {
      metadata: {
        name: "web",
        uid: "1",
        generation: 2,
        annotations: { [REQUESTED_AT]: "now" },
      },
      status,
    } as Conditioned;
    let writes = 0;
    const ctx = {
      client: { get: () => Promise.resolve(structuredClone(stored)) },
      key: { name: "web" },
      clock: systemClock,
      log: silentLogger,
      signal: new AbortController().signal,
      interrupted: new AbortController().signal,
      events: { normal() {}, warning() {} },
      patch(_kind: unknown, _key: unknown, body: object) {
        writes++;
        stored = applyMergePatch(stored, body) as Conditioned;
        return Promise.resolve(structuredClone(stored));
      },
    } as unknown as Context<Conditioned>;
    const run = () => reconciler.reconcile(structuredClone(stored), ctx);
    await run();
    const { conditions = [], ...rest } = stored.status!;
    assert.ok(isReady(conditions));
    assert.equal(rest.observedGeneration, 2);
    assert.equal(rest.lastHandledReconcileAt, "now");
    assert.ok(
      conditions.every(({ lastTransitionTime, type }) =>
        typeof lastTransitionTime === "string" || type !== "Ready"
      ),
    );
    writes = 0;
    await run();
    assert.equal(writes, 0);
  }));
});
