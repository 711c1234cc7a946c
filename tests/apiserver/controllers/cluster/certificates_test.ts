import { Buffer } from "node:buffer";
import assert from "node:assert/strict";
import { generateKeyPairSync, sign, X509Certificate } from "node:crypto";
import { test } from "node:test";
import * as der from "../../../../dev/apiserver/der.ts";
import { CertificateSigningRequest } from "../../../../core/kinds/certificates_v1.ts";
import {
  type WorkloadFixture,
  workloadTest,
} from "../../support/workload_case.ts";

/** Certificate request of a user, in PEM, in base64. */
function certificateRequest(user: string): string {
  const keys = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const name = der.sequence(der.setOf(der.sequence(
    der.objectIdentifier("2.5.4.3"),
    der.utf8String(user),
  )));
  const info = der.sequence(
    der.unsignedInteger(Uint8Array.of(0)),
    name,
    keys.publicKey.export({ type: "spki", format: "der" }),
    der.explicit(0, new Uint8Array()),
  );
  const whole = der.sequence(
    info,
    der.sequence(der.objectIdentifier("1.2.840.10045.4.3.2")),
    der.bitString(sign("sha256", info, keys.privateKey)),
  );
  return btoa(
    `-----BEGIN CERTIFICATE REQUEST-----\n${
      Buffer.from(whole).toString("base64").match(/.{1,64}/g)?.join("\n")
    }\n-----END CERTIFICATE REQUEST-----\n`,
  );
}

async function approved(
  { client, clock }: WorkloadFixture,
  spec: Partial<CertificateSigningRequest["spec"]>,
) {
  const key = { name: "jane" };
  const { spec: { username, groups } } = await client.create(
    CertificateSigningRequest,
    {
      metadata: key,
      spec: {
        request: certificateRequest("jane"),
        signerName: "kubernetes.io/kube-apiserver-client",
        usages: ["client auth"],
        ...spec,
      },
    },
  );
  assert.equal(username, "kubernetes-admin");
  assert.deepEqual(groups, ["system:masters", "system:authenticated"]);
  await clock.advance(10);
  const { status } = await client.get(CertificateSigningRequest, key);
  assert.equal(status?.certificate, undefined);
  const approval = await client.request({
    method: "PATCH",
    path:
      "/apis/certificates.k8s.io/v1/certificatesigningrequests/jane/approval",
    headers: { "content-type": "application/merge-patch+json" },
    body: JSON.stringify({
      status: {
        conditions: [{ type: "Approved", status: "True", reason: "Test" }],
      },
    }),
  });
  assert.equal(approval.status, 200);
  await clock.advance(10);
  return (await client.get(CertificateSigningRequest, key)).status;
}

test(
  "an approved certificate request is signed by the server's authority",
  workloadTest({}, async (fixture) => {
    const status = await approved(fixture, { expirationSeconds: 3600 });
    const certificate = new X509Certificate(atob(status?.certificate ?? ""));
    const authority = new X509Certificate(fixture.server.certificateAuthority);
    assert.equal(certificate.subject, "CN=jane");
    assert.ok(certificate.verify(authority.publicKey));
    assert.equal(
      Date.parse(certificate.validTo),
      Math.floor(fixture.clock.wallTime() / 1000) * 1000 + 3_600_000,
    );
  }),
);

test(
  "a certificate request with a usage that its signer forbids fails",
  workloadTest({}, async (fixture) => {
    const status = await approved(fixture, {
      usages: ["client auth", "server auth"],
    });
    assert.equal(status?.certificate, undefined);
    const failure = status?.conditions?.find(({ type }) => type === "Failed");
    assert.equal(failure?.reason, "SignerValidationFailure");
  }),
);
