import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@coracle/dev";
import { ConfigMap, Namespace, Pod } from "@coracle/operator/kinds";
import { workloadTest } from "../support/workload_case.ts";
import { TestServer } from "../support/test_server.ts";

const N = "/api/v1/namespaces";

async function inNamespace(
  work: (server: TestServer, clock: VirtualClock) => Promise<void>,
): Promise<void> {
  const clock = new VirtualClock();
  const server = new TestServer({ clock });
  await server.send("POST", N, { metadata: { name: "x" } });
  await clock.settle();
  await work(server, clock);
  server.stop();
  assert.equal(clock.pendingTimers, 0);
}

test("a namespace gets its service account and CA certificate, also after deletion", async () => {
  await inNamespace(async (server, clock) => {
    const account = `${N}/x/serviceaccounts/default`;
    assert.equal((await server.send("GET", account)).status, 200);
    await server.send("DELETE", account);
    await clock.settle();
    assert.equal((await server.send("GET", account)).status, 200);
    const { body } = await server.send(
      "GET",
      `${N}/x/configmaps/kube-root-ca.crt`,
    );
    assert.equal(body.data["ca.crt"], "none");
  });
});

test("the CA certificate of a namespace is restored when it changes", async () => {
  await inNamespace(async (server, clock) => {
    const path = `${N}/x/configmaps/kube-root-ca.crt`;
    const merge = { "content-type": "application/merge-patch+json" };
    await server.send("DELETE", path);
    await clock.settle();
    const description = "kubernetes.io/description";
    for (
      const patch of [
        { data: { "ca.crt": "another", more: "1" } },
        { data: null, metadata: { annotations: { [description]: null } } },
      ]
    ) {
      assert.equal(
        (await server.send("PATCH", path, patch, merge)).status,
        200,
      );
      await clock.settle();
      const { body } = await server.send("GET", path);
      assert.deepEqual(body.data, { "ca.crt": "none" });
      assert.match(body.metadata.annotations[description], /CA bundle/);
    }
  });
});

test("a deleted namespace rejects new objects, is emptied and removed", async () => {
  await inNamespace(async (server, clock) => {
    const { body } = await server.send("DELETE", `${N}/x`);
    assert.equal(body.status.phase, "Terminating");
    const late = await server.send("POST", `${N}/x/configmaps`, {
      metadata: { name: "late" },
    });
    assert.equal(late.status, 403);
    assert.equal(late.body.details.causes[0].reason, "NamespaceTerminating");
    await clock.advance(1_000);
    assert.equal((await server.send("GET", `${N}/x`)).status, 404);
    assert.equal(
      (await server.send("GET", `${N}/x/configmaps`)).body.items.length,
      0,
    );
  });
});

test("a deleted namespace waits for the finalizers of its objects", async () => {
  await inNamespace(async (server, clock) => {
    await server.send("POST", `${N}/x/configmaps`, {
      metadata: { name: "held", finalizers: ["example.com/hold"] },
    });
    await server.send("DELETE", `${N}/x`);
    await clock.advance(60_000);
    assert.equal((await server.send("GET", `${N}/x`)).status, 200);
    await server.send("PUT", `${N}/x/configmaps/held`, {
      metadata: { name: "held" },
    });
    await clock.settle();
    assert.equal((await server.send("GET", `${N}/x`)).status, 404);
  });
});

test("the built-in namespaces cannot be deleted", async () => {
  await inNamespace(async (server) => {
    for (const name of ["default", "kube-system", "kube-public"]) {
      assert.equal((await server.send("DELETE", `${N}/${name}`)).status, 403);
    }
  });
});

test(
  "the ConfigMap of the root certificate is restored when it is changed",
  workloadTest({}, async ({ client, clock, server }) => {
    const key = { namespace: "default", name: "kube-root-ca.crt" };
    await client.patch(ConfigMap, key, { data: { "ca.crt": "forged" } });
    await clock.advance(10);
    const { data } = await client.get(ConfigMap, key);
    assert.equal(data?.["ca.crt"], server.certificateAuthority);
    await client.delete(ConfigMap, key);
    await clock.advance(10);
    assert.ok(await client.get(ConfigMap, key));
  }),
);

test(
  "a namespace is emptied of its pods first, and says what remains",
  workloadTest({ simulate: true }, async ({ client, clock }) => {
    const metadata = { name: "old" };
    await client.create(Namespace, { metadata });
    const key = { namespace: "old", name: "a" };
    await client.create(Pod, {
      metadata: key,
      spec: { containers: [{ name: "c", image: "i" }] },
    });
    await client.create(ConfigMap, { metadata: key });
    await clock.advance(1_000);
    await client.delete(Namespace, metadata);
    await clock.advance(300);
    assert.ok(await client.get(ConfigMap, key));
    const { status } = await client.get(Namespace, metadata);
    assert.equal(
      status?.conditions?.find(({ type }) =>
        type === "NamespaceContentRemaining"
      )?.message,
      "Some resources are remaining: pods. has 1 resource instances",
    );
    await clock.advance(1_000);
    const { items } = await client.list(Namespace);
    assert.ok(!items.some(({ metadata: { name } }) => name === "old"));
  }),
);
