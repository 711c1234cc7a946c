/**
 * Pages of the site from the Markdown files of the project, which stay the only
 * copy and are readable on GitHub: where each goes, and how its links change.
 *
 * @module
 */

import type { Page } from "./reference.ts";

/** Place of the project's files on GitHub. */
export const REPOSITORY = "https://github.com/coracle-dev/operator/blob/main";

const LINK_REGEXP =
  /(!?\[[^\]]*\]\()(?!https?:|#|mailto:)([^)#\s]+)(#[^)]*)?\)/g;
const FENCE_REGEXP =
  /^(?:(`{3,})(\w+) (?:ignore )?(?:file|from)=(\S+)\n([^]*?)^\1|(`{3,})[^]*?^\5)$/gm;
const INDEX_LINK_REGEXP = /\[([^\]]+)\]\(([\w./-]+\.md)\)/g;

/** Path of a page of the site for a Markdown file of the project. */
export function pagePath(file: string): string | undefined {
  switch (file) {
    case "ARCHITECTURE.md":
      return "concepts/architecture.md";
    case "CHANGELOG.md":
    case "CONTRIBUTING.md":
    case "SECURITY.md":
      return `project/${file.toLowerCase()}`;
    case "site/home.md":
      return "index.md";
    case "docs/from-client-node.md":
      return "migrate/client-node.md";
  }
  const [, folder = "guides/", name] =
    /^docs\/(?!.*\/.*\/)([\w-]+\/)?([\w.-]+)\.md$/.exec(file) ?? [];
  if (name === undefined) return undefined;
  return `${folder}${name === "README" ? "index" : name}.md`;
}

/** Path of a file from the root of the project, for a link in another file. */
export function linkedFile(file: string, href: string): string {
  return new URL(href, `file:///${file}`).pathname.slice(1);
}

/** Link of the site, or to GitHub, for a link between files of the project. */
export function siteLink(file: string, href: string): string {
  const target = linkedFile(file, href);
  const page = pagePath(target);
  if (page !== undefined) {
    return `/${
      page.replace(/(?:^|(?<=\/))index\.md$/, "").replace(/\.md$/, "")
    }`;
  }
  const picture = /^(?:bench\/charts|docs)\/([\w-]+\.(?:svg|png))$/.exec(target)
    ?.[1];
  return picture === undefined
    ? `${REPOSITORY}/${target}`
    : `/pictures/${picture}`;
}

/**
 * Page of a Markdown file.
 *
 * @param file Path from the root of the project.
 * @param text Its text.
 * @param read Reads another file of the project, for blocks that show one.
 */
export function pageOf(
  file: string,
  text: string,
  read: (file: string) => string,
): Page | undefined {
  const path = pagePath(file);
  if (path === undefined) return undefined;
  const blocks: string[] = [];
  const body = text
    .replaceAll(
      FENCE_REGEXP,
      (block, _ticks, language, shown, code) => {
        blocks.push(
          shown === undefined
            ? block
            : `[${shown}](${REPOSITORY}/${shown}){.file}\n\n\`\`\`${language}\n${
              code || read(shown)
            }\`\`\``,
        );
        return `\0${blocks.length - 1}\0`;
      },
    )
    .replaceAll(
      LINK_REGEXP,
      (_, start, href, hash = "") =>
        file === "site/home.md" && href.startsWith("/")
          ? `${start}${href}${hash})`
          : `${start}${siteLink(file, href)}${hash})`,
    )
    .replaceAll(/\0(\d+)\0/g, (_, index) => blocks[Number(index)] ?? "");
  return { path, text: body };
}

/** Pages that an index file links to, in their order, each once. */
export function indexed(
  file: string,
  text: string,
): readonly { readonly text: string; readonly link: string }[] {
  const found = new Map<string, string>();
  for (const [, title = "", href = ""] of text.matchAll(INDEX_LINK_REGEXP)) {
    const link = siteLink(file, href);
    if (link.startsWith("/") && !found.has(link)) found.set(link, title);
  }
  return [...found].map(([link, title]) => ({ text: title, link }));
}

/** Title and first paragraph of a page. */
export function summaryOf(
  text: string,
): { readonly title: string; readonly description: string } {
  const title = /^# (.*)$/m.exec(text)?.[1] ?? "";
  const [description = ""] = text.replace(/^[^]*?^# .*$/m, "").split(/\n\n+/)
    .map((part) => part.trim())
    .filter((part) =>
      /^(?!```)[A-Z`[]/.test(part) && !/^\[[^\]]*\]\([^)]*\)\{/.test(part)
    );
  return {
    title,
    description: description.replaceAll(/\s*\n\s*/g, " ").replaceAll(
      /\[([^\]]*)\]\([^)]*\)/g,
      "$1",
    ),
  };
}
