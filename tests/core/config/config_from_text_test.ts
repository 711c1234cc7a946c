import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { type ClusterConfig, configFromText } from "@coracle/operator/client";
import { issueCertificate } from "../../../core/admission/certificates.ts";
import { temporaryFolder, writeText } from "../../support/temporary_folder.ts";
import {
  AUTHORITY,
  authority,
  base64,
  credential,
  JANE,
  kubeconfig,
} from "../../support/kubeconfig_case.ts";

const JOE = issueCertificate(AUTHORITY, { commonName: "joe", usage: "client" });
const FOLDER = temporaryFolder();

function fromText(
  cluster: Record<string, unknown>,
  user: Record<string, unknown> = {},
): Promise<ClusterConfig> {
  return configFromText(kubeconfig(cluster, user), { environment: {} });
}

test("configFromText reads server, namespace, authority and certificate", async () => {
  const config = await fromText({
    "certificate-authority-data": base64(AUTHORITY.certificate),
    "tls-server-name": "api.internal",
    "proxy-url": "socks5://proxy:1080",
  }, {
    "client-certificate-data": base64(JANE.certificate),
    "client-key-data": base64(JANE.key),
  });
  assert.equal(config.server, "https://10.0.0.1:6443");
  assert.equal(config.namespace, "web");
  assert.equal(config.serverName, "api.internal");
  assert.equal(config.proxyUrl, "socks5://proxy:1080");
  assert.equal(await authority(config), AUTHORITY.certificate);
  assert.deepEqual(await credential(config), {
    certificate: JANE.certificate,
    key: JANE.key,
  });
});

test("configFromText reads tokens, basic authentication and impersonation", async () => {
  assert.deepEqual(await credential(await fromText({}, { token: "t" })), {
    token: "t",
  });
  const basic = await fromText({ "insecure-skip-tls-verify": true }, {
    username: "jane",
    password: "p",
    as: "root",
    "as-uid": "7",
    "as-groups": ["ops"],
    "as-user-extra": { why: ["x"] },
  });
  assert.deepEqual(await credential(basic), {
    username: "jane",
    password: "p",
  });
  assert.equal(basic.insecureSkipTlsVerify, true);
  assert.deepEqual(basic.impersonate, {
    user: "root",
    uid: "7",
    groups: ["ops"],
    extra: { why: ["x"] },
  });
});

test("configFromText uses the proxy of the cluster, else of the environment", async () => {
  const environment = { HTTPS_PROXY: "proxy:3128", NO_PROXY: "10.0.0.2" };
  const proxyOf = async (cluster: Record<string, unknown>) =>
    (await configFromText(kubeconfig(cluster), { environment })).proxyUrl;
  assert.equal(await proxyOf({}), "http://proxy:3128");
  assert.equal(await proxyOf({ server: "https://10.0.0.2" }), undefined);
  assert.equal(
    await proxyOf({ "proxy-url": "https://own:3128" }),
    "https://own:3128",
  );
});

test("configFromText completes a server without a scheme as kubectl does", async () => {
  const plain = await fromText({ server: "localhost:8080" });
  assert.equal(plain.server, "http://localhost:8080");
  const secure = await fromText({
    server: "localhost:6443",
    "insecure-skip-tls-verify": true,
  });
  assert.equal(secure.server, "https://localhost:6443");
});

const DATA = {
  "client-certificate-data": base64(JANE.certificate),
  "client-key-data": base64(JANE.key),
};

