import { Buffer } from "node:buffer";
import assert from "node:assert/strict";
import { generateKeyPairSync, sign, X509Certificate } from "node:crypto";
import { test } from "node:test";
import { ApiError } from "@coracle/operator/client";
import { CertificateSigningRequest } from "@coracle/operator/kinds";
import * as der from "../../../../core/admission/der.ts";
import {
  type WorkloadFixture,
  workloadTest,
} from "../../support/workload_case.ts";

const CLIENT = "kubernetes.io/kube-apiserver-client";

/** Attribute of a subject, with the tag of its string type. */
function attribute(type: string, tag: number, content: Uint8Array): der.Der {
  // A context tag of the same form, with the tag of the type in its place.
  const value = Uint8Array.from(der.implicit(0, content));
  value[0] = tag;
  return der.setOf(der.sequence(der.objectIdentifier(type), value));
}

function commonName(text: string): der.Der {
  return attribute("2.5.4.3", 0x0c, Buffer.from(text));
}

function organization(text: string, tag = 0x0c): der.Der {
  const content = tag === 0x1e
    ? Buffer.from(text, "utf16le").swap16()
    : tag === 0x1c
    ? Buffer.concat([...text].map((one) => {
      const character = Buffer.alloc(4);
      character.writeUInt32BE(one.codePointAt(0) ?? 0);
      return character;
    }))
    : Buffer.from(text);
  return attribute("2.5.4.10", tag, content);
}

/** Certificate request with a subject, in PEM. */
function requestPem(
  subject: readonly der.Der[],
  attributes: Uint8Array = new Uint8Array(),
): string {
  const keys = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const info = der.sequence(
    der.unsignedInteger(Uint8Array.of(0)),
    der.sequence(...subject),
    keys.publicKey.export({ type: "spki", format: "der" }),
    der.explicit(0, attributes),
  );
  return pem(
    der.sequence(
      info,
      der.sequence(der.objectIdentifier("1.2.840.10045.4.3.2")),
      der.bitString(sign("sha256", info, keys.privateKey)),
    ),
  );
}

function pem(
  whole: Uint8Array,
  label = "CERTIFICATE REQUEST",
  headers = "",
): string {
  const body = Buffer.from(whole).toString("base64").match(/.{1,64}/g);
  return `-----BEGIN ${label}-----\n${headers}${
    body?.join("\n")
  }\n-----END ${label}-----\n`;
}

