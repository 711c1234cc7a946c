import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import { ApiServer } from "@coracle/dev/apiserver";
import { defineKind, installCrd } from "@coracle/operator/crd";
import { CustomResourceDefinition } from "@coracle/operator/kinds";

/** Kind whose version v1 has neither the fields nor the subresources of v2. */
const Boat = defineKind({
  group: "sample.coracle.dev",
  version: "v2",
  kind: "Boat",
  spec: z.object({
    name: z.string(),
    seats: z.int().default(2),
    crew: z.int().optional(),
  }),
  status: z.object({ afloat: z.int() }).partial(),
  selectableFields: [".spec.seats"],
  scale: {
    specReplicasPath: ".spec.crew",
    statusReplicasPath: ".status.afloat",
  },
  versions: [{ name: "v1", spec: z.object({ name: z.string() }) }],
});

/** The same kind, stored in v1. */
const StoredOld = defineKind({
  group: "sample.coracle.dev",
  version: "v2",
  kind: "Boat",
  storageVersion: "v1",
  spec: z.object({ name: z.string() }),
  selectableFields: [".spec.name"],
  versions: [{ name: "v1", spec: z.object({ name: z.string() }) }],
});

/** The same kind, stored in v1, which lacks a field that v2 defaults. */
const DefaultedNew = defineKind({
  group: "sample.coracle.dev",
  version: "v2",
  kind: "Boat",
  storageVersion: "v1",
  spec: z.object({ name: z.string(), seats: z.int().default(2) }),
  versions: [{ name: "v1", spec: z.object({ name: z.string() }) }],
});

async function withKind(
  kind: typeof Boat | typeof StoredOld | typeof DefaultedNew,
  run: (server: ApiServer) => Promise<void>,
): Promise<void> {
  const server = await ApiServer.start({ port: false, establishingDelay: 0 });
  try {
    await installCrd(server.client, kind);
    await run(server);
  } finally {
    await server.stop();
  }
}

const key = { namespace: "default", name: "kayak" };
const v1 = { ...Boat, version: "v1" } as const;
const OLD = "/apis/sample.coracle.dev/v1/namespaces/default/boats/kayak";

test("an object written in an older version has the stored defaults", () =>
  withKind(Boat, async ({ client }) => {
    await client.create(v1, { metadata: key, spec: { name: "a" } } as never);
    const seats = async () => (await client.get(Boat, key)).spec.seats;
    assert.equal(await seats(), 2);
    await client.patch(Boat, key, { spec: { seats: 5 } });
    const patched = await client.patch(v1, key, { spec: { name: "b" } });
    assert.deepEqual(patched.spec, { name: "b" });
    assert.equal(await seats(), 2);
    for await (const event of client.watch(Boat, { namespace: "default" })) {
      assert.equal("object" in event && event.object.spec?.seats, 2);
      break;
    }
  }));

test("a version serves and lists only its own subresources", () =>
  withKind(Boat, async ({ client, transport }) => {
    await client.create(Boat, {
      metadata: key,
      spec: { name: "a", crew: 1 },
    });
    for (const name of ["status", "scale"]) {
      const { status } = await transport.send({
        method: "GET",
        path: `${OLD}/${name}`,
        headers: {},
      });
      assert.equal(status, 404, name);
    }
    const listed = async (version: string) => {
      const { body } = await transport.send({
        method: "GET",
        path: `/apis/sample.coracle.dev/${version}`,
        headers: {},
      });
      let text = "";
      for await (const chunk of body) text += new TextDecoder().decode(chunk);
      const { resources } = JSON.parse(text);
      return resources.map(({ name }: { name: string }) => name);
    };
    assert.deepEqual(await listed("v1"), ["boats"]);
    assert.deepEqual(await listed("v2"), [
      "boats",
      "boats/status",
      "boats/scale",
    ]);
  }));

test("a field selector reads the object in the version of the request", () =>
  withKind(StoredOld, async ({ client }) => {
    await client.create(StoredOld, { metadata: key, spec: { name: "a" } });
    const found = async (name: string) =>
      (await client.list(StoredOld, { fieldSelector: `spec.name=${name}` }))
        .items.length;
    assert.equal(await found("a"), 1);
    assert.equal(await found("b"), 0);
  }));

