import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { TestCluster, VirtualClock, withTestCluster } from "@coracle/dev";
import { Operator, patchStatus } from "@coracle/operator/core";
import { ConfigMap, Lease, Role, Secret } from "@coracle/operator/kinds";
import { readRequests } from "../../dev/testing/request_record.ts";
import { Gadget } from "../support/operator_fixture.ts";
import { temporaryFolder } from "../support/temporary_folder.ts";

const cluster = "embedded";

test("an operator runs with the rights that its manifests have", async () => {
  const record = `${temporaryFolder()}/record`;
  const seen: string[] = [];
  await withTestCluster({
    cluster,
    kinds: [Gadget],
    clock: new VirtualClock(),
    rights: "manifests",
    record,
    operator(options) {
      const operator = new Operator(options);
      operator.register(Gadget, {
        async reconcile(gadget, ctx) {
          const { namespace = "", name } = gadget.metadata;
          const object = { metadata: { namespace, name }, data: {} };
          await ctx.client.create(ConfigMap, object).catch((error: Error) => {
            seen.push(error.message);
          });
        },
      }, { owns: [{ group: "", version: "v1", kind: "Secret" }] });
      return operator;
    },
  }, async (kit) => {
    const { client, namespace } = kit;
    await client.create(Gadget, {
      metadata: { namespace, name: "a" },
      spec: { value: "first" },
    });
    await kit.until(() => seen.length > 0);
    assert.match(seen[0] ?? "", /cannot create resource "configmaps"/);
    const rule =
      '{"apiGroups":[""],"resources":["configmaps"],"verbs":["create"]}';
    assert.equal(kit.log.split(rule).length, 2, kit.log);
    assert.ok(!kit.log.includes("gadgets"), kit.log);
  })();
  assert.ok(
    readRequests(record).some(({ verb, resource }) =>
      verb === "create" && resource === "configmaps"
    ),
  );
});

test("an operator is tested with its election and without its probes", async () => {
  const taken = createServer();
  await new Promise<void>((resolve) => taken.listen(0, resolve));
  const { port } = taken.address() as AddressInfo;
  await withTestCluster({
    cluster,
    kinds: [Gadget],
    clock: new VirtualClock(),
    rights: "manifests",
    operator(options) {
      const operator = new Operator({
        leaderElection: { name: "gadgets" },
        probes: { port },
        ...options,
      });
      operator.register(Gadget, {
        reconcile: () => patchStatus({ value: "done" }),
      });
      return operator;
    },
  }, async (kit) => {
    const { client, namespace } = kit;
    const key = { namespace, name: "a" };
    await client.create(Gadget, { metadata: key, spec: { value: "first" } });
    await kit.until(async () => (await client.get(Gadget, key)).status?.value);
    const lease = await client.get(Lease, { namespace, name: "gadgets" });
    assert.ok(lease.spec?.holderIdentity);
  })().finally(() => taken.close());
});

test("rules are the rights of the operator's client, in all namespaces", () =>
  withTestCluster({
    cluster,
    rights: [{ apiGroups: [""], resources: ["configmaps"], verbs: ["list"] }],
  }, async ({ operatorClient, namespace }) => {
    await operatorClient.list(ConfigMap);
    await assert.rejects(operatorClient.list(Secret), {
      status: 403,
      message: new RegExp(
        `User \\"system:serviceaccount:${namespace}:operator-${namespace}\\" cannot list`,
      ),
    });
  })());

test("a function that returns no operator is refused", async () => {
  const operator = (() => {}) as unknown as () => Operator;
  await assert.rejects(
    TestCluster.start({ cluster, operator }),
    /^TypeError: Cannot start a test cluster: .* must return an operator: received nothing$/,
  );
});

test("rights of manifests need an operator, and other texts are refused", async () => {
  await assert.rejects(
    TestCluster.start({ cluster, rights: "manifests" }),
    /"manifests" needs the option operator/,
  );
  await assert.rejects(
    TestCluster.start({ cluster, rights: "some" as "all" }),
    RangeError,
  );
});

test("rules are all rights of an operator, without those of its manifests", () =>
  withTestCluster({
    cluster,
    kinds: [Gadget],
    objects: [{
      apiVersion: "sample.coracle.dev/v1",
      kind: "Gadget",
      metadata: { name: "a" },
      spec: { value: "x" },
    }],
    clock: new VirtualClock(),
    rights: [{ apiGroups: [""], resources: ["secrets"], verbs: ["list"] }],
    operator(options) {
      const operator = new Operator(options);
      operator.register(Gadget, { reconcile() {} });
      // Without a right to watch its kind it would not start.
      return { start: () => Promise.resolve(), stop: () => operator.stop() };
    },
  }, async ({ client, operatorClient, namespace }) => {
    await client.get(Gadget, { namespace, name: "a" });
    await operatorClient.list(Secret);
    await assert.rejects(operatorClient.list(Gadget, { namespace }), {
      status: 403,
    });
    const roles = await client.list(Role, { namespace });
    assert.deepEqual(roles.items, []);
  })());
