import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import { ApiServer } from "@coracle/dev/apiserver";
import { defineKind, installCrd } from "@coracle/operator/crd";
import { TestServer } from "../support/test_server.ts";

const C = "/api/v1/namespaces/default/configmaps";
const A = `${C}/a`;

const Boat = defineKind({
  group: "sample.coracle.dev",
  version: "v1",
  kind: "Boat",
  spec: z.object({}),
});

async function withConfigMap(
  work: (server: TestServer, metadata: Record<string, string>) => Promise<void>,
  metadata: Record<string, unknown> = {},
): Promise<void> {
  const server = new TestServer();
  const { body } = await server.send("POST", C, {
    metadata: { name: "a", ...metadata },
    data: { k: "1" },
  });
  await work(server, body.metadata);
  server.stop();
}

test("update with an old resourceVersion is a conflict", async () => {
  await withConfigMap(async (server, { resourceVersion }) => {
    const write = (data: unknown, resourceVersion?: string) =>
      server.send("PUT", A, { metadata: { name: "a", resourceVersion }, data });
    assert.equal((await write({ k: "2" }, resourceVersion)).status, 200);
    assert.equal((await write({ k: "3" }, resourceVersion)).status, 409);
    assert.equal((await write({ k: "3" })).status, 200);
    assert.equal((await write({ k: "3" }, "0")).status, 200);
    assert.equal((await write({ k: "3" }, "x")).status, 500);
  });
});

test("a write without changes creates no revision and no event", async () => {
  await withConfigMap(async (server) => {
    const { store } = server.instance.context;
    const { revision } = store;
    const { body } = await server.send("PUT", `${A}?fieldManager=other`, {
      data: { k: "1" },
      metadata: { name: "a" },
    });
    assert.equal(store.revision, revision);
    assert.equal(body.metadata.managedFields[0].manager, "tester");
  });
});

test("update preserves fields that a client may not change", async () => {
  await withConfigMap(async (server, { uid, creationTimestamp }) => {
    const { body } = await server.send("PUT", A, {
      metadata: {
        name: "a",
        creationTimestamp: "2001-01-01T00:00:00Z",
        generation: 99,
      },
    });
    assert.equal(body.metadata.uid, uid);
    assert.equal(body.metadata.creationTimestamp, creationTimestamp);
    assert.equal(body.metadata.generation, undefined);
  });
});

test("update with another UID or name is rejected", async () => {
  await withConfigMap(async (server) => {
    const other = { metadata: { name: "a", uid: "other" } };
    const { status, body } = await server.send("PUT", A, other);
    assert.equal(status, 409);
    assert.match(body.message, /UID in precondition: other/);
    const { status: renamed } = await server.send("PUT", A, {
      metadata: { name: "b" },
    });
    assert.equal(renamed, 400);
  });
});

test("removing the last finalizer of a deleted object removes the object", async () => {
  await withConfigMap(async (server) => {
    const { body: marked } = await server.send("DELETE", A);
    assert.equal(marked.metadata.deletionGracePeriodSeconds, 0);
    const added = await server.send("PUT", A, {
      metadata: { name: "a", finalizers: ["example.com/a", "example.com/b"] },
    });
    assert.equal(added.status, 422);
    const { body } = await server.send("PUT", A, { metadata: { name: "a" } });
    assert.equal(
      body.metadata.resourceVersion,
      marked.metadata.resourceVersion,
    );
    assert.equal((await server.send("GET", A)).status, 404);
  }, { finalizers: ["example.com/a"] });
});

const patches: [string, unknown, Record<string, string> | undefined][] = [
  ["application/merge-patch+json", { data: { k: null, l: "2" } }, { l: "2" }],
  [
    "application/json-patch+json",
    [{ op: "add", path: "/data/l", value: "2" }],
    { k: "1", l: "2" },
  ],
  [
    "application/strategic-merge-patch+json",
    { data: { l: "2" } },
    { k: "1", l: "2" },
  ],
  [
    "application/apply-patch+yaml",
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {l: '2'}\n",
    { k: "1", l: "2" },
  ],
];

