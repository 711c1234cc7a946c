import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { generateKeyPairSync, sign } from "node:crypto";
import { after, test } from "node:test";
import { ApiServer } from "@coracle/dev/apiserver";
import { systemClock } from "@coracle/operator/client";
import { createAuthority, signRequest } from "@coracle/operator/internal";
import * as der from "../../../core/admission/der.ts";

const CERTIFICATES = "/apis/certificates.k8s.io/v1";
const BUNDLES = `${CERTIFICATES}/clustertrustbundles`;
const REQUESTS = `${CERTIFICATES}/namespaces/default/podcertificaterequests`;
const TAINTS = "/apis/resource.k8s.io/v1/devicetaintrules";
const MIGRATIONS = "/apis/storagemigration.k8s.io/v1/storageversionmigrations";

const NOW = Date.UTC(2026, 0, 1);
const server = await ApiServer.start({
  port: false,
  version: "1.37",
  authorization: "rbac",
  clock: { ...systemClock, wallTime: () => NOW },
  // The status of migrations is written by the test.
  controllers: ["*", "-storage-version-migrator-controller"],
});
after(() => server.stop());

async function send(
  method: string,
  path: string,
  body: object,
  user?: string,
  // deno-lint-ignore no-explicit-any -- answers of several kinds
): Promise<any> {
  const answer = await server.transport.send({
    method: method as "POST" | "PUT" | "PATCH",
    path,
    headers: {
      "content-type": method === "PATCH"
        ? "application/merge-patch+json"
        : "application/json",
      ...user === undefined ? {} : { "impersonate-user": user },
    },
    body: JSON.stringify(body),
  });
  const chunks: Uint8Array[] = [];
  for await (const chunk of answer.body) chunks.push(chunk);
  return JSON.parse(Buffer.concat(chunks).toString());
}

/** Refused fields of a request with their messages, without the lists of forms. */
async function refused(
  method: string,
  path: string,
  body: object,
): Promise<string[]> {
  const { details } = await send(method, path, body);
  return (details?.causes ?? []).map((
    { field, message }: { field: string; message: string },
  ) => `${field}: ${message.replace(/ (?:must consist|must start) .*/, " …")}`);
}

function named(name: string, spec: object): object {
  return { metadata: { name }, spec };
}

// The user `signer` may write the kinds, but has no right to signers.
await send("POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles", {
  metadata: { name: "writer" },
  rules: [{
    apiGroups: ["certificates.k8s.io"],
    resources: ["clustertrustbundles", "podcertificaterequests/status"],
    verbs: ["*"],
  }],
});
await send("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", {
  metadata: { name: "writer" },
  roleRef: {
    apiGroup: "rbac.authorization.k8s.io",
    kind: "ClusterRole",
    name: "writer",
  },
  subjects: [{ kind: "User", name: "signer" }],
});

test("ClusterTrustBundles of 1.37 have certificates of authorities, and names", async () => {
  const { certificate } = createAuthority({ commonName: "ca" });
  const [leaf] = requestOf("ed25519");
  const create = (name: string, spec: object) =>
    refused("POST", BUNDLES, named(name, spec));
  assert.deepEqual(await create("a:b", { trustBundle: "" }), [
    'metadata.name: Invalid value: "a:b": ClusterTrustBundle without signer name must not have ":" in its name',
    'spec.trustBundle: Invalid value: "<value omitted>": at least one trust anchor must be provided',
  ]);
  assert.deepEqual(
    await create("a", {
      signerName: "example.com/s_",
      trustBundle: `${leaf}${
        certificate.replace("-----\n", "-----\nA: b\n\n")
      }-----BEGIN X-----\nAAAA\n-----END X-----\n`,
    }),
    [
      'metadata.name: Invalid value: "a": ClusterTrustBundle for signerName example.com/s_ must be named with prefix example.com:s_:',
      'spec.signerName: Invalid value: "s_": validating label "s_": a lowercase RFC 1123 subdomain …',
      'spec.trustBundle: Invalid value: "<value omitted>": entry 0 does not have the CA bit set',
      'spec.trustBundle: Invalid value: "<value omitted>": entry 1 has PEM block headers',
      'spec.trustBundle: Invalid value: "<value omitted>": entry 2 has bad block type: X',
    ],
  );
  assert.deepEqual(
    await create("a", { trustBundle: certificate + certificate }),
    [
      'spec.trustBundle: Invalid value: "<value omitted>": duplicate trust anchor (indices [0 1])',
    ],
  );
  const spec = { signerName: "example.com/s", trustBundle: certificate };
  assert.deepEqual(await create("example.com:s:a", spec), []);
  assert.deepEqual(
    await refused("PATCH", `${BUNDLES}/example.com:s:a`, {
      spec: { signerName: null },
    }),
    [
      'metadata.name: Invalid value: "example.com:s:a": ClusterTrustBundle without signer name must not have ":" in its name',
      'spec.signerName: Invalid value: "": field is immutable',
    ],
  );
});

