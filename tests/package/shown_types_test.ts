import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { PROJECT, runCommand } from "../support/child_process.ts";
import { temporaryFolder, writeText } from "../support/temporary_folder.ts";

const SAMPLE = `
import { z } from "${join(PROJECT, "node_modules/zod/index.js")}";
import { defineKind, Operator } from "${join(PROJECT, "mod.ts")}";

const WebPage = defineKind({
  group: "sample.coracle.dev",
  version: "v1",
  kind: "WebPage",
  spec: z.object({ html: z.string(), exposed: z.boolean().default(false) }),
  status: z.object({ since: z.iso.datetime() }).partial(),
});
new Operator().register(WebPage, {
  reconcile(page) {
    page.shown;
  },
});
`;

const WRONG_STATUS = `
import { Operator, type Kind, setStatus } from "${join(PROJECT, "mod.ts")}";

interface WebPage {
  metadata: { name: string };
  status?: { ready?: boolean; url?: string };
}
const kind = { group: "a.dev", version: "v1", kind: "WebPage" } as Kind<WebPage>;
const operator = new Operator();
operator.register(kind, { reconcile: () => setStatus({ raedy: true }) });
operator.register(kind, { reconcile: () => setStatus({ ready: "yes" }) });
`;

const FLAGS =
  "--ignoreConfig --noEmit --strict --noErrorTruncation --allowImportingTsExtensions --skipLibCheck --module nodenext --target es2023 --lib es2024,esnext.disposable,dom,dom.iterable,dom.asynciterable --types node";

/** Output of the TypeScript compiler for each program. */
async function compiled(
  programs: Readonly<Record<string, string>>,
): Promise<Readonly<Record<string, string>>> {
  const folder = temporaryFolder();
  const files = Object.entries(programs).map(([name, code]) =>
    writeText(folder, `${name}.ts`, code)
  );
  const roots = join(PROJECT, "node_modules", "@types");
  const { stdout } = await runCommand(
    ["tsc", ...FLAGS.split(" "), "--typeRoots", roots, ...files],
  );
  // An error begins with its file, and its other lines are indented.
  const errors = stdout.split(/^(?=\S)/m);
  return Object.fromEntries(
    Object.keys(programs).map((name) => [
      name,
      errors.filter((error) => /^\S*/.exec(error)?.[0].includes(`${name}.ts`))
        .join(""),
    ]),
  );
}

const OUTPUT = await compiled({ sample: SAMPLE, wrong: WRONG_STATUS });

// Hovers and errors print types alike.
test("Compilers show the fields of a defined kind's objects, not its schemas", () => {
  const { sample = "" } = OUTPUT;
  const [, type = sample] = /'shown' does not exist on type '(.*)'\./
    .exec(sample) ?? [];
  assert.equal(
    type,
    "{ apiVersion?: string | undefined; kind?: string | undefined; metadata: ObjectMeta; spec: { html: string; exposed: boolean; }; status?: { since?: string | undefined; } | undefined; }",
  );
});

test("The error of a wrong status names the field in a few lines", () => {
  const { wrong = "" } = OUTPUT;
  const errors = wrong.split(/^\S*wrong\.ts/m).slice(1).map((error) =>
    error.split(/\n(?! )/)[0]?.split("\n").slice(2).map((line) => line.trim())
  );
  assert.deepEqual(errors, [
    [
      "The types of 'statusFields.names' are incompatible between these types.",
      `Type '"raedy" | undefined' is not assignable to type '"ready" | "url" | undefined'.`,
      `Type '"raedy"' is not assignable to type '"ready" | "url" | undefined'. Did you mean '"ready"'?`,
    ],
    [
      "The types of 'statusValues.ready' are incompatible between these types.",
      `Type '"yes"' is not assignable to type 'boolean | null | undefined'.`,
    ],
  ]);
});
