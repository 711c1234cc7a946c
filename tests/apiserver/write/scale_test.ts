import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import * as builtin from "../../../dev/apiserver/builtin/builtin_definitions.ts";
import { ApiServer } from "../../../dev/apiserver/server.ts";
import { defineKind } from "../../../core/crd/define_kind.ts";
import { installCrd } from "../../../core/crd/install_crd.ts";
import { type Answer, TestServer } from "../support/test_server.ts";

const DEPLOYMENT = "/apis/apps/v1/namespaces/default/deployments/a";
const SCALE = `${DEPLOYMENT}/scale`;
const APPLY = { "content-type": "application/apply-patch+yaml" };
const MERGE = { "content-type": "application/merge-patch+json" };

/** Runs a test with a server that has a Deployment of two replicas. */
async function withDeployment(
  run: (server: TestServer) => Promise<void>,
): Promise<void> {
  const server = new TestServer({ builtin });
  const labels = { app: "a" };
  const { status } = await server.send(
    "POST",
    "/apis/apps/v1/namespaces/default/deployments?fieldManager=editor",
    {
      metadata: { name: "a" },
      spec: {
        replicas: 2,
        selector: { matchLabels: labels },
        template: {
          metadata: { labels },
          spec: { containers: [{ name: "c", image: "x" }] },
        },
      },
    },
  );
  assert.equal(status, 201);
  await run(server);
  server.stop();
}

function scale(replicas: unknown, fields: object = {}) {
  return {
    apiVersion: "autoscaling/v1",
    kind: "Scale",
    metadata: { name: "a" },
    spec: { replicas },
    ...fields,
  };
}

test("a Scale is applied with replicas only, and conflicts name its version", () =>
  withDeployment(async (server) => {
    const apply = (replicas: number, query: string): Promise<Answer> =>
      server.send("PATCH", `${SCALE}?${query}`, scale(replicas), APPLY);
    const refused = await apply(5, "fieldManager=autoscaler");
    assert.equal(refused.status, 409);
    assert.match(
      refused.body.message,
      /conflict with "editor" using autoscaling\/v1: \.spec\.replicas$/,
    );
    assert.deepEqual(
      refused.body.details.causes.map(({ message }: { message: string }) =>
        message
      ),
      ['conflict with "editor" using autoscaling/v1'],
    );
    const forced = await apply(5, "fieldManager=autoscaler&force=true");
    assert.equal(forced.status, 200);
    assert.deepEqual(forced.body.spec, { replicas: 5 });
    assert.deepEqual(forced.body.status, { replicas: 0, selector: "app=a" });
    const { body } = await server.send("GET", DEPLOYMENT);
    assert.equal(body.spec.replicas, 5);
    assert.equal(body.spec.template.spec.containers[0].image, "x");
  }));

test("a Scale whose replicas are not a number is rejected", () =>
  withDeployment(async (server) => {
    const why =
      /json: cannot unmarshal string into Go struct field ScaleSpec\.spec\.replicas of type int32/;
    for (const method of ["PUT", "PATCH"] as const) {
      const { status, body } = await server.send(
        method,
        `${SCALE}?fieldManager=x`,
        scale("3"),
        method === "PUT" ? {} : APPLY,
      );
      assert.equal(status, 400);
      assert.match(body.message, why);
    }
    const patched = await server.send("PATCH", SCALE, {
      spec: { replicas: "3" },
    }, MERGE);
    assert.equal(patched.status, 422);
    assert.match(patched.body.message, why);
    const negative = await server.send("PUT", SCALE, scale(-1));
    assert.equal(negative.status, 422);
    assert.match(
      negative.body.message,
      /spec\.replicas: Invalid value: -1: must be greater than or equal to 0$/,
    );
  }));

test("a Scale of another version is rejected", () =>
  withDeployment(async (server) => {
    const { status, body } = await server.send(
      "PUT",
      SCALE,
      scale(3, { apiVersion: "extensions/v1beta1" }),
    );
    assert.equal(status, 400);
    assert.match(
      body.message,
      /the API version in the data \(extensions\/v1beta1\) does not match the expected API version \(autoscaling\/v1\)/,
    );
  }));

test("a Scale is returned as a Table", () =>
  withDeployment(async (server) => {
    const { body } = await server.send("GET", SCALE, undefined, {
      accept: "application/json;as=Table;v=v1;g=meta.k8s.io",
    });
    assert.deepEqual(
      body.columnDefinitions.map(({ name }: { name: string }) => name),
      ["Name", "Desired", "Available", "Age"],
    );
    assert.deepEqual(body.rows[0].cells.slice(0, 3), ["a", 2, 0]);
  }));

test("the Scale of a custom resource can be written, but not applied", async () => {
  const Boat = defineKind({
    group: "sample.coracle.dev",
    version: "v1",
    kind: "Boat",
    spec: z.object({ seats: z.int() }),
    status: z.object({ afloat: z.int() }).partial(),
    scale: {
      specReplicasPath: ".spec.seats",
      statusReplicasPath: ".status.afloat",
    },
  });
  const server = await ApiServer.start({ port: false, establishingDelay: 0 });
  const { client } = server;
  const key = { namespace: "default", name: "a" };
  await installCrd(client, Boat);
  await client.create(Boat, { metadata: key, spec: { seats: 2 } });
  const path = "/apis/sample.coracle.dev/v1/namespaces/default/boats/a/scale";
  const send = (method: "PUT" | "PATCH", body: object, type: string) =>
    client.request({
      action: "write a Scale",
      verb: method === "PUT" ? "update" : "patch",
      method,
      path: `${path}?fieldManager=x`,
      headers: { "content-type": type },
      body: JSON.stringify(body),
    } as never);
  await send("PUT", scale(3), "application/json");
  assert.equal((await client.get(Boat, key)).spec.seats, 3);
  await assert.rejects(
    send("PATCH", scale(4), APPLY["content-type"]),
    /failed to create manager for existing fields: .*invalid group\/version: autoscaling\/v1/,
  );
  await assert.rejects(
    send("PUT", scale(-1), "application/json"),
    /\.?spec\.seats: Invalid value: -1: should be a non-negative integer/,
  );
  assert.equal((await client.get(Boat, key)).spec.seats, 3);
  await server.stop();
});
