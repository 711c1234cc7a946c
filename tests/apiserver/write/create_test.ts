import assert from "node:assert/strict";
import { test } from "node:test";
import { TestServer } from "../support/test_server.ts";

const C = "/api/v1/namespaces/default/configmaps";

test("create sets server-owned fields regardless of the request", async () => {
  const server = new TestServer();
  const { status, body } = await server.send("POST", C, {
    metadata: {
      name: "a",
      uid: "mine",
      creationTimestamp: "2001-01-01T00:00:00Z",
      deletionTimestamp: "2001-01-01T00:00:00Z",
      deletionGracePeriodSeconds: 5,
      selfLink: "/x",
    },
  });
  assert.equal(status, 201);
  const { metadata } = body;
  assert.match(metadata.uid, /^[0-9a-f]{8}-[0-9a-f]{4}-4/);
  assert.notEqual(metadata.creationTimestamp, "2001-01-01T00:00:00Z");
  assert.equal(metadata.namespace, "default");
  for (
    const field of [
      "deletionTimestamp",
      "deletionGracePeriodSeconds",
      "selfLink",
    ]
  ) {
    assert.equal(field in metadata, false, field);
  }
  server.stop();
});

test("create generates names from a truncated prefix", async () => {
  const server = new TestServer();
  const { body } = await server.send("POST", C, {
    metadata: { generateName: `${"a".repeat(80)}-` },
  });
  assert.match(body.metadata.name, /^a{58}[bcdfghjklmnpqrstvwxz2456789]{5}$/);
  server.stop();
});

test("create rejects invalid names and namespaces", async () => {
  const server = new TestServer();
  const refused = async (object: unknown, path = C) =>
    (await server.send("POST", path, object)).status;
  assert.equal(await refused({ metadata: {} }), 422);
  assert.equal(await refused({ metadata: { name: "A" } }), 422);
  assert.equal(await refused({ metadata: { name: "a", namespace: "b" } }), 400);
  assert.equal(
    await refused(
      { metadata: { name: "a" } },
      "/api/v1/namespaces/none/configmaps",
    ),
    404,
  );
  server.stop();
});

test("create refuses a resourceVersion, after all else, if it is a number", async () => {
  const server = new TestServer();
  const status = async (resourceVersion: string, name?: string, path = C) =>
    (await server.send("POST", path, {
      metadata: { name, generateName: "a-", resourceVersion },
    })).status;
  for (const version of ["1", "007", "18446744073709551615"]) {
    assert.equal(await status(version), 500, version);
  }
  for (const version of ["x", "0", "-1", "+1", "18446744073709551616"]) {
    assert.equal(await status(version), 201, version);
  }
  assert.equal(await status("1", "A"), 422);
  assert.equal(await status("1", "a", "/api/v1/namespaces/none/secrets"), 404);
  server.stop();
});

test("create names the field of the type that is no text", async () => {
  const server = new TestServer();
  const { body } = await server.send("POST", C, { apiVersion: true });
  assert.match(
    body.message,
    /cannot unmarshal bool into Go struct field \.apiVersion of type string \(\{"apiVersion":true\}\)$/,
  );
  server.stop();
});

test("create with dryRun stores nothing", async () => {
  const server = new TestServer();
  await server.send("GET", C);
  const { revision } = server.instance.context.store;
  const { status, body } = await server.send("POST", `${C}?dryRun=All`, {
    metadata: { name: "a" },
  });
  assert.equal(status, 201);
  assert.equal(body.metadata.resourceVersion, undefined);
  assert.equal(server.instance.context.store.revision, revision);
  assert.equal((await server.send("GET", `${C}/a`)).status, 404);
  server.stop();
});

test("a PUT creates an object only if the resource allows it", async () => {
  const server = new TestServer();
  const leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
  const lease = { metadata: { name: "l" } };
  const known = { metadata: { name: "u", uid: "1", resourceVersion: "5" } };
  const gone = await server.send("PUT", `${leases}/u`, known);
  assert.equal(gone.status, 409);
  assert.match(
    gone.body.message,
    /Key: \/registry\/leases\/default\/u, .* UID in precondition: 1, UID in object meta: $/,
  );
  const versioned = { metadata: { name: "v", resourceVersion: "5" } };
  assert.equal(
    (await server.send("PUT", `${leases}/v`, versioned)).status,
    201,
  );
  assert.equal((await server.send("PUT", `${leases}/l`, lease)).status, 201);
  assert.equal((await server.send("PUT", `${leases}/l`, lease)).status, 422);
  assert.equal((await server.send("PUT", `${C}/l`, lease)).status, 404);
  server.stop();
});
