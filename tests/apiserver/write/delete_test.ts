import assert from "node:assert/strict";
import { test } from "node:test";
import { TestServer } from "../support/test_server.ts";

const C = "/api/v1/namespaces/default/configmaps";

async function made(server: TestServer, name: string, metadata = {}) {
  const { body } = await server.send("POST", C, {
    metadata: { name, ...metadata },
  });
  return body.metadata;
}

function owners(...metadata: { name: string; uid: string }[]) {
  return {
    ownerReferences: metadata.map(({ name, uid }) => ({
      apiVersion: "v1",
      kind: "ConfigMap",
      name,
      uid,
      blockOwnerDeletion: true,
    })),
  };
}

/** The names that are left once the collector has done its work. */
async function left(server: TestServer): Promise<string[]> {
  for (let turn = 0; turn < 20; turn++) {
    await new Promise((resolve) => setImmediate(resolve));
  }
  const { body } = await server.send("GET", C);
  return body.items.map((item: { metadata: { name: string } }) =>
    item.metadata.name
  ).filter((name: string) => name !== "kube-root-ca.crt");
}

test("delete checks preconditions", async () => {
  const server = new TestServer();
  const { uid } = await made(server, "a");
  const remove = async (preconditions: unknown) =>
    (await server.send("DELETE", `${C}/a`, { preconditions })).status;
  assert.equal(await remove({ uid: "other" }), 409);
  assert.equal(await remove({ resourceVersion: "1" }), 409);
  assert.equal(await remove({ uid }), 200);
  server.stop();
});

test("background deletion removes dependents without other owners, at any depth", async () => {
  const server = new TestServer();
  const owner = await made(server, "owner");
  const other = await made(server, "other");
  const child = await made(server, "child", owners(owner));
  await made(server, "grandchild", owners(child));
  await made(server, "shared", owners(owner, other));
  await server.send("DELETE", `${C}/owner`);
  assert.deepEqual(await left(server), ["other", "shared"]);
  const { body } = await server.send("GET", `${C}/shared`);
  assert.equal(body.metadata.ownerReferences.length, 1);
  server.stop();
});

test("foreground deletion waits for blocking dependents", async () => {
  const server = new TestServer();
  const owner = await made(server, "owner");
  await made(server, "child", {
    ...owners(owner),
    finalizers: ["example.com/hold"],
  });
  await server.send("DELETE", `${C}/owner?propagationPolicy=Foreground`);
  assert.deepEqual(await left(server), ["child", "owner"]);
  await server.send("PATCH", `${C}/child`, { metadata: { finalizers: null } }, {
    "content-type": "application/merge-patch+json",
  });
  assert.deepEqual(await left(server), []);
  server.stop();
});

test("orphaning deletion removes owner references from dependents", async () => {
  const server = new TestServer();
  const owner = await made(server, "owner");
  await made(server, "child", owners(owner));
  await server.send("DELETE", `${C}/owner?propagationPolicy=Orphan`);
  assert.deepEqual(await left(server), ["child"]);
  const { body } = await server.send("GET", `${C}/child`);
  assert.equal(body.metadata.ownerReferences, undefined);
  server.stop();
});

test("an object whose owner never existed is collected", async () => {
  const server = new TestServer();
  await made(server, "a", owners({ name: "b", uid: "none" }));
  assert.deepEqual(await left(server), []);
  server.stop();
});

test("a cascade of many objects ends without delaying other requests", async () => {
  const server = new TestServer();
  const owner = await made(server, "owner");
  for (let index = 0; index < 500; index++) {
    await made(server, `child-${index}`, owners(owner));
  }
  await server.send("DELETE", `${C}/owner`);
  const { status } = await server.send("GET", "/healthz");
  assert.equal(status, 200);
  assert.deepEqual(await left(server), []);
  server.stop();
});

test("deletecollection deletes and returns the selected objects", async () => {
  const server = new TestServer();
  await made(server, "a", { labels: { x: "1" } });
  await made(server, "b", { labels: { x: "2" } });
  const { body } = await server.send("DELETE", `${C}?labelSelector=x%3D1`);
  assert.equal(body.items.length, 1);
  assert.deepEqual(await left(server), ["b"]);
  server.stop();
});
