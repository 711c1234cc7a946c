import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import { ApiServer } from "@coracle/dev/apiserver";
import {
  type Client,
  type Clock,
  Operator,
  silentLogger,
  systemClock,
  untyped,
} from "@coracle/operator/core";
import { defineKind, installCrd } from "@coracle/operator/crd";
import { migrateStorage } from "../../../core/conversion/migrate_storage.ts";
import { CRD_KIND } from "../../../core/crd/crd_object.ts";
import type { Store } from "../../../dev/apiserver/storage/store.ts";
import { storeOf } from "../../../dev/apiserver/server.ts";
import {
  conversionConfig,
  conversionServices,
} from "../../../dev/testing/conversion_service.ts";
import { until } from "../../support/until.ts";

const names = { group: "sea.example.org", kind: "Buoy" } as const;
const NAME = "buoys.sea.example.org";
const OLD = untyped({ ...names, version: "v1beta1" });
const NEW = untyped({ ...names, version: "v1" });

/** Reads a size that an earlier program could not. */
let reads = (text: string): number => Number(text);

/** The kind, stored in a version. */
function stored(storageVersion: string) {
  return defineKind({
    ...names,
    version: "v1",
    storageVersion,
    spec: z.object({ size: z.int() }),
    versions: [{
      name: "v1beta1",
      spec: z.object({ size: z.string() }),
      up: ({ spec }) => ({ spec: { size: reads(spec.size) } }),
      down: ({ spec }) => ({ spec: { size: String(spec.size) } }),
    }],
  });
}

const KIND = stored("v1");

/** Clock on which pauses are counted, and end at once. */
function countingClock(pauses: number[]): Clock {
  return {
    ...systemClock,
    setTimer(callback, delay) {
      pauses.push(delay);
      return systemClock.setTimer(callback, 0);
    },
  };
}

const options = (pauses: number[] = []) => ({
  clock: countingClock(pauses),
  signal: new AbortController().signal,
  rate: 50,
});

async function withStored(
  run: (server: ApiServer, storedAs: () => readonly string[]) => Promise<void>,
): Promise<void> {
  const server = await ApiServer.start({
    port: false,
    // Later ones offer to migrate, which some tests define themselves.
    version: "1.36",
    controllers: [],
    establishingDelay: 0,
    services: conversionServices([KIND]),
  });
  try {
    const { client } = server;
    const conversion = conversionConfig(KIND);
    await installCrd(client, stored("v1beta1"), { conversion });
    for (let at = 0; at < 3; at++) {
      await client.create(OLD, {
        metadata: { name: `buoy-${at}`, namespace: "default" },
        spec: { size: String(at) },
      } as never);
    }
    await installCrd(client, KIND, { conversion });
    const { status } = await client.get(CRD_KIND, { name: NAME });
    assert.deepEqual(status?.storedVersions, ["v1beta1", "v1"]);
    const resource = { group: names.group, plural: "buoys" };
    const objects = (storeOf(server) as Store).collection(resource);
    await run(
      server,
      () =>
        Array.from(objects.values(), (one) => String(one.parse().apiVersion)),
    );
  } finally {
    await server.stop();
  }
}

async function storedVersions({ client }: ApiServer) {
  return (await client.get(CRD_KIND, { name: NAME })).status?.storedVersions;
}

test("migrateStorage() rewrites each object, then forgets the old version", async () => {
  await withStored(async (server, storedAs) => {
    assert.deepEqual(new Set(storedAs()), new Set(["sea.example.org/v1beta1"]));
    const pauses: number[] = [];
    const said: string[] = [];
    const migration = await migrateStorage(server.client, NAME, {
      ...options(pauses),
      say: (text) => void said.push(text),
    });
    assert.deepEqual(migration, {
      version: "v1",
      before: ["v1beta1", "v1"],
      written: 3,
    });
    assert.deepEqual(new Set(storedAs()), new Set(["sea.example.org/v1"]));
    assert.deepEqual(await storedVersions(server), ["v1"]);
    assert.deepEqual(pauses.filter((pause) => pause === 20), [20, 20, 20]);
    assert.deepEqual(said, ["Stored in v1beta1 and v1, to be stored in v1."]);
    const again = await migrateStorage(server.client, NAME, options());
    assert.equal(again.written, 0);
  });
});

test("an operator migrates at its start when asked, once it leads", async () => {
  await withStored(async (server, storedAs) => {
    const make = (identity: string) => {
      const operator = new Operator({
        client: server.client,
        logger: silentLogger,
        leaderElection: { name: "buoys", namespace: "default", identity },
      });
      const migrateStorage = true;
      operator.register(KIND, { reconcile() {} }, { migrateStorage });
      return operator;
    };
    const [leader, standby] = [make("a"), make("b")];
    await leader.start();
    await standby.start();
    try {
      await until(
        "the old version is forgotten",
        async () => (await storedVersions(server))?.join() === "v1",
      );
      assert.deepEqual(new Set(storedAs()), new Set(["sea.example.org/v1"]));
    } finally {
      await standby.stop();
      await leader.stop();
    }
    assert.throws(
      () =>
        new Operator({ client: server.client }).register(
          untyped({ ...names, version: "v1" }),
          { reconcile() {} },
          { migrateStorage: true },
        ),
      /only a kind of defineKind carries the definition that "migrateStorage" needs/,
    );
  });
});

