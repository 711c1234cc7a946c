import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { Operator, type OperatorHandle } from "@coracle/operator/core";
import { ConfigMap, Secret } from "@coracle/operator/kinds";
import { describeFile } from "../../dev/cli/operator_file.ts";
import { describeOperators } from "../../dev/cli/operator_description.ts";
import {
  loadOperatorModule,
  selectOperators,
} from "../../dev/cli/operator_module.ts";
import { operatorAccess } from "../../dev/testing/operator_access.ts";
import { host } from "../../core/client/host.ts";
import { exportsText } from "../../dev/testing/check/exported_operators.ts";
import { temporaryFolder, writeText } from "../support/temporary_folder.ts";

const fixture = (name: string) =>
  fileURLToPath(new URL(`./fixtures/${name}`, import.meta.url));

async function exportsOf(file: string): Promise<unknown> {
  const module = await loadOperatorModule(file, { runs: false });
  try {
    return await module.exports;
  } finally {
    module.release();
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
    "the only exported Operator by both of its names",
    "const x = make('a'); export { x, x as y };",
    ["a"],
  ],
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
  [
    "an operator that its file starts, without starting it",
    "const x = make('a'); await x.start(); await x.run();",
    ["first", "a"],
  ],
  ["all operators if it exports none", "make('a');", ["first", "a"]],
  [
    "those of a file that makes them only as the main module",
    "if (import.meta.main) { const x = make('a'); await x.run(); }",
    ["a"],
  ],
  [
    "the result of the only function whose name ends in Operator",
    "export const createOperator = (options) => make('a', options); export class FakeOperator {} export function parts() { throw 1; }",
    ["a"],
  ],
  [
    "all that were created before a function whose name ends in Operator",
    "make('a'); export const createOperator = () => make('b');",
    ["first", "a"],
  ],
];

/** Whether the code of a form makes no operator when it is imported. */
function makesNone(code: string): boolean {
  return /^(?:if|export const createOperator)/.test(code);
}

