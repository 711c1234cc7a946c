import { readFileSync } from "node:fs";
import * as nodeModule from "node:module";
import { dirname, extname } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { REPLACED_MODULES, replacementOf } from "./replaced_modules.ts";

/** Root URL of a checkout, whose packages are not below `node_modules`. */
const CHECKOUT = new URL("../../../", import.meta.url).href;
/** Pattern of the library's folders, because a checkout also has others. */
const LIBRARY_PART = /^(?:core|sources|workflows|dev|dist|mod\.[jt]s)/;
const FRESH = /[?&]incarnation=\d+$/;
/** Pattern of code files; Bun reads other files only by their plain path. */
const CODE = /\.[cm]?[jt]sx?$/;

interface ResolveResult {
  readonly url: string;
}
type NextResolve = (specifier: string, context: object) => ResolveResult;
/** Registration of module hooks in Node and Deno; undefined in Bun. */
const { registerHooks } = nodeModule as {
  registerHooks?: (hooks: {
    resolve(
      specifier: string,
      context: { readonly parentURL?: string | undefined },
      next: NextResolve,
    ): ResolveResult;
  }) => void;
};

/** Global of Bun, whose plugins resolve imports; undefined elsewhere. */
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

/** Key of the global counter of imports, which several loaded copies share. */
const COUNT = Symbol.for("@coracle/operator/fresh-imports");

/** Prefix of the names of replaced modules in Bun. */
const BUN_PREFIX = "coracle-world:";

let isHooked = false;
/** Query of the modules that Bun is importing. */
let query = "";

/**
 * Imports a module, and everything that it imports, as a new process would,
 * without state from earlier imports. The library itself, packages under
 * `node_modules` and modules of the runtime are shared with earlier imports.
 * Timers and random values are those of the simulation, even from modules of
 * the runtime.
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

/** Resolves an import with the current query, which Bun does not pass on. */
function resolveFreshInBun(
  { path, importer }: { readonly path: string; readonly importer: string },
): { readonly path: string } | undefined {
  if (isResolving || Bun === undefined || path.includes("?")) return undefined;
  if (!isOwn(pathToFileURL(importer).href)) return undefined;
  isResolving = true;
  try {
    const file = Bun.resolveSync(path, dirname(importer));
    return CODE.test(file) && isFresh(pathToFileURL(file).href)
      ? { path: `${file}${query}` }
      : undefined;
  } finally {
    isResolving = false;
  }
}

/** Loads a module in Bun, with replacements of its runtime modules. */
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

/** Resolves an import, and passes the query of the importing module on. */
function resolveFresh(
  specifier: string,
  context: { readonly parentURL?: string | undefined },
  next: NextResolve,
): ResolveResult {
  const incarnation = FRESH.exec(context.parentURL ?? "")?.[0].slice(1);
  const replaced = incarnation && replacementOf(specifier);
  const resolved = next(replaced || specifier, context);
  if (incarnation === undefined || !isFresh(resolved.url)) return resolved;
  const mark = resolved.url.includes("?") ? "&" : "?";
  return { ...resolved, url: `${resolved.url}${mark}${incarnation}` };
}

/** Whether each module that was asked for is imported again. */
const fresh: Map<string, boolean> = new Map();

/**
 * Whether a module is imported again. What `coracle kinds` has generated can be
 * long, and has no state.
 */
function isFresh(url: string): boolean {
  const known = fresh.get(url);
  if (known !== undefined) return known;
  const answer = isOwn(url) &&
    !(CODE.test(new URL(url).pathname) &&
      readFileSync(fileURLToPath(url), "utf8")
        .startsWith("// Generated by coracle kinds."));
  fresh.set(url, answer);
  return answer;
}

/** Whether a module belongs to the program, not to a library. */
function isOwn(url: string): boolean {
  if (!url.startsWith("file:") || url.includes("/node_modules/")) return false;
  if (FRESH.test(url)) return false;
  return !url.startsWith(CHECKOUT) ||
    !LIBRARY_PART.test(url.slice(CHECKOUT.length));
}
