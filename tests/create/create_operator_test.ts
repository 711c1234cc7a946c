import assert from "node:assert/strict";
import { existsSync, globSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { PROJECT, runCommand } from "../support/child_process.ts";
import { RUNTIME, runtimeCommand } from "../support/program.ts";
import { temporaryFolder, writeText } from "../support/temporary_folder.ts";

const BIN = join(PROJECT, "packages/create-operator/bin.ts");

/** Deno would take the package.json beside the file, which leads to builds. */
const FLAGS = RUNTIME === "deno"
  ? [`--config=${join(PROJECT, "deno.json")}`]
  : [];

async function create(cwd: string, ...args: readonly string[]) {
  const command = [...runtimeCommand(), ...FLAGS, BIN, ...args];
  return await runCommand(command, { cwd });
}

function textOf(folder: string): string {
  return globSync("**/*", { cwd: folder })
    .concat(globSync(".*/**", { cwd: folder }))
    .filter((path) => statSync(join(folder, path)).isFile())
    .map((path) => `${path}\n${readFileSync(join(folder, path), "utf8")}`)
    .join("");
}

const FILES = [
  ".dockerignore",
  ".github/workflows/ci.yaml",
  ".gitignore",
  ".vscode/settings.json",
  "AGENTS.md",
  "Dockerfile",
  "README.md",
  "chart/templates/crds/policies.sea.example.org.yaml",
  "chart/values.yaml",
  "examples/policy.yaml",
  "operator.test.ts",
  "operator.ts",
  "policy.ts",
];

for (const runtime of ["node", "deno", "bun"]) {
  test(`create-operator writes a project for ${runtime} with its names`, async () => {
    const folder = temporaryFolder();
    const { code, stdout, stderr } = await create(
      folder,
      "harbour",
      "--kind=Policy",
      "--group=sea.example.org",
      `--runtime=${runtime}`,
      "--yes",
    );
    assert.equal(code, 0, stderr);
    assert.match(stdout, /operator harbour of the kind Policy/);
    const project = join(folder, "harbour");
    for (const file of FILES) assert(existsSync(join(project, file)), file);
    const manifest = runtime === "deno" ? "deno.json" : "package.json";
    assert.match(readFileSync(join(project, manifest), "utf8"), /"zod": "/);
    const text = textOf(project);
    assert.doesNotMatch(text, /[gG]reet|sample\.example/);
    assert.doesNotMatch(text, /%(?:runtime|install|dev|version|zod)%/);
    // A run takes the time from its context, as the docs show it.
    assert.match(text, /ctx\.clock\.wallTime\(\)/);
    assert.doesNotMatch(text, /options\.clock|Date\.now/);
  });
}

test("create-operator fills the empty folder that it runs in", async () => {
  const folder = join(temporaryFolder(), "boats");
  writeText(folder, ".git/config", "");
  const { code, stderr } = await create(folder, ".", "--yes");
  assert.equal(code, 0, stderr);
  assert.match(readFileSync(join(folder, "README.md"), "utf8"), /^# boats\n/);
});

const REFUSALS: readonly (readonly [args: readonly string[], RegExp])[] = [
  [["Boats"], /--name must be up to 50 lower-case letters.* "Boats"/],
  [["a", "--name=-"], /--name must be/],
  [["a", "--kind=boat"], /--kind must be .* beginning with a capital.* "boat"/],
  [["a", "--kind=ConfigMap"], /a name that the example does not use/],
  [["a", "--kind=Number"], /a name that the example does not use/],
  [["a", "--kind=OPERATOR"], /a name that the example does not use/],
  [["a", "--group=sea"], /--group must be a domain .* "sea"/],
  [["a", "--group=apps.k8s.io"], /that is not Kubernetes' own/],
  [["a", "--runtime=perl"], /--runtime must be node, deno or bun: .* "perl"/],
  [["a", "b"], /it takes one folder: received a b/],
  [["a", "--kind=A", "--kind", "B"], /--kind may be given only once/],
  [["a", "--colour=red"], /Unknown option '--colour'/],
  [["full"], /full must be empty or new: received a folder with file/],
  [["full/file"], /full\/file must be a folder: received ENOTDIR/],
];

for (const [args, message] of REFUSALS) {
  test(`create-operator refuses ${args.join(" ")} and writes nothing`, async () => {
    const folder = temporaryFolder();
    writeText(folder, "full/file", "");
    const { code, stdout, stderr } = await create(folder, ...args, "--yes");
    assert.equal(code, 2, stdout);
    assert.match(stderr, message);
    assert.deepEqual(globSync("**", { cwd: folder }).toSorted(), [
      ".",
      "full",
      "full/file",
    ]);
  });
}
