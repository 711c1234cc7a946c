import assert from "node:assert/strict";
import { test } from "node:test";
import * as builtin from "../../../dev/apiserver/builtin/builtin_definitions.ts";
import { TestServer } from "../support/test_server.ts";

const NAMESPACE = "/api/v1/namespaces/default";
const POD = `${NAMESPACE}/pods/a`;

async function withPod(
  work: (server: TestServer) => Promise<void>,
  containers = ["c"],
): Promise<void> {
  const server = new TestServer({ builtin });
  const { status } = await server.send("POST", `${NAMESPACE}/pods`, {
    metadata: { name: "a" },
    spec: { containers: containers.map((name) => ({ name, image: "x" })) },
  });
  assert.equal(status, 201);
  await work(server);
  server.stop();
}

function binding(target: unknown, metadata: unknown = { name: "a" }) {
  return { apiVersion: "v1", kind: "Binding", metadata, target };
}

test("a binding assigns a pod to a node, once", async () => {
  await withPod(async (server) => {
    const bind = (node: string) =>
      server.send("POST", `${POD}/binding`, binding({ name: node }));
    assert.equal((await bind("n1")).status, 201);
    const { body } = await server.send("GET", POD);
    assert.equal(body.spec.nodeName, "n1");
    const [{ lastTransitionTime, ...condition }] = body.status.conditions;
    assert.match(lastTransitionTime, /Z$/);
    assert.deepEqual(condition, {
      type: "PodScheduled",
      status: "True",
      lastProbeTime: null,
    });
    const again = await bind("n2");
    assert.equal(again.status, 409);
    assert.match(again.body.message, /already assigned to node "n1"/);
  });
});

test("a binding in the namespace names its pod and is not stored", async () => {
  await withPod(async (server) => {
    const bind = (body: unknown, query = "") =>
      server.send("POST", `${NAMESPACE}/bindings${query}`, body);
    assert.equal((await bind(binding({ name: "n" }, {}))).status, 400);
    assert.equal(
      (await bind(binding({ name: "n" }, { name: "b" }))).status,
      404,
    );
    assert.equal((await bind(binding({ kind: "Pod", name: "n" }))).status, 500);
    assert.equal((await bind(binding({}))).status, 500);
    const dry = await bind(binding({ name: "n" }), "?dryRun=All");
    assert.equal(dry.status, 201);
    const unbound = await server.send("GET", POD);
    assert.equal(unbound.body.spec.nodeName, undefined);
    assert.equal((await bind(binding({ name: "n" }))).status, 201);
    const bound = await server.send("GET", POD);
    assert.equal(bound.body.spec.nodeName, "n");
    const list = await server.send("GET", `${NAMESPACE}/bindings`);
    assert.equal(list.status, 405);
  });
});

test("a binding must be of its kind, and has no Table", async () => {
  await withPod(async (server) => {
    const path = `${NAMESPACE}/bindings`;
    for (const at of [path, `${POD}/binding`]) {
      const bind = async (body: unknown, accept = "application/json") => {
        const answer = await server.send("POST", at, body, { accept });
        return [answer.status, answer.body.message];
      };
      const target = { name: "n" };
      assert.deepEqual(await bind({ kind: "Always", target }), [
        400,
        'Always in version "v1" cannot be handled as a Binding: no kind "Always" is registered for version "v1" in scheme "pkg/runtime/scheme.go:111"',
      ]);
      assert.deepEqual(await bind({ kind: "Pod", target }), [
        400,
        'Pod in version "v1" cannot be handled as a Binding: converting (v1.Pod) to (core.Binding): unknown conversion',
      ]);
      const table = "application/json;as=Table;g=meta.k8s.io;v=v1";
      assert.equal((await bind(binding(target), table))[0], 406);
      assert.equal((await bind(binding(target), "text/plain"))[0], 406);
    }
  });
});

test("an eviction deletes its pod", async () => {
  await withPod(async (server) => {
    const { status } = await server.send("POST", `${POD}/eviction`, {
      apiVersion: "policy/v1",
      kind: "Eviction",
      metadata: { name: "a" },
    });
    assert.equal(status, 201);
    assert.equal((await server.send("GET", POD)).status, 404);
  });
});

test("node requests fail as on a cluster without the node", async () => {
  await withPod(async (server) => {
    const get = (path: string) => server.send("GET", `${POD}/${path}`);
    assert.equal((await get("log")).status, 400);
    assert.match((await get("log")).body.message, /choose one of: \[c d\]/);
    assert.equal((await get("log?container=c")).status, 204);
    assert.match(
      (await get("log?container=z")).body.message,
      /z is not valid for pod a/,
    );
    assert.match(
      (await get("exec?container=c&command=ls")).body.message,
      /does not have a host assigned/,
    );
    assert.match((await get("proxy/x")).body.message, /address not allowed/);
    const put = await server.send("PUT", `${POD}/log`, {});
    assert.equal(put.status, 405);
    await server.send("POST", `${POD}/binding`, binding({ name: "n1" }));
    const gone = await get("log?container=c");
    assert.equal(gone.status, 404);
    assert.equal(gone.body.details.name, "n1");
  }, ["c", "d"]);
});

test("TokenRequest issues tokens of at least ten minutes", async () => {
  const server = new TestServer({ builtin });
  const ask = (name: string, spec: unknown) =>
    server.send("POST", `${NAMESPACE}/serviceaccounts/${name}/token`, {
      apiVersion: "authentication.k8s.io/v1",
      kind: "TokenRequest",
      spec,
    });
  await server.send("POST", `${NAMESPACE}/serviceaccounts`, {
    metadata: { name: "robot" },
  });
  const { status, body } = await ask("robot", { expirationSeconds: 1200 });
  assert.equal(status, 201);
  assert.equal(body.metadata.name, "robot");
  assert.equal(body.spec.expirationSeconds, 1200);
  assert.ok(body.status.token);
  const short = await ask("robot", { expirationSeconds: 5 });
  assert.equal(short.status, 422);
  assert.equal(short.body.details.causes[0].field, "spec.expirationSeconds");
  assert.equal((await ask("nobody", {})).status, 404);
  server.stop();
});

test("only finalize changes the finalizers of a namespace's spec", async () => {
  const server = new TestServer({ builtin });
  const patch = (path: string, finalizers: string[]) =>
    server.send("PATCH", `${NAMESPACE}${path}`, { spec: { finalizers } }, {
      "content-type": "application/merge-patch+json",
    });
  const { body } = await patch("", []);
  assert.deepEqual(body.spec.finalizers, ["kubernetes"]);
  const { status } = await server.send("PUT", `${NAMESPACE}/finalize`, {
    metadata: { name: "default" },
    spec: { finalizers: ["kubernetes", "example.com/x"] },
  });
  assert.equal(status, 200);
  const after = await server.send("GET", NAMESPACE);
  assert.deepEqual(after.body.spec.finalizers, [
    "kubernetes",
    "example.com/x",
  ]);
  server.stop();
});
