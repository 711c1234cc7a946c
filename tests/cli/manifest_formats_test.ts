import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { parse, parseAllDocuments } from "yaml";
import { runCommandLine } from "../../dev/cli/main.ts";
import { manifestsCommand } from "../../dev/cli/manifests_command.ts";
import { runCommand } from "../support/child_process.ts";
import { NO_KUBECTL } from "../support/kubectl.ts";
import { temporaryFolder, writeText } from "../support/temporary_folder.ts";

const url = (path: string) => new URL(`../../${path}`, import.meta.url).href;

function operatorFile(folder: string, kinds: readonly string[]): string {
  return writeText(
    folder,
    `boats-${kinds.length}.mjs`,
    `
import { defineKind, Operator } from "${url("mod.ts")}";
import { z } from "${url("node_modules/zod/index.js")}";
const names = { group: "test.coracle.dev", version: "v1", spec: z.object({}) };
export const operator = new Operator({
  leaderElection: { name: "boats" },
  probes: { port: 8080 },
});
for (const kind of ${JSON.stringify(kinds)}) {
  operator.register(defineKind({ ...names, kind }), { reconcile() {} });
}
`,
  );
}

async function manifests(
  ...args: readonly string[]
): Promise<{ code: number; out: string; said: string }> {
  let out = "";
  let said = "";
  const code = await runCommandLine(
    ["manifests", ...args],
    {
      colors: false,
      out: (text) => void (out += text),
      say: (text) => void (said += text),
      interrupts: () => new AbortController().signal,
    },
    [manifestsCommand],
  );
  return { code, out, said };
}

function filesOf(folder: string): readonly string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) =>
      join(parentPath, name).slice(folder.length + 1)
    ).toSorted();
}

async function write(
  folder: string,
  format: "helm" | "kustomize",
  kinds: readonly string[] = ["Boat"],
  image = "registry.test:5000/boats:1.2.0",
): Promise<string> {
  const output = join(folder, "out");
  const { code, out, said } = await manifests(
    operatorFile(folder, kinds),
    `--image=${image}`,
    "--name=boats",
    `--format=${format}`,
    `--output=${output}`,
  );
  assert.equal(code, 0, said);
  assert.equal(out, "");
  return said;
}

test("coracle manifests writes a Helm chart with values and their schema", async () => {
  const folder = temporaryFolder();
  await write(folder, "helm");
  const chart = join(folder, "out");
  assert.deepEqual(filesOf(chart), [
    "Chart.yaml",
    "templates/NOTES.txt",
    "templates/_helpers.tpl",
    "templates/crds/boats.test.coracle.dev.yaml",
    "templates/dashboard.yaml",
    "templates/deployment.yaml",
    "templates/log.yaml",
    "templates/networkpolicy.yaml",
    "templates/poddisruptionbudget.yaml",
    "templates/prometheusrule.yaml",
    "templates/rbac.yaml",
    "templates/serviceaccount.yaml",
    "templates/servicemonitor.yaml",
    "values.schema.json",
    "values.yaml",
  ]);
  const read = (path: string) => readFileSync(join(chart, path), "utf8");
  assert.partialDeepStrictEqual(parse(read("Chart.yaml")), {
    name: "boats",
    appVersion: "1.2.0",
  });
  assert.match(read("templates/NOTES.txt"), /^The operator runs as /);
  const values = parse(read("values.yaml"));
  assert.partialDeepStrictEqual(values, {
    image: { repository: "registry.test:5000/boats", tag: "", digest: "" },
    replicas: 2,
    crds: { install: true, keep: true },
  });
  // A selector with all labels, such as the version's, would find no pod.
  for (const name of ["deployment", "servicemonitor", "networkpolicy"]) {
    assert.doesNotMatch(
      read(`templates/${name}.yaml`),
      /(?:selector|matchLabels):\n.*"boats\.labels"/,
    );
  }
  for (const name of ["serviceaccount", "rbac"]) {
    assert.doesNotMatch(
      read(`templates/${name}.yaml`),
      /^metadata:\n(?!(?: {2}name.*\n)+ {2}labels:)/m,
    );
  }
  const templates = filesOf(join(chart, "templates"))
    .map((path) => read(join("templates", path))).join("");
  for (
    const name of [
      "crds",
      "networkPolicy",
      "podDisruptionBudget",
      "rbac",
      "serviceAccount",
      "serviceMonitor",
    ]
  ) {
    for (const field of Object.keys(values[name])) {
      assert(
        templates.includes(`.Values.${name}.${field}`),
        `${name}.${field}`,
      );
    }
  }
  const { properties } = JSON.parse(read("values.schema.json"));
  assert.deepEqual(
    Object.keys(properties).filter((name) => name !== "global").toSorted(),
    Object.keys(values).toSorted(),
  );
});

