import { readFileSync } from "node:fs";
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PROJECT, runCommand } from "./child_process.ts";

/** A packed package. */
export interface PackedPackage {
  readonly name: string;
  /** Paths in the tarball. */
  readonly files: readonly { readonly path: string }[];
  /** Bytes of the tarball. */
  readonly size: number;
  /** Bytes of its files. */
  readonly unpackedSize: number;
}

/** Folder in which packages of the project are installed. */
export interface Installation {
  readonly folder: string;
  /** Environment of a user without the sources. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The packages of the project, in the order in which they were named. */
  readonly packages: readonly PackedPackage[];
  remove(): Promise<void>;
}

/**
 * Packs built packages as `npm publish` would and installs the tarballs into an
 * empty folder. Dependencies are packed from node_modules, so that no registry is
 * used; peer dependencies on other packages are not installed.
 *
 * @param folders The folders of the packages in the project.
 */
export async function installPackages(
  ...folders: readonly string[]
): Promise<Installation> {
  const folder = await mkdtemp(join(tmpdir(), "coracle-package-"));
  const env = { NODE_OPTIONS: undefined, BUN_OPTIONS: undefined };
  const npm = async (args: readonly string[], cwd?: string) => {
    const command = [
      "npm",
      ...args,
      "--ignore-scripts",
      "--no-update-notifier",
    ];
    const { code, stdout, stderr } = await runCommand(command, { cwd, env });
    if (code !== 0) throw new Error(`npm ${args.join(" ")}: ${stderr}`);
    return stdout;
  };
  const pack = ["pack", "--json", `--pack-destination=${folder}`];
  const packages = JSON.parse(
    await npm([...pack, ...folders.map((path) => join(PROJECT, path))]),
  ) as readonly PackedPackage[];
  const dependencies = folders.flatMap((path) => {
    const manifest = join(PROJECT, path, "package.json");
    return Object.keys(
      JSON.parse(readFileSync(manifest, "utf8")).dependencies ?? {},
    );
  });
  // The examples import zod, which users install themselves.
  const installed = new Set([...dependencies, "zod"]);
  await npm([
    ...pack,
    ...Array.from(installed, (name) => join(PROJECT, "node_modules", name)),
  ]);
  const app = { name: "app", private: true, type: "module" };
  await writeFile(join(folder, "package.json"), JSON.stringify(app));
  const tarballs = (await readdir(folder)).filter((name) =>
    name.endsWith(".tgz")
  );
  await npm(
    [
      "install",
      "--offline",
      "--no-audit",
      "--no-fund",
      ...tarballs.map((name) => `./${name}`),
    ],
    folder,
  );
  return {
    folder,
    env,
    packages,
    remove: () => rm(folder, { recursive: true, force: true }),
  };
}
