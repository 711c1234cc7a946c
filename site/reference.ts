/**
 * Pages of the reference: an index for each entry point and a page for each
 * symbol, from the doc comments that `deno doc --json` prints.
 *
 * @module
 */

import {
  type DocNode,
  memberTexts,
  methodText,
  parameters,
  propertyText,
  typeParameters,
  typeText,
} from "./type_text.ts";

/** Entry point with what `deno doc --json` printed for it. */
export interface EntryPoint {
  /** Specifier to import from. */
  readonly specifier: string;
  /** Source file, from the root of the project. */
  readonly file: string;
  /** Doc of the module. */
  readonly doc: string;
  /** Exported symbols with their declarations. */
  readonly symbols: readonly DocNode[];
}

/** Page of the site. */
export interface Page {
  /** Path without a leading slash and with `.md`. */
  readonly path: string;
  readonly text: string;
}

/** Title and pages of an entry point, for the sidebar. */
export interface ReferenceSection {
  readonly specifier: string;
  readonly link: string;
  readonly symbols: readonly { readonly text: string; readonly link: string }[];
}

const SOURCE = "https://github.com/coracle-dev/operator/blob/main";
/** Entry point with more types than anybody reads: its values are listed. */
const KINDS = "@coracle/operator/kinds";
/** Statement by which an example is also a test. */
const ASSERTION_REGEXP =
  /^if \((?:[^\n]|\n {2})*?\) (?:\{\n\s+)?throw new Error\([^\n]*\);(?:\n\})?\n?/gm;

/** Name of the folder of an entry point. */
function slugOf(specifier: string): string {
  return specifier.replace(/^@coracle\/(?:operator\/)?/, "").replace("/", "-");
}

/** Writes the reference. */
export function referencePages(
  entries: readonly EntryPoint[],
): { readonly pages: readonly Page[]; readonly sections: ReferenceSection[] } {
  const links = symbolLinks(entries);
  const pages: Page[] = [];
  const sections: ReferenceSection[] = [];
  for (const { specifier, doc, symbols } of entries) {
    const slug = slugOf(specifier);
    const listed = symbols.filter((symbol) => isListed(specifier, symbol))
      .toSorted((a, b) => a.name.localeCompare(b.name));
    const rows = listed.map((symbol) => {
      const link = links.get(symbol.name);
      const name = link === undefined
        ? `\`${symbol.name}\``
        : `[\`${symbol.name}\`](${link})`;
      const [declaration] = symbol.declarations;
      return `| ${name} | ${wordOf(declaration)} | ${
        firstSentence(declaration, links).replaceAll("|", "\\|")
      } |`;
    });
    pages.push({
      path: `reference/${slug}/index.md`,
      text: `# ${specifier}\n\n${prose(doc, links)}\n\n` +
        `| export | | |\n| --- | --- | --- |\n${rows.join("\n")}\n`,
    });
    for (const symbol of listed) {
      const path = links.get(symbol.name);
      if (!path?.startsWith(`/reference/${slug}/`)) continue;
      pages.push({
        path: `${path.slice(1)}.md`,
        text: symbolPage(symbol, specifier, links),
      });
    }
    sections.push({
      specifier,
      link: `/reference/${slug}/`,
      symbols: listed.filter(({ name }) =>
        links.get(name)?.startsWith(`/reference/${slug}/`)
      ).map(({ name }) => ({ text: name, link: links.get(name) ?? "" })),
    });
  }
  const list = entries.map(({ specifier, doc }) =>
    `- [\`${specifier}\`](/reference/${slugOf(specifier)}/): ${
      inline(sentence(doc), links)
    }`
  );
  pages.push({
    path: "reference/index.md",
    text: `# Reference\n\nWritten from the doc comments of the sources.\n\n${
      list.join("\n")
    }\n`,
  });
  return { pages, sections };
}

