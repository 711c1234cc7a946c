import assert from "node:assert/strict";
import { test } from "node:test";
import {
  isKnownFormat,
  matchesFormat,
} from "../../../dev/apiserver/crd/schema/formats.ts";

/** Formats of kube-openapi with valid and invalid texts. */
const CASES: readonly (readonly [
  format: string,
  has: readonly string[],
  hasNot: readonly string[],
])[] = [
  [
    "duration",
    ["1h30m", "-1.5s", "0", "2 days", "about 3 weeks", "5min", "1 HOUR"],
    [
      "",
      "1",
      "two days",
      "1 fortnight",
      "1y",
      "99999999999999999999 s",
    ],
  ],
  [
    "email",
    [
      "a@b.example",
      "Jane <jane@b.example>",
      '"a b"@example.com',
      "a@[1.2.3.4]",
    ],
    ["", "a", "a@", "@b", "a b@example.com", "a@b@c"],
  ],
  [
    "ipv4",
    ["1.2.3.4", "01.2.3.4", "::ffff:1.2.3.4"],
    ["1.2.3", "::1", "::ffff:1.2.3.4%eth0"],
  ],
  [
    "cidr",
    ["10.0.0.0/8", "10.0.0.1/32", "::/0", "fd00::1/128", "010.0.0.0/8"],
    ["10.0.0.0", "10.0.0.0/33", "::/129", "fe80::1%eth0/64", "10.0.0.0/8/8"],
  ],
  [
    "uri",
    ["https://a/b", "/b", "mailto:a", "/a b", "http://[::1]:80/"],
    ["a", "/%zz", "http://a b/", "http://a:80#f", "http://[::1", ""],
  ],
  ["isbn10", ["0-306-40615-2", "080442957X"], ["0306406153", "030640615"]],
  ["isbn13", ["978-0-306-40615-7"], ["9780306406158", "978030640615"]],
  ["isbn", ["0306406152", "9780306406157"], ["0306406153"]],
  ["rgbcolor", ["rgb(0,12, 255)"], ["rgb(0,0,256)", "rgb(0,0)", "#fff"]],
  [
    "hostname",
    ["a", "a-b.cd", "é".repeat(31)],
    ["-a", "a.1", `${"a".repeat(64)}.b`, "é".repeat(32)],
  ],
  ["ssn", ["123-45-6789", "123 45-6789"], ["123456789", "12345-6789"]],
  [
    "mac",
    ["01:23:45:67:89:ab", "0123456789ab", "0123.4567.89AB"],
    ["01:23:45:67:89-ab", "0123456789a", "0123456789abc"],
  ],
  ["k8s-short-name", ["a", "a-1", "a".repeat(63)], ["", "A", "a.b", "-a"]],
  ["k8s-long-name", ["a.b-c.d", `${"a".repeat(64)}.b`], ["a..b", "a.-b"]],
  ["date-time", ["2026-01-31T01:02:03Z"], ["2026-02-30T01:02:03Z"]],
];

for (const [format, has, hasNot] of CASES) {
  test(`matchesFormat recognizes a ${format}`, () => {
    assert.ok(isKnownFormat(format));
    for (const text of has) assert.ok(matchesFormat(format, text), text);
    for (const text of hasNot) assert.ok(!matchesFormat(format, text), text);
  });
}

test("matchesFormat accepts any text for an unknown format", () => {
  assert.equal(isKnownFormat("colour"), false);
  assert.ok(matchesFormat("colour", "x"));
});
