import type { HttpRequest } from "@coracle/operator/client";
import assert from "node:assert/strict";
import { test } from "node:test";
import { builtinDefinitions } from "../../../dev/apiserver/builtin/builtin_definitions.ts";
import { ReadOnlyTransport } from "../../../dev/testing/plan/read_only_transport.ts";

const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];

/** Sends a request; returns whether it reached the transport behind. */
async function passes(
  method: string,
  path: string,
  headers: Record<string, string> = {},
): Promise<boolean> {
  let sent = 0;
  const transport = new ReadOnlyTransport({
    send: () => {
      sent++;
      return Promise.resolve({
        status: 200,
        headers: {},
        body: (async function* () {})(),
        cancel: () => Promise.resolve(),
      });
    },
    close: () => Promise.resolve(),
  });
  const request = { method, path, headers } as HttpRequest;
  const error = await transport.send(request).then(() => undefined, (e) => e);
  assert.equal(error === undefined, sent === 1);
  if (error) assert.match(error.message, /^Cannot send .* only reads/);
  return sent === 1;
}

/** Paths of all resources of Kubernetes, with all of their subresources. */
const paths = builtinDefinitions().flatMap((definition) => {
  const { group, plural, scope, versions } = definition;
  const { name: version } = versions[0]!;
  const root = group === "" ? `/api/${version}` : `/apis/${group}/${version}`;
  const within = scope === "Namespaced" ? "/namespaces/a" : "";
  const collection = `${root}${within}/${plural}`;
  // Other names after a namespace are those of resources in it.
  const subresources = plural === "namespaces" ? ["status", "finalize"] : [
    ...["status", "scale", "exec", "attach", "portforward", "proxy", "log"],
    ...["eviction", "binding", "token", "approval", "finalize", "resize"],
  ];
  return [
    { path: collection, reads: true, resource: `${group}/${plural}` },
    {
      path: `${collection}?watch=true`,
      reads: true,
      resource: `${group}/${plural}`,
    },
    { path: `${collection}/x`, reads: true, resource: "" },
    ...subresources.map((name) => ({
      path: `${collection}/x/${name}`,
      reads: name === "status" || name === "scale",
      resource: "",
    })),
    { path: `${collection}/x/proxy/deep/path`, reads: false, resource: "" },
  ];
});

test("client that only reads: all verbs on all paths of Kubernetes", async () => {
  assert.ok(paths.length > 500);
  const posts: string[] = [];
  for (const { path, reads, resource } of paths) {
    for (const method of METHODS) {
      const passed = await passes(method, path);
      if (method === "POST" && passed) posts.push(resource);
      else assert.equal(passed, method === "GET" && reads, `${method} ${path}`);
    }
  }
  assert.deepEqual([...new Set(posts)].sort(), [
    "authentication.k8s.io/selfsubjectreviews",
    "authorization.k8s.io/localsubjectaccessreviews",
    "authorization.k8s.io/selfsubjectaccessreviews",
    "authorization.k8s.io/selfsubjectrulesreviews",
    "authorization.k8s.io/subjectaccessreviews",
  ]);
});

test("client that only reads: discovery passes, and nothing beside it", async () => {
  for (const path of ["/api", "/apis", "/version", "/api/v1", "/apis/a/v1"]) {
    assert.equal(await passes("GET", path), true, path);
    assert.equal(await passes("POST", path), false, path);
  }
  for (const path of ["/", "/healthz", "/logs/a", "/debug/pprof", "/x/y"]) {
    assert.equal(await passes("GET", path), false, path);
  }
});

test("client that only reads: no detour by encodings, dots and headers", async () => {
  const pods = "/api/v1/namespaces/a/pods";
  for (
    const path of [
      `${pods}/x%2Fexec?command=rm`,
      `${pods}/x/%65xec?command=rm`,
      `${pods}/x/../y/exec`,
      `${pods}/%2e%2e/x/exec`,
      `${pods}//x/exec`,
      "/api/v1/watch/pods",
      "/api/v1/nodes/a/proxy/run/a/b/c?cmd=rm",
      "/api/v1/namespaces/a/services/x/proxy/delete-all",
      "/api/v1/proxy/namespaces/a/services/x",
      "/%zz",
    ]
  ) assert.equal(await passes("GET", path), false, path);
  for (
    const headers of [
      { "X-HTTP-Method-Override": "DELETE" },
      { "x-http-method": "DELETE" },
      { "x-method-override": "DELETE" },
      { upgrade: "websocket" },
    ]
  ) assert.equal(await passes("GET", `${pods}/x`, headers as never), false);
});

test("client that only reads: no streams", async () => {
  const transport = new ReadOnlyTransport({
    send: () => Promise.reject(new Error("Cannot be sent")),
    connect: () => Promise.reject(new Error("Cannot be opened")),
    close: () => Promise.resolve(),
  });
  await assert.rejects(transport.connect(), /only reads/);
});
