import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import { withTestCluster } from "@coracle/dev";
import {
  type AdmissionHandlers,
  allow,
  ApiError,
  defineKind,
  deny,
  type ObjectOf,
  Operator,
} from "@coracle/operator/core";
import { ConfigMap } from "@coracle/operator/kinds";
import { removesDefinitions } from "../support/remove_objects.ts";

const Nightly = defineKind({
  group: "admission.coracle.dev",
  version: "v1",
  kind: "Nightly",
  plural: "nightlies",
  spec: z.object({
    schedule: z.string(),
    timeZone: z.string().optional(),
    size: z.int().optional(),
  }),
});
removesDefinitions(Nightly);
type Nightly = ObjectOf<typeof Nightly>;

const seen: { operation: string; dryRun: boolean; old: string | undefined }[] =
  [];

const handlers: AdmissionHandlers<Nightly> = {
  async validate(nightly, ctx) {
    const { operation, dryRun, old, namespace } = ctx;
    seen.push({ operation, dryRun, old: old?.spec.schedule });
    if (!/^\S+ \S+ \S+ \S+ \S+$/.test(nightly.spec.schedule)) {
      return deny("must be a cron expression", { field: "spec.schedule" });
    }
    if (nightly.spec.size !== undefined) {
      return allow({ warnings: ["spec.size is deprecated"] });
    }
    if (nightly.spec.timeZone === "Mars") {
      const zones = await ctx.get(ConfigMap, "zones", namespace);
      if (zones?.data?.["Mars"] === undefined) {
        return deny("there is no such zone");
      }
    }
    return undefined;
  },
  default(nightly) {
    nightly.spec.timeZone ??= "UTC";
    return nightly;
  },
};

test(
  "admission denies, warns, defaults and sees dry runs as a user of the API does",
  withTestCluster({
    kinds: [Nightly],
    operator(options) {
      const operator = new Operator(options);
      operator.register(Nightly, { reconcile() {} }, {
        admission: { ...handlers, failurePolicy: "Fail" },
      });
      return operator;
    },
  }, async ({ client, namespace }) => {
    const nightly = (name: string, spec: Partial<Nightly["spec"]> = {}) => ({
      metadata: { namespace, name },
      spec: { schedule: "0 3 * * *", ...spec },
    });
    seen.length = 0;
    // Defaulted before it is validated and stored.
    const created = await client.create(Nightly, nightly("a"));
    assert.equal(created.spec.timeZone, "UTC");
    await client.create(Nightly, nightly("b"), { dryRun: true });
    assert.equal(await client.find(Nightly, nightly("b").metadata), undefined);
    assert.deepEqual(seen, [
      { operation: "CREATE", dryRun: false, old: undefined },
      { operation: "CREATE", dryRun: true, old: undefined },
    ]);
    const wrong = nightly("c", { schedule: "at night" });
    const refusal = await client.create(Nightly, wrong).catch((error) => error);
    assert(ApiError.is(refusal));
    assert.equal(refusal.status, 422);
    assert.match(
      refusal.message,
      /denied the request: spec\.schedule: must be a cron expression/,
    );
    assert.deepEqual(refusal.details.causes, [{
      reason: "FieldValueInvalid",
      field: "spec.schedule",
      message: "must be a cron expression",
    }]);
    // An update shows the old object; a condition on another object is read.
    const key = nightly("a").metadata;
    const patched = { spec: { timeZone: "Mars" } };
    const patch = () => client.patch(Nightly, key, patched, { type: "merge" });
    await assert.rejects(patch(), /there is no such zone/);
    await client.create(ConfigMap, {
      metadata: { namespace, name: "zones" },
      data: { Mars: "+24:37" },
    });
    assert.equal((await patch()).spec.timeZone, "Mars");
    assert.equal(seen.at(-1)?.old, "0 3 * * *");
    await client.delete(Nightly, key);
  }),
);

test(
  "a handler that fails decides as failurePolicy says, and is named",
  withTestCluster({
    kinds: [Nightly],
    operator(options) {
      const operator = new Operator(options);
      const validate: AdmissionHandlers<Nightly>["validate"] = () => {
        throw new Error("No database");
      };
      operator.admit(Nightly, { validate }, {
        failurePolicy: "Fail",
        matchConditions: {
          wanted: "object.metadata.name.startsWith('strict')",
        },
      });
      operator.admit(Nightly, { validate }, { failurePolicy: "Ignore" });
      return operator;
    },
  }, async ({ client, namespace }) => {
    const make = (name: string) =>
      client.create(Nightly, {
        metadata: { namespace, name },
        spec: { schedule: "0 3 * * *" },
      });
    await make("lax");
    await assert.rejects(
      make("strict"),
      /Cannot call validate\(\) for Nightly .*\/strict: it has thrown an error: No database/,
    );
    await client.delete(Nightly, { namespace, name: "lax" });
  }),
);

/** Reads of Nightlies by the operator, while they are noted. */
let reads: string[] | undefined;

test(
  "a handler reads what its controllers watch from their caches",
  withTestCluster({
    cluster: "embedded",
    server: {
      audit({ verb, resource }) {
        if (resource === "nightlies") reads?.push(verb);
      },
    },
    kinds: [Nightly],
    operator(options) {
      const operator = new Operator(options);
      operator.register(Nightly, { reconcile() {} }, {
        admission: {
          failurePolicy: "Fail",
          async validate(_nightly, { get, list, namespace }) {
            const all = await list(Nightly);
            const first = await get(Nightly, "a", namespace);
            return all.length > 0 && first?.spec.schedule === "0 3 * * *"
              ? deny(`there is ${all[0]?.metadata.name}`)
              : undefined;
          },
        },
      });
      return operator;
    },
  }, async ({ client, namespace, until }) => {
    const make = (name: string, dryRun = false) =>
      client.create(Nightly, {
        metadata: { namespace, name },
        spec: { schedule: "0 3 * * *" },
      }, { dryRun });
    await make("a");
    reads = [];
    await until(() =>
      make("b", true).then(() => false, ({ message }) => {
        assert.match(message, /denied the request: there is a/);
        return true;
      })
    );
    assert.deepEqual(reads.filter((verb) => verb !== "create"), []);
    reads = undefined;
    await client.delete(Nightly, { namespace, name: "a" });
  }),
);

let started: Operator;

test(
  "a controller with admission is refused once its operator is started",
  withTestCluster({
    kinds: [Nightly],
    operator(options) {
      started = new Operator(options);
      started.register(Nightly, { reconcile() {} });
      return started;
    },
  }, async () => {
    const validate = () => undefined;
    assert.throws(
      () =>
        started.register(Nightly, { reconcile() {} }, {
          name: "late",
          admission: { validate, failurePolicy: "Fail" },
        }),
      /^Error: Cannot register controller "late": the operator is started/,
    );
    await Promise.resolve();
  }),
);
