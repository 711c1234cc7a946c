import assert from "node:assert/strict";
import { test } from "node:test";
import {
  serverAddress,
  tlsOptions,
  withoutUser,
} from "../../../../core/client/transport/transport_options.ts";

const server = "https://api";
const BUNDLE = "-----BEGIN CERTIFICATE-----";

test("tlsOptions trusts single certificates only of a bundle that is given", () => {
  assert.deepEqual(tlsOptions({ server }), { rejectUnauthorized: true });
  assert.deepEqual(tlsOptions({ server, certificateAuthority: BUNDLE }), {
    ca: BUNDLE,
    allowPartialTrustChain: true,
    rejectUnauthorized: true,
  });
});

test("tlsOptions passes on certificate, key and server name, and skips checks", () => {
  const options = { server, certificate: "c", key: "k", serverName: "api" };
  assert.deepEqual(tlsOptions({ ...options, insecureSkipTlsVerify: true }), {
    cert: "c",
    key: "k",
    servername: "api",
    rejectUnauthorized: false,
  });
});

test("serverAddress splits a URL, and shows no password of a refused one", () => {
  for (const path of ["/k8s/c-1", "/k8s/c-1/", "/k8s/c-1//"]) {
    assert.deepEqual(serverAddress(`https://api:6443${path}`), {
      origin: "https://api:6443",
      prefix: "/k8s/c-1",
    });
  }
  assert.equal(serverAddress("http://api/").prefix, "");
  assert.throws(
    () => serverAddress("ftp://jane:secret@api"),
    { name: "TypeError", message: /received "ftp:\/\/api\/?"$/ },
  );
});

test("withoutUser shows neither user name nor password of a URL", () => {
  const shown = withoutUser(new URL("http://user:secret@proxy:3128/path"));
  assert.equal(shown, "http://proxy:3128/path");
});