/** Page of each symbol: that of the first entry point that exports it. */
function symbolLinks(
  entries: readonly EntryPoint[],
): ReadonlyMap<string, string> {
  const links = new Map<string, string>();
  const taken = new Set<string>();
  for (const { specifier, symbols } of entries) {
    if (specifier === KINDS) continue;
    for (const { name } of symbols) {
      if (links.has(name)) continue;
      // Some file systems do not tell `watch` from `Watch`.
      let link = `/reference/${slugOf(specifier)}/${name}`;
      while (taken.has(link.toLowerCase())) link += "_";
      taken.add(link.toLowerCase());
      links.set(name, link);
    }
  }
  return links;
}

function isListed(specifier: string, { declarations }: DocNode): boolean {
  return specifier !== KINDS ||
    declarations.some(({ kind }: DocNode) => kind !== "interface");
}

function symbolPage(
  { name, declarations }: DocNode,
  specifier: string,
  links: ReadonlyMap<string, string>,
): string {
  const lines = [`# ${name}`, ""];
  const isType = declarations.every(({ kind }: DocNode) =>
    kind === "interface" || kind === "typeAlias"
  );
  lines.push(
    "```ts",
    `import { ${isType ? "type " : ""}${name} } from "${specifier}";`,
    "```",
    "",
  );
  for (const declaration of declarations) {
    lines.push(...declarationLines(name, declaration, links), "");
  }
  const mentioned = [...mentions(declarations)].filter((other) =>
    other !== name && links.has(other)
  ).toSorted();
  if (mentioned.length > 0) {
    lines.push(
      `Types: ${
        mentioned.map((other) => `[\`${other}\`](${links.get(other)})`)
          .join(", ")
      }`,
      "",
    );
  }
  const { filename, line } = declarations[0].location;
  const file = filename.replace(/^.*?\/(?=[^/]+(?:\/[^/]+)*$)/, "");
  lines.push(`[Source](${SOURCE}/${file}#L${line + 1})`, "");
  return lines.join("\n");
}

/** Names of the types that a declaration uses. */
function mentions(node: DocNode, found = new Set<string>()): Set<string> {
  if (Array.isArray(node)) { for (const item of node) mentions(item, found); }
  else if (typeof node === "object" && node !== null) {
    if (node.kind === "typeRef") found.add(node.value.typeName);
    for (const value of Object.values(node)) mentions(value, found);
  }
  return found;
}

function declarationLines(
  name: string,
  { kind, def, jsDoc }: DocNode,
  links: ReadonlyMap<string, string>,
): readonly string[] {
  const lines = [...docLines(jsDoc, links)];
  const code = (text: string) => lines.push("```ts", text, "```", "");
  const generics = typeParameters(def?.typeParams);
  switch (kind) {
    case "function":
      code(
        `function ${name}${generics}(${parameters(def.params)}): ${
          typeText(def.returnType)
        }`,
      );
      break;
    case "variable":
      code(`const ${name}: ${typeText(def.tsType)}`);
      break;
    case "typeAlias":
      code(`type ${name}${generics} = ${typeText(def.tsType)}`);
      break;
    case "interface": {
      const bases = (def.extends ?? []).map(typeText).join(", ");
      code(
        `interface ${name}${generics}${
          bases === "" ? "" : ` extends ${bases}`
        }`,
      );
      const { callSignatures, indexSignatures } = def;
      const signatures = memberTexts({ callSignatures, indexSignatures });
      if (signatures.length > 0) code(signatures.join("\n"));
      break;
    }
    case "class":
      code(
        `class ${name}${generics}${
          def.extends === undefined ? "" : ` extends ${def.extends}`
        }`,
      );
      break;
    default:
      throw new Error(
        `Cannot print ${name}: its kind is unknown: received ${kind}`,
      );
  }
  for (const node of def?.constructors ?? []) {
    if (node.accessibility !== undefined) continue;
    lines.push("## Constructor", "");
    code(`new ${name}${generics}(${parameters(node.params)})`);
    lines.push(...docLines(node.jsDoc, links));
  }
  const sections = kind === "class" || kind === "interface"
    ? [["Properties", propertyText, def.properties], [
      "Methods",
      methodText,
      def.methods,
    ]] as const
    : [];
  for (const [title, print, members] of sections) {
    const shown = (members ?? []).filter((node: DocNode) =>
      node.accessibility === undefined
    );
    if (shown.length === 0) continue;
    lines.push(`## ${title}`, "");
    for (const node of shown) {
      lines.push(`### ${plain(node.name)}`, "");
      code(print(node));
      lines.push(...docLines(node.jsDoc, links));
    }
  }
  return lines;
}

/** Doc with its tags. */
function docLines(
  doc: DocNode,
  links: ReadonlyMap<string, string>,
): readonly string[] {
  const lines: string[] = [];
  if (doc?.doc) lines.push(prose(doc.doc, links), "");
  const tags: DocNode[] = doc?.tags ?? [];
  for (const tag of tags.filter(({ kind }) => kind === "deprecated")) {
    lines.push(`**Deprecated.** ${prose(tag.doc ?? "", links)}`, "");
  }
  const named = tags.filter(({ kind }) => kind === "param");
  for (const { name, doc: text = "" } of named) {
    lines.push(`- \`${name}\`: ${oneLine(text, links)}`);
  }
  if (named.length > 0) lines.push("");
  for (const tag of tags) {
    const text = oneLine(tag.doc ?? tag.value ?? "", links);
    if (tag.kind === "return") lines.push(`Returns: ${text}`, "");
    if (tag.kind === "throws") {
      const type = tag.tsType === undefined
        ? ""
        : `\`${typeText(tag.tsType)}\`: `;
      lines.push(`Throws ${type}${text}`, "");
    }
    if (tag.kind === "default" || tag.kind === "defaultValue") {
      const value = (tag.doc ?? tag.value ?? "").trim().replace(
        /^\{([^]*)\}$/,
        "$1",
      );
      lines.push(`Default: \`${value}\``, "");
    }
    if (tag.kind === "example") lines.push(...exampleLines(tag.doc), "");
  }
  return lines;
}

function exampleLines(doc: string): readonly string[] {
  const [, title = "", rest = ""] = /^([^\n`]*)\n?([^]*)$/.exec(doc) ?? [];
  return [
    `**${title.trim() || "Example"}**`,
    "",
    rest.replaceAll(ASSERTION_REGEXP, "").replace(/\n+```\s*$/, "\n```"),
  ];
}

/** Doc text as Markdown of the site: links to symbols, no HTML. */
function prose(text: string, links: ReadonlyMap<string, string>): string {
  return text.split(/^(```[^]*?^```)$/m).map((part, index) =>
    index % 2 === 1 ? part : inline(part, links)
  ).join("").trim();
}

function inline(text: string, links: ReadonlyMap<string, string>): string {
  return text
    .replaceAll(
      /\{@link(?:code|plain)?\s+([^}\s|]+)(?:\s*\|?\s*([^}]*))?\}/g,
      (_, target: string, label: string) => {
        const shown = label || target;
        if (/^https?:/.test(target)) return `[${shown}](${target})`;
        const link = links.get(target.split(".")[0] ?? "");
        return link === undefined ? `\`${shown}\`` : `[\`${shown}\`](${link})`;
      },
    )
    .split(/(`[^`]*`)/).map((part, index) =>
      index % 2 === 1
        ? part
        : part.replaceAll("<", "&lt;").replaceAll("{{", "&#123;&#123;")
    ).join("");
}

function oneLine(text: string, links: ReadonlyMap<string, string>): string {
  return prose(text, links).replaceAll(/\s*\n\s*/g, " ");
}

function plain(name: string): string {
  return name.replaceAll(/[[\]<>]/g, "\\$&");
}

function sentence(doc: string): string {
  const [paragraph = ""] = doc.split("\n\n");
  return paragraph.replaceAll("\n", " ").replace(/(\.) [A-Z][^]*$/, "$1");
}

function firstSentence(
  { jsDoc }: DocNode,
  links: ReadonlyMap<string, string>,
): string {
  return inline(sentence(jsDoc?.doc ?? ""), links).trim();
}

function wordOf({ kind }: DocNode): string {
  return kind === "typeAlias" ? "type" : kind;
}
