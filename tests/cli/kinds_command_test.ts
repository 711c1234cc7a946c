import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import process from "node:process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { ApiServer } from "@coracle/dev/apiserver";
import { CustomResourceDefinition } from "@coracle/operator/kinds";
import { documentsOf, PUBLISHED } from "../../dev/cli/definitions.ts";
import { kindsCommand } from "../../dev/cli/kinds_command.ts";
import { runCommandLine } from "../../dev/cli/main.ts";
import { PROJECT, runCommand } from "../support/child_process.ts";
import { temporaryFolder, writeText } from "../support/temporary_folder.ts";

const DEFINITIONS = fileURLToPath(
  new URL("./fixtures/definitions.yaml", import.meta.url),
);

async function kinds(
  ...files: readonly string[]
): Promise<{ code: number; out: string; said: string }> {
  let out = "";
  let said = "";
  const code = await runCommandLine(["kinds", ...files], {
    colors: false,
    out: (text) => void (out += text),
    say: (text) => void (said += text),
    interrupts: () => new AbortController().signal,
  }, [kindsCommand]);
  return { code, out, said };
}

/** Program that uses the kinds; lines with an error are marked. */
const USE = `
import type { Certificate } from "./kinds.ts";
import type { Client } from "@coracle/operator";
import { CertificateV1alpha1, DnsRecord, type Loose } from "./kinds.ts";
import { Certificate as Kind } from "./kinds.ts";
const spec: Certificate["spec"] = {
  secretName: "a",
  issuerRef: { name: "ca", kind: undefined },
  renewal: { days: 30 },
  keystores: [{ format: "JKS", alias: { name: "a" } }],
  usages: ["signing", "server auth"],
  privateKey: { algorithm: "RSA", size: 4096 },
  port: "http",
  labels: { a: "b" },
  limits: { cpu: 1, memory: "1Gi" },
  matrix: [[1], [2, 3]],
  additionalOutputFormats: [{ type: "DER", "x-extra/field": true }],
  template: { apiVersion: "v1", kind: "Pod", metadata: { name: "a" }, spec: 1 },
  templates: [{ metadata: { name: "a" } }],
  pod: { metadata: { name: "a" }, spec: { containers: [] } },
  anything: [1, "a"],
  open: { known: "a", other: 1 },
  maybe: null,
  empty: {},
};
export const certificate: Certificate = { metadata: { name: "a" }, spec };
export const first: "True" | "False" | "Unknown" | undefined =
  certificate.status?.conditions?.[0]?.status;
export const nulled: Certificate["spec"] = { ...spec, privateKey: null };
export const names: string[] = [Kind.kind, CertificateV1alpha1.version, DnsRecord.group];
export const loose: Loose = { metadata: { name: "a" }, spec: { size: 1 } };
// Defaults fill in what is absent when it is written, and it is there when read.
export const days = async (client: Client): Promise<number> =>
  (await client.create(Kind, {
    metadata: { name: "a" },
    spec: {
      secretName: "a",
      issuerRef: { name: "ca" },
      keystores: [{ alias: { name: "a" } }],
    },
  })).spec.renewal.days;
export const undefaulted = (client: Client) =>
  client.create(Kind, {
    metadata: { name: "a" },
    // @ts-expect-error keystores has no default
    spec: { secretName: "a", issuerRef: { name: "ca" } },
  });
// @ts-expect-error a required field is missing
export const missing: Certificate["spec"] = { issuerRef: { name: "ca" } };
// @ts-expect-error not one of the values
export const wrong: Certificate["spec"] = { ...spec, usages: ["other"] };
// @ts-expect-error a field that does not exist
export const unknown: Certificate["spec"] = { ...spec, secretname: "a" };
`;