test("coracle manifests writes a kustomization with components", async () => {
  const folder = temporaryFolder();
  await write(folder, "kustomize");
  const root = join(folder, "out");
  const read = (path: string) => readFileSync(join(root, path), "utf8");
  const { resources, images } = parse(read("kustomization.yaml"));
  assert.deepEqual(resources, [
    "namespace.yaml",
    "crds.yaml",
    "rbac.yaml",
    "deployment.yaml",
  ]);
  assert.deepEqual(images, [
    { name: "registry.test:5000/boats", newTag: "1.2.0" },
  ]);
  for (const name of readdirSync(join(root, "components"))) {
    const { kind, resources } = parse(
      read(`components/${name}/kustomization.yaml`),
    );
    assert.equal(kind, "Component");
    assert(existsSync(join(root, "components", name, resources[0])));
  }
});

test("coracle manifests names an output folder that it cannot write", async () => {
  const folder = temporaryFolder();
  const file = writeText(folder, "file", "");
  const flags = ["--image=registry.test/boats:1", "--format=helm"];
  for (
    const [output, message] of [
      ["/proc/coracle", /^Cannot write to \/proc\/coracle: .*received E/],
      [file, /^Cannot write to .*: it must be a folder.* EEXIST\n/],
    ] as const
  ) {
    const { code, said } = await manifests(
      operatorFile(temporaryFolder(), ["Boat"]),
      ...flags,
      `--output=${output}`,
    );
    assert.match(said, message);
    assert.equal(code, 2);
  }
});

test("coracle manifests writes the digest of an image into a kustomization", async () => {
  const folder = temporaryFolder();
  const digest = `sha256:${"0".repeat(64)}`;
  await write(folder, "kustomize", ["Boat"], `registry.test/boats@${digest}`);
  const file = join(folder, "out", "kustomization.yaml");
  assert.deepEqual(parse(readFileSync(file, "utf8")).images, [
    { name: "registry.test/boats", digest },
  ]);
});

