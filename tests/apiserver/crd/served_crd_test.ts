import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { z } from "zod";
import { ApiServer } from "@coracle/dev/apiserver";
import { defineKind, installCrd } from "@coracle/operator/crd";
import { CRD_KIND, crdCondition } from "../../../core/crd/crd_object.ts";

const Boat = defineKind({
  group: "sample.coracle.dev",
  version: "v1",
  kind: "Boat",
  shortNames: ["bt"],
  spec: z.object({
    seats: z.int().min(1).default(2),
    harbour: z.string().default("Brest").meta({
      "x-kubernetes-validations": [
        { rule: "self == oldSelf", message: "harbour is immutable" },
      ],
    }),
    oars: z.array(z.object({ name: z.string(), length: z.number() }))
      .optional()
      .meta({
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
      }),
  }),
  status: z.object({ afloat: z.int() }).partial(),
  printerColumns: [
    { name: "Seats", type: "integer", jsonPath: ".spec.seats" },
  ],
  selectableFields: [".spec.harbour"],
  scale: {
    specReplicasPath: ".spec.seats",
    statusReplicasPath: ".status.afloat",
  },
});

const PATH = "/apis/sample.coracle.dev/v1/namespaces/default/boats";

/** Runs a test with a server without socket, which is stopped afterwards. */
async function withServer(
  run: (server: ApiServer) => Promise<void>,
  options: { readonly data?: string } = {},
): Promise<void> {
  const server = await ApiServer.start({
    port: false,
    establishingDelay: 0,
    ...options,
  });
  try {
    await run(server);
  } finally {
    await server.stop();
  }
}

function boat(name: string, spec: { readonly harbour?: string } = {}) {
  return { metadata: { name, namespace: "default" }, spec };
}

async function moveAway({ client }: ApiServer, name: string): Promise<void> {
  await client.patch(Boat, { namespace: "default", name }, {
    spec: { harbour: "Away" },
  });
}

async function read(
  { transport, token }: ApiServer,
  path: string,
  headers: Record<string, string> = {},
) {
  const response = await transport.send({
    method: "GET",
    path,
    headers: { authorization: `Bearer ${token}`, ...headers },
  });
  let text = "";
  const decoder = new TextDecoder();
  for await (const chunk of response.body) {
    text += decoder.decode(chunk, { stream: true });
  }
  const { status } = response;
  return { status, headers: response.headers, body: parsed(text) };
}

/** Parsed response; plain text, such as that of a 404, is returned as is. */
// deno-lint-ignore no-explicit-any -- tests read arbitrary fields
function parsed(text: string): any {
  return text.startsWith("{") ? JSON.parse(text) : text;
}

test("a transition rule is enforced, also after a restart", async () => {
  await withServer(async (server) => {
    const { client } = server;
    await installCrd(client, Boat);
    await client.create(Boat, boat("a"));
    await assert.rejects(moveAway(server, "a"), /harbour is immutable/);
    await server.faults.restart();
    await assert.rejects(moveAway(server, "a"), /harbour is immutable/);
  });
});

test("a server serves the kinds and rules of its data file", async () => {
  const folder = await mkdtemp(join(tmpdir(), "coracle-"));
  const data = join(folder, "data.ndjson");
  try {
    await withServer(async ({ client }) => {
      await installCrd(client, Boat);
      await client.create(Boat, boat("a"));
    }, { data });
    await withServer(async (server) => {
      const key = { namespace: "default", name: "a" };
      const found = await server.client.get(Boat, key);
      assert.equal(found.spec.seats, 2);
      await assert.rejects(moveAway(server, "a"), /harbour is immutable/);
    }, { data });
  } finally {
    await rm(folder, { recursive: true });
  }
});