test("coracle kinds prints types that compile under strict options", async () => {
  const folder = temporaryFolder();
  const { code, out, said } = await kinds(DEFINITIONS);
  assert.deepEqual([code, said], [0, ""]);
  writeText(folder, "kinds.ts", out);
  const use = writeText(folder, "use.ts", USE);
  writeText(
    folder,
    "tsconfig.json",
    JSON.stringify({
      compilerOptions: {
        strict: true,
        exactOptionalPropertyTypes: true,
        noUncheckedIndexedAccess: true,
        noEmit: true,
        skipLibCheck: true,
        allowImportingTsExtensions: true,
        module: "nodenext",
        target: "es2023",
        lib: ["es2024", "esnext.disposable", "dom", "dom.iterable"],
        types: ["node"],
        typeRoots: [join(PROJECT, "node_modules/@types")],
        paths: {
          "@coracle/operator": [join(PROJECT, "core/mod.ts")],
          "@coracle/operator/core": [join(PROJECT, "core/mod.ts")],
          "undici/lib/dispatcher/client.js": [
            join(PROJECT, "node_modules/undici/types/client.d.ts"),
          ],
        },
      },
      files: [use],
    }),
  );
  const tsc = join(PROJECT, "node_modules/.bin/tsc");
  const compiled = await runCommand([tsc, "-p", folder]);
  assert.equal(compiled.code, 0, compiled.stdout);
});

test("coracle kinds prints formatted code", async () => {
  const file = writeText(
    temporaryFolder(),
    "kinds.ts",
    (await kinds(DEFINITIONS)).out,
  );
  const deno = join(PROJECT, "node_modules/.bin/deno");
  const { code, stdout, stderr } = await runCommand([
    deno,
    "fmt",
    "--no-config",
    "--check",
    file,
  ], { env: { NO_COLOR: "1" } });
  assert.equal(code, 0, stdout + stderr);
});

test("coracle kinds names the storage version as the kind, others by version", async () => {
  const { out } = await kinds(DEFINITIONS);
  assert.deepEqual(out.match(/export const \w+: Kind<\w+>.*(?= =)/g), [
    "export const Certificate: Kind<Certificate> & WrittenAs<CertificateInput>",
    "export const CertificateV1alpha1: Kind<CertificateV1alpha1>",
    // The name Record is that of a type of TypeScript.
    "export const DnsRecord: Kind<DnsRecord>",
    "export const Loose: Kind<Loose>",
  ]);
});

test("coracle kinds prints the kinds of several files", async () => {
  const file = writeText(
    temporaryFolder(),
    "crd.yaml",
    `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
spec:
  group: a.example
  scope: Cluster
  names: { kind: Raft, plural: rafts }
  versions: [{ name: v1, served: true, storage: true }]
`,
  );
  const { code, out } = await kinds(DEFINITIONS, file);
  assert.equal(code, 0);
  for (const name of ["Certificate", "Raft"]) {
    assert(out.includes(`export const ${name}: Kind<${name}>`), name);
  }
});

test("coracle kinds prints the kinds of those files that have some", async () => {
  const folder = temporaryFolder();
  const other = writeText(folder, "other.yaml", "kind: Pod");
  const empty = writeText(folder, "empty.yaml", "");
  const { code, out } = await kinds(other, DEFINITIONS, empty);
  assert.deepEqual([code, out], [0, (await kinds(DEFINITIONS)).out]);
  const none = await kinds(other, empty);
  assert.equal(none.code, 2);
  assert.match(
    none.said,
    /other\.yaml, .*empty\.yaml: they have no CustomResourceDefinition: received Pod\n/,
  );
});

test("coracle kinds reads standard input as the file -", async () => {
  const { stdout } = await runCommand(
    [process.execPath, join(PROJECT, "dev/cli/bin.ts"), "kinds", "-"],
    { input: readFileSync(DEFINITIONS, "utf8") },
  );
  assert.equal(stdout, (await kinds(DEFINITIONS)).out);
});

