/**
 * Builds the documentation site into `site/dist`: `npm run site`. With
 * `--serve` it serves the result, with `--port` on that port.
 *
 * The pages are staged in `site/.cache/pages`. A link to a page, or to a place
 * in one, that does not exist fails the build.
 *
 * @module
 */

import { spawnSync } from "node:child_process";
import {
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { basename, delimiter, dirname, join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { brokenLinks } from "./links.ts";
import { indexed, pageOf, summaryOf } from "./pages.ts";
import { type EntryPoint, type Page, referencePages } from "./reference.ts";
import { serve } from "./serve.ts";
import { commandLine } from "../tests/support/command_line.ts";

const SITE = fileURLToPath(new URL(".", import.meta.url));
const PROJECT = dirname(join(SITE, "."));
const STAGE = join(SITE, ".cache/pages");
const DIST = join(SITE, "dist");

const INTRODUCTION = `# Coracle

> Kubernetes operators in TypeScript, for Node, Deno and Bun, with an embedded
> Kubernetes API server for development and tests.

Install: \`npm install @coracle/operator zod\`. The whole text of all guides is in
/llms-full.txt.
`;

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

function read(file: string): string {
  return readFileSync(join(PROJECT, file), "utf8");
}

/** Runs a command in a folder and returns its output. */
function run(folder: string, command: string, args: readonly string[]): string {
  const bin = join(PROJECT, "node_modules/.bin");
  const { status, stdout, stderr, error } = spawnSync(command, args, {
    cwd: folder,
    encoding: "utf8",
    maxBuffer: 1 << 30,
    env: {
      ...process.env,
      NO_COLOR: "1",
      NODE_OPTIONS: "",
      PATH: `${bin}${delimiter}${process.env["PATH"] ?? ""}`,
    },
  });
  if (status === 0) return stdout;
  const why = error?.message ?? `${stdout}${stderr}`.trim().slice(-8_000);
  throw new Error(`Cannot run ${command} ${args.join(" ")}: ${why}`);
}

function entryPoints(): readonly EntryPoint[] {
  const packages = [".", "dev"].flatMap((folder) => {
    const { name, exports } = JSON.parse(read(join(folder, "deno.json"))) as {
      name: string;
      exports: Readonly<Record<string, string>>;
    };
    return Object.entries(exports).map(([entry, path]) => ({
      specifier: name + entry.slice(1),
      file: join(folder, path),
    }));
  });
  const shown = packages.filter(({ specifier }) =>
    specifier !== "@coracle/operator/internal"
  );
  return shown.map(({ specifier, file }) => {
    // Places are given from the root of the project.
    const root = new URL("..", import.meta.url).href;
    const json = run(PROJECT, "deno", ["doc", "--json", file])
      .replaceAll(root, "/");
    const { nodes } = JSON.parse(json);
    const [module] = Object.values(nodes) as {
      module_doc?: { doc?: string };
      symbols: [];
    }[];
    return {
      specifier,
      file,
      doc: module?.module_doc?.doc ?? "",
      symbols: module?.symbols ?? [],
    };
  });
}

/** Markdown files of the project that the site shows. */
function sources(): readonly string[] {
  return [
    "site/home.md",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    ...globSync("{SECURITY.md,docs/**/*.md}", { cwd: PROJECT }).map((file) =>
      file.replaceAll("\\", "/")
    ).toSorted(),
  ].filter((file) => existsSync(join(PROJECT, file)));
}

function write(path: string, text: string): void {
  const file = join(STAGE, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}

/** Writes pages, sidebar, charts and the texts for language models. */
function stage(): void {
  rmSync(STAGE, { recursive: true, force: true });
  const guides: Page[] = [];
  for (const file of sources()) {
    const page = pageOf(file, read(file), read);
    if (page !== undefined) guides.push(page);
  }
  const { pages, sections } = referencePages(entryPoints());
  for (const { path, text } of [...guides, ...pages]) write(path, text);

  const index = (file: string, text = read(file)) => indexed(file, text);
  const guidesIndex = "docs/README.md";
  const [, basics, further] = read(guidesIndex).split(/^## /m);
  const sidebar = [
    {
      text: "Tutorial",
      link: "/tutorial/",
      items: index("docs/tutorial/README.md"),
    },
    { text: "Guides", link: "/guides/", items: index(guidesIndex, basics) },
    {
      text: "Further topics",
      // A page has one place in the sidebar.
      items: index(guidesIndex, further).filter(({ link }) =>
        link.startsWith("/guides/")
      ),
    },
    {
      text: "Gallery",
      link: "/gallery/",
      collapsed: true,
      items: index("docs/gallery/README.md"),
    },
    {
      text: "Migrate",
      link: "/migrate/",
      collapsed: true,
      items: index("docs/migrate/README.md"),
    },
    {
      text: "Concepts",
      items: [{ text: "Architecture", link: "/concepts/architecture" }],
    },
  ];
  const reference = sections.map(({ specifier, link, symbols }) => ({
    text: specifier,
    link,
    collapsed: true,
    items: symbols,
  }));
  write("sidebar.json", JSON.stringify({ guides: sidebar, reference }));

  for (
    const file of globSync("{bench/charts/*.svg,docs/*.png}", { cwd: PROJECT })
  ) {
    cpSync(join(PROJECT, file), join(STAGE, "public/pictures", basename(file)));
  }
  cpSync(join(SITE, "logo.svg"), join(STAGE, "public/logo.svg"));
  const lines = sidebar.map(({ text, items }) =>
    `## ${text}\n\n${
      items.map(({ link, text }) => {
        const path = `${link.slice(1).replace(/\/$/, "/index")}.md`;
        const page = guides.find((guide) => guide.path === path);
        const { description } = summaryOf(page?.text ?? "");
        return `- [${text}](${link.replace(/\/$/, "/index")}.html)${
          description === "" ? "" : `: ${description}`
        }`;
      }).join("\n")
    }\n`
  );
  const entries = sections.map(({ specifier, link }) =>
    `- [${specifier}](${link}index.html)`
  );
  write(
    "public/llms.txt",
    [INTRODUCTION, ...lines, `## Reference\n\n${entries.join("\n")}\n`]
      .join("\n"),
  );
  write(
    "public/llms-full.txt",
    guides.filter(({ path }) => !/^(?:project\/|index\.md)/.test(path))
      .map(({ text }) => text.replaceAll("{.file}", "")).join("\n\n"),
  );
}

/** Builds the site, unless a link is broken. */
function build(): void {
  if (!existsSync(join(SITE, "node_modules/vitepress"))) {
    print("Installing the tools of the site (npm ci in site) …");
    run(SITE, "npm", ["ci", "--ignore-scripts"]);
  }
  print("Writing the pages …");
  stage();
  print("Building with VitePress …");
  run(SITE, process.execPath, [
    "node_modules/vitepress/bin/vitepress.js",
    "build",
  ]);
  const broken = brokenLinks(DIST);
  if (broken.length > 0) {
    throw new Error(
      `Cannot build the site: links lead nowhere:\n${broken.join("\n")}`,
    );
  }
  const count = globSync("**/*.html", { cwd: DIST }).length;
  print(`Built ${count} pages in site/dist`);
}

const { values, integer } = commandLine("build the site", {
  serve: { type: "boolean", default: false },
  port: { type: "string", default: "5173" },
});
try {
  build();
  if (values.serve) {
    const { port } = await serve(DIST, integer("port"));
    print(`Serving http://127.0.0.1:${port}/`);
  }
} catch (error) {
  process.stderr.write(`${(error as Error).message}\n`);
  process.exitCode = 1;
}
