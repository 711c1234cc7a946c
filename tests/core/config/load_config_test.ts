import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import {
  createAuthority,
  issueCertificate,
} from "../../../core/apiserver/certificates.ts";
import type {
  ClusterConfig,
  Credential,
} from "../../../core/config/cluster_config.ts";
import { credentialSource } from "../../../core/config/credential_source.ts";
import {
  configFromText,
  loadConfig,
} from "../../../core/config/load_config.ts";
import { VirtualClock } from "../../../core/virtual_clock.ts";
import { temporaryFolder, writeText } from "../../support/temporary_folder.ts";

const AUTHORITY = createAuthority({ commonName: "test-authority" });
const JANE = issueCertificate(AUTHORITY, {
  commonName: "jane",
  usage: "client",
});
const JOE = issueCertificate(AUTHORITY, { commonName: "joe", usage: "client" });
const FOLDER = temporaryFolder();
const base64 = (text: string) => btoa(text);

/** A kubeconfig with one context, `dev`. */
function kubeconfig(
  cluster: Record<string, unknown> = {},
  user: Record<string, unknown> = {},
): string {
  return JSON.stringify({
    "current-context": "dev",
    contexts: [{
      name: "dev",
      context: { cluster: "here", user: "jane", namespace: "web" },
    }],
    clusters: [{
      name: "here",
      cluster: { server: "https://10.0.0.1:6443", ...cluster },
    }],
    users: [{ name: "jane", user }],
  });
}

function fromText(
  cluster: Record<string, unknown>,
  user: Record<string, unknown> = {},
): Promise<ClusterConfig> {
  return configFromText(kubeconfig(cluster, user), { environment: {} });
}

async function credential(config: ClusterConfig): Promise<Credential> {
  const current = await credentialSource(config.credentials).current();
  return JSON.parse(JSON.stringify(current));
}

async function authority(config: ClusterConfig): Promise<string | undefined> {
  const { certificateAuthority } = config;
  return typeof certificateAuthority === "function"
    ? await certificateAuthority()
    : certificateAuthority;
}