/** A certificate for a new key, valid for two hours, and a request with that key. */
function requestOf(
  type: "ed25519" | "rsa",
  now = NOW,
): readonly [certificate: string, request: string] {
  const keys = type === "rsa"
    ? generateKeyPairSync("rsa", { modulusLength: 1024 })
    : generateKeyPairSync("ed25519");
  const publicKey = keys.publicKey.export({ type: "spki", format: "der" });
  const subject = der.sequence();
  const info = der.sequence(
    der.unsignedInteger(Uint8Array.of(0)),
    subject,
    publicKey,
    der.explicit(0, new Uint8Array()),
  );
  const [algorithm, digest] = type === "rsa"
    ? ["1.2.840.113549.1.1.11", "sha256"]
    : ["1.3.101.112", null];
  const request = der.sequence(
    info,
    der.sequence(der.objectIdentifier(algorithm)),
    der.bitString(sign(digest, info, keys.privateKey)),
  );
  const certificate = signRequest(
    createAuthority({ commonName: "ca" }),
    { subject, publicKey, alternativeNames: undefined },
    { usages: ["client auth"], now, backdate: 0, validFor: 7_200_000 },
  );
  return [certificate, Buffer.from(request).toString("base64")];
}

const POD = {
  signerName: "example.com/s",
  podName: "p",
  podUID: "1",
  serviceAccountName: "s",
  serviceAccountUID: "2",
  nodeName: "n",
  nodeUID: "3",
};

test("PodCertificateRequests of 1.37 have a signed request with a strong key", async () => {
  const create = (spec: object) =>
    refused("POST", REQUESTS, named("odd", { ...POD, ...spec }));
  assert.deepEqual(await create({ podUID: "", nodeName: "N" }), [
    'spec.podUID: Invalid value: "": must not be empty',
    'spec.nodeName: Invalid value: "N": a lowercase RFC 1123 subdomain …',
    "spec: Invalid value: exactly one of (stubPKCS10Request) or (pkixPublicKey, proofOfPossession) must be set",
  ]);
  assert.deepEqual(
    await create({
      signerName: "kubernetes.io/s",
      maxExpirationSeconds: 86_401,
      unverifiedUserAnnotations: { a: "b" },
      stubPKCS10Request: "AAAA",
    }),
    [
      'spec.unverifiedUserAnnotations: Invalid value: "a": must be a domain-prefixed key (such as "acme.io/foo")',
      "spec.maxExpirationSeconds: Invalid value: 86401: must be in the range [3600, 86400]",
      "spec.stubPKCS10Request: Invalid value: must be a valid PKCS#10 CSR",
    ],
  );
  assert.deepEqual(await create({ stubPKCS10Request: requestOf("rsa")[1] }), [
    'spec.stubPKCS10Request: Invalid value: "1024-bit modulus": RSA keys must have modulus size 3072 or 4096',
  ]);
  const changed = Buffer.from(requestOf("ed25519")[1], "base64");
  changed[changed.length - 1] = (changed.at(-1) ?? 0) ^ 1;
  assert.deepEqual(
    await create({ stubPKCS10Request: changed.toString("base64") }),
    ["spec.stubPKCS10Request: Invalid value: invalid signature"],
  );
});

function condition(type: string, status = "True"): object {
  const lastTransitionTime = "2026-01-01T00:00:00Z";
  return { type, status, reason: "R", message: "", lastTransitionTime };
}

