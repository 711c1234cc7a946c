import assert from "node:assert/strict";
import { test } from "node:test";
import type {
  HttpRequest,
  Transport,
} from "../../core/client/transport/transport.ts";
import {
  accessOf,
  permits,
  RestrictedTransport,
} from "../../testing/restricted_transport.ts";

const PODS = "/api/v1/namespaces/default/pods";

test("accessOf names the RBAC verb and resource of a request", () => {
  const cases: readonly (readonly [HttpRequest["method"], string, string])[] = [
    ["GET", PODS, "list  pods"],
    ["GET", "/api/v1/pods?watch=true", "watch  pods"],
    ["GET", `${PODS}?watch=1`, "watch  pods"],
    ["GET", `${PODS}?watch=false`, "list  pods"],
    ["GET", `${PODS}/a`, "get  pods"],
    ["GET", `${PODS}/a/log`, "get  pods/log"],
    ["POST", PODS, "create  pods"],
    ["DELETE", PODS, "deletecollection  pods"],
    ["DELETE", `${PODS}/a`, "delete  pods"],
    [
      "PUT",
      "/apis/apps/v1/namespaces/x/deployments/a",
      "update apps deployments",
    ],
    [
      "PATCH",
      "/apis/apps/v1/namespaces/x/deployments/a/status",
      "patch apps deployments/status",
    ],
    ["GET", "/api/v1/namespaces/default", "get  namespaces"],
  ];
  for (const [method, path, expected] of cases) {
    const access = accessOf(method, path);
    assert.equal(
      `${access?.verb} ${access?.group} ${access?.resource}`,
      expected,
    );
  }
  assert.equal(accessOf("GET", "/apis/apps/v1"), undefined);
  assert.equal(accessOf("GET", "/readyz"), undefined);
});

test("permits matches rules as RBAC does, with subresources separate", () => {
  const rules = [
    { apiGroups: ["apps"], resources: ["deployments"], verbs: ["get"] },
    { apiGroups: [""], resources: ["*"], verbs: ["list", "watch"] },
  ] as const;
  const deployment = { group: "apps", resource: "deployments" };
  assert(permits(rules, { ...deployment, verb: "get" }));
  assert(!permits(rules, { ...deployment, verb: "list" }));
  assert(
    !permits(rules, {
      group: "apps",
      resource: "deployments/status",
      verb: "get",
    }),
  );
  assert(permits(rules, { group: "", resource: "pods", verb: "watch" }));
  assert(!permits([], { ...deployment, verb: "get" }));
});

test("RestrictedTransport rejects as kube-apiserver does, and sends the rest", async () => {
  const sent: string[] = [];
  const inner: Transport = {
    send: (request) => {
      sent.push(request.path);
      return Promise.resolve({
        status: 200,
        headers: {},
        body: (async function* () {})(),
        cancel: () => Promise.resolve(),
      });
    },
    close: () => Promise.resolve(),
  };
  const transport = new RestrictedTransport(
    inner,
    [{ apiGroups: [""], resources: ["pods"], verbs: ["list"] }],
    { user: "operator" },
  );
  const get = (path: string) =>
    transport.send({ method: "GET", path, headers: {} });
  assert.equal((await get(PODS)).status, 200);
  assert.equal((await get("/version")).status, 200);
  const refused = await get(`${PODS}/a`);
  assert.equal(refused.status, 403);
  const chunks: Uint8Array[] = [];
  for await (const chunk of refused.body) chunks.push(chunk);
  const status = JSON.parse(new TextDecoder().decode(chunks[0]));
  assert.equal(
    status.message,
    'pods "a" is forbidden: User "operator" cannot get resource "pods" in API group "" in the namespace "default"',
  );
  assert.equal(status.reason, "Forbidden");
  assert.deepEqual(sent, [PODS, "/version"]);
});
