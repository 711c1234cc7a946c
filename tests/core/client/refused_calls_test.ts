import assert from "node:assert/strict";
import { test } from "node:test";
import { Client } from "@coracle/operator/client";
import { ConfigMap } from "@coracle/operator/kinds";

const key = { namespace: "default", name: "web" };
const object = { metadata: key, data: { color: "blue" } };
const change = { data: { color: "red" } };

/** Requests that reached the transport. */
const sent: string[] = [];
const transport = {
  send(request: { readonly path: string }): Promise<never> {
    sent.push(request.path);
    return Promise.reject(new Error("Sent"));
  },
  close: () => Promise.resolve(),
};
const client = new Client({ transport }, { retry: false });

type Argument = "kind" | "key" | "object" | "patch" | "options" | "needed";
type Call = (...given: readonly never[]) => unknown;

/** Every method with the types of its arguments and valid values. */
const CALLS: Readonly<
  Record<string, readonly [Call, readonly (readonly [Argument, unknown])[]]>
> = {
  get: [client.get, [["kind", ConfigMap], ["key", key], ["options", {}]]],
  find: [client.find, [["kind", ConfigMap], ["key", key], ["options", {}]]],
  list: [client.list, [["kind", ConfigMap], ["options", {}]]],
  listAll: [client.listAll, [["kind", ConfigMap], ["options", {}]]],
  create: [
    client.create,
    [["kind", ConfigMap], ["object", object], ["options", {}]],
  ],
  replace: [
    client.replace,
    [["kind", ConfigMap], ["object", object], ["options", {}]],
  ],
  apply: [
    client.apply,
    [["kind", ConfigMap], ["object", object], ["options", {}]],
  ],
  patch: [
    client.patch,
    [["kind", ConfigMap], ["key", key], ["patch", change], ["options", {}]],
  ],
  delete: [client.delete, [["kind", ConfigMap], ["key", key], ["options", {}]]],
  deleteCollection: [
    client.deleteCollection,
    [["kind", ConfigMap], ["options", {}]],
  ],
  watch: [client.watch, [["kind", ConfigMap], ["options", {}]]],
  logs: [client.logs, [["key", key], ["options", {}]]],
  exec: [client.exec, [["key", key], ["needed", { command: ["ls"] }]]],
  attach: [client.attach, [["key", key], ["options", {}]]],
  portForward: [client.portForward, [["key", key], ["needed", { port: 80 }]]],
  version: [client.version, [["options", {}]]],
  request: [
    client.request,
    [["needed", { method: "GET", path: "/", headers: {} }]],
  ],
  with: [client.with, [["needed", []]]],
};
const PARTS = {
  "status.get": [client.status, client.status.get, CALLS["get"]],
  "status.replace": [client.status, client.status.replace, CALLS["replace"]],
  "status.patch": [client.status, client.status.patch, CALLS["patch"]],
  "status.apply": [client.status, client.status.apply, CALLS["apply"]],
  "scale.get": [client.scale, client.scale.get, CALLS["get"]],
  "scale.patch": [client.scale, client.scale.patch, CALLS["patch"]],
} as const;

const misspelt = { "no such": 1 };
/** Invalid values by type of argument. */
const WRONG: Readonly<Record<Argument, readonly unknown[]>> = {
  kind: [undefined, null, 5, "ConfigMap", [], {}, misspelt],
  key: [undefined, null, 5, "default/web", [], {}, misspelt],
  object: [undefined, null, 5, "web", [], {}, misspelt],
  patch: [undefined, null, 5, "web", true, [], () => {}],
  options: [null, 5, "web", true, [], () => {}, misspelt],
  needed: [undefined, null, 5, "web", true, {}, misspelt],
};

function testCall(
  name: string,
  self: unknown,
  [call, takes]: typeof CALLS[string],
) {
  test(`client.${name}() refuses wrong arguments before it sends anything`, async () => {
    for (const [index, [argument]] of takes.entries()) {
      for (const value of WRONG[argument]) {
        const given = takes.map(([, right]) => right);
        given[index] = value;
        sent.length = 0;
        const what = `${name} with ${String(value)} as its ${argument}`;
        await assert.rejects(
          async () => {
            const result = await Reflect.apply(call, self, given);
            await (result as AsyncIterator<unknown>)?.next?.();
          },
          ({ message }: Error) => {
            assert.match(message, /^Cannot .+: .+: received /s, what);
            return true;
          },
          what,
        );
        assert.deepEqual(sent, [], what);
      }
    }
  });
}

for (const [name, call] of Object.entries(CALLS)) testCall(name, client, call);
for (const [name, [self, call, like]] of Object.entries(PARTS)) {
  testCall(name, self, [call as Call, like![1]]);
}

test("client.patch() refuses a body that does not fit the patch type", async () => {
  const list = [{ op: "remove", path: "/data" }] as const;
  await assert.rejects(
    client.patch(ConfigMap, key, list),
    /^TypeError: Cannot patch ConfigMap default\/web: a list of operations needs \{ type: "json" \}: received an array$/,
  );
  await assert.rejects(
    client.patch(ConfigMap, key, change, { type: "json" }),
    /must be a list of operations: received an object$/,
  );
  await assert.rejects(client.patch(ConfigMap, key, list, { type: "json" }), {
    message: "Sent",
  });
});

test("Client refuses a field manager that the API server would refuse", async () => {
  const refusal = /"fieldManager" must be printable characters, 1 to 128 bytes/;
  for (const fieldManager of ["", "x".repeat(129), "two\nlines"]) {
    assert.throws(() => new Client({ transport }, { fieldManager }), refusal);
    for (
      const write of [
        client.create(ConfigMap, object, { fieldManager }),
        client.apply(ConfigMap, object, { fieldManager }),
        client.patch(ConfigMap, key, change, { fieldManager }),
      ]
    ) await assert.rejects(write, refusal);
  }
});
