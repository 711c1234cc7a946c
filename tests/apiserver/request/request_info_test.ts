import assert from "node:assert/strict";
import { test } from "node:test";
import { readTarget } from "../../../dev/apiserver/request/request_info.ts";

const cases: [string, Record<string, unknown> | undefined][] = [
  ["/api/v1/pods", { group: "", version: "v1", plural: "pods" }],
  ["/api/v1/namespaces", { plural: "namespaces" }],
  ["/api/v1/namespaces/x", { plural: "namespaces", name: "x" }],
  [
    "/api/v1/namespaces/x/status",
    { plural: "namespaces", name: "x", subresource: "status" },
  ],
  [
    "/api/v1/namespaces/x/finalize",
    { plural: "namespaces", name: "x", subresource: "finalize" },
  ],
  ["/api/v1/namespaces/x/pods", { namespace: "x", plural: "pods" }],
  [
    "/apis/apps/v1/namespaces/x/deployments/d/scale",
    {
      group: "apps",
      version: "v1",
      namespace: "x",
      plural: "deployments",
      name: "d",
      subresource: "scale",
    },
  ],
  [
    "/api/v1/watch/namespaces/x/pods/p",
    { namespace: "x", plural: "pods", name: "p", watch: true },
  ],
  ["/apis/apps/v1/watch/deployments", { plural: "deployments", watch: true }],
  ["/api/v1/namespaces/x/pods/p/log/rest", { rest: ["rest"] }],
  ["/api/v1/pods/", { plural: "pods" }],
  ["/api/v1/pods%2Fp", { plural: "pods", name: "p" }],
  ["/api/v1", undefined],
  ["/apis/apps/v1", undefined],
  ["/apis", undefined],
  ["/healthz", undefined],
  ["/", undefined],
];

for (const [target, expected] of cases) {
  test(`readTarget parses ${target}`, () => {
    const info = readTarget(`${target}?watch=1&labelSelector=a%3Db`);
    assert.equal(info?.query.get("labelSelector"), "a=b");
    if (expected === undefined) assert.equal(info?.resource, undefined);
    else assert.partialDeepStrictEqual(info?.resource, expected);
  });
}

test("readTarget rejects paths that are not properly encoded", () => {
  assert.equal(readTarget("/api/v1/pods/%zz"), undefined);
});

test("readTarget treats path tricks as names, never as another path", () => {
  assert.equal(readTarget("/healthz/../api/v1/secrets")?.resource, undefined);
  assert.equal(readTarget("/api/v1//secrets")?.resource?.plural, "");
  assert.equal(
    readTarget("/api/v1/namespaces/x/../secrets")?.resource?.plural,
    "..",
  );
});
