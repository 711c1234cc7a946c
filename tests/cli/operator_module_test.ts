import assert from "node:assert/strict";
import process from "node:process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { describeFile } from "../../cli/operator_file.ts";
import { loadOperatorModule } from "../../cli/operator_module.ts";
import { setDevelopment } from "../../core/operator/development.ts";
import { temporaryFolder, writeText } from "../support/temporary_folder.ts";

const fixture = (name: string) =>
  fileURLToPath(new URL(`./fixtures/${name}`, import.meta.url));

async function exportsOf(file: string): Promise<unknown> {
  try {
    return await (await loadOperatorModule(file, { runs: false })).exports;
  } finally {
    setDevelopment(undefined);
  }
}

/** Names of the controllers of the operator that the commands take. */
async function controllersOf(
  file: string,
  name?: string,
): Promise<readonly string[]> {
  const found = await describeFile(file, { export: name, operators: true });
  return found.operators.map(({ controllers }) =>
    controllers.map((controller) => controller.name).join()
  );
}

const OPERATORS = `
import { Operator } from "${new URL("../../mod.ts", import.meta.url)}";
const make = (name, options = {}) => {
  const operator = new Operator({ ...options });
  const kind = { group: "", version: "v1", kind: "Pod" };
  operator.register(kind, { reconcile() {} }, { name });
  return operator;
};
const first = make("first");
`;

const FORMS: readonly (readonly [
  title: string,
  code: string,
  expected: readonly string[],
  named?: string,
])[] = [
  [
    "the default export before all others",
    "export default make('a'); export const other = make('b');",
    ["a"],
  ],
  [
    "the result of a default export that is a function",
    "export default (options) => make('a', options);",
    ["a"],
  ],
  [
    "all that were created, if the default export is a class",
    "export default class Site {}",
    ["first"],
  ],
  [
    "the export that --export names",
    "export default make('a'); export const other = async () => make('b');",
    ["b"],
    "other",
  ],
  ["the only exported Operator", "export const x = make('a');", ["a"]],
  [
    "the only exported Operator before the function operator",
    "export const x = make('a'); export const operator = () => make('b');",
    ["a"],
  ],
  [
    "the result of the function operator",
    "export const x = make('a'), y = make('b'); export function operator(options) { return make('c', options); }",
    ["c"],
  ],
  ["all operators if it exports none", "make('a');", ["first", "a"]],
  [
    "those of a file that makes them only as the main module",
    "if (import.meta.main) { const x = make('a'); await x.run(); }",
    ["first", "a"],
  ],
];

for (const [title, code, expected, named] of FORMS) {
  test(`describeFile takes ${title}`, async () => {
    const guarded = code.includes("import.meta.main");
    const text = guarded ? OPERATORS.replace(/const first.*/, "") : OPERATORS;
    const file = writeText(temporaryFolder(), "op.mjs", `${text}${code}\n`);
    assert.deepEqual(
      await controllersOf(file, named),
      guarded ? expected.slice(1) : expected,
    );
  });
}

test("describeFile calls a function without a client and with a logger", async () => {
  const file = writeText(
    temporaryFolder(),
    "op.mjs",
    `${OPERATORS}export const operator = (options) => make(Object.keys(options).join("-"));\n`,
  );
  assert.deepEqual(await controllersOf(file), ["logger"]);
});

test("describeFile names the exports of a file without an operator", async () => {
  await assert.rejects(
    controllersOf(fixture("nothing.ts")),
    /^UsageError: Cannot run .*nothing\.ts: it creates no operator: .*received exports answer$/,
  );
  await assert.rejects(
    controllersOf(fixture("nothing.ts"), "anwser"),
    /--export must name an Operator .*received anwser, of exports answer \(did you mean "answer"\?\)$/,
  );
});

test("loadOperatorModule explains how to make a package of ES modules", async (context) => {
  if (process.versions["bun"] ?? process.versions["deno"]) {
    return context.skip("to other runtimes than Node each .ts file is one");
  }
  const folder = temporaryFolder();
  writeText(folder, "package.json", '{ "type": "commonjs" }');
  const file = writeText(
    folder,
    "lamp.ts",
    'import { sep } from "node:path";\nexport const letter = sep;\n',
  );
  await assert.rejects(exportsOf(file), {
    message:
      /^Cannot load .*lamp\.ts: .*"npm pkg set type=module" or rename it to lamp\.mts: received /,
  });
});

test("loadOperatorModule names the Node version that runs TypeScript", async (context) => {
  if (process.versions["bun"] ?? process.versions["deno"]) {
    return context.skip("other runtimes than Node run them all");
  }
  // To this Node what .ts is to older ones.
  const file = writeText(temporaryFolder(), "lamp.tsx", "export {};");
  const error = await exportsOf(file).catch((error: Error) => error);
  assert.match(
    (error as Error).message,
    /^Cannot load .*lamp\.tsx: this Node does not run \.tsx files: \.ts needs Node 22\.19 or later, .*: received Node \d/,
  );
});
