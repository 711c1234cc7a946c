import assert from "node:assert/strict";
import { delimiter, join } from "node:path";
import process from "node:process";
import { test } from "node:test";
import type { Credential } from "@coracle/operator/client";
import {
  createAuthority,
  issueCertificate,
} from "../../../core/admission/certificates.ts";
import { Client } from "../../../core/client/client.ts";
import { credentialSource } from "../../../core/config/cluster_config.ts";
import {
  configFromText,
  loadCluster,
  loadConfig,
} from "../../../core/config/load_config.ts";
import { ConfigMap } from "../../../core/kinds/core_v1.ts";
import { VirtualClock } from "../../../dev/testing/virtual_clock.ts";
import { recordedWarnings } from "../../support/recorded_warnings.ts";
import { temporaryFolder, writeText } from "../../support/temporary_folder.ts";
import {
  AUTHORITY,
  authority,
  base64,
  credential,
  JANE,
  kubeconfig,
} from "../../support/kubeconfig_case.ts";

const FOLDER = temporaryFolder();
/** Certificate that cannot be read. */
const BAD_BLOCK = AUTHORITY.certificate.replace(/(BEGIN.*\n)[^]{40}/, "$1");

test("loadConfig resolves paths relative to the folder of their file", async () => {
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

test("loadConfig reads files again after a minute, and after a 401", async () => {
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
  // A file that is missing for a moment leaves the last content in use.
  writeText(FOLDER, "rotating/token", "");
  await clock.advance(60_000);
  assert.equal((await source.current()).token, "three");
  assert.ok(token && ca);
});

test("loadConfig merges the files in KUBECONFIG and skips missing ones", async () => {
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
    environment: {
      KUBECONFIG: [one, join(FOLDER, "none"), two, one].join(delimiter),
    },
  });
  assert.equal(config.server, "https://two");
  assert.equal(config.namespace, "default");
  assert.deepEqual(await credential(config), { token: "first" });
  assert.equal(config.impersonate, undefined);
});

