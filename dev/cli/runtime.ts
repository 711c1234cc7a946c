import { existsSync } from "node:fs";
import process from "node:process";
import { fileURLToPath } from "node:url";

/** Runtime of this process. */
export const RUNTIME: "node" | "deno" | "bun" = "Deno" in globalThis
  ? "deno"
  : "Bun" in globalThis
  ? "bun"
  : "node";

/** Flags with which the runtime runs a module in a process of its own. */
export function runtimeFlags(): readonly string[] {
  return RUNTIME === "deno"
    ? ["run", "-A", "--no-check"]
    : process.execArgv.filter((flag) => !flag.startsWith("--test"));
}

/**
 * Flags with which Deno runs the file of a user as the main module when this
 * command runs from a checkout. Deno takes the configuration from the folder of
 * the main module, and only that of the workspace leads from the names of its
 * packages to their sources.
 */
export function checkoutFlags(): readonly string[] {
  const { url } = import.meta;
  if (RUNTIME !== "deno" || !/^file:.*\.ts$/.test(url)) return [];
  const config = fileURLToPath(new URL("../../deno.json", url));
  return existsSync(config) ? [`--config=${config}`] : [];
}

/**
 * File of a main module of the command line.
 *
 * @param path Its path in `cli` without the extension.
 * @param own URL of a module of the command line.
 */
export function programFile(
  path: string,
  own: string = import.meta.url,
): string {
  const extension = own.slice(own.lastIndexOf("."));
  // The same from cli/, dist/cli/ and dist/chunks/.
  return fileURLToPath(new URL(`../cli/${path}${extension}`, own));
}
