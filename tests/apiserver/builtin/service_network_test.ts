import assert from "node:assert/strict";
import { test } from "node:test";
import * as builtin from "../../../dev/apiserver/builtin/builtin_definitions.ts";
import { TestServer } from "../support/test_server.ts";

const GROUP = "/apis/networking.k8s.io/v1";
const ADDRESSES = `${GROUP}/ipaddresses`;
const NETWORKS = `${GROUP}/servicecidrs`;
const PARENT = { resource: "services", name: "a" };
const SUBDOMAIN =
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const FAMILIES =
  "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64";

/** Names and specs, with what kube-apiserver 1.36 answers. */
const CREATIONS: readonly (readonly [
  path: string,
  name: string,
  spec: unknown,
  refused?: string,
])[] = [
  [ADDRESSES, "1.2.3.4", { parentRef: PARENT }],
  [ADDRESSES, "fe80::42:1dff:fe84:f9e2", { parentRef: PARENT }],
  [
    ADDRESSES,
    "a",
    { parentRef: PARENT },
    'metadata.name: Invalid value: "a": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)',
  ],
  [
    ADDRESSES,
    "01.2.3.4",
    { parentRef: PARENT },
    'metadata.name: Invalid value: "01.2.3.4": must not have leading 0s',
  ],
  [
    ADDRESSES,
    "fe80::0:1",
    { parentRef: PARENT },
    'metadata.name: Invalid value: "fe80::0:1": must be in canonical form ("fe80::1")',
  ],
  [
    ADDRESSES,
    "::ffff:1.2.3.4",
    { parentRef: PARENT },
    'metadata.name: Invalid value: "::ffff:1.2.3.4": must not be an IPv4-mapped IPv6 address',
  ],
  [ADDRESSES, "1.2.3.4", {}, "spec.parentRef: Required value"],
  [
    ADDRESSES,
    "1.2.3.4",
    { parentRef: {} },
    "[spec.parentRef.resource: Required value, spec.parentRef.name: Required value]",
  ],
  [
    ADDRESSES,
    "1.2.3.4",
    { parentRef: { group: "A", resource: "a/b", name: "a%", namespace: "." } },
    `[spec.parentRef.group: Invalid value: "A": ${SUBDOMAIN}, spec.parentRef.resource: Invalid value: "a/b": may not contain '/', spec.parentRef.name: Invalid value: "a%": may not contain '%', spec.parentRef.namespace: Invalid value: ".": may not be '.']`,
  ],
  [NETWORKS, "a", { cidrs: ["10.0.0.0/24"] }],
  [NETWORKS, "a", { cidrs: ["10.0.0.0/24", "fe80::/64"] }],
  [
    NETWORKS,
    "a",
    { cidrs: [] },
    "spec.cidrs: Required value: at least one CIDR required",
  ],
  [
    NETWORKS,
    "a",
    { cidrs: ["10.0.0.1/24"] },
    'spec.cidrs[0]: Invalid value: "10.0.0.1/24": must not have bits set beyond the prefix length',
  ],
  [
    NETWORKS,
    "a",
    { cidrs: ["x"] },
    'spec.cidrs[0]: Invalid value: "x": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)',
  ],
  [
    NETWORKS,
    "a",
    { cidrs: ["010.0.0.0/24"] },
    'spec.cidrs[0]: Invalid value: "010.0.0.0/24": must not have leading 0s in IP or prefix length',
  ],
  [
    NETWORKS,
    "a",
    { cidrs: ["fe80::0/64"] },
    'spec.cidrs[0]: Invalid value: "fe80::0/64": must be in canonical form ("fe80::/64")',
  ],
  [
    NETWORKS,
    "a",
    { cidrs: ["10.0.0.0/24", "10.1.0.0/24"] },
    `spec.cidrs: Invalid value: ["10.0.0.0/24","10.1.0.0/24"]: ${FAMILIES}`,
  ],
  [
    NETWORKS,
    "a",
    { cidrs: ["10.0.0.0/24", "fe80::/64", "fe81::/64"] },
    'spec.cidrs: Invalid value: {"CIDRs":["10.0.0.0/24","fe80::/64","fe81::/64"]}: may only hold up to 2 values',
  ],
];

function causesOf(body: { readonly message: string }): string {
  return body.message.replace(/^.*? is invalid: /, "");
}

for (const [path, name, spec, refused] of CREATIONS) {
  const outcome = refused === undefined ? "accepted" : "rejected";
  const kind = path === ADDRESSES ? "IPAddress" : "ServiceCIDR";
  test(`creating ${kind} ${name} ${JSON.stringify(spec)} is ${outcome}`, async () => {
    const server = new TestServer({ builtin });
    const { status, body } = await server.send("POST", path, {
      metadata: { name },
      spec,
    });
    assert.equal(status, refused === undefined ? 201 : 422, body.message);
    if (refused !== undefined) assert.equal(causesOf(body), refused);
    server.stop();
  });
}

/** New networks of a ServiceCIDR, with what kube-apiserver 1.36 answers. */
const UPDATES: readonly (readonly [readonly string[], string?])[] = [
  [["10.77.0.0/24", "fe80::/64"]],
  [
    ["10.78.0.0/24"],
    'spec.cidrs[0]: Invalid value: "10.78.0.0/24": field is immutable',
  ],
  [
    ["10.78.0.0/24", "fe80::/64"],
    'spec.cidrs[0]: Invalid value: "10.78.0.0/24": field is immutable',
  ],
  [
    ["10.77.0.0/24", "10.78.0.0/24"],
    `spec.cidrs: Invalid value: ["10.77.0.0/24","10.78.0.0/24"]: ${FAMILIES}`,
  ],
];

for (const [cidrs, refused] of UPDATES) {
  const outcome = refused === undefined ? "accepted" : "rejected";
  test(`changing a ServiceCIDR to ${JSON.stringify(cidrs)} is ${outcome}`, async () => {
    const server = new TestServer({ builtin });
    const made = await server.send("POST", NETWORKS, {
      metadata: { name: "a" },
      spec: { cidrs: ["10.77.0.0/24"] },
    });
    const { status, body } = await server.send("PUT", `${NETWORKS}/a`, {
      ...made.body,
      spec: { cidrs },
    });
    assert.equal(status, refused === undefined ? 200 : 422, body.message);
    if (refused !== undefined) assert.equal(causesOf(body), refused);
    server.stop();
  });
}

test("changing the parent of an IPAddress is rejected", async () => {
  const server = new TestServer({ builtin });
  const made = await server.send("POST", ADDRESSES, {
    metadata: { name: "1.2.3.4" },
    spec: { parentRef: PARENT },
  });
  const { body } = await server.send("PUT", `${ADDRESSES}/1.2.3.4`, {
    ...made.body,
    spec: { parentRef: { ...PARENT, name: "b" } },
  });
  assert.equal(
    causesOf(body),
    'spec.parentRef: Invalid value: {"Group":"","Resource":"services","Namespace":"","Name":"b"}: field is immutable',
  );
  server.stop();
});

test("every cluster has a ready ServiceCIDR from the beginning", async () => {
  const server = new TestServer({ builtin });
  const { body } = await server.send("GET", `${NETWORKS}/kubernetes`);
  assert.deepEqual(body.spec, { cidrs: ["10.96.0.0/12"] });
  assert.equal(body.status.conditions[0].status, "True");
  server.stop();
});
