import assert from "node:assert/strict";
import { test } from "node:test";
import type { ManagedFieldsEntry } from "@coracle/operator/client";
import * as builtin from "../../../dev/apiserver/builtin/builtin_definitions.ts";
import { type ApiSession, withSession } from "../support/api_session.ts";
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

test("a Scale that is applied without replicas changes nothing", () =>
  withDeployment(async (server) => {
    const before = await server.send("GET", DEPLOYMENT);
    const { status, body } = await server.send(
      "PATCH",
      `${SCALE}?fieldManager=autoscaler`,
      scale(undefined),
      APPLY,
    );
    assert.equal(status, 200);
    assert.deepEqual(body.spec, { replicas: 2 });
    const after = await server.send("GET", DEPLOYMENT);
    assert.deepEqual(after.body, before.body);
  }));

test("an applied Scale of equal replicas has two owners, one without time", () =>
  withDeployment(async (server) => {
    const owners = async () => {
      const { status } = await server.send(
        "PATCH",
        `${SCALE}?fieldManager=autoscaler`,
        scale(2),
        APPLY,
      );
      assert.equal(status, 200);
      const { body } = await server.send("GET", DEPLOYMENT);
      return ownersOf(body).filter(([, , owns]) => owns);
    };
    const applied = ["autoscaler", "scale", true, false];
    assert.deepEqual(await owners(), [
      applied,
      ["editor", undefined, true, false],
    ]);
    await server.send(
      "PATCH",
      DEPLOYMENT,
      { metadata: { labels: { a: "b" } } },
      MERGE,
    );
    assert.deepEqual(await owners(), [applied]);
  }));

/** Manager, subresource, whether it owns the replicas, and whether it has a time. */
function ownersOf(
  { metadata }: { metadata: { managedFields: ManagedFieldsEntry[] } },
): readonly unknown[][] {
  return metadata.managedFields.map((
    { manager, subresource, fieldsV1, time },
  ) => [
    manager,
    subresource,
    /"f:(replicas|seats)"/.test(JSON.stringify(fieldsV1)),
    time !== undefined,
  ]);
}

const BOATS = "/apis/sample.coracle.dev/v1/namespaces/default/boats";

/** Runs a test with a server that has a custom resource with a Scale. */
function withBoats(
  run: (session: ApiSession) => Promise<void>,
  specReplicasPath = ".spec.crew.seats",
): Promise<void> {
  return withSession(async (session) => {
    await session.create(
      "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
      {
        metadata: { name: "boats.sample.coracle.dev" },
        spec: {
          group: "sample.coracle.dev",
          names: { kind: "Boat", plural: "boats" },
          scope: "Namespaced",
          versions: [{
            name: "v1",
            served: true,
            storage: true,
            subresources: {
              status: {},
              scale: {
                specReplicasPath,
                statusReplicasPath: ".status.crew.seats",
                labelSelectorPath: ".status.selector",
              },
            },
            schema: {
              openAPIV3Schema: {
                type: "object",
                properties: {
                  spec: {
                    type: "object",
                    "x-kubernetes-preserve-unknown-fields": true,
                  },
                  status: {
                    type: "object",
                    "x-kubernetes-preserve-unknown-fields": true,
                  },
                },
              },
            },
          }],
        },
      },
    );
    await run(session);
  });
}

function boat(name: string, spec: object, status?: object): object {
  const apiVersion = "sample.coracle.dev/v1";
  return { apiVersion, kind: "Boat", metadata: { name }, spec, status };
}

test("the Scale of a custom resource can be written", () =>
  withBoats(async (session) => {
    await session.create(BOATS, boat("a", { crew: { seats: 2 } }));
    const put = (replicas: number) =>
      session.send("PUT", `${BOATS}/a/scale?fieldManager=x`, scale(replicas));
    assert.equal((await put(3)).status, 200);
    const { status, body } = await put(-1);
    assert.equal(status, 422);
    assert.match(
      body.message,
      /\.spec\.crew\.seats: Invalid value: -1: should be a non-negative integer/,
    );
    const after = await session.send("GET", `${BOATS}/a`);
    assert.equal(after.body.spec.crew.seats, 3);
  }));

test("the Scale of a custom resource is written to fields of any name", () =>
  withBoats(async (session) => {
    await session.create(BOATS, boat("a", {}));
    const { status, body } = await session.send(
      "PUT",
      `${BOATS}/a/scale`,
      scale(3),
    );
    assert.equal(status, 200);
    assert.equal(body.spec.replicas, 3);
    const after = await session.send("GET", `${BOATS}/a`);
    assert.equal(
      JSON.stringify(after.body.spec),
      '{"__proto__":{"constructor":3}}',
    );
  }, ".spec.__proto__.constructor"));

