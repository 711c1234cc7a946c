import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { createAuthority } from "../../../core/admission/certificates.ts";
import { readKubeApiServer } from "../../../dev/cli/envtest/kube_apiserver.ts";
import { ETCD_FLAGS } from "../../../dev/cli/envtest/flag_lists.ts";
import { readProgramFlags } from "../../../dev/cli/envtest/program_flags.ts";
import { temporaryFolder, writeText } from "../../support/temporary_folder.ts";

const PAIR = createAuthority({ commonName: "envtest-environment" });
const FOLDER = temporaryFolder();
const CERTIFICATE = writeText(FOLDER, "apiserver.crt", PAIR.certificate);
const KEY = writeText(FOLDER, "apiserver.key", PAIR.key);

test("kube-apiserver's stand-in honours the flags that envtest passes", () => {
  const { options, notes } = readKubeApiServer([
    "--allow-privileged=true",
    "--authorization-mode=RBAC",
    "--bind-address=127.0.0.1",
    `--cert-dir=${FOLDER}`,
    `--client-ca-file=${CERTIFICATE}`,
    "--disable-admission-plugins=ServiceAccount",
    "--etcd-servers=http://127.0.0.1:33653",
    "--secure-port=45993",
    "--service-account-issuer=https://127.0.0.1:45993/",
    `--service-account-key-file=${CERTIFICATE}`,
    `--service-account-signing-key-file=${KEY}`,
    "--service-cluster-ip-range=10.0.0.0/24",
  ]);
  assert.deepEqual(options, {
    port: 45993,
    host: "127.0.0.1",
    serving: PAIR,
    clientAuthorities: PAIR.certificate,
    users: undefined,
    authorization: "rbac",
    serviceAccounts: {
      issuers: ["https://127.0.0.1:45993/"],
      audiences: [],
      keys: [PAIR.certificate],
      signingKey: PAIR.key,
    },
    disabledAdmission: ["ServiceAccount"],
    featureGates: { ShardedListAndWatch: false },
  });
  assert.deepEqual(notes, []);
});

test("kube-apiserver's stand-in has the defaults of its flags without any", () => {
  const { options } = readKubeApiServer(["--service-account-issuer", "a"]);
  assert.equal(options.port, 6443);
  assert.equal(options.authorization, "none");
  assert.equal(options.serving, undefined);
  assert.deepEqual(options.serviceAccounts?.issuers, ["a"]);
});

test("kube-apiserver's stand-in creates a missing serving certificate", () => {
  const folder = join(temporaryFolder(), "certs");
  const flag = `--cert-dir=${folder}`;
  const { serving } = readKubeApiServer([flag]).options;
  assert.match(serving?.certificate ?? "", /(BEGIN CERTIFICATE[^]*){2}/);
  assert.deepEqual(readKubeApiServer([flag]).options.serving, serving);
});

test("kube-apiserver's stand-in names the values that have no effect", () => {
  const { options, notes } = readKubeApiServer([
    "--feature-gates=kube:ShardedListAndWatch=true,Other=true",
    "--runtime-config=api/all=true",
    "--enable-admission-plugins=AlwaysPullImages,ResourceQuota",
    "--disable-admission-plugins=MutatingAdmissionPolicy,Priority,PodNodeSelector",
    "-v=4",
    "--profiling",
  ]);
  assert.deepEqual(options.featureGates, { ShardedListAndWatch: true });
  assert.deepEqual(options.disabledAdmission, ["Priority"]);
  assert.deepEqual(notes, [
    "--feature-gates=Other=true",
    "--runtime-config=api/all=true",
    "--enable-admission-plugins=AlwaysPullImages",
  ]);
});

test("kube-apiserver's stand-in refuses what it cannot honour", () => {
  const cases: readonly (readonly [string, RegExp])[] = [
    ["--secure-prt=1", /knows no such flag: .*did you mean "--secure-port"/],
    ["--", /knows no such flag: received --/],
    ["serve", /knows no such operand: received serve$/],
    ["--secure-port", /--secure-port takes a value/],
    ["--secure-port=0", /--secure-port: it must be a number from 1 to 65535/],
    ["--oidc-issuer-url=https://a", /does not support --oidc-issuer-url/],
    ["--anonymous-auth=false", /--anonymous-auth: only true is supported/],
    ["--authorization-mode=RBAC,Webhook", /RBAC and Node .*: received Webhook/],
    ["--client-ca-file=/none", /--client-ca-file: .* readable file.*ENOENT/],
    [`--tls-cert-file=${CERTIFICATE}`, /it needs --tls-private-key-file/],
  ];
  for (const [flag, message] of cases) {
    assert.throws(() => readKubeApiServer([flag]), (error: Error) => {
      assert.match(error.message, /^Cannot start kube-apiserver: /);
      assert.match(error.message, message);
      assert.ok(!error.message.includes("PRIVATE KEY"));
      return true;
    });
  }
});