for (const [type, patch, data] of patches) {
  test(`patch of type ${type} changes its fields`, async () => {
    await withConfigMap(async (server) => {
      const { status, body } = await server.send(
        "PATCH",
        `${A}?fieldManager=me`,
        patch,
        { "content-type": type },
      );
      assert.equal(status, 200, JSON.stringify(body));
      assert.deepEqual(body.data, data);
    });
  });
}

test("patches with unknown type, too many operations or bad shape are rejected", async () => {
  await withConfigMap(async (server) => {
    const patch = async (type: string, body: unknown) =>
      (await server.send("PATCH", A, body, { "content-type": type })).status;
    assert.equal(await patch("application/json", {}), 415);
    assert.equal(await patch("application/merge-patch+json", []), 400);
    assert.equal(await patch("application/json-patch+json", {}), 400);
    const many = Array.from({ length: 10_001 }, () => ({
      op: "test",
      path: "/kind",
      value: "ConfigMap",
    }));
    assert.equal(await patch("application/json-patch+json", many), 413);
  });
});

test("a key __proto__ is treated as data", async () => {
  await withConfigMap(async (server) => {
    const body = '{"metadata":{"name":"a"},"data":{"__proto__":"x"}}';
    assert.equal((await server.send("PUT", A, body)).status, 200);
    const merged = await server.send("PATCH", A, '{"data":{"__proto__":"y"}}', {
      "content-type": "application/merge-patch+json",
    });
    assert.equal(Object.hasOwn(merged.body.data, "__proto__"), true);
    assert.equal(Object.entries(merged.body.data)[0]?.[1], "y");
    assert.equal(({} as Record<string, unknown>).x, undefined);
  });
});

test("a JSON patch whose copies add more than 3 MiB is 422", async () => {
  await withConfigMap(async (server) => {
    const { status, body } = await server.send("PATCH", A, [
      { op: "add", path: "/metadata/annotations", value: { a: { b: "c" } } },
      ...Array.from({ length: 40 }, (_, index) => ({
        op: "copy",
        from: "/metadata/annotations",
        path: `/metadata/annotations/${index}`,
      })),
    ], { "content-type": "application/json-patch+json" });
    assert.equal(status, 422);
    assert.equal(
      body.message,
      "the server rejected our request due to an error in our request",
    );
  });
});

test("a patch that takes the type from a custom resource is refused", async () => {
  const server = await ApiServer.start({ port: false, establishingDelay: 0 });
  const { client } = server;
  const key = { namespace: "default", name: "a" };
  await installCrd(client, Boat);
  await client.create(Boat, { metadata: key, spec: {} });
  const wrong = (type: string, name: string) =>
    new RegExp(
      `couldn't get version/kind; json parse error: json: cannot unmarshal ${type} into Go struct field .${name} of type string`,
    );
  for (
    const [patch, message] of [
      [{ apiVersion: {} }, wrong("object", "apiVersion")],
      [{ kind: [] }, wrong("array", "kind")],
      [{ kind: 5, apiVersion: 6 }, wrong("number", "apiVersion")],
      [{ kind: null }, /Object 'Kind' is missing in '\{/],
      [{ apiVersion: null }, /Object 'apiVersion' is missing in/],
      [{ apiVersion: "x/v2" }, /must be sample\.coracle\.dev\/v1/],
    ] as const
  ) await assert.rejects(client.patch(Boat, key, patch as object), message);
  await server.stop();
});

test("a patch of no custom resource is refused for its type before its name", async () => {
  const server = await ApiServer.start({ port: false, establishingDelay: 0 });
  const { client } = server;
  await installCrd(client, Boat);
  for (
    const [contentType, status] of [
      ["application/strategic-merge-patch+json", 415],
      ["application/merge-patch+json", 400],
    ] as const
  ) {
    const refused = client.request({
      method: "PATCH",
      path: "/apis/sample.coracle.dev/v1/namespaces/default/boats",
      headers: { "content-type": contentType },
      body: "{}",
    });
    await assert.rejects(refused, { status });
  }
  await server.stop();
});
