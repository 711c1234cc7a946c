/** JavaScript runtime. */
export type Runtime = "node" | "deno" | "bun";

/** Detects the current runtime. */
export function currentRuntime(): Runtime {
  if ("Deno" in globalThis) return "deno";
  if ("Bun" in globalThis) return "bun";
  return "node";
}