test("loadConfig tries the given file, KUBECONFIG, the home and the pod", async () => {
  const at = (name: string) =>
    kubeconfig({ server: `https://${name}` }, { token: name });
  const given = writeText(FOLDER, "order/given", at("given"));
  const named = writeText(FOLDER, "order/named", at("named"));
  const home = join(FOLDER, "order/home");
  const pod = {
    KUBERNETES_SERVICE_HOST: "fd00::1",
    KUBERNETES_SERVICE_PORT: "6443",
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
  assert.equal(inPod.server, "https://[fd00::1]:6443");
  assert.equal(inPod.namespace, "operators");
  assert.deepEqual(await credential(inPod), { token: "podtoken" });
  assert.equal(await authority(inPod), AUTHORITY.certificate.trim());
  writeText(home, ".kube/config", at("home"));
  assert.equal(await server({ environment: pod }), "https://home");
});

test("loadConfig in a pod passes over a kubeconfig that names no cluster", async () => {
  const serviceAccount = join(FOLDER, "deferred");
  writeText(serviceAccount, "token", "podtoken");
  writeText(serviceAccount, "ca.crt", AUTHORITY.certificate);
  const home = join(FOLDER, "no-home");
  const pod = { KUBERNETES_SERVICE_HOST: "10.0.0.1" };
  const none = join(FOLDER, "no-such-file");
  const empty = [
    "",
    "{}",
    JSON.stringify({ ...JSON.parse(kubeconfig()), clusters: null }),
    JSON.stringify({ ...JSON.parse(kubeconfig()), "current-context": "" }),
    JSON.stringify({
      ...JSON.parse(kubeconfig()),
      contexts: [{ name: "dev", context: { cluster: "", user: "jane" } }],
    }),
  ];
  const options = { home, serviceAccount };
  const server = async (more: Parameters<typeof loadConfig>[0]) =>
    (await loadConfig({ ...options, ...more })).server;
  for (const [index, text] of empty.entries()) {
    const file = writeText(FOLDER, `deferred/${index}`, text);
    const environment = { ...pod, KUBECONFIG: file };
    assert.equal(await server({ environment }), "https://10.0.0.1:443", text);
    assert.equal(
      await server({ environment: pod, kubeconfig: file }),
      "https://10.0.0.1:443",
      text,
    );
    // The same file is an error elsewhere.
    await assert.rejects(
      server({ environment: { KUBECONFIG: file } }),
      /^TypeError: Cannot use .*: .* must be one of /,
    );
  }
  assert.equal(
    await server({ environment: { ...pod, KUBECONFIG: none } }),
    "https://10.0.0.1:443",
    "missing files are skipped, as elsewhere",
  );
  // A cluster without a server, and a context that is not there, are mistakes.
  const wrong: readonly (readonly [string, RegExp])[] = [
    [kubeconfig({ server: "" }), /"clusters\[here\]\.cluster\.server"/],
    ['{"current-context":"gone"}', /must be one of .*: received "gone"$/],
  ];
  for (const [text, message] of wrong) {
    const file = writeText(FOLDER, "deferred/wrong", text);
    const environment = { ...pod, KUBECONFIG: file };
    await assert.rejects(server({ environment }), message);
  }
  await assert.rejects(
    server({ environment: pod, kubeconfig: none }),
    (error: Error) => {
      assert.match(error.message, /there is no kubeconfig at .*no-such-file/);
      assert.doesNotMatch(error.message, /does not run in a pod/);
      return true;
    },
  );
});

test("loadConfig names kubeconfig and service account if neither is usable", async () => {
  const none = join(FOLDER, "no-such-account");
  const file = writeText(FOLDER, "unusable", "");
  await assert.rejects(
    loadConfig({
      kubeconfig: file,
      environment: { KUBERNETES_SERVICE_HOST: "10.0.0.1" },
      serviceAccount: none,
    }),
    (error: Error) => {
      assert.match(
        error.message,
        /^Cannot find a cluster: .*unusable names no cluster, and the pod has no usable service account$/,
      );
      assert.match(
        String(error.cause),
        /no-such-account[\\/]token must be a read/,
      );
      return true;
    },
  );
});

test("loadConfig keeps certificate and key until both new ones fit", async () => {
  const clock = new VirtualClock();
  const { lines, logger } = recordedWarnings();
  const next = issueCertificate(AUTHORITY, {
    commonName: "jane",
    usage: "client",
  });
  const write = (name: string, text: string) =>
    writeText(FOLDER, `pair/${name}`, text);
  write("tls.crt", JANE.certificate);
  write("tls.key", JANE.key);
  const file = write(
    "config",
    kubeconfig({}, {
      "client-certificate": "tls.crt",
      "client-key": "tls.key",
    }),
  );
  const config = await loadConfig({
    ...{ kubeconfig: file, environment: {}, clock, logger },
  });
  const source = credentialSource(config.credentials);
  const first = await source.current();
  for (const half of [next.certificate, "-----BEGIN CERTIFICATE-----\nMII"]) {
    write("tls.crt", half);
    await clock.advance(60_000);
    assert.equal(await source.current(), first);
    assert.equal(await source.refresh(first), first);
  }
  assert.equal(lines.length, 1, "it is said once");
  assert.match(lines[0] ?? "", /the previous ones are.*must be the key of/);
  write("tls.crt", next.certificate);
  write("tls.key", next.key);
  await clock.advance(60_000);
  assert.deepEqual(JSON.parse(JSON.stringify(await source.current())), {
    certificate: next.certificate.trim(),
    key: next.key.trim(),
  });
  write("tls.key", JANE.key);
  await clock.advance(60_000);
  await source.current();
  assert.equal(lines.length, 2, "the next misfit is said again");
});

test("loadConfig keeps an authority and a token until the new ones are whole", async () => {
  const clock = new VirtualClock();
  const { lines, logger } = recordedWarnings();
  const serviceAccount = join(FOLDER, "partial");
  writeText(serviceAccount, "token", "one");
  writeText(serviceAccount, "ca.crt", AUTHORITY.certificate);
  const config = await loadConfig({
    environment: { KUBERNETES_SERVICE_HOST: "10.0.0.1" },
    home: join(FOLDER, "none"),
    ...{ serviceAccount, clock, logger },
  });
  writeText(serviceAccount, "ca.crt", AUTHORITY.certificate.slice(0, 100));
  writeText(serviceAccount, "token", "s3cret\nsecond line");
  await clock.advance(60_000);
  assert.equal(await authority(config), AUTHORITY.certificate.trim());
  assert.deepEqual(await credential(config), { token: "one" });
  assert.equal(lines.length, 2);
  assert.doesNotMatch(lines.join(), /s3cret/);
});

test("loadConfig reads a key with other text around it", async () => {
  const key = `Bag Attributes\n    friendlyName: jane\n${JANE.key}\n\n`;
  const config = await configFromText(kubeconfig({}, {
    "client-certificate-data": base64(JANE.certificate),
    "client-key-data": base64(key),
  }));
  assert.equal((await credential(config)).key, key);
});

test("A certificate and a key that do not fit are refused at once", async () => {
  const server = "https://127.0.0.1:1";
  const { certificate } = JANE;
  const wrong: readonly (readonly [Credential, RegExp])[] = [
    [{ certificate, key: AUTHORITY.key }, /must be the key of the client cert/],
    [{ certificate }, /the client certificate of .*: "key" is missing$/],
    [{ key: JANE.key }, /the client key of .*: "certificate" is missing$/],
    [
      { certificate: "none", key: JANE.key },
      /must contain certificates in PEM/,
    ],
  ];
  for (const [credentials, message] of wrong) {
    assert.throws(() => new Client({ server, credentials }), message);
    // A source of the user is checked before the first connection.
    const client = new Client({
      server,
      credentials: {
        current: () => Promise.resolve(credentials),
        refresh: () => Promise.resolve(credentials),
      },
    }, { retry: false });
    await assert.rejects(client.list(ConfigMap), message);
    await client.close();
  }
});

test("loadConfig in a pod follows a rotated authority and token", async () => {
  const serviceAccount = join(FOLDER, "pod");
  const clock = new VirtualClock();
  const other = createAuthority({ commonName: "other" }).certificate;
  const rotate = (token: string, certificate: string) => {
    writeText(serviceAccount, "token", token);
    writeText(serviceAccount, "ca.crt", certificate);
  };
  rotate("one", AUTHORITY.certificate);
  const config = await loadConfig({
    environment: { KUBERNETES_SERVICE_HOST: "10.0.0.1" },
    home: join(FOLDER, "none"),
    serviceAccount,
    clock,
  });
  assert.deepEqual(await credential(config), { token: "one" });
  rotate("two", other);
  await clock.advance(60_000);
  assert.equal((await credential(config))?.token, "two");
  assert.equal(await authority(config), other.trim());
});

test("loadConfig refuses a missing file and the lack of any configuration", async () => {
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
    /^Error: Cannot read kubeconfig .*: it must be a readable file: received EISDIR/,
  );
  await assert.rejects(
    () => loadConfig({ home: none, environment, serviceAccount: none }),
    /^Error: Cannot use the pod's service account: .* received ENOENT$/,
  );
});

