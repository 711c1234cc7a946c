/**
 * Stands in for Helm where that is not installed, as `helm template` for charts whose
 * templates have only values and conditions:
 *
 *     helm_stand_in.ts template --namespace N --values - -- NAME CHART
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { parse } from "yaml";

/** Renders a chart. */
export function render({ name, namespace, chart, values }: {
  readonly name: string;
  readonly namespace: string;
  readonly chart: string;
  readonly values: Readonly<Record<string, unknown>>;
}): string {
  const own = parse(readFileSync(join(chart, "values.yaml"), "utf8"));
  const known: Readonly<Record<string, unknown>> = {
    ".Release.Name": name,
    ".Release.Namespace": namespace,
    ...Object.fromEntries(
      Object.entries({ ...own, ...values })
        .map(([key, value]) => [`.Values.${key}`, value]),
    ),
  };
  const texts: string[] = [];
  for (const folder of ["crds", "templates"]) {
    for (const file of (readdirSync(join(chart, folder))).sort()) {
      const text = readFileSync(join(chart, folder, file), "utf8");
      texts.push(
        text
          .replaceAll(
            /\{\{ if not (\S+) \}\}(.*?)\{\{ end \}\}/gs,
            (_, key, content) => known[key] ? "" : content,
          )
          .replaceAll(/\{\{ (\S+) \}\}/g, (_, key) => String(known[key])),
      );
    }
  }
  return texts.join("\n---\n");
}

async function input(): Promise<string> {
  let text = "";
  for await (const chunk of process.stdin) text += chunk;
  return text;
}

if (import.meta.main) {
  const { argv } = process;
  const [name = "", chart = ""] = argv.slice(argv.indexOf("--") + 1);
  try {
    const values = JSON.parse(await input());
    const namespace = argv[argv.indexOf("--namespace") + 1] ?? "";
    process.stdout.write(render({ name, namespace, chart, values }));
  } catch (error) {
    process.stderr.write(`${error}\n`);
    process.exitCode = 1;
  }
}