test("a kind is served with its columns, fields, scale and map lists", async () => {
  await withServer(async (server) => {
    const { client } = server;
    await installCrd(client, Boat);
    await client.create(Boat, boat("a"));
    await client.create(Boat, boat("b", { harbour: "Cork" }));
    const table = await read(server, PATH, {
      accept: "application/json;as=Table;v=v1;g=meta.k8s.io",
    });
    assert.deepEqual(
      table.body.columnDefinitions.map(({ name }: { name: string }) => name),
      ["Name", "Seats", "Age"],
    );
    assert.deepEqual(table.body.rows[0].cells.slice(0, 2), ["a", 2]);
    const inCork = await read(
      server,
      `${PATH}?fieldSelector=spec.harbour%3DCork`,
    );
    assert.equal(inCork.body.items.length, 1);
    const scale = await read(server, `${PATH}/a/scale`);
    assert.equal(scale.body.spec.replicas, 2);
    for (const [name, length] of [["left", 2], ["right", 2.5]] as const) {
      await client.apply(Boat, {
        metadata: { name: "a", namespace: "default" },
        spec: { oars: [{ name, length }] },
      }, { fieldManager: name });
    }
    const { spec } = await client.get(Boat, {
      namespace: "default",
      name: "a",
    });
    assert.deepEqual(spec.oars?.map(({ name }) => name), ["left", "right"]);
  });
});

test("OpenAPI contains a kind while it is served", async () => {
  await withServer(async (server) => {
    const { client } = server;
    await installCrd(client, Boat);
    const path = "/openapi/v3/apis/sample.coracle.dev/v1";
    const { body } = await read(server, path);
    const { Boat: shape } = Object.fromEntries(
      Object.entries<{ properties: Record<string, unknown> }>(
        body.components.schemas,
      ).map(([name, schema]) => [name.split(".").at(-1), schema]),
    );
    assert.ok(shape?.properties.spec);
    await client.delete(CRD_KIND, { name: "boats.sample.coracle.dev" });
    await assert.rejects(client.list(Boat), { status: 404 });
    assert.equal((await read(server, path)).status, 404);
  });
});

test("a deleted CRD waits for its objects and rejects new ones", async () => {
  await withServer(async ({ client }) => {
    await installCrd(client, Boat);
    const key = { namespace: "default", name: "a" };
    const held = boat("a");
    await client.create(Boat, {
      ...held,
      metadata: { ...held.metadata, finalizers: ["sample.coracle.dev/hold"] },
    });
    await client.create(Boat, boat("free"));
    const name = { name: "boats.sample.coracle.dev" };
    await client.delete(CRD_KIND, name);
    const crd = await client.get(CRD_KIND, name);
    assert.equal(crdCondition(crd, "Terminating")?.status, "True");
    await assert.rejects(client.create(Boat, boat("late")), {
      message: /create not allowed while custom resource definition is term/,
    });
    const held2 = await client.get(Boat, key);
    assert.ok(held2.metadata.deletionTimestamp);
    await client.patch(Boat, key, {
      metadata: { finalizers: [] },
    });
    await assert.rejects(client.get(CRD_KIND, name), { status: 404 });
  });
});

test("names of another CRD are not accepted", async () => {
  await withServer(async ({ client }) => {
    await installCrd(client, Boat);
    const other = defineKind({
      group: "sample.coracle.dev",
      version: "v1",
      kind: "Barge",
      shortNames: ["bt"],
      spec: z.object({}),
    });
    await assert.rejects(installCrd(client, other, { timeout: 1_000 }), /bt/);
    await client.delete(CRD_KIND, { name: "boats.sample.coracle.dev" });
    await installCrd(client, other);
  });
});

test("an older version is served with a warning and its own schema", async () => {
  const Yacht = defineKind({
    group: "sample.coracle.dev",
    version: "v2",
    kind: "Yacht",
    spec: z.object({ masts: z.int().default(1), owner: z.string().optional() }),
    versions: [{
      name: "v1",
      spec: z.object({ masts: z.int().default(1) }),
      deprecated: "v1 sails no more",
    }],
  });
  await withServer(async (server) => {
    const { client } = server;
    await installCrd(client, Yacht);
    await client.create(Yacht, {
      metadata: { name: "a", namespace: "default" },
      spec: { owner: "Ann" },
    });
    const old = "/apis/sample.coracle.dev/v1/namespaces/default/yachts/a";
    const { body, headers } = await read(server, old);
    assert.deepEqual(body.spec, { masts: 1 });
    assert.equal(body.apiVersion, "sample.coracle.dev/v1");
    assert.match(headers.warning ?? "", /v1 sails no more/);
  });
});
