// deno-lint-ignore-file no-explicit-any -- tests look at whatever is there
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { readFileSync } from "node:fs";
import { after, test } from "node:test";
import { ApiServer } from "@coracle/dev/apiserver";
import {
  wireBytes,
  wireFields,
  WireReader,
  wireText,
} from "../../../dev/apiserver/builtin/wire_reader.ts";
import { until } from "../../support/until.ts";
import { namesOf } from "../../../dev/apiserver/discovery/openapi_v2.ts";

const PROTOBUF = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
const CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

const server = await ApiServer.start({ port: false, establishingDelay: 0 });
after(() => server.stop());

async function get(headers: Record<string, string> = {}): Promise<{
  status: number;
  headers: Readonly<Record<string, string>>;
  bytes: Buffer;
}> {
  const answer = await server.transport.send({
    method: "GET",
    path: "/openapi/v2",
    headers,
  });
  const chunks: Uint8Array[] = [];
  for await (const chunk of answer.body) chunks.push(Buffer.from(chunk));
  return { ...answer, bytes: Buffer.concat(chunks) };
}

async function document(): Promise<any> {
  return JSON.parse((await get()).bytes.toString());
}

/** Calls back for each object in a tree. */
function visit(value: unknown, see: (object: any) => void): void {
  if (typeof value !== "object" || value === null) return;
  see(value);
  for (const inner of Object.values(value)) visit(inner, see);
}

function withoutDescriptions(value: any): any {
  if (Array.isArray(value)) return value.map(withoutDescriptions);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).filter(([name, inner]) =>
      name !== "description" || typeof inner !== "string"
    ).map(([name, inner]) => [name, withoutDescriptions(inner)]),
  );
}

test("/openapi/v2 has all paths and definitions, in its own form", async () => {
  const { paths, definitions, parameters } = await document();
  assert(Object.keys(definitions).length > 450);
  const pod = paths["/api/v1/namespaces/{namespace}/pods/{name}"];
  assert.equal(pod.get.operationId, "readCoreV1NamespacedPod");
  assert.deepEqual(pod.put.parameters[0].schema, {
    $ref: "#/definitions/io.k8s.api.core.v1.Pod",
  });
  assert.equal(
    paths["/api/v1/watch/pods"].get["x-kubernetes-action"],
    "watchlist",
  );
  assert.deepEqual(
    definitions["io.k8s.apimachinery.pkg.util.intstr.IntOrString"],
    { format: "int-or-string", type: "string" },
  );
  visit(definitions, ({ oneOf, anyOf, allOf, nullable }) => {
    assert.deepEqual([oneOf, anyOf, allOf, nullable].filter(Array.isArray), []);
  });
  visit([paths, definitions], ({ $ref }) => {
    if (typeof $ref !== "string") return;
    const [, kind, name = ""] = $ref.slice(1).split("/");
    assert((kind === "parameters" ? parameters : definitions)[name], $ref);
  });
});

test("/openapi/v2 publishes a CRD as kube-apiserver prunes it", async () => {
  const before = await get();
  const file = new URL("../protobuf_answers.json", import.meta.url);
  const [{ object: crd }] = JSON.parse(readFileSync(file, "utf8"));
  delete crd.metadata.resourceVersion;
  const made = await server.transport.send({
    method: "POST",
    path: CRDS,
    headers: { "content-type": "application/json" },
    body: JSON.stringify(crd),
  });
  assert.equal(made.status, 201);
  await until("the CRD is served", async () => {
    const { definitions } = await document();
    return definitions["com.example.v1.Widget"];
  });
  const { definitions, paths } = await document();
  assert.notEqual((await get()).headers["etag"], before.headers["etag"]);
  // What kube-apiserver 1.32 publishes of the same CRD.
  assert.deepEqual(
    withoutDescriptions(definitions["com.example.v1.Widget"]),
    {
      "type": "object",
      "properties": {
        "apiVersion": {
          "type": "string",
        },
        "kind": {
          "type": "string",
        },
        "metadata": {
          "$ref":
            "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta",
        },
        "spec": {
          "type": "object",
          "properties": {
            "a": {
              "type": "object",
              "additionalProperties": true,
            },
            "f": {
              "type": "string",
            },
            "i": {
              "x-kubernetes-int-or-string": true,
            },
            "l": {
              "type": "array",
              "maxItems": 3,
              "minItems": 1,
              "items": {
                "type": "object",
                "required": [
                  "k",
                ],
                "properties": {
                  "k": {
                    "type": "string",
                  },
                },
              },
              "x-kubernetes-list-map-keys": [
                "k",
              ],
              "x-kubernetes-list-type": "map",
            },
            "m": {
              "type": "object",
              "additionalProperties": {
                "type": "string",
              },
            },
            "n": {
              "enum": [
                1,
                2,
                null,
                {
                  "a": [
                    1.5,
                  ],
                },
              ],
            },
            "o": {
              "x-kubernetes-embedded-resource": true,
              "x-kubernetes-preserve-unknown-fields": true,
            },
            "s": {
              "type": "string",
              "format": "date",
              "title": "t",
              "maxLength": 9,
              "pattern": "^a$",
            },
            "z": {
              "type": "object",
              "maxProperties": 2,
              "minProperties": 1,
              "properties": {
                "q": {
                  "type": "number",
                  "maximum": 1e+21,
                  "exclusiveMaximum": true,
                  "minimum": -0.5,
                  "multipleOf": 0.25,
                },
              },
              "x-kubernetes-map-type": "atomic",
            },
          },
          "x-kubernetes-validations": [
            {
              "fieldPath": ".n",
              "message": "m",
              "reason": "FieldValueInvalid",
              "rule": "self.n > 0",
            },
          ],
        },
      },
      "x-kubernetes-group-version-kind": [
        {
          "group": "example.com",
          "kind": "Widget",
          "version": "v1",
        },
      ],
      "x-kubernetes-selectable-fields": [
        {
          "fieldPath": "spec.s",
        },
      ],
    },
  );
  const base = "/apis/example.com/v1/namespaces/{namespace}/widgets";
  assert.deepEqual(Object.keys(paths).filter((path) => path.includes("wid")), [
    base,
    `${base}/{name}`,
    "/apis/example.com/v1/widgets",
    `${base}/{name}/status`,
    `${base}/{name}/scale`,
  ]);
});

