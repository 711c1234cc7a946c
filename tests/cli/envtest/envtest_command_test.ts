import assert from "node:assert/strict";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { createServer } from "node:net";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import process from "node:process";
import { test } from "node:test";
import { Client, untyped } from "@coracle/operator/client";
import {
  createAuthority,
  issueCertificate,
} from "../../../core/admission/certificates.ts";
import { runCommand } from "../../support/child_process.ts";
import { coracle, Program, RUNTIME } from "../../support/program.ts";
import { temporaryFolder, writeText } from "../../support/temporary_folder.ts";
import { until } from "../../support/until.ts";

const ONLY_ON_BUN = "Bun" in globalThis;
const UNSUPPORTED = ONLY_ON_BUN || process.platform === "win32"
  ? "Bun shows no client certificates, and Windows runs no shell scripts"
  : false;

const NAMESPACES = untyped({
  group: "",
  version: "v1",
  kind: "Namespace",
  plural: "namespaces",
  scope: "Cluster",
});
const REVIEWS = untyped({
  group: "authentication.k8s.io",
  version: "v1",
  kind: "SelfSubjectReview",
  plural: "selfsubjectreviews",
  scope: "Cluster",
});

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}

/** Programs of an envtest folder, and how a test starts them as envtest does. */
async function envtestCase() {
  const folder = temporaryFolder();
  const assets = join(folder, "assets");
  const { code, stdout, stderr } = await runCommand(coracle("envtest", assets));
  assert.equal(code, 0, stderr);
  assert.equal(stdout, `export KUBEBUILDER_ASSETS='${assets}'\n`);
  const [etcdPort, port] = [await freePort(), await freePort()];
  const url = `http://127.0.0.1:${etcdPort}`;
  const authority = createAuthority({ commonName: "envtest-environment" });
  const clients = createAuthority({ commonName: "envtest-clients" });
  const serving = issueCertificate(authority, {
    commonName: "localhost",
    usage: "server",
    hosts: ["localhost", "127.0.0.1"],
  });
  const files = {
    key: writeText(folder, "certs/apiserver.key", serving.key),
    certificate: writeText(folder, "certs/apiserver.crt", serving.certificate),
    ca: writeText(folder, "certs/client-ca.crt", clients.certificate),
  };
  const admin = issueCertificate(clients, {
    commonName: "admin",
    organizations: ["system:masters"],
    usage: "client",
  });
  // A folder of its own, since tests of several runtimes run at a time.
  const env = { TMPDIR: folder, NODE_COMPILE_CACHE: undefined };
  return {
    assets,
    compileCache: join(folder, "node-compile-cache"),
    url,
    meeting: join(
      folder,
      `coracle-envtest-${process.getuid?.()}`,
      String(etcdPort),
    ),
    connect: () =>
      new Client({
        server: `https://127.0.0.1:${port}`,
        certificateAuthority: authority.certificate,
        credentials: {
          certificate: admin.certificate,
          key: admin.key,
        },
      }),
    etcd: () =>
      new Program([
        join(assets, "etcd"),
        `--listen-client-urls=${url}`,
        `--data-dir=${join(folder, "data")}`,
        "--unsafe-no-fsync=true",
      ], { env }),
    apiServer: (...more: readonly string[]) =>
      new Program([
        join(assets, "kube-apiserver"),
        "--authorization-mode=RBAC",
        "--bind-address=127.0.0.1",
        `--cert-dir=${join(folder, "certs")}`,
        `--client-ca-file=${files.ca}`,
        "--disable-admission-plugins=ServiceAccount",
        `--etcd-servers=${url}`,
        `--secure-port=${port}`,
        `--service-account-issuer=https://127.0.0.1:${port}/`,
        `--service-account-key-file=${files.certificate}`,
        `--service-account-signing-key-file=${files.key}`,
        ...more,
      ], { env }),
  };
}

async function healthy(url: string): Promise<void> {
  await until("etcd is healthy", async () => {
    const answer = await fetch(`${url}/health`).catch(() => undefined);
    return (await answer?.json())?.health === "true";
  });
}

test("the programs of coracle envtest serve as etcd and kube-apiserver", {
  skip: UNSUPPORTED,
}, async () => {
  const { etcd, apiServer, compileCache, connect, url, meeting } =
    await envtestCase();
  const store = etcd();
  let server: Program | undefined;
  try {
    await healthy(url);
    server = apiServer();
    await server.says(/Serving on https/);
    let client = connect();
    const { status } = await client.create(REVIEWS, { metadata: {} });
    const { userInfo } = status as {
      userInfo: { username: string; groups: readonly string[] };
    };
    assert.equal(userInfo.username, "admin");
    assert.deepEqual(userInfo.groups, [
      "system:masters",
      "system:authenticated",
    ]);
    await client.create(NAMESPACES, { metadata: { name: "kept" } });
    await client.close();

    // etcd keeps the objects over a restart of the API server.
    await server.end("SIGTERM");
    server = apiServer();
    await server.says(/Serving on https/);
    client = connect();
    assert.equal(
      (await client.get(NAMESPACES, { name: "kept" }))?.metadata.name,
      "kept",
    );
    await client.close();

    // The API server ends with etcd, whose folder is removed.
    assert.equal(await store.end("SIGTERM"), 0);
    await server.ended();
    assert.equal(existsSync(meeting), false);
    // The next one starts with what Node has compiled now.
    assert.equal(existsSync(compileCache), RUNTIME === "node");
  } finally {
    await server?.kill();
    await store.kill();
  }
});

test("the programs of coracle envtest say why they cannot start", {
  skip: UNSUPPORTED,
}, async () => {
  const { etcd, apiServer, assets, url } = await envtestCase();
  // It waits for an etcd; its refusal is awaited at the end.
  const lonely = (await envtestCase()).apiServer();
  const store = etcd();
  try {
    await healthy(url);
    const wrong = apiServer("--secure-prt=1");
    assert.equal(await wrong.ended(), 1);
    assert.match(wrong.output, /it knows no such flag: received --secure-prt/);
    const second = etcd();
    assert.equal(await second.ended(), 1);
    assert.match(second.output, /^Cannot start etcd: .*EADDRINUSE/);
  } finally {
    await store.kill();
  }
  assert.equal(await lonely.ended(60_000), 1);
  assert.match(
    lonely.output,
    /^Cannot start kube-apiserver: no etcd of coracle envtest listens there/,
  );
  for (const name of ["etcd", "kube-apiserver"]) {
    const help = await runCommand([join(assets, name), "--help"]);
    assert.equal(help.code, 0);
    // envtest searches the help for flags of single versions.
    assert.doesNotMatch(help.stdout, /^\s*--insecure-port\b/m);
    assert.match(
      help.stdout,
      name === "etcd" ? /^\s*--unsafe-no-fsync\b/m : /^\s*--client-ca-file\b/m,
    );
  }
});

test("coracle envtest says what it needs", async () => {
  const folder = temporaryFolder();
  const { code, stderr } = await runCommand(
    coracle("envtest", join(folder, "a"), "--controllers=nobody"),
  );
  assert.notEqual(code, 0);
  assert.match(
    stderr,
    ONLY_ON_BUN ? /with Node or Deno/ : /Cannot select controllers/,
  );
});