test("the Scale of a custom resource is applied only if it changes nothing", () =>
  withBoats(async (session) => {
    const apply = async (
      name: string,
      replicas: number | undefined,
      query = "",
    ) => {
      const { status, body } = await session.send(
        "PATCH",
        `${BOATS}/${name}/scale?fieldManager=x${query}`,
        scale(replicas, { metadata: { name } }),
        APPLY,
      );
      return [status, body.message];
    };
    assert.deepEqual(await apply("a", 2), [
      404,
      'boats.sample.coracle.dev "a" not found',
    ]);
    await session.create(`${BOATS}?fieldManager=one`, boat("a", {}));
    const notConverted =
      "to proper version: request to convert CR to an invalid group/version: autoscaling/v1";
    assert.deepEqual(await apply("a", 3), [
      500,
      `failed to create manager for existing fields: failed to convert live object (/; autoscaling/v1, Kind=Scale) ${notConverted}`,
    ]);
    await session.patch(`${BOATS}/a?fieldManager=one`, {
      spec: { crew: { seats: 1 } },
    });
    assert.deepEqual(await apply("a", 3), [
      409,
      'Apply failed with 1 conflict: conflict with "one" using autoscaling/v1: .spec.crew.seats',
    ]);
    assert.deepEqual(await apply("a", 3, "&force=true"), [
      500,
      `failed to convert new object (/a; autoscaling/v1, Kind=Scale) ${notConverted}`,
    ]);
    assert.deepEqual(await apply("a", 1), [200, undefined]);
    const { body } = await session.send("GET", `${BOATS}/a`);
    assert.deepEqual(body.spec, { crew: { seats: 1 } });
    assert.deepEqual(
      body.metadata.managedFields[0].fieldsV1,
      { "f:spec": { "f:crew": { "f:seats": {} } } },
    );
    assert.deepEqual(ownersOf(body)[0], ["x", "scale", true, false]);
    assert.deepEqual((await apply("a", undefined))[0], 200);
    const wrong = await session.send(
      "PATCH",
      `${BOATS}/a/scale?fieldManager=x`,
      {
        spec: { replicas: 1 },
      },
      APPLY,
    );
    assert.equal(wrong.body.message, "invalid object type: /, Kind=");
  }));

test("a written Scale of equal replicas leaves their updater an entry without time", () =>
  withBoats(async (session) => {
    await session.create(
      `${BOATS}?fieldManager=one`,
      boat("a", { crew: { seats: 2 } }),
    );
    const owners = async () => {
      const { status } = await session.send(
        "PUT",
        `${BOATS}/a/scale?fieldManager=two`,
        scale(2),
      );
      assert.equal(status, 200);
      return ownersOf((await session.send("GET", `${BOATS}/a`)).body);
    };
    const others = ["one", undefined, false, true];
    assert.deepEqual(await owners(), [
      ["one", undefined, true, false],
      others,
    ]);
    assert.deepEqual(await owners(), [others]);
    const { body } = await session.send("GET", `${BOATS}/a/scale`, undefined, {
      accept: "application/json;as=Table;v=v1;g=meta.k8s.io",
    });
    assert.equal(body.columnDefinitions[3].type, "date");
  }));

test("fields that a Scale reads and writes are refused if they do not fit", () =>
  withBoats(async (session) => {
    const text = (path: string) =>
      `${path} accessor error: x is of the type string, expected map[string]interface{}`;
    for (
      const [spec, status, field, why] of [
        [{ crew: "x" }, {}, ".spec.crew.seats", text(".spec.crew.seats")],
        [
          { crew: { seats: 1.5 } },
          {},
          ".spec.crew.seats",
          ".spec.crew.seats accessor error: 1.5 is of the type float64, expected int64",
        ],
        [{}, { crew: "x" }, ".status.crew.seats", text(".status.crew.seats")],
        [
          {},
          { selector: { a: 1 } },
          ".status.selector",
          ".status.selector accessor error: map[a:1] is of the type map[string]interface {}, expected string",
        ],
      ] as const
    ) {
      const created = await session.send("POST", BOATS, boat("b", spec));
      const { body } = created.status === 422
        ? created
        : await session.patch(`${BOATS}/b/status`, { status });
      if (created.status === 201) await session.send("DELETE", `${BOATS}/b`);
      assert.deepEqual(
        body.details.causes.map(
          ({ field, message }: { field: string; message: string }) => [
            field,
            message.replace(/^Invalid value: [^:]*: /, ""),
          ],
        ),
        [[field, why]],
      );
    }
    await session.create(BOATS, boat("c", { crew: null }));
    const { status, body } = await session.send(
      "PUT",
      `${BOATS}/c/scale`,
      scale(1, { metadata: { name: "c" } }),
    );
    assert.equal(status, 500);
    assert.equal(
      body.message,
      "value cannot be set because .spec.crew is not a map[string]interface{}",
    );
  }));
