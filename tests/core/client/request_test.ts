import assert from "node:assert/strict";
import { test } from "node:test";
import type { ApiRequest, ResolvedKind } from "@coracle/operator/client";
import {
  applyRequest,
  createRequest,
  deleteCollectionRequest,
  deleteRequest,
  getRequest,
  listRequest,
  patchRequest,
  pathRequest,
  replaceRequest,
  watchRequest,
  withDefaults,
  withQuery,
} from "../../../core/client/request.ts";
import { Pruner } from "../../../core/json/prune.ts";

const DEPLOYMENT: ResolvedKind = {
  group: "apps",
  version: "v1",
  kind: "Deployment",
  plural: "deployments",
  scope: "Namespaced",
};
const NODE: ResolvedKind = {
  group: "",
  version: "v1",
  kind: "Node",
  plural: "nodes",
  scope: "Cluster",
};
const KEY = { namespace: "default", name: "web" };
const OBJECT = { metadata: KEY, spec: { replicas: 2 } };
const ROOT = "/apis/apps/v1/namespaces/default/deployments";
const ENCODED =
  '{"metadata":{"namespace":"default","name":"web"},"spec":{"replicas":2},"apiVersion":"apps/v1","kind":"Deployment"}';

/** Formats a request as one line and its body. */
function line({ method, path, headers }: ApiRequest): string {
  const type = headers["content-type"];
  return `${method} ${decodeURIComponent(path)}${type ? ` ${type}` : ""}`;
}

test("getRequest reads an object or a subresource", () => {
  const request = getRequest(DEPLOYMENT, KEY);
  assert.equal(line(request), `GET ${ROOT}/web`);
  assert.equal(request.headers["accept"], "application/json");
  assert.equal(request.action, "get Deployment default/web");
  assert.equal(request.verb, "get");
  const part = getRequest(DEPLOYMENT, KEY, {
    subresource: "scale",
    resourceVersion: "0",
  });
  assert.equal(line(part), `GET ${ROOT}/web/scale?resourceVersion=0`);
  assert.equal(part.action, "get scale of Deployment default/web");
  assert.equal(part.responseKind, "Scale");
  const other = getRequest(DEPLOYMENT, KEY, { subresource: "rollback" });
  assert.equal(other.responseKind, undefined, "of any kind");
  assert.equal(line(getRequest(NODE, { name: "n1" })), "GET /api/v1/nodes/n1");
});

test("Requests of kinds and namespaces in turn have the path of each", () => {
  const other = { ...KEY, namespace: "other" };
  for (let round = 0; round < 2; round++) {
    assert.equal(getRequest(DEPLOYMENT, KEY).path, `${ROOT}/web`);
    assert.equal(
      getRequest(DEPLOYMENT, other).path,
      "/apis/apps/v1/namespaces/other/deployments/web",
    );
    const newer = { ...DEPLOYMENT, version: "v2" };
    assert.equal(
      getRequest(newer, other).path,
      "/apis/apps/v2/namespaces/other/deployments/web",
    );
    assert.equal(getRequest(NODE, other).path, "/api/v1/nodes/web");
  }
});

test("Requests escape names and refuse keys without a namespace", () => {
  const strange = { namespace: "default", name: "a b?c" };
  assert.equal(getRequest(DEPLOYMENT, strange).path, `${ROOT}/a%20b%3Fc`);
  assert.throws(() => getRequest(DEPLOYMENT, { name: "web" }), TypeError);
});

test("Requests refuse names that would change the path", () => {
  for (const part of ["", ".", "..", "a/b", "a%2fb", "../x", 5, null]) {
    const text = part as string;
    const said = { name: "TypeError", message: /^Cannot .*: received / };
    const calls = [
      () => deleteRequest(NODE, { name: text }),
      () => deleteRequest(DEPLOYMENT, { namespace: "default", name: text }),
      () => getRequest(DEPLOYMENT, { namespace: text, name: "web" }),
    ];
    for (const call of calls) assert.throws(call, said);
    assert.throws(
      () => deleteCollectionRequest(DEPLOYMENT, { namespace: text }),
      /^(Type|Range)Error: Cannot .*namespace.*: received /,
    );
  }
});

