import assert from "node:assert/strict";
import { test } from "node:test";
import * as builtin from "../../../dev/apiserver/builtin/builtin_definitions.ts";
import { TestServer } from "../support/test_server.ts";

const ZEROS = "must not have leading 0s";
const MAPPED = "must not be an IPv4-mapped IPv6 address";
const LOOPBACK = "may not be in the loopback range (127.0.0.0/8, ::1/128)";
const BITS = "must not have bits set beyond the prefix length";

/** Path and spec of an object that has the address or network. */
const HOLDERS: Readonly<
  Record<string, readonly [path: string, make: (text: string) => object]>
> = {
  externalIP: [
    "/api/v1/namespaces/default/services",
    (text) => ({ spec: { ports: [{ port: 80 }], externalIPs: [text] } }),
  ],
  endpoint: [
    "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices",
    (text) => ({
      addressType: text.includes(":") ? "IPv6" : "IPv4",
      endpoints: [{ addresses: [text] }],
      ports: [],
    }),
  ],
  ipBlock: [
    "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies",
    (text) => ({
      spec: {
        podSelector: {},
        ingress: [{ from: [{ ipBlock: { cidr: text } }] }],
      },
    }),
  ],
  sourceRange: [
    "/api/v1/namespaces/default/services",
    (text) => ({
      spec: {
        type: "LoadBalancer",
        ports: [{ port: 80 }],
        loadBalancerSourceRanges: [text],
      },
    }),
  ],
};

/** Addresses, with what kube-apiserver 1.36 and 1.37 answer. */
const CASES: readonly (readonly [
  holder: keyof typeof HOLDERS,
  text: string,
  why?: string,
])[] = [
  ["externalIP", "10.0.0.1"],
  ["externalIP", "FD00::1"],
  ["externalIP", "::1.2.3.4"],
  ["externalIP", "10.0.0.01", ZEROS],
  ["externalIP", "::ffff:10.0.0.1", MAPPED],
  ["externalIP", "::1", LOOPBACK],
  ["externalIP", "0.0.0.0", "may not be unspecified (0.0.0.0)"],
  ["endpoint", "fd00::1"],
  ["endpoint", "10.0.0.01", ZEROS],
  ["endpoint", "127.0.0.1", LOOPBACK],
  ["endpoint", "FD00::0:1", 'must be in canonical form ("fd00::1")'],
  ["endpoint", "::1.2.3.4", 'must be in canonical form ("::102:304")'],
  ["ipBlock", "FD00::/8"],
  ["ipBlock", "10.0.0.1/8", BITS],
  [
    "ipBlock",
    "10.0.0.0/08",
    "must not have leading 0s in IP or prefix length",
  ],
  [
    "ipBlock",
    "::ffff:10.0.0.0/104",
    "must not have an IPv4-mapped IPv6 address",
  ],
  ["sourceRange", " 10.0.0.0/8 "],
  ["sourceRange", "10.0.0.1/8", BITS],
];

for (const [holder, text, why] of CASES) {
  const outcome = why === undefined ? "accepted" : "rejected";
  test(`creating an object with the ${holder} ${text} is ${outcome}`, async () => {
    const server = new TestServer({ builtin });
    const [path = "", make = Object] = HOLDERS[holder] ?? [];
    const { status, body } = await server.send("POST", path, {
      metadata: { name: "a" },
      ...make(text),
    });
    assert.equal(status, why === undefined ? 201 : 422, body.message);
    if (why !== undefined) {
      assert.ok(body.message.endsWith(`"${text}": ${why}`), body.message);
    }
    server.stop();
  });
}
