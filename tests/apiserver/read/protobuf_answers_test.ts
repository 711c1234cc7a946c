// deno-lint-ignore-file no-explicit-any -- tests look at whatever is there
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { readFileSync } from "node:fs";
import { after, test } from "node:test";
import { ApiServer } from "@coracle/dev/apiserver";
import type { HttpRequest } from "@coracle/operator/client";
import { until } from "../../support/until.ts";
import { writeProtobuf } from "../../../dev/apiserver/builtin/protobuf_writer.ts";
import { readProtobuf } from "../../../dev/apiserver/builtin/protobuf.ts";
import {
  wireBytes,
  wireFields,
  wireText,
} from "../../../dev/apiserver/builtin/wire_reader.ts";

const PROTOBUF = "application/vnd.kubernetes.protobuf";
const PARTIAL = "as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const WATCH_LIST =
  "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=1";
const C = "/api/v1/namespaces/default/configmaps";
const CRD = "widgets.example.com";
const WIDGETS = "/apis/example.com/v1/namespaces/default/widgets";

const server = await ApiServer.start({ port: false, establishingDelay: 0 });
after(() => server.stop());

async function send(
  method: HttpRequest["method"],
  path: string,
  accept: string,
  body?: HttpRequest["body"],
  type = "application/json",
): Promise<{ status: number; type: string; bytes: Buffer }> {
  const { status, headers, body: parts } = await server.transport.send({
    method,
    path,
    headers: {
      accept,
      ...(body === undefined ? {} : { "content-type": type }),
    },
    body,
  });
  const chunks: Uint8Array[] = [];
  for await (const chunk of parts) chunks.push(Buffer.from(chunk));
  const bytes = Buffer.concat(chunks);
  return { status, type: headers["content-type"] ?? "", bytes };
}

/** The body of an answer in JSON, whatever its encoding. */
function read({ type, bytes }: { type: string; bytes: Buffer }): any {
  return type.startsWith(PROTOBUF)
    ? readProtobuf(bytes)
    : JSON.parse(bytes.toString());
}

/** The events of a watch in protobuf. */
function events(bytes: Buffer): { type: string; object: any }[] {
  const found: { type: string; object: any }[] = [];
  for (let at = 0; at < bytes.length;) {
    const end = at + 4 + bytes.readUInt32BE(at);
    const event = wireFields(bytes.subarray(at + 4, end));
    const raw = wireFields(wireBytes(event.get(2))).get(1);
    const object = readProtobuf(wireBytes(raw));
    found.push({ type: wireText(event.get(1)), object });
    at = end;
  }
  return found;
}

/** A CustomResourceDefinition as typed Go clients send it. */
function crdBody(): Uint8Array {
  const file = new URL("../protobuf_answers.json", import.meta.url);
  const [{ object }] = JSON.parse(readFileSync(file, "utf8"));
  const { resourceVersion: _, ...metadata } = object.metadata;
  return writeProtobuf({ ...object, metadata });
}

test("a CRD is created from protobuf, and its objects are served", async () => {
  const path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
  const made = await send("POST", path, PROTOBUF, crdBody(), PROTOBUF);
  assert.equal(made.status, 201, read(made).message);
  for (const one of [made, await send("GET", `${path}/${CRD}`, "*/*")]) {
    const { schema } = read(one).spec.versions[0];
    const { spec } = schema.openAPIV3Schema.properties;
    assert.deepEqual(spec.properties.a.additionalProperties, true);
    assert.deepEqual(spec.properties.n.enum, [1, 2, null, { a: [1.5] }]);
  }
  await until("widgets are served", async () => {
    const { status } = await send("GET", WIDGETS, "*/*");
    return status === 200;
  });
});

test("objects, lists, failures and documents are answered in protobuf", async () => {
  const object = { metadata: { name: "a" }, data: { k: "v" } };
  const made = await send("POST", C, PROTOBUF, JSON.stringify(object));
  assert.deepEqual([made.status, made.type], [201, PROTOBUF]);
  const { metadata, ...rest } = read(made);
  assert.deepEqual(rest, {
    apiVersion: "v1",
    kind: "ConfigMap",
    data: { k: "v" },
  });
  const plain = read(await send("GET", `${C}/a`, "application/json"));
  assert.equal(metadata.uid, plain.metadata.uid);
  const list = read(await send("GET", C, `${PROTOBUF},application/json`));
  assert.equal(list.kind, "ConfigMapList");
  assert(list.items.some((item: any) => item.metadata.name === "a"));
  const missing = await send("GET", `${C}/nope`, PROTOBUF);
  assert.deepEqual([missing.status, missing.type], [404, PROTOBUF]);
  assert.equal(read(missing).message, 'configmaps "nope" not found');
  const partial = await send("GET", `${C}/a`, `${PROTOBUF};${PARTIAL}`);
  assert.equal(read(partial).kind, "PartialObjectMetadata");
  for (const path of ["/apis/apps/v1", "/apis", "/apis/apps"]) {
    const document = await send("GET", path, PROTOBUF);
    const json = await send("GET", path, "application/json");
    assert.equal(document.type, PROTOBUF);
    assert.equal(read(document).kind, read(json).kind);
  }
  const aggregated = await send(
    "GET",
    "/apis",
    `${PROTOBUF};as=APIGroupDiscoveryList;g=apidiscovery.k8s.io;v=v2`,
  );
  assert.match(aggregated.type, /protobuf;g=apidiscovery.k8s.io;v=v2;as=/);
  assert(read(aggregated).items.length > 10);
  const removed = await send("DELETE", `${C}/a`, PROTOBUF);
  assert.equal(read(removed).status, "Success");
});

