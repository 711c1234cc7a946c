import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import process from "node:process";
import { after, before, test } from "node:test";
import { PROJECT } from "../support/child_process.ts";
import { outsidePod, runDockerfile } from "../support/dockerfile.ts";
import { goTool, NO_GO } from "../support/go_tool.ts";
import { Kubectl, NO_KUBECTL } from "../support/kubectl.ts";
import {
  copyFinishedFiles,
  type NewUser,
  newUser,
} from "../support/new_user.ts";
import { Program } from "../support/program.ts";
import { until } from "../support/until.ts";

/** Names of runtimes on the first page, and what stands for `npm run` there. */
const RUNTIMES = {
  Node: "npm run",
  Deno: "deno task",
  Bun: "bun run",
} as const;
const NAMESPACE = "cron";
const DEFINITION = "cronjobs.tutorial.coracle.dev";
const LIMIT_MS = 15 * 60_000;
/** A schedule of each minute is due within one. */
const JOB_LIMIT_MS = 90_000;

const missing = NO_KUBECTL ||
  (process.env["KUBECONFIG"] ? false : "no cluster");
let helm: string | undefined;
let user: NewUser | undefined;

before(async () => {
  helm = await goTool("helm");
  if (helm !== undefined && missing === false) user = await newUser();
}, { timeout: LIMIT_MS });

after(() => user?.leave());

/** Commands of a page of the tutorial, line by line. */
function commands(page: string, after: string): readonly string[] {
  const text = readFileSync(join(PROJECT, `docs/tutorial/${page}.md`), "utf8");
  const rest = text.slice(text.indexOf(after));
  const [, block = ""] = /^```sh\n([^]*?)^```$/m.exec(rest) ?? [];
  assert(text.includes(after) && block !== "", `${page}: ${after}`);
  return block.trim().split("\n");
}

/** Starts `dev`, and waits until it has reconciled the example. */
async function develop(
  command: string,
  project: string,
  env: NewUser["env"],
): Promise<void> {
  const dev = new Program(command.split(" "), { cwd: project, env });
  try {
    await dev.says(/default\/hello {2}Reconciled/, 60_000);
  } finally {
    await dev.kill();
  }
}

/** Kubeconfig with the token of the chart's service account. */
async function accountConfig(
  kubectl: Kubectl,
  project: string,
): Promise<string> {
  const token = await kubectl.run("create token cron");
  const view = await kubectl.run("config view --raw --minify --output=json");
  const { clusters } = JSON.parse(view);
  const context = {
    cluster: clusters[0].name,
    user: "operator",
    namespace: NAMESPACE,
  };
  const file = join(project, "kubeconfig");
  const config = {
    apiVersion: "v1",
    kind: "Config",
    clusters,
    users: [{ name: "operator", user: { token: token.trim() } }],
    contexts: [{ name: "operator", context }],
    "current-context": "operator",
  };
  writeFileSync(file, JSON.stringify(config), { mode: 0o600 });
  return file;
}

for (const [name, scripts] of Object.entries(RUNTIMES)) {
  test(`The tutorial leads from an empty folder to a cluster on ${name}`, {
    skip: missing,
    timeout: LIMIT_MS,
  }, async (t) => {
    if (helm === undefined || user === undefined) return t.skip(NO_GO);
    const { home, env, run } = user;
    const folder = join(home, `walk-${name}`);
    const project = join(folder, "cron");
    await mkdir(folder);
    const began = performance.now();

    const [create = "", enter, install = "", dev = ""] = commands(
      "start",
      `ith ${name}:`,
    );
    assert.equal(enter, "cd cron");
    await run(create, folder);
    await run(install, project);
    await develop(dev, project, env);
    await copyFinishedFiles(project);
    for (const script of ["lint", "check", "test", "chart"]) {
      await run(`${scripts} ${script}`, project);
    }
    const stages = join(folder, "stages");
    await mkdir(stages);
    const image = await runDockerfile({
      context: project,
      folder: stages,
      env: { ...env, DENO_DIR: join(stages, "deno-dir") },
    });

    const kubeconfig = process.env["KUBECONFIG"] ?? "";
    const kubectl = new Kubectl(kubeconfig, NAMESPACE, { cache: folder });
    const cluster = { ...env, KUBECONFIG: kubeconfig };
    const [deploy = "", , apply = ""] = commands("production", "The image has");
    const typed = (command: string) =>
      run(command.replace(/^helm/, helm ?? ""), project, cluster);
    await typed(deploy);
    const account = await accountConfig(kubectl, project);
    const operator = new Program(await outsidePod(image.command, account), {
      cwd: image.cwd,
      env: { ...env, KUBECONFIG: account },
    });
    try {
      await operator.says(/Operator started/);
      await typed(apply);
      await until(
        "a Job is made",
        async () =>
          /report-\d+/.test(await kubectl.run("get jobs --namespace=default")),
        { within: JOB_LIMIT_MS, every: 1_000 },
      );
      const status = "get tcron report --namespace=default --output=yaml";
      assert.match(await kubectl.run(status), /lastScheduleTime/);
      assert.doesNotMatch(operator.output, /"level":"(?:warn|error)"/);
      await typed(`${deploy} --set replicas=3`);
      const replicas = "get deployment cron --output=jsonpath={.spec.replicas}";
      assert.equal(await kubectl.run(replicas), "3");
      assert.equal(await operator.end("SIGTERM"), 0, operator.describe());
    } catch (error) {
      throw new Error(operator.describe(), { cause: error });
    } finally {
      await operator.kill();
      for (const command of commands("production", "## Remove it")) {
        await typed(command);
      }
    }
    assert.match(
      await kubectl.fails(`get customresourcedefinition ${DEFINITION}`),
      /NotFound/,
    );
    const seconds = Math.round((performance.now() - began) / 1_000);
    t.diagnostic(`${seconds} s of machine time`);
  });
}
