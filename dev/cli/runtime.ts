import process from "node:process";

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
 * URL of a main module of the command line, by its path in `cli` without the
 * extension.
 */
export function programUrl(path: string): URL {
  const own = new URL(import.meta.url).pathname;
  const extension = own.slice(own.lastIndexOf("."));
  // The same from cli/, dist/cli/ and dist/chunks/.
  return new URL(`../cli/${path}${extension}`, import.meta.url);
}
