import assert from "node:assert/strict";
import { test } from "node:test";
import * as builtin from "../../../apiserver/builtin/builtin_definitions.ts";
import {
  wireBytes,
  WireReader,
} from "../../../apiserver/builtin/wire_reader.ts";
import {
  OPENAPI_V2_CONTENT_TYPE,
  OPENAPI_V2_PROTOBUF,
  openApiV2,
  openApiV2Protobuf,
  type PatchPath,
} from "../../../apiserver/discovery/openapi_v2.ts";
import { TestServer } from "../support/test_server.ts";

/** The parts of gnostic's OpenAPIv2 that a client reads, by field number. */
const DOCUMENT = { swagger: 1, info: 2, paths: 8 } as const;
const INFO = { title: 1, version: 2 } as const;
const PATHS = { path: 2 } as const;
const NAMED_PATH_ITEM = { name: 1, value: 2 } as const;
const PATH_ITEM = { patch: 8 } as const;
const OPERATION = { parameters: 8, vendorExtension: 13 } as const;
const NAMED_ANY = { name: 1, value: 2 } as const;
const ANY = { yaml: 2 } as const;
const QUERY_PARAMETER = { in: 2, name: 4, type: 6 } as const;
/** ParametersItem.parameter, .nonBodyParameter, .queryParameterSubSchema */
const TO_QUERY_PARAMETER = [1, 2, 3] as const;

function every(bytes: Uint8Array, number: number): Uint8Array[] {
  const found: Uint8Array[] = [];
  const reader = new WireReader(bytes);
  for (let field = reader.next(); field; field = reader.next()) {
    if (field.number === number) found.push(wireBytes(field.value));
  }
  return found;
}

function only(bytes: Uint8Array, number: number): Uint8Array {
  const [found, ...others] = every(bytes, number);
  assert(found !== undefined && others.length === 0, `field ${number}`);
  return found;
}

const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);

function texts<K extends string>(
  bytes: Uint8Array,
  numbers: Readonly<Record<K, number>>,
): Record<string, string> {
  return Object.fromEntries(
    Object.entries<number>(numbers)
      .map(([name, number]) => [name, text(only(bytes, number))]),
  );
}

/** The document that a protobuf message tells of, in its JSON form. */
function decoded(bytes: Uint8Array): unknown {
  const items = every(only(bytes, DOCUMENT.paths), PATHS.path);
  return {
    swagger: text(only(bytes, DOCUMENT.swagger)),
    info: texts(only(bytes, DOCUMENT.info), INFO),
    paths: Object.fromEntries(items.map((item) => {
      const value = only(item, NAMED_PATH_ITEM.value);
      return [text(only(item, NAMED_PATH_ITEM.name)), {
        patch: operation(only(value, PATH_ITEM.patch)),
      }];
    })),
  };
}

function operation(bytes: Uint8Array): Record<string, unknown> {
  const extension = only(bytes, OPERATION.vendorExtension);
  const parameter = TO_QUERY_PARAMETER.reduce(
    only,
    only(bytes, OPERATION.parameters),
  );
  return {
    parameters: [texts(parameter, QUERY_PARAMETER)],
    [text(only(extension, NAMED_ANY.name))]: JSON.parse(
      text(only(only(extension, NAMED_ANY.value), ANY.yaml)),
    ),
  };
}

const GVK = "x-kubernetes-group-version-kind";

const PATCH_PATHS: readonly PatchPath[] = [
  {
    path: "/api/v1/namespaces/{namespace}/pods/{name}",
    group: "",
    version: "v1",
    kind: "Pod",
  },
  {
    // Lengths of more than a byte, and more than an ASCII name.
    path: `/apis/example.com/v1/${"ü".repeat(9_000)}/{name}`,
    group: "example.com",
    version: "v1",
    kind: "Ümlaut",
  },
];

test("openApiV2 has the PATCH path and field validation parameter of each kind", () => {
  const { swagger, paths, definitions } = openApiV2(PATCH_PATHS) as {
    swagger: string;
    paths: Record<string, { patch: Record<string, unknown> }>;
    definitions: object;
  };
  assert.equal(swagger, "2.0");
  assert.deepEqual(definitions, {});
  assert.deepEqual(Object.keys(paths), PATCH_PATHS.map(({ path }) => path));
  const { patch } = paths[PATCH_PATHS[0]!.path]!;
  assert.deepEqual(patch[GVK], { group: "", version: "v1", kind: "Pod" });
  assert.deepEqual(patch["parameters"], [
    { name: "fieldValidation", in: "query", type: "string" },
  ]);
});

test("openApiV2Protobuf encodes the same document as openApiV2", () => {
  const { definitions: _, ...document } = openApiV2(PATCH_PATHS) as {
    definitions: object;
    paths: Record<string, { patch: { responses?: object } }>;
  };
  // Which answers there are is not written as protobuf: nobody reads it.
  for (const { patch } of Object.values(document.paths)) delete patch.responses;
  assert.deepEqual(decoded(openApiV2Protobuf(PATCH_PATHS)), document);
});

test("OpenAPI v2 is served as protobuf if requested, otherwise as JSON", async () => {
  const server = new TestServer({ builtin });
  const get = (accept: string) =>
    server.send("GET", "/openapi/v2", undefined, { accept });
  const plain = await get("application/json");
  assert.equal(plain.headers["content-type"], "application/json");
  const { paths } = plain.body as {
    paths: Record<string, { patch: Record<string, unknown> }>;
  };
  assert.deepEqual(
    paths["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]
      ?.patch[GVK],
    { group: "apps", version: "v1", kind: "Deployment" },
  );
  assert.ok(paths["/api/v1/nodes/{name}"], "a kind without namespaces");
  assert.ok(
    !Object.keys(paths).some((path) => path.includes("tokenreviews")),
    "a kind that cannot be patched",
  );
  const go = await get(`application/json;q=0.5,${OPENAPI_V2_PROTOBUF}`);
  assert.equal(go.headers["content-type"], OPENAPI_V2_CONTENT_TYPE);
  server.stop();
});
