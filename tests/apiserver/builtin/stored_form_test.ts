import assert from "node:assert/strict";
import { test } from "node:test";
import * as builtin from "../../../dev/apiserver/builtin/builtin_definitions.ts";
import { TestServer } from "../support/test_server.ts";

const NAMESPACE = "namespaces/default";

test("fields of features that 1.36 enables are stored", async () => {
  const server = new TestServer({ builtin });
  const spec = {
    hostUsers: false,
    resources: { requests: { cpu: "1" } },
    resourceClaims: [{ name: "r", resourceClaimName: "x" }],
    securityContext: { supplementalGroupsPolicy: "Strict" },
    containers: [{
      name: "c",
      image: "i",
      resizePolicy: [{ resourceName: "cpu", restartPolicy: "NotRequired" }],
      resources: { claims: [{ name: "r" }] },
    }],
  };
  const { status, body } = await server.send(
    "POST",
    `/api/v1/${NAMESPACE}/pods`,
    { metadata: { name: "a" }, spec },
  );
  assert.equal(status, 201, body.message);
  for (
    const field of [
      "hostUsers",
      "resources",
      "resourceClaims",
      "securityContext",
    ] as const
  ) assert.deepEqual(body.spec[field], spec[field]);
  const [container] = body.spec.containers;
  assert.deepEqual(container.resources, { claims: [{ name: "r" }] });
  assert.equal(container.resizePolicy.length, 1);
  server.stop();
});

test("fields of features that 1.36 disables are dropped", async () => {
  const server = new TestServer({ builtin });
  const { status, body } = await server.send(
    "POST",
    `/apis/coordination.k8s.io/v1/${NAMESPACE}/leases`,
    {
      metadata: { name: "a" },
      spec: { holderIdentity: "a", strategy: "OldestEmulationVersion" },
    },
  );
  assert.equal(status, 201, body.message);
  assert.deepEqual(body.spec, { holderIdentity: "a" });
  server.stop();
});

test("a host name override is a subdomain, and no part of another name", async () => {
  const server = new TestServer({ builtin });
  const refused = async (spec: object) => {
    const { status, body } = await server.send(
      "POST",
      `/api/v1/${NAMESPACE}/pods`,
      {
        metadata: { name: "a" },
        spec: { containers: [{ name: "c", image: "i" }], ...spec },
      },
    );
    assert.equal(status, 422, JSON.stringify(body));
    return body.details.causes.map(({ field, message }: {
      field: string;
      message: string;
    }) => `${field}: ${message}`.slice(0, 80));
  };
  assert.match(
    (await refused({ hostnameOverride: "A_b" })).join(),
    /^spec.hostnameOverride: Invalid value: "A_b": a lowercase RFC 1123/,
  );
  assert.deepEqual(
    await refused({ hostnameOverride: "a", setHostnameAsFQDN: true }),
    [
      "spec.hostnameOverride: Forbidden: may not be specified when setHostnameAsFQDN is",
    ].map((text) => text.slice(0, 80)),
  );
  server.stop();
});