test("migrateStorage() keeps the versions if an object is left, and mends it later", async () => {
  await withStored(async (server, storedAs) => {
    const { client } = server;
    const key = { name: "buoy-1", namespace: "default" };
    const size = "large";
    await client.patch(OLD, key, { spec: { size } } as never);
    await assert.rejects(
      migrateStorage(client, NAME, options()),
      /Cannot migrate buoys.sea.example.org: mend .*: received default\/buoy-1: up of v1beta1 has returned spec.size as number/,
    );
    assert.deepEqual(await storedVersions(server), ["v1beta1", "v1"]);
    assert.deepEqual((await client.get(OLD, key)).spec, { size });
    reads = (text) => text === "large" ? 100 : Number(text);
    await migrateStorage(client, NAME, options());
    assert.deepEqual((await client.get(NEW, key)).spec, { size: 100 });
    assert.deepEqual(new Set(storedAs()), new Set(["sea.example.org/v1"]));
    assert.deepEqual(await storedVersions(server), ["v1"]);
  });
});

/** The kind by which a server offers to migrate, which no controller serves. */
const Offer = defineKind({
  group: "storagemigration.k8s.io",
  version: "v1",
  kind: "StorageVersionMigration",
  scope: "Cluster",
  annotations: { "api-approved.kubernetes.io": "unapproved" },
  spec: z.object({
    resource: z.object({ group: z.string(), resource: z.string() }),
  }),
  status: z.object({
    conditions: z.array(
      z.object({ type: z.string(), status: z.string(), message: z.string() }),
    ),
  }),
});

/** Runs the migration; at each pause between reads, a controller is at work. */
async function migrateBy(
  client: Client,
  work: (name: string) => Promise<unknown>,
  said: string[] = [],
) {
  const clock: Clock = {
    ...systemClock,
    setTimer(callback, delay) {
      if (delay !== 1_000) return systemClock.setTimer(callback, 0);
      const name = /StorageVersionMigration (\S+)\.$/.exec(said.join())?.[1];
      work(name ?? "").finally(callback);
      return { clear() {}, ref() {}, unref() {} } as never;
    },
  };
  const say = (text: string) => void said.push(text);
  return await migrateStorage(client, NAME, { ...options(), clock, say });
}

test("migrateStorage() lets a server migrate that offers to", async () => {
  await withStored(async (server) => {
    const { client } = server;
    await installCrd(client, Offer);
    const end = (type: string) => async (name: string) => {
      const { spec } = await client.get(Offer, { name });
      assert.deepEqual(spec.resource, {
        group: "sea.example.org",
        resource: "buoys",
      });
      const condition = { type, status: "True", message: "no rights" };
      await client.status.patch(Offer, { name }, {
        status: { conditions: [condition] },
      });
    };
    await assert.rejects(
      migrateBy(client, end("Failed")),
      /received no rights/,
    );
    // Its controller changes the status of the definition at the same time.
    const other = server.faults.add({
      verb: "patch",
      resource: "customresourcedefinitions",
      subresource: "status",
      effect: { conflict: true },
      count: 1,
    });
    const { written } = await migrateBy(client, end("Succeeded"));
    assert.equal(written, 0);
    assert.equal(other.hits, 1);
    // The one that has failed is kept.
    assert.equal((await client.list(Offer)).items.length, 1);
    assert.deepEqual(await storedVersions(server), ["v1"]);
  });
});

test("migrateStorage() removes a migration once the server has ended it", async () => {
  await withStored(async (server) => {
    const { client } = server;
    await installCrd(client, Offer);
    let steps = 0;
    await migrateBy(client, async (name) => {
      const condition = (type: string, status: string) => ({
        type,
        status,
        message: "",
      });
      const running = condition("Running", ++steps < 40 ? "True" : "False");
      const conditions = steps < 35
        ? [running]
        : [running, condition("Succeeded", "True")];
      await client.status.patch(Offer, { name }, { status: { conditions } });
      assert.equal((await client.list(Offer)).items.length, 1);
    });
    assert.equal(steps, 40);
    assert.deepEqual((await client.list(Offer)).items, []);
  });
});

test("migrateStorage() does not leave to a server what it cannot convert", async () => {
  await withStored(async (server) => {
    const { client } = server;
    await installCrd(client, Offer);
    reads = (text) => text === "1" ? Number.NaN : Number(text);
    await assert.rejects(
      migrateBy(client, () => Promise.reject(new Error("it was asked"))),
      /mend what the server refuses, and repeat: received default\/buoy-1: /,
    );
    assert.deepEqual((await client.list(Offer)).items, []);
    assert.deepEqual(await storedVersions(server), ["v1beta1", "v1"]);
    reads = Number;
  });
});

test("migrateStorage() writes the objects if the server offers to, and does not", async () => {
  await withStored(async (server, storedAs) => {
    const { client } = server;
    await installCrd(client, Offer);
    let pauses = 0;
    const said: string[] = [];
    const { written } = await migrateBy(client, () => {
      pauses++;
      return Promise.resolve();
    }, said);
    assert.equal(pauses, 30);
    assert.equal(written, 3);
    assert.equal(
      said.at(-1),
      "The server has not begun, so they are written from here.",
    );
    assert.deepEqual((await client.list(Offer)).items, []);
    assert.deepEqual(new Set(storedAs()), new Set(["sea.example.org/v1"]));
    assert.deepEqual(await storedVersions(server), ["v1"]);
  });
});