test("listRequest encodes selectors, page and resource version", () => {
  assert.equal(line(listRequest(DEPLOYMENT)), "GET /apis/apps/v1/deployments");
  const request = listRequest(DEPLOYMENT, {
    namespace: "default",
    labelSelector: { matchLabels: { app: "web" } },
    fieldSelector: { "metadata.name": "web" },
    limit: 5,
    continue: "abc=",
    resourceVersion: "7",
    resourceVersionMatch: "NotOlderThan",
  });
  assert.equal(
    line(request),
    `GET ${ROOT}?labelSelector=app=web&fieldSelector=metadata.name=web&limit=5&continue=abc=&resourceVersion=7&resourceVersionMatch=NotOlderThan`,
  );
  assert.equal(
    request.action,
    "list Deployment objects in namespace default",
  );
  const shardSelector = "shardRange(object.metadata.uid, '0x0', '0x8')";
  for (const build of [listRequest, watchRequest]) {
    const { path } = build(NODE, { shardSelector });
    const query = new URL(path, "http://server").searchParams;
    assert.equal(query.get("shardSelector"), shardSelector);
  }
  assert.equal(withQuery("/x", { a: "b+c" }), "/x?a=b%2Bc");
  assert.equal(
    line(listRequest(NODE, { namespace: "ignored" })),
    "GET /api/v1/nodes",
  );
});

test("watchRequest encodes the options of a reflector", () => {
  const request = watchRequest(DEPLOYMENT, {
    resourceVersion: "7",
    resourceVersionMatch: "NotOlderThan",
    bookmarks: true,
    sendInitialEvents: true,
    timeoutSeconds: 300,
    labelSelector: "",
  });
  assert.equal(
    line(request),
    "GET /apis/apps/v1/deployments?watch=true&resourceVersion=7&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&sendInitialEvents=true&timeoutSeconds=300",
  );
  assert.equal(request.verb, "watch");
  assert.equal(request.mayPause, true);
});

test("createRequest sends the object of a subresource as it is", () => {
  const body = { kind: "Eviction", apiVersion: "policy/v1", metadata: KEY };
  const request = createRequest(DEPLOYMENT, body, { subresource: "eviction" });
  assert.equal(line(request), `POST ${ROOT}/web/eviction application/json`);
  assert.deepEqual(JSON.parse(String(request.body)), body);
});

test("createRequest posts the object with its kind to the collection", () => {
  const request = createRequest(DEPLOYMENT, OBJECT, {
    dryRun: true,
    fieldManager: "tests",
    fieldValidation: "Strict",
  });
  assert.equal(
    line(request),
    `POST ${ROOT}?dryRun=All&fieldManager=tests&fieldValidation=Strict application/json`,
  );
  assert.equal(request.body, ENCODED);
  const generated = createRequest(DEPLOYMENT, {
    metadata: { namespace: "default", generateName: "web-" },
  });
  assert.equal(generated.action, "create Deployment default/web-*");
  assert.throws(
    () => createRequest(DEPLOYMENT, { metadata: { name: "web" } }),
    /Cannot create Deployment: a namespaced kind needs "metadata.namespace"/,
  );
});

test("Requests name the write whose object has no JSON", () => {
  const circular: Record<string, unknown> = {};
  circular["self"] = circular;
  for (const part of [circular, 1n]) {
    const object = { ...OBJECT, spec: { part } };
    const key = { namespace: "default", name: "web" };
    const writes = {
      create: () => createRequest(DEPLOYMENT, object),
      replace: () => replaceRequest(DEPLOYMENT, object),
      apply: () => applyRequest(DEPLOYMENT, object, { fieldManager: "me" }),
      patch: () => patchRequest(DEPLOYMENT, key, { spec: { part } }),
    };
    for (const [verb, write] of Object.entries(writes)) {
      const message = new RegExp(
        `^Cannot ${verb} Deployment default/web: it is no JSON: [^\n]+$`,
      );
      assert.throws(write, { name: "TypeError", message });
    }
  }
});

test("Requests refuse objects of another kind and without a name", () => {
  for (
    const other of [{ ...OBJECT, kind: "Pod" }, {
      ...OBJECT,
      apiVersion: "apps/v1beta1",
    }]
  ) {
    assert.throws(() => createRequest(DEPLOYMENT, other), {
      name: "TypeError",
      message: /^Cannot send apps\/v1 Deployment: .* received apps\/v1/,
    });
  }
  const nameless = { metadata: { namespace: "default" } };
  assert.throws(
    () => replaceRequest(DEPLOYMENT, nameless),
    /Cannot replace Deployment: "metadata.name" must be set/,
  );
});