test("coracle kinds explains files that it cannot read", async () => {
  const folder = temporaryFolder();
  for (
    const [text, message] of [
      [undefined, /it must be a readable file or URL: ENOENT/],
      ["a: [", /it must be YAML: received /],
      ["a: 1\na: 2", /it must be YAML, with --- between documents: received /],
      [
        "{{- if .Values.crds }}\nkind: CustomResourceDefinition\n{{- end }}",
        /it is a Helm template, so give what "helm template" prints .*crds \}\}\n/,
      ],
      [
        "kind: CustomResourceDefinition\nmetadata: {{ .Values.metadata }}",
        /it is a Helm template, .*: received metadata: \{\{ .Values.metadata \}\}\n/,
      ],
      ["", /it has no CustomResourceDefinition: received an empty file/],
      ["kind: Pod\n---\nkind: Pod", /received Pod\n/],
      ["text", /received no kind\n/],
      [
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nspec: { names: { kind: A } }",
        /must be complete and of apiextensions/,
      ],
      [
        "apiVersion: apiextensions.k8s.io/v1beta1\nkind: CustomResourceDefinition\nspec: { names: { kind: A }, versions: [] }",
        /received apiextensions\.k8s\.io\/v1beta1/,
      ],
      [
        `${readFileSync(DEFINITIONS, "utf8")}
---
apiVersion: apiextensions.k8s.io/v1beta1
kind: CustomResourceDefinition`,
        /must be complete and of apiextensions\.k8s\.io\/v1: received .*v1beta1/,
      ],
    ] as const
  ) {
    const file = text === undefined
      ? join(folder, "missing.yaml")
      : writeText(folder, "crd.yaml", text);
    const { code, said } = await kinds(file);
    assert.equal(code, 2);
    assert.match(said, message);
  }
});

test("documentsOf gives the items of lists, and nothing for empty documents", async () => {
  const file = writeText(
    temporaryFolder(),
    "all.yaml",
    "---\nkind: A\n---\n---\nkind: List\nitems: [{ kind: B }, { kind: C }]\n---\n",
  );
  assert.deepEqual((await documentsOf(file)).map(({ kind }) => kind), [
    "A",
    "B",
    "C",
  ]);
});

test("coracle kinds reads a URL, and names what is wrong with it", async () => {
  const server = createServer((request, response) => {
    if (request.url === "/crds.yaml") response.end(readFileSync(DEFINITIONS));
    else response.writeHead(404).end();
  });
  const { promise: listening, resolve } = Promise.withResolvers<void>();
  server.listen(0, "127.0.0.1", resolve);
  await listening;
  const { port } = server.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}`;
  try {
    const [read, file] = await Promise.all([
      kinds(`${url}/crds.yaml`),
      kinds(DEFINITIONS),
    ]);
    assert.equal(read.code, 0, read.said);
    assert.equal(read.out, file.out);
    const { code, said } = await kinds(`${url}/none`);
    assert.equal(code, 2);
    assert(
      said.includes(
        `Cannot read ${url}/none: the server must have it: received 404 Not Found`,
      ),
      said,
    );
  } finally {
    server.close();
    server.closeAllConnections();
  }
  // Runtimes word it differently; the reason of the system is in each.
  const { said } = await kinds(`${url}/crds.yaml`);
  assert.match(said, /file or URL: .*(ECONNREFUSED|refused|connect)/i);
});

test("coracle kinds knows where projects publish, and refuses other names", async () => {
  for (const url of Object.values(PUBLISHED)) {
    assert.match(url, /^https:.+yaml$/);
  }
  const { code, said } = await kinds("cert-manger");
  assert.equal(code, 2);
  assert.match(
    said,
    /^Cannot read cert-manger: it must be a readable file or URL/,
  );
});

test("coracle kinds takes definitions of a cluster by name and group", async () => {
  const server = await ApiServer.start({ seed: 1 });
  try {
    await server.client.create(CustomResourceDefinition, {
      metadata: { name: "boats.example.com" },
      spec: {
        group: "example.com",
        scope: "Namespaced",
        names: { kind: "Boat", plural: "boats" },
        versions: [{
          name: "v1",
          served: true,
          storage: true,
          schema: { openAPIV3Schema: { type: "object" } },
        }],
      },
    });
    const kubeconfig = writeText(temporaryFolder(), "k", server.kubeconfig);
    const of = (name: string) => kinds("--kubeconfig", kubeconfig, name);
    const group = await of("example.com");
    assert.equal(group.code, 0, group.said);
    assert.match(group.out, /^export (interface|type) Boat\b/m);
    const one = await of("boats.example.com");
    assert.equal(one.out, group.out);
    const none = await of("boats");
    assert.equal(none.code, 2);
    assert.match(none.said, /its group: received boats$/m);
  } finally {
    await server.stop();
  }
});
