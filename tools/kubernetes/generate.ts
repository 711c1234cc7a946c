/**
 * Writes what comes from the Kubernetes API: `node tools/kubernetes/generate.ts`,
 * or with `--check` only tells whether it would change something.
 *
 * @module
 */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { builtinFiles, earlierFile, rulesFile } from "./builtin_files.ts";
import { withEarlier } from "./earlier_data.ts";
import { kindFiles } from "./kind_files.ts";
import { readEarlierData, readKubernetesData } from "./kubernetes_data.ts";
import { valueFormsFile } from "./value_forms_file.ts";

/** All files that are generated, by their path from the root of the project. */
export function generatedFiles(): Map<string, string> {
  const data = readKubernetesData();
  const files = new Map<string, string>();
  for (const [name, text] of kindFiles(data)) {
    files.set(`core/kinds/${name}`, text);
  }
  files.set("core/kinds/value_forms.ts", valueFormsFile(data));
  const earlier = readEarlierData();
  files.set(
    "dev/apiserver/builtin/data/earlier_release.ts",
    earlierFile(data, earlier),
  );
  for (const [name, text] of builtinFiles(withEarlier(data, earlier))) {
    files.set(`dev/apiserver/builtin/data/${name}`, text);
  }
  files.set("dev/apiserver/validation/rules/rule_data.ts", rulesFile(data));
  return files;
}

/** The paths of generated files that are not as they should be. */
export function staleFiles(): string[] {
  return [...generatedFiles()].filter(([path, text]) => {
    try {
      return readFileSync(locate(path), "utf8") !== text;
    } catch {
      return true;
    }
  }).map(([path]) => path);
}

function locate(path: string): URL {
  return new URL(`../../${path}`, import.meta.url);
}

function main(): void {
  if (process.argv.includes("--check")) {
    const stale = staleFiles();
    for (const path of stale) {
      process.stderr.write(`not as generated: ${path}\n`);
    }
    process.exitCode = stale.length === 0 ? 0 : 1;
    return;
  }
  for (const [path, text] of generatedFiles()) {
    mkdirSync(new URL(".", locate(path)), { recursive: true });
    writeFileSync(locate(path), text);
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) main();
