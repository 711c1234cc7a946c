import { constants } from "node:fs";
import { access, mkdir } from "node:fs/promises";
import { join } from "node:path";
import process from "node:process";
import { PROJECT, runCommand } from "./child_process.ts";

/** Programs that tests run, by their packages in Go modules. */
const TOOLS = {
  helm: "helm.sh/helm/v4/cmd/helm@v4.3.1",
  actionlint: "github.com/rhysd/actionlint/cmd/actionlint@v1.7.12",
} as const;

const BUILD_LIMIT_MS = 30 * 60_000;

/**
 * Path of a program, which is built from its Go module once and then cached.
 *
 * @returns Undefined without a Go toolchain.
 */
export async function goTool(
  name: keyof typeof TOOLS,
): Promise<string | undefined> {
  const source = TOOLS[name];
  const folder = join(PROJECT, ".cache/tools", source.split("@")[1] ?? "");
  const file = join(folder, name);
  const isBuilt = await access(file, constants.X_OK).then(
    () => true,
    () => false,
  );
  if (isBuilt) return file;
  if ((await runCommand(["go", "version"])).code !== 0) return undefined;
  await mkdir(folder, { recursive: true });
  process.stderr.write(`Builds ${name} from ${source}: minutes, once\n`);
  const { code, stderr } = await runCommand(
    ["nice", "go", "install", "-trimpath", "-ldflags=-s -w", source],
    { env: { GOBIN: folder }, limit: BUILD_LIMIT_MS },
  );
  if (code !== 0) throw new Error(`Cannot build ${name}: ${stderr}`);
  return file;
}

/** Why tests with a program are skipped. */
export const NO_GO = "no Go toolchain to build it";
