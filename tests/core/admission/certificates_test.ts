import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { test } from "node:test";
import {
  createAuthority,
  issueCertificate,
} from "../../../core/admission/certificates.ts";

const authority = createAuthority({ commonName: "test-authority" });

test("createAuthority creates a self-signed certificate", () => {
  const certificate = new X509Certificate(authority.certificate);
  assert.equal(certificate.ca, true);
  assert.equal(certificate.subject, "CN=test-authority");
  assert.ok(certificate.verify(certificate.publicKey));
});

test("issueCertificate creates a server certificate for names and addresses", () => {
  const server = issueCertificate(authority, {
    commonName: "kube-apiserver",
    usage: "server",
    hosts: ["localhost", "127.0.0.1", "::1", "fd00::12:0:7"],
  });
  const certificate = new X509Certificate(server.certificate);
  const issuer = new X509Certificate(authority.certificate);
  assert.ok(certificate.verify(issuer.publicKey));
  assert.equal(certificate.ca, false);
  assert.equal(certificate.issuer, "CN=test-authority");
  assert.ok(certificate.checkHost("localhost"));
  for (const address of ["127.0.0.1", "::1", "fd00::12:0:7"]) {
    assert.ok(certificate.checkIP(address), address);
  }
  assert.equal(certificate.checkIP("fd00::12:0:8"), undefined);
});

test("issueCertificate names a client's user and groups", () => {
  const client = issueCertificate(authority, {
    commonName: "jane",
    organizations: ["dev", "system:masters"],
    usage: "client",
  });
  const { subject } = new X509Certificate(client.certificate);
  assert.deepEqual(subject.split("\n").sort(), [
    "CN=jane",
    "O=dev",
    "O=system:masters",
  ]);
});

test("issueCertificate uses the given time, also after 2049", () => {
  for (const year of [2030, 2060]) {
    const now = Date.UTC(year, 0, 2);
    const { certificate } = issueCertificate(authority, {
      commonName: "jane",
      usage: "client",
      now,
      validFor: 3_600_000,
    });
    const { validFrom, validTo } = new X509Certificate(certificate);
    assert.equal(Date.parse(validFrom), now - 3_600_000);
    assert.equal(Date.parse(validTo), now + 3_600_000);
  }
});

test("issueCertificate rejects an authority that is not PEM", () => {
  assert.throws(
    () =>
      issueCertificate({ certificate: "rubbish", key: "" }, {
        commonName: "jane",
        usage: "client",
      }),
    {
      name: "TypeError",
      message: /the authority must have a certificate in PEM/,
    },
  );
});
