import module from "node:module";
import { RUNTIME } from "./program.ts";

/**
 * Makes the first import of each module fail whose URL matches, as when the
 * process has no file descriptor left. Bun has no hooks for that: nothing fails.
 */
export function failFirstImports(pattern: RegExp): Disposable & {
  /** URLs whose import has failed. */
  readonly failed: ReadonlySet<string>;
} {
  const failed = new Set<string>();
  const hooks = RUNTIME === "bun" ? undefined : module.registerHooks({
    load(url, context, next) {
      if (!pattern.test(url) || failed.has(url)) return next(url, context);
      failed.add(url);
      throw new Error("Too many open files");
    },
  });
  return { failed, [Symbol.dispose]: () => hooks?.deregister() };
}
