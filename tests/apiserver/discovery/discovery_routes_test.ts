import assert from "node:assert/strict";
import { test } from "node:test";
import { parse } from "yaml";
import * as builtin from "../../../dev/apiserver/builtin/builtin_definitions.ts";
import { TestServer } from "../support/test_server.ts";

async function get(
  path: string,
  accept = "application/json",
  headers: Record<string, string> = {},
) {
  const server = new TestServer({ builtin });
  const answer = await server.send("GET", path, undefined, {
    accept,
    ...headers,
  });
  server.stop();
  return answer;
}

const aggregated = (version: string) =>
  `application/json;g=apidiscovery.k8s.io;v=${version};as=APIGroupDiscoveryList`;

test("discovery is aggregated for clients that request it, in their version", async () => {
  for (const version of ["v2", "v2beta1"]) {
    const { body, headers } = await get("/apis", aggregated(version));
    assert.equal(body.apiVersion, `apidiscovery.k8s.io/${version}`);
    assert.equal(headers["content-type"], aggregated(version));
    const again = await get("/apis", aggregated(version), {
      "if-none-match": headers.etag ?? "",
    });
    assert.equal(again.status, 304);
  }
  const { body } = await get(
    "/apis",
    `${aggregated("v3")},application/json;q=0.5`,
  );
  assert.equal(body.kind, "APIGroupList");
});

test("discovery answers 406 to unsupported representations", async () => {
  assert.equal((await get("/apis", aggregated("v3"))).status, 406);
  assert.equal((await get("/apis/apps", aggregated("v2"))).status, 406);
  assert.equal((await get("/apis/apps/v1", "text/html")).status, 406);
});

test("discovery supports YAML", async () => {
  const { body, headers } = await get("/apis", "application/yaml");
  assert.equal(headers["content-type"], "application/yaml");
  assert.doesNotMatch(body, /[&*]a1/);
  const { groups } = parse(body) as { groups: { name: string }[] };
  assert.ok(groups.some(({ name }) => name === "apps"));
});

test("discovery answers 404 for groups and versions that are not served", async () => {
  for (const path of ["/apis/nope", "/apis/nope/v1", "/apis/apps/v9"]) {
    assert.equal((await get(path)).status, 404, path);
  }
  const document = await get("/openapi/v3/nope");
  assert.deepEqual([document.status, document.body], [404, ""]);
});

test("health endpoints know the names of kube-apiserver's checks", async () => {
  assert.equal((await get("/readyz/ping")).body, "ok");
  assert.equal((await get("/healthz/nope")).status, 404);
});

test("discovery documents reject methods other than reads", async () => {
  const server = new TestServer({ builtin });
  for (const path of ["/api", "/api/v1", "/apis/apps/v1", "/version"]) {
    assert.equal((await server.send("POST", path)).status, 405, path);
  }
  server.stop();
});
