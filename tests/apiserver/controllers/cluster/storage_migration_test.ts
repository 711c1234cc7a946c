import assert from "node:assert/strict";
import { test } from "node:test";
import { untyped, type UntypedObject } from "@coracle/operator/client";
import { defineKind, installCrd } from "@coracle/operator/crd";
import {
  ConfigMap,
  ValidatingAdmissionPolicy,
  ValidatingAdmissionPolicyBinding,
} from "@coracle/operator/kinds";
import { z } from "zod";
import {
  type WorkloadFixture,
  workloadTest,
} from "../../support/workload_case.ts";

const MIGRATION = untyped({
  group: "storagemigration.k8s.io",
  version: "v1",
  kind: "StorageVersionMigration",
});

function migrationTest(body: (fixture: WorkloadFixture) => Promise<void>) {
  return workloadTest({ version: "1.37", establishingDelay: 0 }, body);
}

async function migrate(
  { client }: WorkloadFixture,
  name: string,
  resource: { readonly group?: string; readonly resource: string },
): Promise<void> {
  await client.create(MIGRATION, {
    metadata: { name },
    spec: { resource },
  } as never);
}

interface Condition {
  readonly type: string;
  readonly status: string;
  readonly message: string;
}

async function conditions(
  { client }: WorkloadFixture,
  name: string,
): Promise<readonly string[]> {
  const { status } = await client.get(MIGRATION, { name }) as UntypedObject & {
    readonly status?: { readonly conditions?: readonly Condition[] };
  };
  return (status?.conditions ?? []).map(({ type, status, message }) =>
    `${type} ${status}: ${message}`
  );
}

const ENDED = "Running False: Migration completed";

test(
  "a migration of a resource that does not appear fails after a minute",
  migrationTest(async (fixture) => {
    const { clock } = fixture;
    await migrate(fixture, "a", { group: "example.com", resource: "boats" });
    await clock.advance(58_000);
    assert.deepEqual(await conditions(fixture, "a"), [
      "Running True: The migration is running",
    ]);
    await clock.advance(4_000);
    assert.deepEqual(await conditions(fixture, "a"), [
      ENDED,
      "Failed True: resource does not exist in discovery",
    ]);
  }),
);

test(
  "a migration waits for a definition that is made after it",
  migrationTest(async (fixture) => {
    const { client, clock } = fixture;
    await migrate(fixture, "a", { group: "example.com", resource: "boats" });
    await clock.advance(10_000);
    const spec = z.object({});
    await installCrd(
      client,
      defineKind({ group: "example.com", version: "v1", kind: "Boat", spec }),
    );
    await clock.advance(5_000);
    assert.deepEqual(await conditions(fixture, "a"), [
      ENDED,
      "Succeeded True: Migration completed",
    ]);
  }),
);

test(
  "a migration of a resource that cannot be patched, or of Events, fails",
  migrationTest(async (fixture) => {
    await migrate(fixture, "a", { resource: "componentstatuses" });
    await migrate(fixture, "b", { resource: "events" });
    await fixture.clock.advance(62_000);
    assert.deepEqual(await conditions(fixture, "a"), [
      ENDED,
      'Failed True: resource "/v1, Resource=componentstatuses" does not support discovery operations: [update patch list]',
    ]);
    assert.deepEqual(await conditions(fixture, "b"), [
      ENDED,
      "Failed True: migration encountered unhandled error: resource does not exist in GC: %!w(<nil>)",
    ]);
  }),
);

test(
  "of the migrations of one resource one runs at a time, the oldest first",
  migrationTest(async (fixture) => {
    const { client, clock } = fixture;
    const boats = { group: "example.com", resource: "boats" };
    await migrate(fixture, "b", boats);
    await clock.advance(1_000);
    await migrate(fixture, "a", boats);
    await migrate(fixture, "c", { resource: "configmaps" });
    await clock.advance(1_000);
    assert.deepEqual(await conditions(fixture, "b"), [
      "Running True: The migration is running",
    ]);
    assert.deepEqual(await conditions(fixture, "a"), []);
    assert.deepEqual((await conditions(fixture, "c"))[0], ENDED);
    await client.delete(MIGRATION, { name: "b" });
    await clock.advance(1_000);
    assert.deepEqual(await conditions(fixture, "a"), [
      "Running True: The migration is running",
    ]);
  }),
);

test(
  "a migration changes no built-in object that is stored as it should be",
  migrationTest(async (fixture) => {
    const { client, clock } = fixture;
    const key = { namespace: "default", name: "a" };
    const { metadata } = await client.create(ConfigMap, { metadata: key });
    await migrate(fixture, "a", { resource: "configmaps" });
    await clock.advance(1_000);
    assert.deepEqual(await conditions(fixture, "a"), [
      ENDED,
      "Succeeded True: Migration completed",
    ]);
    const after = await client.get(ConfigMap, key);
    assert.equal(after.metadata.resourceVersion, metadata.resourceVersion);
  }),
);

test(
  "a migration fails with the first object that admission refuses",
  migrationTest(async (fixture) => {
    const { client, clock } = fixture;
    await client.create(ConfigMap, {
      metadata: { namespace: "default", name: "a" },
    });
    await client.create(ValidatingAdmissionPolicy, {
      metadata: { name: "closed" },
      spec: {
        matchConstraints: {
          resourceRules: [{
            apiGroups: [""],
            apiVersions: ["v1"],
            operations: ["UPDATE"],
            resources: ["configmaps"],
          }],
        },
        validations: [{ expression: "false", message: "closed" }],
      },
    });
    await client.create(ValidatingAdmissionPolicyBinding, {
      metadata: { name: "closed" },
      spec: { policyName: "closed", validationActions: ["Deny"] },
    });
    await migrate(fixture, "a", { resource: "configmaps" });
    await clock.advance(1_000);
    const [ended, failed] = await conditions(fixture, "a");
    assert.equal(ended, ENDED);
    assert.match(
      failed ?? "",
      /^Failed True: (\d+)\/\1 not yet migrated\. migration encountered unhandled error: configmaps "[^"]+" is forbidden: .*closed$/,
    );
  }),
);
