import type { Runtime } from "./options.ts";

export const RUNTIME_NAMES: Readonly<Record<Runtime, string>> = {
  node: "Node",
  deno: "Deno",
  bun: "Bun",
};

/** Commands of a project, by the words that its texts have for them. */
export const COMMANDS: Readonly<
  Record<Runtime, Readonly<Record<string, string>>>
> = {
  node: scripts("npm run", {
    install: "npm install",
    test: "npm test",
    coracle: "npx coracle",
  }),
  deno: scripts("deno task", {
    install: "deno install",
    coracle: "deno run -A npm:@coracle/dev/coracle",
  }),
  bun: scripts("bun run", {
    install: "bun install",
    coracle: "bunx --bun coracle",
  }),
};

function scripts(
  run: string,
  others: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  const names = ["dev", "test", "check", "lint", "build", "chart"];
  return {
    ...Object.fromEntries(names.map((name) => [name, `${run} ${name}`])),
    ...others,
  };
}