test("loadConfig names a missing context, cluster or user", async () => {
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
    /must be one of the names in the file, which has none: received "dev"$/,
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

test("Files without an end are refused by size, not read to memory", {
  skip: process.platform === "win32" && "it needs /dev/zero",
}, async () => {
  const before = process.memoryUsage().rss;
  await assert.rejects(
    loadConfig({ kubeconfig: "/dev/zero" }),
    /Cannot read kubeconfig \/dev\/zero: it must have at most 16777216 bytes: received more$/,
  );
  const text = (field: string) => `
current-context: a
contexts: [{ name: a, context: { cluster: a, user: a } }]
clusters: [{ name: a, cluster: { server: "https://10.0.0.1" } }]
users: [{ name: a, user: { ${field}: /dev/zero } }]`;
  await assert.rejects(
    configFromText(text("tokenFile")),
    /\/dev\/zero must be a readable file .* received more than 1048576 bytes$/,
  );
  assert.ok(process.memoryUsage().rss - before < 256 << 20);
});

test("loadConfig in a pod refuses an account without a token or an authority", async () => {
  const environment = {
    KUBERNETES_SERVICE_HOST: "10.0.0.1",
    KUBERNETES_SERVICE_PORT: "",
  };
  const serviceAccount = join(FOLDER, "incomplete");
  const home = join(FOLDER, "none");
  const load = () => loadConfig({ environment, home, serviceAccount });
  writeText(serviceAccount, "ca.crt", AUTHORITY.certificate);
  await assert.rejects(load(), /token must be a readable file .* ENOENT$/);
  writeText(serviceAccount, "token", "t");
  const { server, namespace } = await load();
  assert.equal(server, "https://10.0.0.1:443");
  assert.equal(namespace, "default");
  for (const text of ["none", `${AUTHORITY.certificate}\n${BAD_BLOCK}`]) {
    writeText(serviceAccount, "ca.crt", text);
    await assert.rejects(load(), /it must contain certificates in PEM/);
  }
});

test("loadCluster reads files again by the clock of the client", async () => {
  const clock = new VirtualClock();
  const tokenFile = writeText(FOLDER, "clocked/token", "one");
  const file = writeText(
    FOLDER,
    "clocked/config",
    kubeconfig({}, { tokenFile }),
  );
  const { config, others } = await loadCluster({ kubeconfig: file, clock });
  assert.equal(others.clock, clock);
  assert.equal((await credential(config)).token, "one");
  writeText(FOLDER, "clocked/token", "two");
  await clock.advance(60_000);
  assert.equal((await credential(config)).token, "two");
});

test("configFromText resolves paths relative to the working folder", async () => {
  const text = kubeconfig({}, { tokenFile: "no-such-token" });
  await assert.rejects(
    configFromText(text, { environment: {} }),
    (error: Error) =>
      error.message.includes(join(process.cwd(), "no-such-token")),
  );
});
