/**
 * StorageVersionMigrations, which the server carries out: its conditions, the
 * stored objects and the definition, and what `migrateStorage` leaves to it.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { withTestCluster } from "@coracle/dev";
import {
  ApiError,
  type Client,
  systemClock,
  untyped,
  type UntypedObject,
} from "@coracle/operator/core";
import { defineKind, installCrd } from "@coracle/operator/crd";
import { z } from "zod";
import { migrateStorage } from "../../core/conversion/migrate_storage.ts";
import { CRD_KIND } from "../../core/crd/crd_object.ts";
import { removesDefinitions } from "../support/remove_objects.ts";
import { until } from "../support/until.ts";

const GROUP = "migrations.coracle.dev";

/** A kind with two alike versions, stored in one of them. */
function stored(kind: string, storageVersion: "v1" | "v1beta1") {
  const spec = z.object({ size: z.int() });
  return defineKind({
    group: GROUP,
    kind,
    version: "v1",
    storageVersion,
    spec,
    versions: [{ name: "v1beta1", spec }],
  });
}

removesDefinitions(stored("Buoy", "v1"), stored("Raft", "v1"));

interface Migration extends UntypedObject {
  readonly status?: {
    readonly resourceVersion?: string;
    readonly conditions?: readonly {
      readonly type: string;
      readonly status: string;
      readonly reason: string;
      readonly message: string;
    }[];
  };
}

const MIGRATION = untyped({
  group: "storagemigration.k8s.io",
  version: "v1",
  kind: "StorageVersionMigration",
});

/** Conditions, each in one text; undefined before there are any. */
function conditionsOf({ status }: Migration): readonly string[] | undefined {
  return status?.conditions?.map(({ type, status, reason, message }) =>
    `${type} ${status} ${reason}: ${message}`
  );
}

async function isServed(client: Client): Promise<boolean> {
  try {
    return (await client.resolve(MIGRATION)) !== undefined;
  } catch (error) {
    if (error instanceof ApiError && error.isNotFound) return false;
    throw error;
  }
}

async function ended(client: Client, name: string): Promise<Migration> {
  let migration: Migration | undefined;
  await until(
    `the migration ${name} has ended`,
    async () => {
      migration = await client.get(MIGRATION, { name }) as Migration;
      return migration.status?.conditions?.some(({ type, status }) =>
        type === "Running" && status === "False"
      ) === true;
    },
    { within: 80_000 },
  );
  return migration as Migration;
}

/** Stores three objects in the first version, and makes the other that of storage. */
async function storeObjects(client: Client, namespace: string, kind: string) {
  await installCrd(client, stored(kind, "v1beta1"));
  const present = stored(kind, "v1");
  for (const name of ["a", "b", "c"]) {
    await client.create(present, {
      metadata: { name, namespace },
      spec: { size: 1 },
    });
  }
  await installCrd(client, present);
  return await versionsOf(client, namespace, kind);
}

/** The resourceVersion of each object. */
async function versionsOf(client: Client, namespace: string, kind: string) {
  const { items } = await client.list(stored(kind, "v1"), { namespace });
  return items.map(({ metadata }) => metadata.resourceVersion);
}

async function definition(client: Client, name: string) {
  const { status } = await client.get(CRD_KIND, { name });
  const { conditions = [], storedVersions } = status ?? {};
  const found = conditions.find(({ type }) => type === "StorageMigrating");
  const migrating = found &&
    `${found.status} ${found.reason}: ${found.message}`;
  return { storedVersions, migrating };
}

const UNSERVED = "this version of Kubernetes does not serve the kind";

test("The server rewrites the objects that a StorageVersionMigration names", async (t) => {
  await withTestCluster({ version: "1.37" }, async ({ client, namespace }) => {
    if (!(await isServed(client))) return t.skip(UNSERVED);
    const before = await storeObjects(client, namespace, "Buoy");
    const name = `buoys.${GROUP}`;
    const { storedVersions } = await definition(client, name);
    assert.deepEqual(storedVersions, ["v1beta1", "v1"]);
    const migration = { name: `buoys-of-${namespace}` };
    await client.create(MIGRATION, {
      metadata: migration,
      spec: { resource: { group: GROUP, resource: "buoys" } },
    } as never);
    const first = await ended(client, migration.name);
    assert.deepEqual(conditionsOf(first), [
      "Running False MigrationCompleted: Migration completed",
      "Succeeded True StorageVersionMigrationSucceeded: Migration completed",
    ]);
    assert.match(first.status?.resourceVersion ?? "", /^[1-9]\d*$/);
    assert.deepEqual(await definition(client, name), {
      storedVersions: ["v1"],
      migrating:
        "False MigrationSucceeded: The migration has succeeded and the stored versions have been updated",
    });
    const after = await versionsOf(client, namespace, "Buoy");
    assert.equal(after.length, 3);
    assert.deepEqual(after.filter((each) => before.includes(each)), []);
    await client.delete(MIGRATION, migration);
  })();
});

test("migrateStorage() lets a server of 1.37 rewrite the objects", async (t) => {
  await withTestCluster({ version: "1.37" }, async ({ client, namespace }) => {
    if (!(await isServed(client))) return t.skip(UNSERVED);
    await storeObjects(client, namespace, "Raft");
    const said: string[] = [];
    const migration = await migrateStorage(client, `rafts.${GROUP}`, {
      clock: systemClock,
      signal: AbortSignal.timeout(80_000),
      rate: 1_000,
      say: (text) => void said.push(text),
    });
    assert.deepEqual(migration, {
      version: "v1",
      before: ["v1beta1", "v1"],
      written: 0,
    });
    assert.match(said.at(-1) ?? "", /^The server migrates them: /);
    const { storedVersions } = await definition(client, `rafts.${GROUP}`);
    assert.deepEqual(storedVersions, ["v1"]);
  })();
});
