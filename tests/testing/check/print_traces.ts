/** Prints the traces of worlds, for the test that compares the runtimes. */
import process from "node:process";
import { traceLine } from "../../../testing/check/trace.ts";
import { COPIER, copier, runCopier } from "./copier_world.ts";

const lines: string[] = [];
process.env["COPIER_LEASE"] = "true";
for (const seed of [1, 2, 3]) {
  const { trace } = await runCopier(
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
  for (const entry of trace) lines.push(`${seed} ${traceLine(entry)}`);
}
process.stdout.write(`${lines.join("\n")}\n`, () => process.exit());