test("etcd's stand-in takes the flags that envtest passes", () => {
  const values = readProgramFlags([
    "--advertise-client-urls=http://127.0.0.1:1",
    "-data-dir",
    "/data",
    "--listen-client-urls=http://127.0.0.1:1",
    "--listen-peer-urls=http://127.0.0.1:2",
    "--unsafe-no-fsync=true",
  ], ETCD_FLAGS);
  assert.deepEqual([...values], [
    ["data-dir", ["/data"]],
    ["listen-client-urls", ["http://127.0.0.1:1"]],
  ]);
});

test("kube-apiserver's stand-in takes the last of each flag, and all of lists", () => {
  const other = writeText(FOLDER, "other.pem", "another key");
  const { options, notes } = readKubeApiServer([
    "--secure-port=1",
    "--secure-port=65535",
    "--anonymous-auth=true",
    "--authorization-mode=RBAC, AlwaysAllow",
    "--feature-gates=Other=true,ShardedListAndWatch=false",
    `--service-account-key-file=${CERTIFICATE}`,
    `--service-account-key-file=${other}`,
    "--api-audiences=a, b,",
    "--api-audiences=c",
    `--tls-cert-file=${CERTIFICATE}`,
    `--tls-private-key-file=${KEY}`,
    // Without a value they change nothing.
    "--oidc-issuer-url=",
    "--tls-sni-cert-key=false",
  ]);
  assert.equal(options.port, 65_535);
  assert.equal(options.authorization, "none");
  assert.deepEqual(options.featureGates, { ShardedListAndWatch: false });
  assert.deepEqual(options.serviceAccounts?.audiences, ["a", "b", "c"]);
  assert.deepEqual(options.serviceAccounts?.keys, [
    PAIR.certificate,
    "another key",
  ]);
  assert.deepEqual(options.serving, PAIR);
  assert.deepEqual(notes, ["--feature-gates=Other=true"]);
});

test("kube-apiserver's stand-in refuses a port beyond, and a key alone", () => {
  assert.throws(
    () => readKubeApiServer(["--secure-port=65536"]),
    /from 1 to 65535: received 65536$/,
  );
  assert.throws(
    () => readKubeApiServer([`--tls-private-key-file=${KEY}`]),
    /--tls-cert-file: it needs --tls-private-key-file/,
  );
});

test("kube-apiserver's stand-in creates a pair for its address, with a secret key", () => {
  const folder = temporaryFolder();
  const flags = [`--cert-dir=${folder}`, "--bind-address=127.0.0.7"];
  // A certificate without its key is of no use.
  writeText(folder, "apiserver.crt", "old");
  const { serving } = readKubeApiServer(flags).options;
  const certificate = new X509Certificate(serving?.certificate ?? "");
  assert.match(certificate.subjectAltName ?? "", /DNS:localhost/);
  for (const address of ["127.0.0.1", "::1", "127.0.0.7"]) {
    assert.ok(
      certificate.subjectAltName?.split(/, |IP Address:/)
        .some((name) =>
          name === address || name.replace(/^(0:)+/, "::") === address
        ),
      address,
    );
  }
  const key = join(folder, "apiserver.key");
  assert.equal(readFileSync(key, "utf8"), serving?.key);
  assert.equal(statSync(key).mode & 0o777, 0o600);
});

test("readProgramFlags keeps each value of a flag, with its lines", () => {
  const values = readProgramFlags(
    ["--a=1", "-a", "2", "--a=one\ntwo=", "--c=3", "--d"],
    {
      program: "p",
      honoured: { a: "" },
      accepted: "c",
      switches: "d",
      refused: "",
    },
  );
  assert.deepEqual([...values], [["a", ["1", "2", "one\ntwo="]]]);
});
