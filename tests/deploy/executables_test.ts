import assert from "node:assert/strict";
import { copyFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { Client, loadConfig, untyped } from "@coracle/operator/client";
import { ConfigMap } from "@coracle/operator/kinds";
import { applyCrd } from "../../core/crd/install_crd.ts";
import { projectText } from "../package/shipped_files.ts";
import { chartDefinition } from "../support/chart_definition.ts";
import { PROJECT, runCommand } from "../support/child_process.ts";
import {
  type Installation,
  installPackages,
} from "../support/installed_package.ts";
import { coracle, Program } from "../support/program.ts";
import { until } from "../support/until.ts";

const TEMPLATE = join(PROJECT, "packages/create-operator/template/common");
const DEFINITION = chartDefinition(
  join(TEMPLATE, "chart/templates/crds/greetings.sample.example.com.yaml"),
);
const { group } = DEFINITION.spec;
const GUIDE = projectText("docs/containers.md");

let installed: Installation;

before(async () => {
  [installed] = await installPackages(["."]) as [Installation];
  for (const file of ["greeting.ts", "operator.ts"]) {
    await copyFile(join(TEMPLATE, file), join(installed.folder, file));
  }
  const [code = ""] = blocks("Node", "ts ignore");
  await writeFile(join(installed.folder, "sea.ts"), code);
}, { timeout: 180_000 });

after(() => installed?.remove());

/** Code blocks of a section of the guide. */
function blocks(section: string, language: string): readonly string[] {
  const [, text = ""] = GUIDE.split(`\n### ${section}\n`);
  const [own = ""] = text.split("\n#");
  return own.split("\n```").filter((part) => part.startsWith(`${language}\n`))
    .map((part) => part.slice(language.length + 1));
}

for (const section of ["Bun", "Node", "Deno"]) {
  const file = `operator-${section.toLowerCase()}`;
  test(`The executable of ${section} in the guide is built and reconciles`, async (t) => {
    const { folder, env } = installed;
    // npx would take tools from the network; here they are in the path.
    const commands = blocks(section, "sh").join("").replaceAll("npx ", "");
    const build = (more: NodeJS.ProcessEnv = {}) =>
      runCommand(["sh", "-ec", commands], {
        cwd: folder,
        env: { ...env, ...more },
        limit: 180_000,
      });
    let { code, stdout, stderr } = await build();
    const isOffline = /Download.*denort.*Setting up base binary/s.test(stderr);
    if (isOffline) {
      const path = ["deno", "eval", "console.log(Deno.execPath())"];
      const base = (await runCommand(path)).stdout.trim();
      // It would not run, but all that the executable needs is resolved and packed.
      ({ code, stdout, stderr } = await build({ DENORT_BIN: base }));
    }
    assert.equal(code, 0, stdout + stderr);
    const kubeconfig = join(folder, `${file}.kubeconfig`);
    const server = new Program(
      coracle("apiserver", "--port=0", `--kubeconfig=${kubeconfig}`),
    );
    t.after(() => server.kill());
    await server.says(/Serving on https:/);
    const client = new Client(await loadConfig({ kubeconfig }));
    t.after(() => client.close());
    await applyCrd(client, DEFINITION, {});
    // Without a base, the modules run with the rights of the executable.
    const rights = commands.match(/--allow-\S+/g) ?? [];
    const program = isOffline
      ? ["deno", "run", "--no-prompt", ...rights, join(folder, "operator.ts")]
      : [join(folder, file)];
    const operator = new Program(program, {
      cwd: "/",
      env: { ...env, KUBECONFIG: kubeconfig, PORT: "0" },
    });
    t.after(() => operator.kill());
    await operator.says(/Operator started/);
    const key = { namespace: "default", name: "hello" };
    await client.create(untyped({ group, version: "v1", kind: "Greeting" }), {
      metadata: key,
      spec: { message: "Hello", validHours: 1 },
    });
    await until(
      "The operator writes the ConfigMap",
      async () =>
        (await client.find(ConfigMap, key))?.data?.["message"] === "Hello",
    );
    assert.equal(await operator.end("SIGTERM"), 0, operator.describe());
    if (isOffline) t.skip("built and run apart: its base needs the network");
  });
}
