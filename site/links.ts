/**
 * Links of a built site that lead nowhere.
 *
 * @module
 */

import { existsSync, globSync, readFileSync } from "node:fs";
import { join, posix } from "node:path";

const LINK_REGEXP = /\s(?:href|src)="([^"]*)"/g;
const ID_REGEXP = /\sid="([^"]*)"/g;

/** What a page contains. */
interface BuiltPage {
  readonly links: readonly string[];
  readonly ids: ReadonlySet<string>;
}

function readPage(file: string): BuiltPage {
  const html = readFileSync(file, "utf8");
  const all = (pattern: RegExp) =>
    [...html.matchAll(pattern)].map(([, value = ""]) =>
      value.replaceAll("&amp;", "&")
    );
  return { links: all(LINK_REGEXP), ids: new Set(all(ID_REGEXP)) };
}

/**
 * Broken links of the HTML files of a folder, each with its page: to files that
 * do not exist, and to places without an element of that id.
 */
export function brokenLinks(folder: string): readonly string[] {
  const pages = new Map(
    globSync("**/*.html", { cwd: folder }).map((file) => {
      const path = file.replaceAll("\\", "/");
      return [path, readPage(join(folder, path))];
    }),
  );
  const broken = new Set<string>();
  for (const [page, { links }] of pages) {
    for (const link of links) {
      if (/^(?:[a-z]+:|\/\/)/.test(link)) continue;
      const [path = "", hash = ""] = link.replace(/\?[^#]*/, "").split("#");
      const target = targetOf(page, decodeURI(path));
      const file = [target, `${target}.html`, posix.join(target, "index.html")]
        .find((name) =>
          pages.has(name) || (/\.\w+$/.test(name) &&
            existsSync(join(folder, name)))
        );
      if (file === undefined) broken.add(`${page}: ${link}`);
      else if (hash !== "" && !isPlace(pages.get(file), hash)) {
        broken.add(`${page}: ${link}`);
      }
    }
  }
  return [...broken];
}

function targetOf(page: string, path: string): string {
  if (path === "") return page;
  const full = path.startsWith("/")
    ? path.slice(1)
    : posix.join(posix.dirname(page), path);
  return full === "" || full.endsWith("/") ? `${full}index.html` : full;
}

function isPlace(page: BuiltPage | undefined, hash: string): boolean {
  // The outline of the theme links to the top by an empty element of its own.
  return page === undefined || page.ids.has(decodeURIComponent(hash));
}