/** Certificate request of a user, in PEM, in base64. */
function certificateRequest(user: string): string {
  return btoa(requestPem([commonName(user)]));
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

/** Answer to the creation of a request. */
async function created(
  { client }: WorkloadFixture,
  request: string,
  signerName = CLIENT,
): Promise<{ readonly status: number; readonly text: string }> {
  try {
    await client.create(CertificateSigningRequest, {
      metadata: { generateName: "r-" },
      spec: { request: btoa(request), signerName, usages: ["client auth"] },
    });
    return { status: 201, text: "" };
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return { status: error.status, text: error.message };
  }
}

const MASTERS = "system:masters";

/** Request of a member of the group, with the length of its name in two bytes. */
function longForm(): string {
  const text = Buffer.from(MASTERS);
  const value = Buffer.concat([
    Uint8Array.of(0x0c, 0x81, text.length),
    text,
  ]);
  const organizations = der.setOf(
    der.sequence(der.objectIdentifier("2.5.4.10"), value),
  );
  return requestPem([organizations, commonName("eve")]);
}

const MEMBER = requestPem([organization(MASTERS), commonName("eve")]);
const HARMLESS = requestPem([commonName("jane")]);

const ATTACKS: readonly (readonly [
  name: string,
  request: string,
  status: number,
  why: RegExp,
])[] = [
  ["as UTF8String", MEMBER, 403, /with system:masters group is not allowed/],
  [
    "as BMPString",
    requestPem([organization(MASTERS, 0x1e), commonName("eve")]),
    403,
    /with system:masters group is not allowed/,
  ],
  [
    "as UniversalString",
    requestPem([organization(MASTERS, 0x1c), commonName("eve")]),
    422,
    /unsupported string type in subject/,
  ],
  ["with a long length", longForm(), 422, /malformed subject/],
  [
    "behind a block of another label",
    HARMLESS.replaceAll("CERTIFICATE REQUEST", "DECOY") + MEMBER,
    422,
    /PEM block type must be CERTIFICATE REQUEST/,
  ],
  [
    "behind an incomplete block",
    `-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n${MEMBER}`,
    403,
    /with system:masters group is not allowed/,
  ],
  [
    "with PEM headers",
    MEMBER.replace("-----\n", "-----\nA: b\n\n"),
    422,
    /no PEM block headers are permitted/,
  ],
  [
    "with a changed subject",
    pem(
      Buffer.from(
        Buffer.from(MEMBER.replaceAll(/-----.*-----/g, ""), "base64")
          .toString("latin1").replace(MASTERS, "system:mastery"),
        "latin1",
      ),
    ),
    422,
    /signature verification failure/,
  ],
];

test(
  "a certificate request for system:masters is refused in each encoding",
  workloadTest({}, async (fixture) => {
    assert.equal((await created(fixture, HARMLESS)).status, 201);
    for (const [name, request, status, why] of ATTACKS) {
      const answer = await created(fixture, request);
      assert.equal(answer.status, status, `${name}: ${answer.text}`);
      assert.match(answer.text, why, name);
    }
    const legacy = await created(
      fixture,
      MEMBER,
      "kubernetes.io/legacy-unknown",
    );
    assert.equal(legacy.status, 422);
    assert.match(legacy.text, /the legacy signerName is not allowed/);
  }),
);

/** Attributes that ask for an alternative name. */
function alternativeName(host: string): Uint8Array {
  const name = der.implicit(2, Buffer.from(host));
  const extension = der.sequence(
    der.objectIdentifier("2.5.29.17"),
    der.octetString(der.sequence(name)),
  );
  return der.sequence(
    der.objectIdentifier("1.2.840.113549.1.9.14"),
    der.setOf(der.sequence(extension)),
  );
}

const NODE_USAGES: NonNullable<CertificateSigningRequest["spec"]["usages"]> = [
  "digital signature",
  "client auth",
];
const NODE = [organization("system:nodes"), commonName("system:node:a")];

const SUBJECTS: readonly (readonly [
  why: string | undefined,
  signer: string,
  request: string,
  usages: NonNullable<CertificateSigningRequest["spec"]["usages"]>,
])[] = [
  [undefined, "kube-apiserver-client-kubelet", requestPem(NODE), NODE_USAGES],
  [
    "subject organization is not system:nodes",
    "kube-apiserver-client-kubelet",
    MEMBER,
    NODE_USAGES,
  ],
  [
    "subject organization is not system:nodes",
    "kube-apiserver-client-kubelet",
    requestPem([organization(MASTERS), ...NODE]),
    NODE_USAGES,
  ],
  [
    "subject common name does not begin with system:node:",
    "kube-apiserver-client-kubelet",
    requestPem([organization("system:nodes"), commonName("jane")]),
    NODE_USAGES,
  ],
  [
    "DNS subjectAltNames are not allowed",
    "kube-apiserver-client-kubelet",
    requestPem(NODE, alternativeName("a")),
    NODE_USAGES,
  ],
  [
    "usages did not match [client auth digital signature key encipherment]",
    "kube-apiserver-client-kubelet",
    requestPem(NODE),
    ["client auth"],
  ],
  [
    undefined,
    "kubelet-serving",
    requestPem(NODE, alternativeName("a")),
    ["digital signature", "server auth"],
  ],
  [
    "DNS or IP subjectAltName is required",
    "kubelet-serving",
    requestPem(NODE),
    ["digital signature", "server auth"],
  ],
];

test(
  "each signer checks subject, names and usages before it signs",
  workloadTest({}, async (fixture) => {
    for (const [why, signer, request, usages] of SUBJECTS) {
      const status = await approved(fixture, {
        request: btoa(request),
        signerName: `kubernetes.io/${signer}`,
        usages: [...usages],
      });
      const failure = status?.conditions?.find(({ type }) => type === "Failed");
      assert.equal(failure?.message, why);
      assert.equal(status?.certificate === undefined, why !== undefined);
      await fixture.client.delete(CertificateSigningRequest, { name: "jane" });
    }
  }),
);
