import { readdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { makeFolder } from "../../dev/cli/serving.ts";
import { pluralOf } from "../../core/crd/kind_names.ts";
import root from "../../package.json" with { type: "json" };
import type { ProjectOptions } from "./options.ts";
import { COMMANDS, RUNTIME_NAMES } from "./runtimes.ts";

/** Folder of the templates, beside the sources and beside `dist`. */
const TEMPLATE = fileURLToPath(
  new URL(
    import.meta.url.endsWith(".ts") ? "./template" : "../template",
    import.meta.url,
  ),
);

/** Variable by which a chart for Deno names the API server, for its permissions. */
const API_SERVER =
  "\n  - name: KUBERNETES_SERVICE_HOST\n    value: kubernetes.default.svc";

/** Names in the templates, with those that take their places. */
function namesOf(
  { name, kind, group }: ProjectOptions,
): Readonly<Record<string, string>> {
  return {
    "sample.example.com": group,
    greetings: pluralOf(kind),
    greeting: kind.toLowerCase(),
    Greeting: kind,
    greeter: name,
  };
}

/** Writes the files of a project into its folder. */
export async function writeProject(options: ProjectOptions): Promise<void> {
  const names = namesOf(options);
  const anyName = new RegExp(Object.keys(names).join("|"), "g");
  const renamed = (text: string) =>
    text.replaceAll(anyName, (name) => names[name] ?? name);
  const words: Readonly<Record<string, string>> = {
    ...COMMANDS[options.runtime],
    runtime: RUNTIME_NAMES[options.runtime],
    server: options.runtime === "deno" ? API_SERVER : "",
    version: root.version,
    ...root.dependencies,
    ...root.devDependencies,
  };
  for (const part of ["common", options.runtime]) {
    const folder = join(TEMPLATE, part);
    for (const path of await filesOf(folder)) {
      const text = await readFile(join(folder, path), "utf8");
      // npm leaves out or changes files with these names.
      const name = renamed(path.replaceAll("\\", "/"))
        .replace(/(^|\/)_(?=gitignore|dockerignore)/, "$1.")
        .replace(/(^|\/)_(?=package|deno|tsconfig)/, "$1");
      const file = join(options.folder, name);
      await makeFolder(dirname(file));
      await writeFile(
        file,
        renamed(text).replaceAll(
          /%([@\w/-]+)%/g,
          (found, word: string) => words[word]?.replace(/^\^/, "") ?? found,
        ),
        { flag: "wx" },
      );
    }
  }
}

async function filesOf(folder: string): Promise<readonly string[]> {
  const entries = await readdir(folder, {
    recursive: true,
    withFileTypes: true,
  });
  return entries.filter((entry) => entry.isFile())
    .map(({ parentPath, name }) =>
      join(parentPath, name).slice(folder.length + 1)
    );
}