test("loadConfig refuses invalid fields by name and without secrets", async () => {
  const rubbish = writeText(FOLDER, "rubbish", "s3cret");
  type Fields = Record<string, unknown>;
  const cases: readonly (readonly [Fields, Fields, RegExp])[] = [
    [
      { server: "" },
      {},
      /here\]\.cluster\.server": it must be a URL .* nothing$/,
    ],
    [{ server: "tcp://x" }, {}, /cluster\.server": .* received tcp:$/],
    [{ "proxy-url": "ftp://s3cret@x" }, {}, /proxy-url": .* received ftp:$/],
    [
      { "certificate-authority-data": "!s3cret!" },
      {},
      /authority-data": it must be base64: received a text of 8 characters/,
    ],
    [
      { "certificate-authority-data": base64("s3cret") },
      {},
      /authority-data": it must contain certificates in PEM/,
    ],
    [
      { "certificate-authority": rubbish },
      {},
      /cluster\.certificate-authority": it must contain certificates in PEM/,
    ],
    [
      { "certificate-authority": join(FOLDER, "none") },
      {},
      /certificate-authority": .*none must be a readable file .* received ENOENT$/,
    ],
    [
      {
        "certificate-authority-data": base64(AUTHORITY.certificate),
        "insecure-skip-tls-verify": true,
      },
      {},
      /insecure-skip-tls-verify": it must not be combined with/,
    ],
    [
      { "certificate-authority-data": "YQ==", "certificate-authority": "a" },
      {},
      /certificate-authority": it must not be combined with/,
    ],
    [
      {},
      { "client-certificate-data": DATA["client-certificate-data"] },
      /client-certificate-data": "client-key" or "client-key-data" is missing/,
    ],
    [
      {},
      { "client-key-data": DATA["client-key-data"] },
      /client-key-data": "client-certificate" or .* is missing/,
    ],
    [
      {},
      { ...DATA, "client-key-data": base64(JOE.key) },
      /client-key-data": it must be the key of the client certificate/,
    ],
    [
      {},
      { ...DATA, "client-certificate-data": base64("s3cret") },
      /client-certificate-data": it must contain .*certificate.* in PEM/,
    ],
    [
      {},
      { ...DATA, "client-key-data": base64("s3cret") },
      /client-key-data": it must contain a private key in PEM/,
    ],
    [
      {},
      { ...DATA, "client-certificate": "x" },
      /client-certificate": it must not be combined with "client-certificate-data"/,
    ],
    [{}, { tokenFile: "none" }, /user\.tokenFile: none|tokenFile": .*ENOENT$/],
    [
      {},
      { token: "s3cret", username: "jane" },
      /users\[jane\]\.user" must have only one authentication method: received token and username$/,
    ],
    [
      {},
      { tokenFile: "t", password: "s3cret" },
      /must have only one authentication method: received token and username$/,
    ],
    [
      {},
      { "as-groups": ["a"] },
      /user\.as": it is required with "as-uid"/,
    ],
    [
      {},
      {
        "auth-provider": { name: "gcp", config: { "access-token": "s3cret" } },
      },
      /auth-provider": .*received "gcp"$/,
    ],
  ];
  for (const [cluster, user, message] of cases) {
    await assert.rejects(() => fromText(cluster, user), (error: Error) => {
      assert.match(error.message, /^Cannot use the given kubeconfig: /);
      assert.match(error.message, message);
      assert.doesNotMatch(error.message, /s3cret/);
      return true;
    });
  }
});

test("configFromText needs no user, and defaults the namespace and the TLS name", async () => {
  const config = await configFromText(
    JSON.stringify({
      "current-context": "dev",
      contexts: [{ name: "dev", context: { cluster: "here", namespace: "" } }],
      clusters: [{
        name: "here",
        cluster: { server: "https://10.0.0.1", "tls-server-name": "" },
      }],
    }),
    { environment: {} },
  );
  assert.equal(config.namespace, "default");
  assert.equal(config.serverName, undefined);
  assert.equal(config.credentials, undefined);
});

test("configFromText uses TLS for a host with any option of TLS", async () => {
  const file = writeText(FOLDER, "ca.crt", AUTHORITY.certificate);
  const options = [
    { "certificate-authority-data": base64(AUTHORITY.certificate) },
    { "certificate-authority": file },
    { "insecure-skip-tls-verify": true },
  ];
  for (const option of options) {
    const { server } = await fromText({ server: "10.0.0.1", ...option });
    assert.equal(server, "https://10.0.0.1");
  }
  await assert.rejects(
    fromText({ ...options[1], "insecure-skip-tls-verify": true }),
    /it must not be combined with a certificate authority$/,
  );
});

test("configFromText shows no token and no password of a proxy in an error", async () => {
  const secret = "geheim wort";
  for (
    const parts of [
      [{}, { token: secret }],
      [{ "proxy-url": `//jane:${secret}@proxy` }],
      [{ "proxy-url": `ftp://jane:${secret}@proxy` }],
    ] as const
  ) {
    const [cluster, user] = parts;
    await assert.rejects(fromText(cluster, user), (error: Error) => {
      assert.match(error.message, /^Cannot use the given kubeconfig: /);
      assert.ok(!error.message.includes("geheim"), error.message);
      return true;
    });
  }
});

test("configFromText reads no file of a certificate that it has as data", async () => {
  const config = await fromText({}, {
    "client-certificate-data": base64(JANE.certificate),
    "client-key": writeText(FOLDER, "jane.key", JANE.key),
  });
  assert.deepEqual(await credential(config), {
    certificate: JANE.certificate,
    key: JANE.key.trim(),
  });
});

test("configFromText refuses attributes of an impersonation without a user", async () => {
  for (
    const part of [
      { "as-uid": "7" },
      { "as-groups": ["ops"] },
      { "as-user-extra": { why: ["x"] } },
    ]
  ) {
    await assert.rejects(fromText({}, part), /it is required with "as-uid"/);
  }
  assert.equal(
    (await fromText({}, { "as-groups": [] })).impersonate,
    undefined,
  );
});

test("configFromText asks for a private key without a passphrase", async () => {
  const old = "\nProc-Type: 4,ENCRYPTED\n";
  for (
    const key of [
      JANE.key.replaceAll("PRIVATE", "ENCRYPTED PRIVATE"),
      JANE.key.replace("\n", old),
    ]
  ) {
    await assert.rejects(
      fromText({}, { ...DATA, "client-key-data": base64(key) }),
      /it must be a private key without a passphrase: received an encrypted one$/,
    );
  }
});

test("configFromText takes a token beside a user name that is empty, as kubectl does", async () => {
  const user = { token: "a-token", username: "", password: "" };
  assert.equal((await credential(await fromText({}, user))).token, "a-token");
});

test("configFromText merges maps and reads yes as kubectl does", async () => {
  const config = await configFromText(
    `
x-common: &common
  insecure-skip-tls-verify: yes
  tls-server-name: api.internal
clusters:
- name: there
  cluster:
    <<: *common
    server: https://10.0.0.1
contexts: [{ name: there, context: { cluster: there } }]
current-context: there
`,
    { environment: {} },
  );
  assert.equal(config.insecureSkipTlsVerify, true);
  assert.equal(config.serverName, "api.internal");
});