test("configFromText gives server, namespace, authority and certificate", async () => {
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

test("configFromText gives tokens, basic authentication and impersonation", async () => {
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

test("configFromText takes the proxy of the cluster, else of the environment", async () => {
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

test("configFromText takes a server without a scheme as kubectl does", async () => {
  const plain = await fromText({ server: "localhost:8080" });
  assert.equal(plain.server, "http://localhost:8080");
  const secure = await fromText({
    server: "localhost:6443",
    "insecure-skip-tls-verify": true,
  });
  assert.equal(secure.server, "https://localhost:6443");
});

test("loadConfig resolves paths from the folder of their file", async () => {
  writeText(FOLDER, "paths/pki/ca.crt", AUTHORITY.certificate);
  writeText(FOLDER, "paths/pki/jane.crt", JANE.certificate);
  writeText(FOLDER, "paths/pki/jane.key", JANE.key);
  const file = writeText(
    FOLDER,
    "paths/config",
    kubeconfig({ "certificate-authority": "pki/ca.crt" }, {
      "client-certificate": "pki/jane.crt",
      "client-key": join(FOLDER, "paths/pki/jane.key"),
    }),
  );
  const config = await loadConfig({ kubeconfig: file, environment: {} });
  assert.equal(await authority(config), AUTHORITY.certificate.trim());
  assert.deepEqual(await credential(config), {
    certificate: JANE.certificate.trim(),
    key: JANE.key.trim(),
  });
});

test("loadConfig reads files again after a minute, and at once when refused", async () => {
  const clock = new VirtualClock();
  const token = writeText(FOLDER, "rotating/token", "one\n");
  const ca = writeText(FOLDER, "rotating/ca.crt", AUTHORITY.certificate);
  const file = writeText(
    FOLDER,
    "rotating/config",
    kubeconfig({ "certificate-authority": "ca.crt" }, { tokenFile: "token" }),
  );
  const config = await loadConfig({ kubeconfig: file, environment: {}, clock });
  const source = credentialSource(config.credentials);
  const first = await source.current();
  assert.equal(first.token, "one");
  writeText(FOLDER, "rotating/token", "two\n");
  const other = createAuthority({ commonName: "other" }).certificate;
  writeText(FOLDER, "rotating/ca.crt", other);
  await clock.advance(59_999);
  assert.equal(await source.current(), first);
  assert.equal(await authority(config), AUTHORITY.certificate.trim());
  await clock.advance(1);
  const second = await source.current();
  assert.equal(second.token, "two");
  assert.equal(await authority(config), other.trim());
  writeText(FOLDER, "rotating/token", "three\n");
  assert.equal((await source.refresh(first)).token, "two");
  assert.equal((await source.refresh(second)).token, "three");
  // A file that is away for a moment leaves the last content in use.
  writeText(FOLDER, "rotating/token", "");
  await clock.advance(60_000);
  assert.equal((await source.current()).token, "three");
  assert.ok(token && ca);
});

test("loadConfig merges the files that KUBECONFIG names and skips those missing", async () => {
  const one = writeText(
    FOLDER,
    "merge/one",
    JSON.stringify({
      contexts: [{ name: "a", context: { cluster: "c", user: "u" } }],
      users: [{ name: "u", user: { token: "first" } }],
    }),
  );
  const two = writeText(
    FOLDER,
    "merge/two",
    JSON.stringify({
      "current-context": "a",
      clusters: [{ name: "c", cluster: { server: "https://two" } }],
      users: [{ name: "u", user: { token: "second", as: "root" } }],
    }),
  );
  const config = await loadConfig({
    environment: { KUBECONFIG: `${one}:${join(FOLDER, "none")}:${two}:${one}` },
  });
  assert.equal(config.server, "https://two");
  assert.equal(config.namespace, "default");
  assert.deepEqual(await credential(config), { token: "first" });
  assert.equal(config.impersonate, undefined);
});

test("loadConfig goes from the given file to KUBECONFIG, the home and the pod", async () => {
  const at = (name: string) =>
    kubeconfig({ server: `https://${name}` }, { token: name });
  const given = writeText(FOLDER, "order/given", at("given"));
  const named = writeText(FOLDER, "order/named", at("named"));
  const home = join(FOLDER, "order/home");
  const pod = {
    KUBERNETES_SERVICE_HOST: "fd00::1",
    KUBERNETES_SERVICE_PORT: "443",
  };
  const serviceAccount = join(FOLDER, "order/account");
  writeText(serviceAccount, "token", "podtoken");
  writeText(serviceAccount, "ca.crt", AUTHORITY.certificate);
  writeText(serviceAccount, "namespace", "operators\n");
  const options = {
    environment: { ...pod, KUBECONFIG: named },
    home,
    serviceAccount,
  };
  const server = async (more: Parameters<typeof loadConfig>[0]) =>
    (await loadConfig({ ...options, ...more })).server;
  assert.equal(await server({ kubeconfig: given }), "https://given");
  assert.equal(await server({}), "https://named");
  const inPod = await loadConfig({ ...options, environment: pod });
  assert.equal(inPod.server, "https://[fd00::1]:443");
  assert.equal(inPod.namespace, "operators");
  assert.deepEqual(await credential(inPod), { token: "podtoken" });
  assert.equal(await authority(inPod), AUTHORITY.certificate.trim());
  writeText(home, ".kube/config", at("home"));
  assert.equal(await server({ environment: pod }), "https://home");
});

test("loadConfig refuses a named file that is missing, and finding nothing", async () => {
  const environment = {
    KUBERNETES_SERVICE_HOST: "10.0.0.1",
    KUBERNETES_SERVICE_PORT: "443",
  };
  const none = join(FOLDER, "none");
  for (
    const options of [
      { kubeconfig: none, environment },
      { environment: { ...environment, KUBECONFIG: none } },
      { home: none, environment: {} },
    ]
  ) {
    await assert.rejects(
      () => loadConfig(options),
      (error: Error) =>
        error.message.startsWith("Cannot find a cluster: ") &&
        error.message.includes(none),
    );
  }
  await assert.rejects(
    () => loadConfig({ kubeconfig: FOLDER, environment: {} }),
    /^Error: Cannot read kubeconfig .*: it must be a file that can be read: received EISDIR/,
  );
  await assert.rejects(
    () => loadConfig({ home: none, environment, serviceAccount: none }),
    /^Error: Cannot use the pod's service account: .* received ENOENT$/,
  );
});

test("loadConfig names the context, cluster or user that is missing", async () => {
  const read = (parts: object, context?: string) =>
    configFromText(
      JSON.stringify({ ...JSON.parse(kubeconfig()), ...parts }),
      { environment: {}, context },
    );
  await assert.rejects(
    () => read({ "current-context": undefined }),
    /"current-context" must be one of "dev": received nothing$/,
  );
  await assert.rejects(
    () => read({}, "prod"),
    /the context must be one of "dev": received "prod"$/,
  );
  await assert.rejects(
    () => read({ contexts: [] }),
    /must be one of the names there, of which there are none: received "dev"$/,
  );
  await assert.rejects(
    () => read({ clusters: [{ name: "other" }] }),
    /the given kubeconfig: "contexts\[dev\]\.context\.cluster": it must be one of "other": received "here"$/,
  );
  await assert.rejects(
    () => read({ users: [] }),
    /"contexts\[dev\]\.context\.user": it must be one of .* received "jane"$/,
  );
});

const DATA = {
  "client-certificate-data": base64(JANE.certificate),
  "client-key-data": base64(JANE.key),
};

test("loadConfig refuses what cannot be used, by field and without secrets", async () => {
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
      /authority-data": it must be base64: received 8 characters/,
    ],
    [
      { "certificate-authority-data": base64("s3cret") },
      {},
      /authority-data": it must hold certificates in PEM/,
    ],
    [
      { "certificate-authority": rubbish },
      {},
      /cluster\.certificate-authority": it must hold certificates in PEM/,
    ],
    [
      { "certificate-authority": join(FOLDER, "none") },
      {},
      /certificate-authority": .*none must be a file .* received ENOENT$/,
    ],
    [
      {
        "certificate-authority-data": base64(AUTHORITY.certificate),
        "insecure-skip-tls-verify": true,
      },
      {},
      /insecure-skip-tls-verify": it must not stand beside/,
    ],
    [
      { "certificate-authority-data": "YQ==", "certificate-authority": "a" },
      {},
      /certificate-authority": it must not stand beside/,
    ],
    [
      {},
      { "client-certificate-data": DATA["client-certificate-data"] },
      /client-certificate-data": it must come with "client-key"/,
    ],
    [
      {},
      { "client-key-data": DATA["client-key-data"] },
      /client-key-data": it must come with "client-certificate"/,
    ],
    [
      {},
      { ...DATA, "client-key-data": base64(JOE.key) },
      /client-key-data": it must be the key of the client certificate/,
    ],
    [
      {},
      { ...DATA, "client-key-data": base64("s3cret") },
      /client-key-data": it must hold a private key in PEM/,
    ],
    [
      {},
      { ...DATA, "client-certificate": "x" },
      /client-certificate": it must not stand beside "client-certificate-data"/,
    ],
    [{}, { tokenFile: "none" }, /user\.tokenFile: none|tokenFile": .*ENOENT$/],
    [
      {},
      { token: "s3cret", username: "jane" },
      /users\[jane\]\.user" must have one way .* received token and username$/,
    ],
    [
      {},
      { "as-groups": ["a"] },
      /user\.as": it must name a user where "as-uid"/,
    ],
    [
      {},
      {
        "auth-provider": { name: "gcp", config: { "access-token": "s3cret" } },
      },
      /auth-provider": Kubernetes took auth providers out, .* received "gcp"$/,
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
