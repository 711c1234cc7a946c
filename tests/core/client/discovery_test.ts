import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@coracle/dev";
import { ApiError, Client, untyped } from "@coracle/operator/client";
import { Discovery } from "../../../core/client/discovery.ts";
import {
  type Script,
  ScriptedTransport,
} from "../../support/scripted_transport.ts";

const GATEWAY = untyped({
  group: "net.example",
  version: "v1",
  kind: "Gateway",
});
const RESOURCES = [
  {
    name: "gateways",
    singularName: "gateway",
    namespaced: true,
    kind: "Gateway",
    verbs: ["get", "list"],
    shortNames: ["gw"],
    categories: ["all"],
  },
  {
    name: "gateways/status",
    namespaced: true,
    kind: "Gateway",
    verbs: ["get"],
  },
  { name: "classes", namespaced: false, kind: "Class", verbs: ["get"] },
];
const LIST = { kind: "APIResourceList", resources: RESOURCES };
const GATEWAYS = {
  group: "net.example",
  version: "v1",
  kind: "Gateway",
  plural: "gateways",
  singular: "gateway",
  scope: "Namespaced",
  shortNames: ["gw"],
  categories: ["all"],
  verbs: ["get", "list"],
  subresources: ["status"],
};

function clientWith(
  script: Script,
  clock?: VirtualClock,
): { client: Client; transport: ScriptedTransport } {
  const transport = new ScriptedTransport(script);
  return { transport, client: new Client({ transport }, { clock }) };
}

test("Client.resolve requests each group and version once", async () => {
  const clock = new VirtualClock();
  const { client, transport } = clientWith(() => ({ body: LIST }), clock);
  const both = await Promise.all([
    client.resolve(GATEWAY),
    client.resolve(untyped({ ...GATEWAY, kind: "Class" })),
  ]);
  assert.deepEqual(both.map(({ plural, scope }) => [plural, scope]), [
    ["gateways", "Namespaced"],
    ["classes", "Cluster"],
  ]);
  await client.resolve(GATEWAY);
  assert.deepEqual(
    transport.requests.map(({ path }) => path),
    ["/apis/net.example/v1"],
  );
  await clock.advance(599_999);
  await client.resolve(GATEWAY);
  assert.equal(transport.requests.length, 1);
  await clock.advance(1);
  await client.resolve(GATEWAY);
  assert.equal(transport.requests.length, 2);
});

test("A request for kinds that fails late does not remove a later answer", async () => {
  const clock = new VirtualClock();
  const late = Promise.withResolvers<unknown>();
  const answers = [late.promise, Promise.resolve(LIST)];
  const discovery = new Discovery({
    clock,
    json: () => answers.shift() ?? Promise.reject(new Error("a third request")),
  });
  const first = assert.rejects(discovery.resolve(GATEWAY), /late/);
  await clock.advance(600_000);
  await discovery.resolve(GATEWAY);
  late.reject(new Error("late"));
  await first;
  await discovery.resolve(GATEWAY);
});

test("Client.resolve requests again when a kind was missing", async () => {
  const { client, transport } = clientWith((_request, count) => ({
    body: count === 1 ? { resources: RESOURCES.slice(2) } : LIST,
  }));
  await assert.rejects(() => client.resolve(GATEWAY), {
    name: "ApiError",
    message:
      "Cannot find kind net.example/v1 Gateway: the server does not serve it: received 404 NotFound",
  });
  assert.equal(transport.requests.length, 1);
  assert.equal((await client.resolve(GATEWAY)).plural, "gateways");
  assert.equal(transport.requests.length, 2);
});

test("Client.resolve takes no kind whose name only begins alike", async () => {
  const other = { name: "lists", namespaced: false, kind: "GatewayList" };
  const { client } = clientWith(() => ({
    body: { resources: [other, ...RESOURCES] },
  }));
  assert.equal((await client.resolve(GATEWAY)).plural, "gateways");
});

test("A write of a kind that is not served says what may be missing", async () => {
  const { client } = clientWith(() => ({
    status: 404,
    body: "404 page not found\n",
  }));
  const kind = { ...GATEWAY, plural: "gateways", scope: "Namespaced" } as const;
  await assert.rejects(
    () => client.create(kind, { metadata: { namespace: "a", name: "b" } }),
    {
      message:
        'Cannot create Gateway a/b: "404 page not found", as for a kind whose CustomResourceDefinition is not installed: received 404 NotFound',
    },
  );
});

