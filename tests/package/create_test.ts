import assert from "node:assert/strict";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { Client, loadConfig, untyped } from "@coracle/operator/client";
import { ConfigMap } from "@coracle/operator/kinds";
import { applyCrd } from "../../core/crd/install_crd.ts";
import { chartDefinition } from "../support/chart_definition.ts";
import { outsidePod, runDockerfile } from "../support/dockerfile.ts";
import {
  copyFinishedFiles,
  type NewUser,
  newUser,
} from "../support/new_user.ts";
import { partOfRounds } from "../support/part_of_rounds.ts";
import { coracle, Program } from "../support/program.ts";
import { until } from "../support/until.ts";
import { projectText } from "./shipped_files.ts";

const FIRST_RUN_LIMIT_MS = 60_000;
const LAYER_LIMIT_BYTES = 2_200_000;

let user: NewUser;

before(async () => {
  user = await newUser();
}, { timeout: 180_000 });

after(() => user?.leave());

const NAMES = "--kind Boat --group sea.example.org --yes";
/** Commands that a user types: create, install, and those of the project. */
const USERS = {
  node: {
    create: `npm create @coracle/operator harbour -- ${NAMES}`,
    install: "npm install",
    run: "npm run",
  },
  deno: {
    create:
      `deno run -A npm:@coracle/create-operator harbour --runtime deno ${NAMES}`,
    install: "deno install",
    run: "deno task",
  },
  bun: {
    create: `bun create @coracle/operator harbour ${NAMES}`,
    install: "bun install",
    run: "bun run",
  },
} as const;

function contents(folder: string): Readonly<Record<string, string>> {
  return Object.fromEntries(
    readdirSync(folder, { recursive: true, encoding: "utf8" })
      .map((path) => join(folder, path))
      .filter((file) => statSync(file).isFile())
      .map((file) => [file, readFileSync(file, "utf8")]),
  );
}

// With a quarter of the rounds it is the project for Node alone.
const users = Object.entries(USERS);

for (const [runtime, commands] of users.slice(0, partOfRounds(users.length))) {
  test(`A created project for ${runtime} passes its checks and deploys`, {
    timeout: 600_000,
  }, async () => {
    const folder = join(user.home, runtime);
    const project = join(folder, "harbour");
    await mkdir(folder);
    const began = performance.now();
    await user.run(commands.create, folder);
    await user.run(commands.install, project);
    const dev = new Program([...commands.run.split(" "), "dev"], {
      cwd: project,
      // A killed program leaves its temporary files.
      env: { ...user.env, PORT: "0", TMPDIR: folder },
    });
    try {
      await dev.says(/default\/hello {2}Reconciled/, FIRST_RUN_LIMIT_MS);
      assert(performance.now() - began < FIRST_RUN_LIMIT_MS, dev.describe());
      // It runs with the rights of the chart, and misses none.
      assert.doesNotMatch(dev.output, /apiGroups|Cannot|[Ee]rror/);
    } finally {
      await dev.kill();
    }
    for (const script of ["lint", "check", "test", "build"]) {
      await user.run(`${commands.run} ${script}`, project);
    }
    const chart = contents(join(project, "chart"));
    for (const file of ["Chart.yaml", "values.yaml", "values.schema.json"]) {
      await rm(join(project, "chart", file));
    }
    await user.run(`${commands.run} chart`, project);
    assert.deepEqual(contents(join(project, "chart")), chart);

    const stages = join(folder, "stages");
    await mkdir(stages);
    const image = await runDockerfile({
      context: project,
      folder: stages,
      env: { ...user.env, DENO_DIR: join(stages, "deno-dir") },
    });
    assert.match(image.user, /^[1-9]\d*$/);
    const size = Object.keys(contents(image.root))
      .reduce((sum, file) => sum + statSync(file).size, 0);
    assert(size <= LAYER_LIMIT_BYTES, `${size} bytes`);
    await reconciles(image, project);
  });
}

test("The finished files of the tutorial fit the project that it begins with", {
  timeout: 120_000,
}, async () => {
  const page = projectText("docs/tutorial/start.md");
  const [, create = ""] = /^(npm create .*)$/m.exec(page) ?? [];
  const folder = join(user.home, "tutorial");
  const project = join(folder, "cron");
  await mkdir(folder);
  await user.run(create, folder);
  await user.run("npm install", project);
  await copyFinishedFiles(project);
  for (const script of ["check", "lint", "chart"]) {
    await user.run(`npm run ${script}`, project);
  }
  const role = join(project, "chart/templates/rbac.yaml");
  assert.match(readFileSync(role, "utf8"), /^ +- jobs$/m);
});

/** Runs the command of an image against an API server until it has reconciled. */
async function reconciles(
  { command, cwd }: {
    readonly command: readonly string[];
    readonly cwd: string;
  },
  project: string,
): Promise<void> {
  const kubeconfig = join(project, "kubeconfig");
  const server = new Program(
    coracle("apiserver", "--port=0", `--kubeconfig=${kubeconfig}`),
  );
  const program: Program[] = [server];
  try {
    await server.says(/Serving on https:/);
    const client = new Client(await loadConfig({ kubeconfig }));
    const definition = "chart/templates/crds/boats.sea.example.org.yaml";
    await applyCrd(client, chartDefinition(join(project, definition)), {});
    const operator = new Program(await outsidePod(command, kubeconfig), {
      cwd,
      env: { ...user.env, KUBECONFIG: kubeconfig, PORT: "0" },
    });
    program.push(operator);
    await operator.says(/Operator started/);
    const [group, version, kind] = ["sea.example.org", "v1", "Boat"];
    const key = { namespace: "default", name: "hello" };
    await client.create(untyped({ group, version, kind }), {
      metadata: key,
      spec: { message: "Ahoy" },
    });
    await until(
      "The operator writes the ConfigMap",
      async () =>
        (await client.find(ConfigMap, key))?.data?.["message"] === "Ahoy",
    );
    await client.close();
    assert.equal(await operator.end("SIGTERM"), 0, operator.describe());
    assert.equal(await server.end("SIGTERM"), 0, server.describe());
  } catch (error) {
    const said = program.map((one) => one.describe()).join("\n");
    throw new Error(said, { cause: error });
  } finally {
    for (const one of program) await one.kill();
  }
}