test("replaceRequest puts an object or a subresource", () => {
  const request = replaceRequest(DEPLOYMENT, OBJECT);
  assert.equal(line(request), `PUT ${ROOT}/web application/json`);
  assert.equal(request.verb, "update");
  const status = replaceRequest(DEPLOYMENT, OBJECT, { subresource: "status" });
  assert.equal(line(status), `PUT ${ROOT}/web/status application/json`);
});

test("replaceRequest refuses an object that lacks what its cache has pruned", () => {
  const object = { ...structuredClone(OBJECT), status: {} };
  new Pruner(["spec.replicas"]).guard(object);
  assert.throws(
    () => replaceRequest(DEPLOYMENT, object),
    /^TypeError: Cannot replace Deployment default\/web: its cache does not keep "spec.replicas", which would be lost; use apply or patch$/,
  );
  const status = { subresource: "status" };
  assert.equal(replaceRequest(DEPLOYMENT, object, status).verb, "update");
  new Pruner(["status.phase"]).guard(object);
  assert.throws(() => replaceRequest(DEPLOYMENT, object, status), /s\.phase"/);
});

test("applyRequest sends the field manager, and force only on request", () => {
  for (const fieldManager of ["", undefined]) {
    assert.throws(
      () => applyRequest(DEPLOYMENT, OBJECT, { fieldManager }),
      /^TypeError: Cannot apply Deployment default\/web: "fieldManager" must/,
    );
  }
  const request = applyRequest(DEPLOYMENT, OBJECT, { fieldManager: "tests" });
  assert.equal(
    line(request),
    `PATCH ${ROOT}/web?fieldManager=tests application/apply-patch+yaml`,
  );
  assert.equal(request.body, ENCODED);
  const forced = applyRequest(DEPLOYMENT, OBJECT, {
    fieldManager: "tests",
    force: true,
  });
  assert.match(forced.path, /&force=true$/);
  assert.throws(() => applyRequest(DEPLOYMENT, OBJECT), {
    name: "TypeError",
    message: /"fieldManager" must not be empty: received undefined/,
  });
});

test("patchRequest selects the content type by the patch type", () => {
  const types = {
    merge: "application/merge-patch+json",
    json: "application/json-patch+json",
    strategic: "application/strategic-merge-patch+json",
  } as const;
  const { merge, ...others } = types;
  const byDefault = patchRequest(DEPLOYMENT, KEY, { spec: null });
  assert.equal(line(byDefault), `PATCH ${ROOT}/web ${merge}`);
  assert.equal(byDefault.body, '{"spec":null}');
  for (const [type, contentType] of Object.entries(others)) {
    const body = type === "json" ? [] : {};
    const request = patchRequest(DEPLOYMENT, KEY, body, {
      type: type as keyof typeof types,
    });
    assert.equal(line(request), `PATCH ${ROOT}/web ${contentType}`);
  }
});

test("deleteRequest refuses a misspelt precondition", () => {
  assert.throws(
    () =>
      deleteRequest(DEPLOYMENT, KEY, {
        preconditions: { UID: "1" } as never,
      }),
    /delete, preconditions: there is no option "UID": did you mean "uid"\?/,
  );
});

test("deleteRequest sends its options as a body", () => {
  const request = deleteRequest(DEPLOYMENT, KEY, {
    propagationPolicy: "Foreground",
    gracePeriodSeconds: 0,
    dryRun: true,
    preconditions: { uid: "u1" },
  });
  assert.equal(line(request), `DELETE ${ROOT}/web application/json`);
  assert.deepEqual(JSON.parse(String(request.body)), {
    kind: "DeleteOptions",
    apiVersion: "v1",
    dryRun: ["All"],
    gracePeriodSeconds: 0,
    preconditions: { uid: "u1" },
    propagationPolicy: "Foreground",
  });
  const many = deleteCollectionRequest(DEPLOYMENT, {
    namespace: "default",
    labelSelector: "app=web",
  });
  assert.equal(
    line(many),
    `DELETE ${ROOT}?labelSelector=app=web application/json`,
  );
  assert.equal(many.verb, "deletecollection");
});

test("Requests leave out what is false, empty or absent", () => {
  const watch = watchRequest(DEPLOYMENT, {
    bookmarks: false,
    sendInitialEvents: false,
    fieldSelector: {},
    labelSelector: "",
  });
  assert.equal(watch.path, "/apis/apps/v1/deployments?watch=true");
  const apply = applyRequest(DEPLOYMENT, OBJECT, {
    fieldManager: "me",
    force: false,
    dryRun: false,
  });
  assert.equal(apply.path, `${ROOT}/web?fieldManager=me`);
  const body = (dryRun: boolean) =>
    JSON.parse(String(deleteRequest(DEPLOYMENT, KEY, { dryRun }).body)).dryRun;
  assert.deepEqual([body(false), body(true)], [undefined, ["All"]]);
  assert.equal(pathRequest("/version").headers["accept"], "application/json");
  assert.equal(withQuery("/x", { a: ["1", "2"], b: undefined }), "/x?a=1&a=2");
  const given: { a: number; b?: number | undefined } = { a: 1, b: undefined };
  assert.deepEqual(withDefaults(given, { a: 2, b: 3 }), { a: 1, b: 3 });
  const text = "no options" as unknown as object;
  assert.equal(withDefaults(text, { a: 1 }), text);
});

test("createRequest creates named, generated and cluster-scoped objects and parts", () => {
  const create = (metadata: object, kind = DEPLOYMENT) =>
    createRequest(kind, { metadata } as typeof OBJECT).action;
  const namespace = "default";
  assert.equal(
    create({ namespace, generateName: "web-" }),
    "create Deployment default/web-*",
  );
  assert.equal(create({ namespace }), "create Deployment default/*");
  assert.equal(create({ name: "n1" }, NODE), "create Node n1");
  const part = createRequest(DEPLOYMENT, OBJECT, {
    subresource: "eviction" as "scale",
  });
  assert.equal(part.path, `${ROOT}/web/eviction`);
  assert.equal(part.responseKind, undefined);
  const scale = getRequest(DEPLOYMENT, KEY, { subresource: "scale" });
  assert.equal(scale.responseKind, "Scale");
  assert.equal(
    listRequest(NODE, { namespace: "default" }).action,
    "list Node objects",
  );
});

test("Requests say what they received in place of a key or an object", () => {
  const get = (key: unknown) => () => getRequest(DEPLOYMENT, key as typeof KEY);
  const replace = (object: unknown) => () =>
    replaceRequest(DEPLOYMENT, object as typeof OBJECT);
  const patch = (body: unknown, type?: "json") => () =>
    patchRequest(DEPLOYMENT, KEY, body, { type });
  const cases: readonly [() => unknown, RegExp][] = [
    [get("web"), /key must be an object .*: received "web"$/],
    [get(5), /key must be an object .*: received a number$/],
    [get(null), /key must be an object .*: received null$/],
    [get({ namespace: "default" }), /with a name, .*: received an object$/],
    [replace({ metadata: null }), /"metadata": received one with metadata$/],
    [replace({}), /"metadata": received one with nothing$/],
    [replace({ a: 1, b: 2 }), /"metadata": received one with a, b$/],
    [replace(5), /"metadata": received a number$/],
    [
      replace({ metadata: { name: "" } }),
      /must be set: received an empty text$/,
    ],
    [replace({ metadata: { name: 5 } }), /must be set: received a number$/],
    [replace({ metadata: {} }), /must be set: received nothing$/],
    [
      replace({ ...OBJECT, apiVersion: "apps/v2" }),
      /another kind: received apps\/v2 Deployment$/,
    ],
    [
      replace({ ...OBJECT, kind: "Pod" }),
      /another kind: received apps\/v1 Pod$/,
    ],
    [patch("x"), /its patch must be an object: received a string$/],
    [patch({}, "json"), /must be a list of operations: received an object$/],
    [patch([]), /a list of operations needs/],
  ];
  for (const [call, message] of cases) {
    assert.throws(call, (error: Error) => {
      assert.match(error.message, message);
      return error instanceof TypeError;
    });
  }
});