test("/openapi/v2 has no fields of a root that keeps unknown ones", async () => {
  const group = "keeps.example.com";
  const openAPIV3Schema = {
    type: "object",
    "x-kubernetes-preserve-unknown-fields": true,
    properties: { spec: { type: "object" } },
  };
  const version = { name: "v1", served: true, storage: true };
  const made = await server.transport.send({
    method: "POST",
    path: CRDS,
    headers: { "content-type": "application/json" },
    body: JSON.stringify({
      apiVersion: "apiextensions.k8s.io/v1",
      kind: "CustomResourceDefinition",
      metadata: { name: `boxes.${group}` },
      spec: {
        group,
        scope: "Namespaced",
        names: { plural: "boxes", kind: "Box" },
        versions: [{ ...version, schema: { openAPIV3Schema } }],
      },
    }),
  });
  assert.equal(made.status, 201);
  const box = await until(
    "the CRD is published",
    async () => (await document()).definitions["com.example.keeps.v1.Box"],
  );
  assert.deepEqual(box, {
    type: "object",
    "x-kubernetes-group-version-kind": [{ group, kind: "Box", version: "v1" }],
  });
});

test("/openapi/v2 has an ETag, and refuses other media types", async () => {
  const { headers } = await get();
  const again = await get({ "if-none-match": headers["etag"] ?? "" });
  assert.deepEqual([again.status, again.bytes.length], [304, 0]);
  assert.equal((await get({ accept: "text/html" })).status, 406);
});

function every(bytes: Uint8Array, number: number): Uint8Array[] {
  const found: Uint8Array[] = [];
  const reader = new WireReader(bytes);
  for (let field = reader.next(); field; field = reader.next()) {
    if (field.number === number) found.push(wireBytes(field.value));
  }
  return found;
}

/** The only field at a path of field numbers. */
function only(bytes: Uint8Array, ...numbers: readonly number[]): Uint8Array {
  return numbers.reduce((inner, number) => {
    const [found, ...others] = every(inner, number);
    assert(found !== undefined && others.length === 0, `field ${number}`);
    return found;
  }, bytes);
}

test("/openapi/v2 has the messages of gnostic in protobuf", async () => {
  const { headers, bytes } = await get({ accept: PROTOBUF });
  assert.equal(headers["content-type"], PROTOBUF.replace("@", "."));
  assert.equal(headers["etag"], (await get()).headers["etag"]);
  const { paths, definitions } = await document();
  assert.equal(wireText(only(bytes, 1)), "2.0");
  const named = every(only(bytes, 9), 1);
  assert.deepEqual(
    named.map((item) => wireText(only(item, 1))),
    Object.keys(definitions),
  );
  const config = named.find((item) =>
    wireText(only(item, 1)) === "io.k8s.api.core.v1.ConfigMap"
  ) as Uint8Array;
  const properties = every(only(config, 2, 25), 1);
  const data = properties.find((item) => wireText(only(item, 1)) === "data");
  // TypeItem, and AdditionalPropertiesItem.schema with its TypeItem
  assert.equal(wireText(only(data as Uint8Array, 2, 22, 1)), "object");
  assert.equal(wireText(only(data as Uint8Array, 2, 21, 1, 22, 1)), "string");
  const items = every(only(bytes, 8), 2);
  assert.equal(items.length, Object.keys(paths).length);
  const nodes = items.find((item) =>
    wireText(only(item, 1)) === "/api/v1/nodes/{name}"
  ) as Uint8Array;
  const patch = only(nodes, 2, 8);
  // Old versions of kubectl look for this parameter and for the kind.
  const parameters = every(patch, 8).flatMap((item) => every(item, 1))
    .flatMap((one) => every(one, 2)).map((one) => wireText(only(one, 3, 4)));
  assert.deepEqual(parameters, ["dryRun", "fieldValidation"]);
  const extensions = every(patch, 13).map((item): [string, unknown] => [
    wireText(only(item, 1)),
    JSON.parse(wireText(wireFields(only(item, 2)).get(2))),
  ]);
  assert.deepEqual(Object.fromEntries(extensions), {
    "x-kubernetes-action": "patch",
    "x-kubernetes-group-version-kind": {
      group: "",
      kind: "Node",
      version: "v1",
    },
  });
});

test("Operation IDs have no punctuation of a group", () => {
  const groups = {
    "": ["core_v1", "CoreV1"],
    "my-group.example.dev": ["myGroupExampleDev_v1", "MyGroupExampleDevV1"],
    "storage.k8s.io": ["storage_v1", "StorageV1"],
    "3scale.net": ["ScaleNet_v1", "ScaleNetV1"],
  };
  for (const [group, [tag, id]] of Object.entries(groups)) {
    assert.deepEqual(namesOf({ group, version: "v1" }), { tag, id });
  }
});
