import { readFileSync } from "node:fs";
import * as nodeModule from "node:module";
import { dirname, extname } from "node:path";
import { pathToFileURL } from "node:url";
import { REPLACED_MODULES, replacementOf } from "./replaced_modules.ts";

/** Root of this library: its sources, or its package. */
const LIBRARY = new URL("../../", import.meta.url).href;
/** Folders of the library, in a checkout that holds more. */
const LIBRARY_PART =
  /^(?:core|apiserver|sources|workflows|testing|cli|dist|mod\.[jt]s)/;
const FRESH = /[?&]incarnation=\d+$/;
/** Files of code; Bun reads data, such as JSON, only by its plain path. */
const CODE = /\.[cm]?[jt]sx?$/;

interface ResolveResult {
  readonly url: string;
}
type NextResolve = (specifier: string, context: object) => ResolveResult;
/** `module.registerHooks` of Node and Deno; Bun has none. */
const { registerHooks } = nodeModule as {
  registerHooks?: (hooks: {
    resolve(
      specifier: string,
      context: { readonly parentURL?: string | undefined },
      next: NextResolve,
    ): ResolveResult;
  }) => void;
};

/** Plugins of Bun, which resolve what modules import. */
const { Bun } = globalThis as {
  Bun?: {
    plugin(plugin: {
      readonly name: string;
      setup(build: {
        onResolve(
          options: { readonly filter: RegExp },
          resolve: (
            given: { readonly path: string; readonly importer: string },
          ) => { readonly path: string } | undefined,
        ): void;
        onLoad(
          options: { readonly filter: RegExp },
          load: (
            given: { readonly path: string },
          ) => { readonly contents: string; readonly loader: string },
        ): void;
        module(
          name: string,
          load: () => { readonly exports: object; readonly loader: "object" },
        ): void;
      }): void;
    }): void;
    resolveSync(path: string, folder: string): string;
  };
};

/** Global key of the number of imports, which several copies count together. */
const COUNT = Symbol.for("@coracle/operator/fresh-imports");

/** Start of the names of replaced modules on Bun. */
const BUN_PREFIX = "coracle-world:";

let isHooked = false;
/** Query of the modules that Bun imports now. */
let query = "";

/**
 * Imports a module, and everything that it imports, as a new process would: the
 * state that modules keep begins again. The library itself, packages under
 * `node_modules` and modules of the runtime are shared with earlier imports. It
 * gets the timers and random values of the world, also from the modules of the
 * runtime.
 *
 * @param path Absolute path of the module.
 */
export async function importFresh(
  path: string,
): Promise<Readonly<Record<string, unknown>>> {
  const counts = globalThis as Record<symbol, number | undefined>;
  const count = counts[COUNT] = (counts[COUNT] ?? 0) + 1;
  query = `?incarnation=${count}`;
  if (!isHooked && Bun !== undefined) {
    Bun.plugin({
      name: "coracle-fresh-modules",
      setup(build) {
        build.onResolve({ filter: /^\.\.?\// }, resolveFreshInBun);
        build.onLoad({ filter: FRESH }, loadFreshInBun);
        for (const [name, all] of Object.entries(REPLACED_MODULES)) {
          const exports = { ...all, default: all };
          build.module(
            `${BUN_PREFIX}${name}`,
            () => ({ exports, loader: "object" }),
          );
        }
      },
    });
  } else if (!isHooked) registerHooks?.({ resolve: resolveFresh });
  isHooked = true;
  const { href } = pathToFileURL(path);
  // deno-lint-ignore coracle/literal-import -- the user names the file
  return await import(`${Bun === undefined ? href : path}${query}`);
}

let isResolving = false;

/** Bun does not pass the query of the importing module on. */
function resolveFreshInBun(
  { path, importer }: { readonly path: string; readonly importer: string },
): { readonly path: string } | undefined {
  if (isResolving || Bun === undefined || path.includes("?")) return undefined;
  if (!isOwn(pathToFileURL(importer).href)) return undefined;
  isResolving = true;
  try {
    const file = Bun.resolveSync(path, dirname(importer));
    return CODE.test(file) && isOwn(pathToFileURL(file).href)
      ? { path: `${file}${query}` }
      : undefined;
  } finally {
    isResolving = false;
  }
}

/** Bun resolves the names of its own modules before plugins can. */
function loadFreshInBun(
  { path }: { readonly path: string },
): { readonly contents: string; readonly loader: string } {
  const [file = ""] = path.split("?", 1);
  const contents = readFileSync(file, "utf8").replace(
    /(\b(?:from|import)\s*\(?\s*)(["'])((?:node:)?[a-z]+(?:\/[a-z]+)?)\2/g,
    (whole, start: string, _quote, name: string) => {
      const replaced = name.replace(/^node:/, "");
      if (!Object.hasOwn(REPLACED_MODULES, replaced)) return whole;
      return `${start}"${BUN_PREFIX}${replaced}"`;
    },
  );
  const loader = extname(file).replace(/^\.[cm]?/, "");
  return { contents, loader };
}

/** Passes the incarnation of a module on to the modules that it imports. */
function resolveFresh(
  specifier: string,
  context: { readonly parentURL?: string | undefined },
  next: NextResolve,
): ResolveResult {
  const incarnation = FRESH.exec(context.parentURL ?? "")?.[0].slice(1);
  const replaced = incarnation && replacementOf(specifier);
  const resolved = next(replaced || specifier, context);
  if (incarnation === undefined || !isOwn(resolved.url)) return resolved;
  const mark = resolved.url.includes("?") ? "&" : "?";
  return { ...resolved, url: `${resolved.url}${mark}${incarnation}` };
}

/** Whether a module belongs to the program, and not to a library. */
function isOwn(url: string): boolean {
  if (!url.startsWith("file:") || url.includes("/node_modules/")) return false;
  if (FRESH.test(url)) return false;
  return !url.startsWith(LIBRARY) ||
    !LIBRARY_PART.test(url.slice(LIBRARY.length));
}
