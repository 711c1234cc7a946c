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

for (const section of ["Bun", "Node"]) {
  const file = `operator-${section.toLowerCase()}`;
  test(`The executable of ${section} in the guide is built and reconciles`, async (t) => {
    const { folder, env } = installed;
    // npx would take tools from the network; here they are in the path.
    const commands = blocks(section, "sh").join("").replaceAll("npx ", "");
    const { code, stdout, stderr } = await runCommand(["sh", "-ec", commands], {
      cwd: folder,
      env,
      limit: 180_000,
    });
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
    const operator = new Program([join(folder, file)], {
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
  });
}
