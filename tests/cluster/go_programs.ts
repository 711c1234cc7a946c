import { constants } from "node:fs";
import { access, mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import process from "node:process";
import { PROJECT, runCommand } from "../support/child_process.ts";

/** A release of Kubernetes whose modules the module proxy has. */
export interface Release {
  /** Version of `k8s.io/kubernetes`. */
  readonly version: string;
  /**
   * Version of `k8s.io/sample-apiserver`, which the end-to-end suite imports; it
   * is not published with every patch.
   */
  readonly sample: string;
  /** Version of controller-runtime that goes with it. */
  readonly controllerRuntime: string;
}

function release(
  version: string,
  sample: string,
  controllerRuntime: string,
): Release {
  return { version, sample, controllerRuntime };
}

/** The releases by minor version. */
const RELEASES: Readonly<Record<string, Release>> = {
  "1.32": release("v1.32.2", "v0.33.3", "v0.20.4"),
  "1.34": release("v1.34.4", "v0.34.2", "v0.22.4"),
  "1.35": release("v1.35.4", "v0.35.4", "v0.23.3"),
  "1.36": release("v1.36.3", "v0.36.4", "v0.24.1"),
  "1.37": release("v1.37.2", "v0.37.2", "v0.25.2"),
};

/** The minor version that runs unless another is asked for. */
export const DEFAULT_KUBERNETES = "1.37";

/** The release of a minor version. */
export function releaseOf(minor: string): Release {
  const release = RELEASES[minor];
  if (release) return release;
  const known = Object.keys(RELEASES).join(", ");
  throw new Error(
    `Cannot run Kubernetes: the version must be one of ${known}: received ${minor}`,
  );
}

/** Folder of the programs of a release. */
export function programsFolder({ version }: Release): string {
  const minor = version.replace(/^v(\d+\.\d+).*/, "$1");
  return join(PROJECT, ".cache", `controlplane-${minor}`);
}

const SOURCES = join(PROJECT, "tests", "cluster", "controlplane");

/**
 * Builds programs of `tests/cluster/controlplane/cmd` that the cache lacks, with
 * exactly the modules that the release is built from; takes minutes once.
 *
 * @returns Whether all are there; false without a Go toolchain.
 */
export async function buildPrograms(
  release: Release,
  programs: readonly string[],
): Promise<boolean> {
  const folder = programsFolder(release);
  await mkdir(folder, { recursive: true });
  for (const program of programs) {
    const file = join(folder, program);
    if (await isExecutable(file)) continue;
    if ((await runCommand(["go", "version"])).code !== 0) return false;
    process.stderr.write(
      `Builds ${program} ${release.version} for the cache: minutes, once\n`,
    );
    const modules = join(folder, "go.mod");
    await writeFile(modules, await moduleFile(release));
    const { code, stderr } = await runCommand([
      "nice",
      "go",
      "build",
      "-trimpath",
      "-mod=mod",
      `-modfile=${modules}`,
      `-ldflags=${linkerFlags(release)}`,
      `-o=${file}.new`,
      `./cmd/${program}`,
    ], { cwd: SOURCES, limit: 60 * 60_000 });
    if (code !== 0) throw new Error(`Cannot build ${program}: ${stderr}`);
    await rename(`${file}.new`, file);
  }
  return true;
}

export async function isExecutable(file: string): Promise<boolean> {
  return await access(file, constants.X_OK).then(() => true, () => false);
}

/** Folder of a module's sources, in the cache of Go. */
export async function moduleFolder(module: string): Promise<string> {
  return (await downloadModule(module)).Dir;
}

async function downloadModule(
  module: string,
): Promise<{ readonly Dir: string; readonly GoMod: string }> {
  const { code, stdout, stderr } = await runCommand(
    ["go", "mod", "download", "-json", module],
    { cwd: SOURCES, limit: 10 * 60_000 },
  );
  if (code !== 0) throw new Error(`Cannot download ${module}: ${stderr}`);
  return JSON.parse(stdout) as { Dir: string; GoMod: string };
}

/** The module file of a release: what upstream requires, at its versions. */
async function moduleFile({ version, sample }: Release): Promise<string> {
  const { GoMod } = await downloadModule(`k8s.io/kubernetes@${version}`);
  const upstream = await readFile(GoMod, "utf8");
  const staging = version.replace("v1", "v0");
  const etcd = /go\.etcd\.io\/etcd\/api\/v3 (\S+)/.exec(upstream)?.[1];
  // A replacement holds every module at upstream's version, whatever others ask.
  const pins = [...upstream.matchAll(/^\t(\S+) (v\S+)/gm)].flatMap((
    [, name, at],
  ) => at === "v0.0.0" ? [] : [`\t${name} => ${name} ${at}`]);
  return upstream
    .replace(/^\/\/.*\n/gm, "")
    .replace(/^module .*$/m, "module coracle.dev/tests/cluster/controlplane")
    .replaceAll(
      /=> \.\/staging\/src\/(\S+)/g,
      (_, name: string) =>
        `=> ${name} ${name.endsWith("/sample-apiserver") ? sample : staging}`,
    ) +
    `\nrequire (\n\tgo.etcd.io/etcd/server/v3 ${etcd}\n\tk8s.io/kubernetes ${version}\n)\n` +
    `\nreplace (\n${pins.join("\n")}\n)\n`;
}

/** Linker flags of release builds, whose values clients read. */
function linkerFlags({ version }: Release): string {
  const [major, minor] = version.slice(1).split(".");
  const values = {
    gitVersion: version,
    gitMajor: major,
    gitMinor: minor,
    gitCommit: "0".repeat(40),
    gitTreeState: "clean",
  };
  return Object.entries(values).reduce(
    (flags, [name, value]) =>
      `${flags} -X k8s.io/component-base/version.${name}=${value}`,
    "-s -w",
  );
}
