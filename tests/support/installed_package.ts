import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runCommand } from "./child_process.ts";

/** Folder in which the package is installed. */
export interface InstalledPackage {
  readonly folder: string;
  /** Environment of a user without the sources. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Paths in the tarball. */
  readonly files: readonly string[];
  /** Bytes of the tarball. */
  readonly size: number;
  /** Bytes of its files. */
  readonly unpackedSize: number;
  remove(): Promise<void>;
}

/**
 * Packs the built package as `npm publish` would and installs the tarball into
 * an empty folder. Dependencies are packed from node_modules, so that no
 * registry is used.
 *
 * @param dependencies The names of the packages that it depends on.
 */
export async function installPackage(
  dependencies: readonly string[],
): Promise<InstalledPackage> {
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
  const [packed] = JSON.parse(await npm([...pack, "."])) as {
    files: { path: string }[];
    size: number;
    unpackedSize: number;
  }[];
  if (packed === undefined) throw new Error("npm pack: no package");
  // The examples import zod, which users install themselves.
  const installed = [...dependencies, "zod"].map((name) =>
    `./node_modules/${name}`
  );
  await npm([...pack, ...installed]);
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
    files: packed.files.map((file) => file.path),
    size: packed.size,
    unpackedSize: packed.unpackedSize,
    remove: () => rm(folder, { recursive: true, force: true }),
  };
}