test("kubectl builds the kustomization with all components", {
  skip: NO_KUBECTL,
}, async () => {
  const folder = temporaryFolder();
  await write(folder, "kustomize");
  const file = join(folder, "out", "kustomization.yaml");
  const text = readFileSync(file, "utf8");
  assert.match(text, /^# components:\n# {3}- /m);
  writeFileSync(
    file,
    text.replace("# components", "components").replaceAll(
      /^# {3}-/gm,
      "  -",
    ).replace("count: 2", "count: 3"),
  );
  const { code, stdout, stderr } = await runCommand(
    ["kubectl", "kustomize", join(folder, "out")],
  );
  assert.equal(code, 0, stderr);
  const found = parseAllDocuments(stdout).map((one) => one.toJSON());
  assert.deepEqual(found.map(({ kind }) => kind).toSorted(), [
    "ClusterRole",
    "ClusterRole",
    "ClusterRole",
    "ClusterRoleBinding",
    "ConfigMap",
    "CustomResourceDefinition",
    "Deployment",
    "Namespace",
    "NetworkPolicy",
    "PodDisruptionBudget",
    "PrometheusRule",
    "Role",
    "RoleBinding",
    "Service",
    "ServiceAccount",
    "ServiceMonitor",
  ]);
  const deployment = found.find(({ kind }) => kind === "Deployment");
  assert.equal(deployment.spec.replicas, 3);
  const { labels } = deployment.spec.template.metadata;
  for (const { kind, metadata } of found) {
    if (["CustomResourceDefinition", "Namespace"].includes(kind)) continue;
    assert.deepEqual({ ...metadata.labels, ...labels }, metadata.labels, kind);
  }
});

test("coracle manifests leaves edited files and removes stale ones", async () => {
  const folder = temporaryFolder();
  await write(folder, "helm", ["Boat", "Raft"]);
  const path = (name: string) => join(folder, "out", name);
  writeFileSync(path("values.yaml"), "replicas: 2\n");
  writeFileSync(path("templates/mine.yaml"), "# mine\n");
  const said = await write(folder, "helm", ["Boat"]);
  assert.match(said, /^Assumed: the operator reads only what it owns/);
  assert.match(said, /^Kept \/.*\/values\.yaml, which you may have edited\.$/m);
  assert.equal(readFileSync(path("values.yaml"), "utf8"), "replicas: 2\n");
  assert(existsSync(path("templates/mine.yaml")));
  assert(existsSync(path("templates/crds/boats.test.coracle.dev.yaml")));
  assert(!existsSync(path("templates/crds/rafts.test.coracle.dev.yaml")));
});

test("coracle manifests writes files of definitions that a server refuses", async () => {
  const out = join(temporaryFolder(), "out");
  const file = writeText(
    temporaryFolder(),
    "costly.mjs",
    `import { Operator } from "${url("mod.ts")}";
import { Crowd } from "${url("tests/cli/fixtures/costly.ts")}";
export const operator = new Operator();
operator.register(Crowd, { reconcile() {} });
`,
  );
  const { code, said } = await manifests(
    file,
    "--image=a",
    "--format=kustomize",
    `--output=${out}`,
  );
  assert.equal(code, 1, said);
  assert.match(said, /^The server will refuse crowds\.test\.coracle\.dev: /m);
  assert(existsSync(join(out, "crds.yaml")));
});

const REFUSALS: readonly (readonly [flags: readonly string[], RegExp])[] = [
  [["--format=hlem"], /--format must be .* "hlem" \(did you mean "helm"\?\)/],
  [["--format=helm"], /--format helm writes files: write --output FOLDER/],
  [["--output=a"], /YAML goes to standard output: leave --output out/],
  [
    ["--format=helm", "--output=a", "--namespace=b"],
    /installed into the namespace of its release: leave --namespace out/,
  ],
];

for (const [flags, message] of REFUSALS) {
  test(`coracle manifests refuses ${flags.join(" ")}`, async () => {
    const folder = temporaryFolder();
    const file = operatorFile(folder, ["Boat"]);
    const { code, out, said } = await manifests(file, "--image=a", ...flags);
    assert.equal(code, 2);
    assert.equal(out, "");
    assert.match(said, message);
    assert(!existsSync("a"));
  });
}

test("coracle manifests leaves the files of another operator in a folder below", async () => {
  const folder = temporaryFolder();
  await write(folder, "kustomize");
  const chart = join(folder, "out", "charts", "boats");
  const file = operatorFile(temporaryFolder(), ["Boat"]);
  const image = "--image=registry.test/boats:1.2.0";
  const helm = await manifests(
    file,
    image,
    "--format=helm",
    `--output=${chart}`,
  );
  assert.equal(helm.code, 0, helm.said);
  const before = filesOf(chart);
  await write(folder, "kustomize", ["Boat", "Ship"]);
  assert.deepEqual(filesOf(chart), before);
});