test("Client.resolve reports unserved groups and other failures", async () => {
  const missing = clientWith(() => ({
    status: 404,
    body: "404 page not found",
  }));
  await assert.rejects(
    () => missing.client.get(GATEWAY, { namespace: "a", name: "b" }),
    (error: unknown) => ApiError.is(error) && error.isNotFound,
  );
  const refused = clientWith((_request, count) =>
    count === 1 ? { status: 403, body: "" } : { body: LIST }
  );
  await assert.rejects(() => refused.client.resolve(GATEWAY), {
    message: /^Cannot read \/apis\/net.example\/v1: /,
  });
  assert.equal((await refused.client.resolve(GATEWAY)).plural, "gateways");
});

test("Client.resolve sends no request for a resolved kind", async () => {
  const { client, transport } = clientWith(() => ({ body: LIST }));
  await client.resolve(
    untyped({ ...GATEWAY, plural: "gateways", scope: "Namespaced" }),
  );
  assert.equal(transport.requests.length, 0);
});

test("Client.resources reads aggregated discovery with two requests", async () => {
  const { client, transport } = clientWith(({ path }) => ({
    body: {
      kind: "APIGroupDiscoveryList",
      items: path === "/api" ? [] : [{
        metadata: { name: "net.example" },
        versions: [
          {
            version: "v1",
            resources: [{
              resource: "gateways",
              responseKind: { kind: "Gateway" },
              scope: "Namespaced",
              singularResource: "gateway",
              shortNames: ["gw"],
              categories: ["all"],
              verbs: ["get", "list"],
              subresources: [{ subresource: "status", verbs: ["get"] }],
            }],
          },
          {
            version: "v1beta1",
            freshness: "Stale",
            resources: [{ resource: "old", responseKind: { kind: "Old" } }],
          },
        ],
      }],
    },
  }));
  assert.deepEqual(await client.resources(), [GATEWAYS]);
  assert.equal(transport.requests.length, 2);
  assert.match(
    transport.requests[0]?.headers["accept"] ?? "",
    /g=apidiscovery\.k8s\.io;v=v2;as=APIGroupDiscoveryList/,
  );
});

test("Client.resources reads a server without the core group, and no other 404", async () => {
  const { client } = clientWith(({ path }) =>
    path === "/apis"
      ? {
        body: {
          kind: "APIGroupList",
          groups: [{ name: "net.example", versions: [{ version: "v1" }] }],
        },
      }
      : path === "/api"
      ? { status: 404, body: "404 page not found" }
      : { body: LIST }
  );
  const [first] = await client.resources();
  assert.deepEqual(first, GATEWAYS);
  const { client: other } = clientWith(() => ({ status: 404 }));
  await assert.rejects(() => other.resources(), { status: 404 });
});

test("Client.resources reads older servers by group and skips failed groups", async () => {
  const { client } = clientWith(({ path }) => {
    switch (path) {
      case "/api":
        return { body: { kind: "APIVersions", versions: ["v1"] } };
      case "/apis":
        return {
          body: {
            kind: "APIGroupList",
            groups: [
              { name: "net.example", versions: [{ version: "v1" }] },
              { name: "down.example", versions: [{ version: "v1" }] },
            ],
          },
        };
      case "/api/v1":
        return {
          body: {
            resources: [{
              name: "nodes",
              kind: "Node",
              namespaced: false,
              verbs: [],
            }],
          },
        };
      case "/apis/net.example/v1": {
        const gate = { name: "gate", kind: "Gate", group: "other.example" };
        const resources = [...RESOURCES, { ...gate, version: "v3" }];
        return { body: { ...LIST, resources } };
      }
      default:
        return { status: 500, body: "down" };
    }
  });
  const resources = await client.resources();
  assert.deepEqual(
    resources.map(({ group, plural, scope }) => [group, plural, scope]),
    [
      ["", "nodes", "Cluster"],
      ["net.example", "gateways", "Namespaced"],
      ["net.example", "classes", "Cluster"],
      ["other.example", "gate", "Cluster"],
    ],
  );
  assert.deepEqual(resources[1], GATEWAYS);
  assert.deepEqual(resources[3]?.version, "v3");
  assert.deepEqual(resources[3]?.subresources, []);
});
