import * as modules from "node:module";
import { fileURLToPath } from "node:url";
import { RUNTIME } from "./runtime.ts";

const loaded: Set<string> = new Set();

/** Notes the files of the modules that this process loads from now on. */
export function followLoads(): void {
  // Bun has none, but shows its list of modules.
  const { registerHooks } = modules as Partial<typeof modules>;
  registerHooks?.({
    load(url, context, next) {
      if (url.startsWith("file:")) loaded.add(fileURLToPath(url));
      return next(url, context);
    },
  });
}

/** Files of the modules that this process has loaded since. */
export function loadedFiles(): ReadonlySet<string> {
  if (RUNTIME !== "bun") return loaded;
  const { cache } = modules.createRequire(import.meta.url);
  return new Set(Object.keys(cache));
}
