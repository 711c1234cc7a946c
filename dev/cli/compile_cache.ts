import * as module from "node:module";
import { RUNTIME } from "./runtime.ts";

/**
 * Lets Node keep compiled modules for the next start, in the folder for temporary
 * files or where `NODE_COMPILE_CACHE` says; it goes on without one that it cannot
 * write. Only modules that are imported later profit.
 */
export function keepCompiledModules(): void {
  if (RUNTIME !== "node") return;
  const { enableCompileCache } = module as { enableCompileCache?(): unknown };
  enableCompileCache?.();
}
