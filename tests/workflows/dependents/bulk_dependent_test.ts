import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock, withTestCluster } from "@coracle/dev";
import { ApiError, bulkDependent, Operator, Workflow } from "@coracle/operator";
import { ConfigMap } from "@coracle/operator/kinds";
import { nextTurn } from "../../../core/clock.ts";
import { connectionError } from "../../../core/client/transport/transport_error.ts";
import { attemptAll } from "../../../workflows/dependents/dependent.ts";

/** Makes the ConfigMaps that `names` of the primary lists. */
const maps = new Workflow<ConfigMap>().add(
  "maps",
  bulkDependent(ConfigMap, {
    desired: ({ data }) =>
      (data?.["names"] ?? "").split(",").map((name) => ({
        metadata: { name, labels: { made: "yes" } },
      })),
    watch: { labelSelector: "made=yes" },
  }),
);

test(
  "bulkDependent makes all objects but those that the server refuses",
  withTestCluster({
    clock: new VirtualClock(),
    operator(options) {
      const operator = new Operator(options);
      operator.register(ConfigMap, { reconcile() {} }, {
        workflow: maps,
        fieldSelector: "metadata.name=list",
      });
      return operator;
    },
  }, async (cluster) => {
    const { client, namespace, faults } = cluster;
    for (const name of ["b", "d"]) {
      faults.add({ resource: "configmaps", name, effect: { status: 403 } });
    }
    const metadata = { namespace, name: "list" };
    await client.create(ConfigMap, { metadata, data: { names: "a,b,c,d,e" } });
    const made = { namespace, labelSelector: "made=yes" };
    await cluster.until(async () => {
      const { items } = await client.list(ConfigMap, made);
      return items.map(({ metadata: { name } }) => name).join() === "a,c,e";
    });
    await cluster.until(() => /\/b: .*; and 1 more failed/.test(cluster.log));
  }),
);

test(
  "bulkDependent writes and deletes ten objects at the same time",
  withTestCluster({
    clock: new VirtualClock(),
    operator(options) {
      const operator = new Operator(options);
      operator.register(ConfigMap, { reconcile() {} }, {
        workflow: maps,
        fieldSelector: "metadata.name=list",
      });
      return operator;
    },
  }, async (cluster) => {
    const { client, clock, namespace, faults } = cluster;
    for (const verb of ["patch", "delete"]) {
      faults.add({ verb, resource: "configmaps", effect: { delay: 1_000 } });
    }
    const made = { namespace, labelSelector: "made=yes" };
    const took = async (names: readonly string[]) => {
      const start = clock.now();
      const metadata = { namespace, name: "list" };
      const data = { names: names.join() };
      await client.replace(ConfigMap, { metadata, data });
      await cluster.until(async () => {
        const { items } = await client.list(ConfigMap, made);
        return items.map((item) => item.metadata.name).join() === data.names;
      });
      return clock.now() - start;
    };
    const names = Array.from({ length: 40 }, (_, index) => `m${index + 10}`);
    await client.create(ConfigMap, {
      metadata: { namespace, name: "list" },
      data: { names: "m10" },
    });
    assert.ok(await took(names) < 8_000, "40 s one at a time");
    assert.ok(await took(names.slice(0, 5)) < 8_000, "35 s one at a time");
  }),
);

test("attemptAll takes a stage after the other, and sorts their errors", async () => {
  const log: string[] = [];
  const step = (name: string, turns: number) => async () => {
    log.push(`+${name}`);
    for (let turn = 0; turn < turns; turn++) await nextTurn();
    log.push(`-${name}`);
    throw new Error(name);
  };
  const stages = [[step("a", 9), step("b", 3), step("c", 1)], [step("d", 1)]];
  const { signal } = new AbortController();
  await assert.rejects(
    attemptAll(stages, { signal, concurrency: 2 }),
    (error) => {
      const { errors } = error as AggregateError;
      assert.deepEqual(errors.map(({ message }) => message), [..."abcd"]);
      return true;
    },
  );
  assert.deepEqual(log, ["+a", "+b", "-b", "+c", "-c", "-a", "+d", "-d"]);
});

test("attemptAll stops when the server does not answer or the run ends", async () => {
  const refused = new ApiError("refused", { status: 403 });
  const aborted = AbortSignal.abort();
  const { signal } = new AbortController();
  const tried = async (error: Error, during = signal) => {
    let tries = 0;
    const step = () => {
      tries++;
      return Promise.reject(error);
    };
    await assert.rejects(
      attemptAll([[step, step], [step]], { signal: during }),
    );
    return tries;
  };
  assert.equal(await tried(refused), 3);
  assert.equal(await tried(new Error("not ours")), 3);
  assert.equal(await tried(refused, aborted), 1);
  assert.equal(await tried(new ApiError("busy", { status: 503 })), 1);
  assert.equal(await tried(connectionError("http://a", new Error("reset"))), 1);
});