/** Gives the user `signer` a right to signers, besides those to the kinds. */
async function grant(verb: string, signer: string): Promise<void> {
  const role = { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole" };
  const name = `${verb}ers`;
  const group = "/apis/rbac.authorization.k8s.io/v1";
  await send("POST", `${group}/clusterroles`, {
    metadata: { name },
    rules: [{
      apiGroups: ["certificates.k8s.io"],
      resources: ["signers"],
      resourceNames: [signer],
      verbs: [verb],
    }],
  });
  await send("POST", `${group}/clusterrolebindings`, {
    metadata: { name },
    roleRef: { ...role, name },
    subjects: [{ kind: "User", name: "signer" }],
  });
}

test("A certificate of 1.37 begins within five minutes of the server's time", async () => {
  for (
    const [name, shift, expected] of [
      ["early", -300_000, false],
      ["soon", 299_000, true],
    ] as const
  ) {
    const [certificateChain, stubPKCS10Request] = requestOf(
      "ed25519",
      NOW + shift,
    );
    await send("POST", REQUESTS, named(name, { ...POD, stubPKCS10Request }));
    const time = (minutes: number) =>
      new Date(NOW + shift + minutes * 60_000).toISOString()
        .replace(".000", "");
    assert.deepEqual(
      await refused("PATCH", `${REQUESTS}/${name}/status`, {
        status: {
          conditions: [condition("Issued")],
          certificateChain,
          notBefore: time(0),
          beginRefreshAt: time(60),
          notAfter: time(120),
        },
      }),
      expected ? [] : [
        `status.notBefore: Invalid value: "${
          time(0)
        }": must be set to within 5 minutes of kube-apiserver's current time`,
      ],
    );
  }
});

test("Who writes a ClusterTrustBundle of a signer may attest for it", async () => {
  const { certificate: trustBundle } = createAuthority({ commonName: "ca" });
  const signerName = "example.com/bundles";
  const create = (name: string, spec: object) =>
    send("POST", BUNDLES, named(name, { trustBundle, ...spec }), "signer");
  const name = "example.com:bundles:a";
  const { code, message } = await create(name, { signerName });
  assert.deepEqual([code, message], [
    403,
    `clustertrustbundles.certificates.k8s.io "${name}" is forbidden: user not permitted to attest for signerName "${signerName}"`,
  ]);
  assert.equal((await create("plain", {})).metadata.name, "plain");
  await grant("attest", signerName);
  assert.equal((await create(name, { signerName })).metadata.name, name);
});

test("The decision about a PodCertificateRequest of 1.37 is made once", async () => {
  const [certificate, stubPKCS10Request] = requestOf("ed25519");
  const [foreign] = requestOf("ed25519");
  await send("POST", REQUESTS, named("a", { ...POD, stubPKCS10Request }));
  const write = (status: object) =>
    refused("PATCH", `${REQUESTS}/a/status`, { status });
  assert.deepEqual(
    await write({ conditions: [condition("Issued", "False")] }),
    [
      'status.conditions.[0].status: Unsupported value: "False": supported values: "True"',
    ],
  );
  assert.deepEqual(await write({ notBefore: "2026-01-01T00:00:00Z" }), [
    'status: Invalid value: status is immutable unless transitioning to "Issued", "Denied", or "Failed"',
  ]);
  assert.deepEqual(
    await write({ conditions: [condition("Denied")], certificateChain: "a" }),
    [
      "status: Invalid value: non-condition status fields must be empty when denying or failing the PodCertificateRequest",
    ],
  );
  const conditions = [condition("Issued")];
  assert.deepEqual(await write({ conditions }), [
    'status.certificateChain: Invalid value: "": issued certificate chain must contain at least one certificate',
  ]);
  assert.deepEqual(await write({ conditions, certificateChain: foreign }), [
    `status.certificateChain: Invalid value: ${
      JSON.stringify(foreign)
    }: leaf certificate was not issued to the requested public key`,
  ]);
  const issue = {
    conditions,
    certificateChain: certificate,
    notBefore: "2026-01-01T00:00:00Z",
    notAfter: "2026-01-01T02:00:00Z",
  };
  assert.deepEqual(await write(issue), [
    "status.beginRefreshAt: Required value: must be present and in the range [notbefore+10min, notafter-10min]",
  ]);
  const beginRefreshAt = "2026-01-01T01:00:00Z";
  assert.deepEqual(
    await write({ ...issue, beginRefreshAt, notAfter: "2026-01-01T03:00:00Z" }),
    [
      'status.notAfter: Invalid value: "2026-01-01T03:00:00Z": must be set to the NotAfter time encoded in the leaf certificate',
    ],
  );
  assert.deepEqual(
    await write({ ...issue, beginRefreshAt: "2026-01-01T00:09:00Z" }),
    [
      'status.beginRefreshAt: Invalid value: "2026-01-01T00:09:00Z": must be at least 10 minutes after status.notBefore',
    ],
  );
  assert.deepEqual(
    (await send(
      "PATCH",
      `${REQUESTS}/a/status`,
      { status: { ...issue, beginRefreshAt } },
      "signer",
    )).details.causes,
    [{
      reason: "FieldValueForbidden",
      message:
        'Forbidden: User "signer" is not permitted to "sign" for signer "example.com/s"',
      field: "spec.signerName",
    }],
  );
  await grant("sign", "example.com/*");
  const issued = await send(
    "PATCH",
    `${REQUESTS}/a/status`,
    { status: { ...issue, beginRefreshAt } },
    "signer",
  );
  assert.equal(issued.status.beginRefreshAt, beginRefreshAt);
  assert.deepEqual(await write({ conditions: [condition("Failed")] }), [
    "status: Invalid value: immutable after PodCertificateRequest is issued, denied, or failed",
  ]);
  assert.deepEqual(
    await refused("PATCH", `${REQUESTS}/a`, { spec: { podUID: "" } }),
    [
      `spec: Invalid value: {"SignerName":"example.com/s","PodName":"p","PodUID":"","ServiceAccountName":"s","ServiceAccountUID":"2","NodeName":"n","NodeUID":"3","MaxExpirationSeconds":86400,"PKIXPublicKey":null,"ProofOfPossession":null,"StubPKCS10Request":"${stubPKCS10Request}","UnverifiedUserAnnotations":null}: field is immutable`,
    ],
  );
});

test("DeviceTaintRules of 1.37 are checked, and say when their effect began", async () => {
  assert.deepEqual(
    await refused(
      "POST",
      TAINTS,
      named("odd", {
        deviceSelector: { driver: "", pool: "a/B", device: "D" },
        taint: { key: "a b", value: "!", effect: "X" },
      }),
    ),
    [
      "spec.deviceSelector.driver: Required value",
      'spec.deviceSelector.pool: Invalid value: "B": a lowercase RFC 1123 subdomain …',
      'spec.deviceSelector.device: Invalid value: "D": a lowercase RFC 1123 label …',
      'spec.taint.key: Invalid value: "a b": name part …',
      `spec.taint.value: Invalid value: "!": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and …`,
      'spec.taint.effect: Unsupported value: "X": supported values: "NoExecute", "NoSchedule", "None"',
    ],
  );
  const taint = {
    key: "a",
    effect: "None",
    timeAdded: "2025-01-01T00:00:00Z",
  };
  const made = await send("POST", TAINTS, named("a", { taint }));
  assert.deepEqual(made.spec.taint, taint);
  const changed = await send("PATCH", `${TAINTS}/a`, {
    spec: { taint: { effect: "NoExecute" } },
  });
  assert.notEqual(changed.spec.taint.timeAdded, taint.timeAdded);
  assert.deepEqual(
    [made.metadata.generation, changed.metadata.generation],
    [1, 2],
  );
  assert.deepEqual(
    await refused("PATCH", `${TAINTS}/a/status`, {
      status: { conditions: [{ type: "A", status: "x", reason: "-" }] },
    }),
    [
      'status.conditions[0].status: Unsupported value: "x": supported values: "False", "True", "Unknown"',
      "status.conditions[0].lastTransitionTime: Required value",
      'status.conditions[0].reason: Invalid value: "-": a condition reason …',
    ],
  );
});

test("StorageVersionMigrations of 1.37 name a resource, and end once", async () => {
  assert.deepEqual(
    await refused(
      "POST",
      MIGRATIONS,
      named("odd", { resource: { group: "-" } }),
    ),
    [
      "spec.resource.resource: Required value: resource is required to be set",
      'spec.resource.group: Invalid value: "-": a lowercase RFC 1123 subdomain …',
    ],
  );
  await send(
    "POST",
    MIGRATIONS,
    named("a", { resource: { resource: "pods" } }),
  );
  assert.deepEqual(
    await refused("PATCH", `${MIGRATIONS}/a`, {
      spec: { resource: { resource: "nodes" } },
    }),
    [
      'spec: Invalid value: {"Resource":{"group":"","resource":"nodes"}}: field is immutable',
    ],
  );
  const write = (resourceVersion: string, ...conditions: object[]) =>
    refused("PATCH", `${MIGRATIONS}/a/status`, {
      status: { resourceVersion, conditions },
    });
  const shown =
    '{"type":"Succeeded","status":"False","lastTransitionTime":"2026-01-01T00:00:00Z","reason":"R","message":""}';
  assert.deepEqual(await write("abc", condition("Running")), [
    'status.resourceVersion: Invalid value: "abc": resource version is not well formed: abc',
  ]);
  assert.deepEqual(await write("12", condition("Succeeded")), []);
  assert.deepEqual(await write("13", condition("Succeeded", "False")), [
    'status.resourceVersion: Invalid value: "13": field is immutable',
    `status.conditions: Invalid value: [${shown}]: Success condition cannot be set to false once it is true`,
  ]);
  // The last resourceVersion is needed: none is sent with the request.
  const { code, message } = await send("PUT", `${MIGRATIONS}/a`, {
    metadata: { name: "a" },
    spec: { resource: { resource: "pods" } },
  });
  assert.equal(code, 422);
  assert.match(message, /resourceVersion: Invalid value: .*must be specified/);
});