test("a field selector reads the defaults of the storage version", () =>
  withKind(Boat, async ({ client }) => {
    await client.create(v1, { metadata: key, spec: { name: "a" } } as never);
    const { items } = await client.list(Boat, {
      fieldSelector: "spec.seats=2",
    });
    assert.equal(items.length, 1);
  }));

test("a Scale keeps the managed fields of other versions", () =>
  withKind(Boat, async ({ client }) => {
    await client.create(Boat, { metadata: key, spec: { name: "a", crew: 1 } });
    await client.patch(v1, key, { spec: { name: "b" } }, {
      fieldManager: "old",
    });
    await client.scale.patch(Boat, key, { spec: { replicas: 3 } }, {
      fieldManager: "scaler",
    });
    const { metadata, spec } = await client.get(Boat, key);
    assert.equal(spec.crew, 3);
    assert.deepEqual(
      metadata.managedFields?.map(({ manager, apiVersion, fieldsV1 }) =>
        `${manager} ${apiVersion?.split("/")[1]} ${JSON.stringify(fieldsV1)}`
      ).filter((text) => /^(old|scaler)/.test(text)).sort(),
      [
        'old v1 {"f:spec":{"f:name":{}}}',
        'scaler v2 {"f:spec":{"f:crew":{}}}',
      ],
    );
  }));

test("owners of a removed version stop an apply, and stay with an update", () =>
  withKind(Boat, async ({ client, transport }) => {
    await client.create(v1, { metadata: key, spec: { name: "a" } } as never);
    const crd = { name: "boats.sample.coracle.dev" };
    const { spec } = await client.get(CustomResourceDefinition, crd);
    await client.patch(CustomResourceDefinition, crd, {
      spec: { versions: spec.versions.filter(({ name }) => name === "v2") },
    });
    const send = async (type: string, spec: object) => {
      const { status, body } = await transport.send({
        method: "PATCH",
        path: `${OLD.replace("v1", "v2")}?fieldManager=x`,
        headers: { "content-type": `application/${type}` },
        body: JSON.stringify({
          apiVersion: "sample.coracle.dev/v2",
          kind: "Boat",
          metadata: { name: key.name },
          spec,
        }),
      });
      let text = "";
      for await (const chunk of body) text += new TextDecoder().decode(chunk);
      return { status, object: JSON.parse(text) };
    };
    const refused = await send("apply-patch+yaml", { name: "b" });
    assert.deepEqual([refused.status, refused.object.message], [
      500,
      "request to convert CR to an invalid group/version: sample.coracle.dev/v1",
    ]);
    const patched = await send("merge-patch+json", { name: "b" });
    assert.equal(patched.status, 200);
    const [owner, ...others] = patched.object.metadata.managedFields;
    assert.deepEqual([owner.apiVersion, others], ["sample.coracle.dev/v1", []]);
    const applied = await send("apply-patch+yaml", { name: "c" });
    assert.equal(applied.status, 500);
  }));

test("an apply that changes nothing sets no default, and keeps the generation", () =>
  withKind(DefaultedNew, async ({ client }) => {
    const created = await client.create(DefaultedNew, {
      metadata: key,
      spec: { name: "a" },
    });
    const apply = (name: string) =>
      client.apply(DefaultedNew, { metadata: key, spec: { name } } as never, {
        force: true,
      });
    const applied = await apply("a");
    assert.equal(applied.metadata.generation, created.metadata.generation);
    assert.notEqual(
      applied.metadata.resourceVersion,
      created.metadata.resourceVersion,
    );
    const changed = await apply("b");
    assert.equal(changed.metadata.generation, 2);
  }));

test("a dry run in an older version answers as the object would be read", () =>
  withKind(Boat, async ({ client }) => {
    const created = await client.create(
      v1,
      { metadata: key, spec: { name: "a" } } as never,
      { dryRun: true },
    );
    assert.deepEqual(created.spec, { name: "a" });
    assert.equal(created.metadata.resourceVersion, undefined);
    assert.equal(created.apiVersion, "sample.coracle.dev/v1");
  }));

test("an apply is refused if an older version with an owner lacks a field", () =>
  withKind(Boat, async ({ client }) => {
    await client.create(v1, { metadata: key, spec: { name: "a" } } as never);
    const finalizers = ["sample.coracle.dev/finalizer"];
    await assert.rejects(
      client.apply(Boat, { metadata: { ...key, finalizers } }),
      /\.spec\.seats: field not declared in schema.* 500/s,
    );
  }));
