/**
 * A new user: package managers with empty caches, and a registry on loopback
 * that has the packed packages of this project and the tools of new projects.
 *
 * @module
 */

import assert from "node:assert/strict";
import { readFileSync, statSync } from "node:fs";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { PROJECT, runCommand } from "./child_process.ts";
import { startRegistry, userEnvironment } from "./npm_registry.ts";

const CREATE = join(PROJECT, "packages/create-operator");

type Environment = Readonly<Record<string, string | undefined>>;

/** A user with an empty home folder. */
export interface NewUser {
  readonly home: string;
  readonly env: Environment;
  /** Types a command, which must succeed; gives what it printed. */
  run(command: string, folder: string, more?: Environment): Promise<string>;
  /** Ends the registry and removes the home folder. */
  leave(): Promise<void>;
}

/** Tools of the projects, with their programs for this machine. */
function tools(): readonly string[] {
  return ["typescript", "esbuild", "oxlint"].flatMap((name) => {
    const folder = join(PROJECT, "node_modules", name);
    const { optionalDependencies } = JSON.parse(
      readFileSync(join(folder, "package.json"), "utf8"),
    );
    return [
      name,
      ...Object.keys(optionalDependencies).filter((other) =>
        statSync(join(PROJECT, "node_modules", other), {
          throwIfNoEntry: false,
        })
      ),
    ];
  });
}

async function run(
  command: string,
  cwd: string,
  env: Environment,
): Promise<string> {
  // The runner kills what writes nothing for long.
  process.stdout.write(`${command}\n`);
  const words = command.split(" ");
  const result = await runCommand(words, { cwd, env, limit: 120_000 });
  const { code, stdout, stderr } = result;
  assert.equal(code, 0, `${command}: ${stdout}${stderr}`);
  return stdout + stderr;
}

/** Replaces the example of a new project by the finished files of the tutorial. */
export async function copyFinishedFiles(project: string): Promise<void> {
  const page = await readFile(
    join(PROJECT, "docs/tutorial/finished.md"),
    "utf8",
  );
  const files = [...page.matchAll(/^## `(\S+)`\n[^]*?^```.*\n([^]*?)^```$/gm)];
  assert.equal(files.length, 4);
  for (const [, name = "", text = ""] of files) {
    const own = text.replace("./cron_job.ts", "./operator.ts");
    await writeFile(join(project, name), own);
  }
  await rm(join(project, "cronjob.ts"));
}

/** Packs the packages, and starts the registry. */
export async function newUser(): Promise<NewUser> {
  const home = await mkdtemp(join(tmpdir(), "coracle-user-"));
  const folder = join(home, "tarballs");
  await mkdir(folder);
  const own = [PROJECT, join(PROJECT, "dev")];
  const dependencies = own.flatMap((source) => {
    const manifest = readFileSync(join(source, "package.json"), "utf8");
    return Object.keys(JSON.parse(manifest).dependencies);
  });
  await run("npm run -s build", CREATE, {});
  const registry = await startRegistry({
    sources: [...own, CREATE],
    installed: [
      ...new Set(dependencies),
      ...["zod", "@types/node", "undici-types"],
      ...tools(),
    ],
    folder,
  });
  // The runner's own cluster is not the user's.
  const env = {
    ...userEnvironment(registry, home),
    CORACLE_TEST_CLUSTER: undefined,
    KUBECONFIG: undefined,
  };
  return {
    home,
    env,
    run: (command, cwd, more) => run(command, cwd, { ...env, ...more }),
    async leave() {
      await registry.stop();
      await rm(home, { recursive: true, force: true });
    },
  };
}
