/** Prints the traces of worlds, for the test that compares the runtimes. */
import process from "node:process";
import { fileURLToPath } from "node:url";
import type { UntypedObject } from "@coracle/operator/client";
import { importFresh } from "../../../dev/testing/check/fresh_modules.ts";
import { COPIER, copier, runCopier } from "./copier_world.ts";
import { runWorld, type WorldRun, type WorldStep } from "./run_world.ts";
import { traceLine } from "./trace_lines.ts";

const lines: string[] = [];

function print(title: string, { trace }: WorldRun): void {
  for (const entry of trace) lines.push(`${title} ${traceLine(entry)}`);
}

/** Runs an example of the project, killed at a write. */
async function runExample(
  file: string,
  steps: readonly WorldStep[],
): Promise<void> {
  const path = fileURLToPath(
    new URL(`../../../examples/${file}`, import.meta.url),
  );
  const load = async () => {
    await importFresh(path);
    return undefined;
  };
  const perturbations = [{ do: "crash", write: 4, place: "after" }] as const;
  print(file, await runWorld({ seed: 1, load, steps, perturbations }));
}

const API_VERSION = "sample.coracle.dev/v1";
const custom = (kind: string, spec: object) =>
  ({
    apiVersion: API_VERSION,
    kind,
    metadata: { name: "web", namespace: "default" },
    spec,
  }) as object as UntypedObject;

process.env["COPIER_LEASE"] = "true";
for (const seed of [1, 2]) {
  const run = await runCopier(
    [{ do: "crash", write: 3, place: "unanswered" }],
    {
      seed,
      order: seed === 1 ? "canonical" : "seeded",
      steps: [
        { apply: copier("a") },
        { apply: copier("external") },
        { delete: COPIER },
      ],
      fetch: () => Promise.resolve(new Response(null, { status: 204 })),
    },
  );
  print(`copier ${seed}`, run);
}
// A workflow, and phases.
await runExample("webpage.ts", [
  { apply: custom("WebPage", { html: "<h1>Hello</h1>", exposed: true }) },
  { apply: custom("WebPage", { html: "<h1>Hello</h1>", exposed: false }) },
  { delete: { apiVersion: API_VERSION, kind: "WebPage", name: "web" } },
]);
await runExample("release.ts", [
  { apply: custom("Release", { image: "web:1", replicas: 2 }) },
  { apply: custom("Release", { image: "web:2", replicas: 2 }) },
  { apply: custom("Release", { image: "web:2", replicas: 1 }) },
]);
process.stdout.write(`${lines.join("\n")}\n`, () => process.exit());
