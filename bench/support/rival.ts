import { existsSync } from "node:fs";
import { join } from "node:path";
import { PROJECT, runCommand } from "../../tests/support/child_process.ts";

const FOLDER = join(PROJECT, "bench");
const INSTALL_LIMIT_MS = 10 * 60_000;

let installed: Promise<void> | undefined;

/**
 * Installs the rivals of `bench/package.json` unless they are installed.
 *
 * @throws {Error} If npm fails; the message has its output.
 */
export function installRivals(): Promise<void> {
  installed ??= install();
  return installed;
}

async function install(): Promise<void> {
  // npm writes this file last.
  if (existsSync(join(FOLDER, "node_modules", ".package-lock.json"))) return;
  const { code, stdout, stderr } = await runCommand(["npm", "ci"], {
    cwd: FOLDER,
    limit: INSTALL_LIMIT_MS,
  });
  if (code !== 0) {
    throw new Error(
      `Cannot install the rivals: npm ci failed: received ${stdout}${stderr}`,
    );
  }
}

/**
 * Loads a rival by name, so that the project type checks without the rivals.
 *
 * @throws {Error} If it is not installed.
 */
export async function loadRival<M>(name: string): Promise<M> {
  try {
    return await import(name) as M;
  } catch (cause) {
    throw new Error(
      `Cannot load ${name}: run "npm ci --prefix bench" first`,
      { cause },
    );
  }
}
