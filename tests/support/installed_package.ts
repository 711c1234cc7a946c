import { readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PROJECT, runCommand } from "./child_process.ts";
import {
  CACHE,
  pack,
  type PackedPackage,
  packInstalled,
} from "./npm_registry.ts";

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
 * Packs built packages as `npm publish` would and installs the tarballs into empty
 * folders. Dependencies are packed from node_modules, so that no registry is used;
 * peer dependencies on other packages are not installed.
 *
 * @param installations For each folder the packages, by their folders in the
 * project. Each is packed once.
 */
export async function installPackages(
  ...installations: readonly (readonly string[])[]
): Promise<readonly Installation[]> {
  const tarballs = await mkdtemp(join(tmpdir(), "coracle-tarballs-"));
  try {
    const packed = new Map<string, PackedPackage>();
    for (const path of new Set(installations.flat())) {
      packed.set(path, await pack(join(PROJECT, path), tarballs));
    }
    const made: Installation[] = [];
    for (const paths of installations) {
      const packages = paths.map((path) => packed.get(path)!);
      const folder = await install(
        packages.map(({ filename }) => join(tarballs, filename)),
        paths,
      );
      made.push({
        folder,
        env: ENVIRONMENT,
        packages,
        remove: () => rm(folder, { recursive: true, force: true }),
      });
    }
    return made;
  } finally {
    await rm(tarballs, { recursive: true, force: true });
  }
}

const ENVIRONMENT = { NODE_OPTIONS: undefined, BUN_OPTIONS: undefined };

/** Installs tarballs with the dependencies of their packages. @returns The folder. */
async function install(
  tarballs: readonly string[],
  paths: readonly string[],
): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "coracle-package-"));
  const dependencies = paths.flatMap((path) => {
    const manifest = join(PROJECT, path, "package.json");
    return Object.keys(
      JSON.parse(readFileSync(manifest, "utf8")).dependencies ?? {},
    );
  });
  // The examples import zod, which users install themselves.
  const installed = [...tarballs];
  for (const name of new Set([...dependencies, "zod"])) {
    installed.push(join(CACHE, (await packInstalled(name)).filename));
  }
  const app = { name: "app", private: true, type: "module" };
  await writeFile(join(folder, "package.json"), JSON.stringify(app));
  const { code, stderr } = await runCommand([
    ...["npm", "install", "--offline", "--no-audit", "--no-fund"],
    ...["--ignore-scripts", "--no-update-notifier", ...installed],
  ], { cwd: folder, env: ENVIRONMENT });
  if (code !== 0) throw new Error(`npm install: ${stderr}`);
  return folder;
}