for (const [title, code, expected, named] of FORMS) {
  test(`describeFile takes ${title}`, async () => {
    const text = makesNone(code)
      ? OPERATORS.replace(/const first.*/, "")
      : OPERATORS;
    const file = writeText(temporaryFolder(), "op.mjs", `${text}${code}\n`);
    assert.deepEqual(await controllersOf(file, named), expected);
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
  const two = writeText(
    temporaryFolder(),
    "op.mjs",
    "export function aOperator() { throw 1; } export function bOperator() { throw 1; }\n",
  );
  await assert.rejects(
    controllersOf(two),
    /name the export by --export: received exports aOperator, bOperator$/,
  );
  await assert.rejects(
    controllersOf(fixture("nothing.ts"), "anwser"),
    /--export must name an Operator .*received anwser, of exports answer \(did you mean "answer"\?\)$/,
  );
});

for (
  const [value, received] of [
    ["() => {}", "nothing from operator()"],
    ["async () => {}", "nothing from operator()"],
    ["() => []", "an array from operator()"],
    ["() => ({ start() {} })", "an object from operator()"],
    ["[1]", "operator, an array"],
    ["class {}", "operator, a function"],
  ] as const
) {
  test(`describeFile says what it takes for no operator: ${value}`, async () => {
    const text = `export const operator = ${value};\n`;
    const file = writeText(temporaryFolder(), "op.mjs", text);
    const endsWith = (end: string) => (error: Error) =>
      error.message.endsWith(`: received ${end}`);
    await assert.rejects(
      controllersOf(file),
      endsWith(
        value.includes("=>")
          ? `exports operator, and ${received}`
          : "exports operator",
      ),
    );
    await assert.rejects(controllersOf(file, "operator"), endsWith(received));
  });
}

/** Reason why a test of Node's module loader is skipped. */
const NO_NODE = process.versions["bun"] ?? process.versions["deno"]
  ? "other runtimes than Node run each .ts file as an ES module"
  : false;

test("loadOperatorModule explains how to make a package of ES modules", {
  skip: NO_NODE,
}, async () => {
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

test("loadOperatorModule names the Node version that runs TypeScript", {
  skip: NO_NODE,
}, async () => {
  // To this Node what .ts is to older ones.
  const file = writeText(temporaryFolder(), "lamp.tsx", "export {};");
  const error = await exportsOf(file).catch((error: Error) => error);
  assert.match(
    (error as Error).message,
    /^Cannot load .*lamp\.tsx: this Node does not run \.tsx files: \.ts needs Node 22\.19 or later, .*: received Node \d/,
  );
});

test("describeFile leaves the host as it was", async () => {
  await describeFile(fixture("kinds.ts"), {
    export: undefined,
    operators: false,
  });
  assert.equal(host().operators, undefined);
});

test("exportsText names five exports, and counts the others", () => {
  const named = (...names: readonly string[]) =>
    exportsText(Object.fromEntries(names.map((name) => [name, 1])));
  assert.equal(named(), "no exports");
  assert.equal(named(..."abcde"), "exports a, b, c, d, e");
  assert.equal(named(..."abcdef"), "exports a, b, c, d, e and 1 more");
});

test("selectOperators calls no function of a main module that made operators", async () => {
  const made = {} as OperatorHandle;
  let called = 0;
  const module = (operators: readonly OperatorHandle[]) => ({
    file: "op.ts",
    operators,
    exports: Promise.resolve({
      operator() {
        called++;
        return made;
      },
    }),
    isMain: true,
  });
  for (const name of [undefined, "operator"]) {
    const found = await selectOperators(module([made]), name, {});
    assert.deepEqual(found.operators, [made]);
  }
  assert.equal(called, 0);
  await selectOperators(module([]), undefined, {});
  assert.equal(called, 1);
});

test("loadOperatorModule leaves other errors of a file as they are", async () => {
  const folder = temporaryFolder();
  const said = "Cannot use import statement outside a module";
  const thrown = writeText(
    folder,
    "thrown.mjs",
    `throw new TypeError("${said}");`,
  );
  await assert.rejects(exportsOf(thrown), { name: "TypeError", message: said });
  const code = "ERR_UNKNOWN_FILE_EXTENSION";
  const other = writeText(
    folder,
    "other.mjs",
    `throw Object.assign(new TypeError("Unknown for /a.b"), { code: "${code}" });`,
  );
  await assert.rejects(exportsOf(other), { code, message: "Unknown for /a.b" });
});

test("describeOperators takes the plural of a kind of the same group", async () => {
  const kindOf = async (group: string, kind: string) => {
    const [described] = await describeOperators([{
      controllers: [{
        name: "a",
        kind: { group, version: "v1", kind },
        secondaryKinds: [],
        readOnlyKinds: [],
        settings: { install: false, usesFinalizer: false },
      }],
      settings: { namespaces: "all" },
    } as object as OperatorHandle]);
    const found = described?.controllers[0]?.kind;
    return [found?.group, found?.plural, found?.scope];
  };
  const plural = ["events", "Namespaced"];
  assert.deepEqual(await kindOf("", "Event"), ["", ...plural]);
  const group = "events.k8s.io";
  assert.deepEqual(await kindOf(group, "Event"), [group, ...plural]);
  assert.deepEqual(await kindOf("test.dev", "Event"), [
    "test.dev",
    undefined,
    undefined,
  ]);
});

test("describeOperators keeps what the rights of an operator follow from", async () => {
  const operator = new Operator({ namespaces: ["default"] });
  operator.register(Secret, { reconcile() {} });
  operator.job("nightly", {
    cron: "@daily",
    state: { kind: ConfigMap, name: "nightly", namespace: "state" },
  }, () => {});
  const selector = { groups: ["*.example.com"] };
  operator.watchKinds(selector, () => {}, { namespaces: "all" });
  operator.watchKinds({ groups: ["apps"] }, { reconcile() {} }, { name: "b" });
  const [described] = await describeOperators([operator]);
  assert.ok(described);
  const rights = ({ controllers, settings }: typeof described) =>
    operatorAccess({ controllers, settings }, { namespace: "own" })
      .map(({ kind, ...one }) => ({
        ...one,
        kind: `${kind.group}/${kind.kind}`,
      }));
  assert.deepEqual(rights(described), rights(operator));
  assert.equal(
    rights(described).filter(({ kind }) => kind.endsWith("/*")).length,
    4,
  );
});

test("describeFile refuses a folder, and does not run what imports its URL", async () => {
  const folder = temporaryFolder();
  writeText(folder, "op.ts/a", "");
  await assert.rejects(
    controllersOf(join(folder, "op.ts")),
    /^UsageError: Cannot load .*op\.ts: it is not a file/,
  );
  const runs = join(folder, "runs");
  const file = writeText(
    folder,
    "url.mjs",
    `import { appendFileSync } from "node:fs";
appendFileSync(${JSON.stringify(runs)}, "x");
export const { url } = import.meta;
`,
  );
  await assert.rejects(controllersOf(file), /it creates no operator/);
  assert.equal(readFileSync(runs, "utf8"), "x");
});

test("describeFile gives the definitions of kinds of one name in two groups", async () => {
  const file = writeText(
    temporaryFolder(),
    "kinds.mjs",
    `import { defineKind } from "${new URL("../../mod.ts", import.meta.url)}";
import { z } from "${new URL(
      "../../node_modules/zod/index.js",
      import.meta.url,
    )}";
export const nothing = null, text = "text";
const names = { version: "v1", kind: "Site", spec: z.object({}) };
export const first = defineKind({ ...names, group: "a.io" });
export const second = defineKind({ ...names, group: "b.io" });
`,
  );
  const { definitions } = await describeFile(file, {
    export: undefined,
    operators: false,
  });
  assert.deepEqual(definitions.map(({ metadata }) => metadata.name), [
    "sites.a.io",
    "sites.b.io",
  ]);
});
