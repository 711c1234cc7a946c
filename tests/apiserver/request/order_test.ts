import assert from "node:assert/strict";
import { test } from "node:test";
import * as builtin from "../../../dev/apiserver/builtin/builtin_definitions.ts";
import { TestServer } from "../support/test_server.ts";

const C = "/api/v1/namespaces/default/configmaps";
const AUTHORIZATION = "/apis/authorization.k8s.io/v1";
const NOT_ACCEPTED = { accept: "text/html" };
const NO_TYPE = { "content-type": "text/plain" };
const MERGE = { "content-type": "application/merge-patch+json" };
const TABLE = { accept: "application/json;as=Table;g=meta.k8s.io;v=v9" };

/** Requests with more than one fault, and what kube-apiserver 1.37.2 answers. */
const ANSWERS: readonly (readonly [
  request: `${string} ${string}`,
  headers: Record<string, string>,
  body: unknown,
  answer: readonly [status: number, message: RegExp],
])[] = [
  // Objects that are answered or executed have no name, and only POST.
  [`GET ${AUTHORIZATION}/subjectaccessreviews/a`, {}, undefined, [404, /find/]],
  [`PATCH ${AUTHORIZATION}/subjectaccessreviews/a`, MERGE, {}, [404, /find/]],
  [`POST ${AUTHORIZATION}/localsubjectaccessreviews`, {}, {}, [404, /find/]],
  [`POST /api/v1/bindings`, {}, {}, [404, /find/]],
  [`GET ${AUTHORIZATION}/subjectaccessreviews`, TABLE, undefined, [
    405,
    /method/,
  ]],
  // The forms of the answer and of the body come before the parameters.
  [`GET ${C}?limit=x`, TABLE, undefined, [406, /only the following/]],
  [`PATCH ${C}/a`, { ...NO_TYPE, ...NOT_ACCEPTED }, {}, [415, /Unsupported/]],
  [`POST ${C}?dryRun=x`, NO_TYPE, {}, [415, /unknown format/]],
  [`POST ${AUTHORIZATION}/subjectaccessreviews?dryRun=x`, NO_TYPE, {}, [
    415,
    /unknown format/,
  ]],
  // The syntax of a patch is checked before its object is sought.
  [`PATCH ${C}/none`, MERGE, "[", [400, /^invalid JSON patch$/]],
  [`PATCH ${C}/none`, MERGE, [], [404, /not found/]],
  [`PATCH ${C}/none?dryRun=x`, MERGE, "[", [422, /dryRun/]],
  // The time limit is read before the credentials, and not of long requests.
  [`GET ${C}?timeout=x`, { authorization: "Bearer x" }, undefined, [
    400,
    /timeout/,
  ]],
  [`GET ${C}/none/exec?timeout=x`, {}, undefined, [404, /find/]],
  // Null is an empty text to Go.
  [`PUT ${C}/none`, {}, { apiVersion: null, kind: null, metadata: {} }, [
    400,
    /undeterminable/,
  ]],
  [`DELETE ${C}/none`, {}, { kind: null }, [404, /not found/]],
  [`DELETE ${C}/none`, {}, { kind: [] }, [400, /unmarshal array .*\.kind/]],
  // What a requirement of nothing selects.
  [`GET ${C}?fieldSelector=%3D`, {}, undefined, [200, /undefined/]],
  [`PATCH /api/v1/watch/namespaces/default/pods/a`, MERGE, {}, [405, /method/]],
  [`GET ${C}/101%25`, {}, undefined, [
    400,
    /^Name parameter invalid: "101%": may not contain '%'$/,
  ]],
];

test("Requests are checked in the order of kube-apiserver", async () => {
  const server = new TestServer({ builtin });
  for (const [request, headers, body, [status, message]] of ANSWERS) {
    const [method = "", path = ""] = request.split(" ");
    const answer = await server.send(method as "GET", path, body, headers);
    assert.equal(answer.status, status, request);
    assert.match(String(answer.body.message), message, request);
  }
  server.stop();
});

test("Kinds without a spec are checked as with an empty one", async () => {
  const server = new TestServer({ builtin });
  const problem = async (path: string, object: object = {}) => {
    const body = { metadata: { name: "a" }, ...object };
    const answer = await server.send("POST", `/apis/${path}`, body);
    return answer.body.message?.replace(/^.*? is invalid: /, "");
  };
  assert.equal(
    await problem("resource.k8s.io/v1/resourceslices"),
    "[spec.driver: Required value, spec.pool.name: Required value, spec.pool.resourceSliceCount: Invalid value: 0: must be greater than zero, spec: Required value: exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required]",
  );
  assert.equal(
    await problem(
      "flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations",
    ),
    "spec.type: Required value",
  );
  assert.equal(
    await problem("apps/v1/namespaces/default/controllerrevisions"),
    "data: Required value: data is mandatory",
  );
  assert.equal(
    await problem("node.k8s.io/v1/runtimeclasses"),
    "handler: Required value",
  );
  assert.match(
    await problem("authorization.k8s.io/v1/subjectaccessreviews", {
      spec: { user: "a", resourceAttributes: { verb: "get" } },
    }),
    /^metadata: Invalid value: \{"name":"a","managedFields":.*: must be empty$/,
  );
  server.stop();
});
