import { checkOperator, TestCluster, VirtualClock } from "@coracle/dev";
import { untyped } from "@coracle/operator";
import {
  Namespace,
  NetworkPolicy,
  ResourceQuota,
  RoleBinding,
} from "@coracle/operator/kinds";
import assert from "node:assert/strict";
import { cp, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { operator } from "./tenant.ts";

const Tenant = untyped({
  group: "sample.coracle.dev",
  version: "v1",
  kind: "Tenant",
  plural: "tenants",
  scope: "Cluster",
});

const tenant = (spec: object) => ({
  apiVersion: "sample.coracle.dev/v1",
  kind: "Tenant",
  metadata: { name: "blue" },
  spec,
});

test("A tenant has what its folder has, follows it and is deleted", async () => {
  const folder = await mkdtemp(join(tmpdir(), "coracle-tenant-"));
  await cp(fileURLToPath(new URL("tenant", import.meta.url)), folder, {
    recursive: true,
  });
  const cluster = await TestCluster.start({
    clock: new VirtualClock(),
    operator: (options) => operator({ ...options, namespaces: "all" }, folder),
  });
  try {
    const { client } = cluster;
    const inside = (name: string) => ({ namespace: "blue", name });
    await client.create(Tenant, tenant({ owners: ["ann"], cpu: "8" }));
    await cluster.until(async () => {
      const { status } = await client.get(Tenant, { name: "blue" });
      return JSON.stringify(status)?.includes('"status":"True"') ?? false;
    });
    const quota = await client.get(ResourceQuota, inside("tenant"));
    assert.equal(quota.spec?.hard?.["limits.cpu"], "8");
    const { subjects } = await client.get(RoleBinding, inside("owners"));
    assert.deepEqual(subjects?.map(({ name }) => name), ["ann"]);

    await rm(join(folder, "access.yaml"));
    await cluster.until(
      async () =>
        await client.find(RoleBinding, inside("owners")) === undefined &&
        await client.find(NetworkPolicy, inside("inside-only")) === undefined,
      { within: "15m" },
    );

    await client.delete(Tenant, { name: "blue" });
    await cluster.until(async () =>
      await client.find(Tenant, { name: "blue" }) === undefined
    );
    assert.equal(await client.find(Namespace, { name: "blue" }), undefined);
  } finally {
    await cluster.stop();
    await rm(folder, { recursive: true });
  }
});

test("The tenant example stands its check", { timeout: 120_000 }, async () => {
  const { findings } = await checkOperator({
    operator: (options) => operator({ ...options, namespaces: "all" }),
    workload: [
      { apply: tenant({ owners: ["ann"] }) },
      { apply: tenant({ owners: ["bob"], cpu: "2" }) },
      { delete: tenant({}) },
    ],
    plans: 1,
  });
  assert.deepEqual(findings.map(({ title }) => title), []);
});