test("a watch in protobuf has frames with a length and an envelope", async () => {
  const path = `/api/v1/namespaces?fieldSelector=metadata.name=default`;
  const { type, bytes } = await send(
    "GET",
    `${path}&${WATCH_LIST}`,
    `${PROTOBUF};stream=watch`,
  );
  assert.equal(type, `${PROTOBUF};stream=watch`);
  const [added, bookmark] = events(bytes);
  assert.equal(added?.type, "ADDED");
  assert.equal(added?.object.metadata.name, "default");
  assert.equal(bookmark?.type, "BOOKMARK");
  assert.deepEqual(bookmark?.object.metadata.annotations, {
    "k8s.io/initial-events-end": "true",
  });
  const tooLarge = await send(
    "GET",
    `/api/v1/namespaces?${WATCH_LIST}&resourceVersion=999999`,
    PROTOBUF,
  );
  const [error] = events(tooLarge.bytes);
  assert.equal(error?.type, "ERROR");
  assert.equal(error?.object.code, 504);
});

test("custom objects have no protobuf, but their metadata has", async () => {
  assert.equal((await send("GET", WIDGETS, PROTOBUF)).status, 406);
  const both = await send("GET", WIDGETS, `${PROTOBUF},application/json`);
  assert.equal(read(both).kind, "WidgetList");
  const list = `as=PartialObjectMetadataList;g=meta.k8s.io;v=v1`;
  const partial = await send("GET", WIDGETS, `${PROTOBUF};${list}`);
  assert.equal(partial.status, 200);
  assert.equal(read(partial).kind, "PartialObjectMetadataList");
});

test("one object is no list of metadata, which says its type", async () => {
  const accept =
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
  const answer = async (path: string) => {
    const { status, bytes } = await send("GET", path, accept);
    return `${status} ${JSON.parse(bytes.toString()).message}`;
  };
  const refused = (type: string) =>
    `406 you requested PartialObjectMetadataList, but the requested object is not a list (*${type})`;
  assert.equal(
    await answer("/api/v1/namespaces/default"),
    refused("core.Namespace"),
  );
  assert.equal(
    await answer(
      `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${CRD}`,
    ),
    refused("apiextensions.CustomResourceDefinition"),
  );
  const post = (path: string, object: object) =>
    send("POST", path, "*/*", JSON.stringify(object));
  await post(WIDGETS, {
    apiVersion: "example.com/v1",
    kind: "Widget",
    metadata: { name: "a" },
  });
  assert.equal(await answer(`${WIDGETS}/a`), "500 content is not a list");
  const deployments = "/apis/apps/v1/namespaces/default/deployments";
  const labels = { app: "a" };
  await post(deployments, {
    metadata: { name: "a" },
    spec: {
      selector: { matchLabels: labels },
      template: {
        metadata: { labels },
        spec: { containers: [{ name: "a", image: "a" }] },
      },
    },
  });
  assert.equal(
    await answer(`${deployments}/a/scale`),
    refused("autoscaling.Scale"),
  );
});

test("a streamed list has Tables and metadata, and ends with a bookmark", async () => {
  const path = `/api/v1/namespaces?${WATCH_LIST}`;
  const streamed = async (accept: string) =>
    (await send("GET", path, accept)).bytes.toString().trim().split("\n")
      .map((line) => JSON.parse(line));
  const tables = await streamed("application/json;as=Table;g=meta.k8s.io;v=v1");
  assert.equal(tables[0].object.kind, "Table");
  const last = tables.at(-1)!;
  assert.deepEqual([last.type, last.object.columnDefinitions], [
    "BOOKMARK",
    null,
  ]);
  const end = { "k8s.io/initial-events-end": "true" };
  const [row] = last.object.rows;
  assert.deepEqual(row.object.metadata.annotations, end);
  const partial = await streamed(`application/json;${PARTIAL}`);
  assert.deepEqual(partial.at(-1)!.object.metadata.annotations, end);
  const yaml = await send(
    "GET",
    "/api/v1/namespaces?watch=1",
    "application/yaml",
  );
  assert.equal(yaml.status, 406);
  assert.match(yaml.bytes.toString(), /application\/json;stream=watch/);
});

test("an access review has no form as a Table", async () => {
  const { status } = await send(
    "POST",
    "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
    "application/json;as=Table;g=meta.k8s.io;v=v1",
    JSON.stringify({ spec: { nonResourceAttributes: { path: "/" } } }),
  );
  assert.equal(status, 406);
});
