/**
 * The module that the runner gives `deno test`: it imports the test files that
 * are its arguments, which so share their modules, gives each test a time limit,
 * which `deno test` has no option for, and adds the file to its name.
 *
 * @module
 */

import process from "node:process";

interface TestDefinition {
  readonly name: string;
  readonly fn: (context: unknown) => unknown;
}

type Register = (definition: TestDefinition) => void;

const deno = (globalThis as unknown as { Deno: { test: Register } }).Deno;
const register = deno.test;
/** Milliseconds after which a test has failed. */
const LIMIT_MS = Number(process.env["TEST_LIMIT_MS"]);

/** Runs a test until its limit. */
async function limited(
  { name, fn }: TestDefinition,
  context: unknown,
): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(
      () => reject(new Error(`Not ended within ${LIMIT_MS} ms: ${name}`)),
      LIMIT_MS,
    );
  });
  try {
    await Promise.race([fn(context), late]);
  } finally {
    clearTimeout(timer);
  }
}

/** The file whose tests are defined. */
let file = "";

deno.test = Object.assign(
  (definition: TestDefinition) =>
    register({
      ...definition,
      name: `${file}: ${definition.name}`,
      fn: (context) => limited(definition, context),
    }),
  register,
);

for (file of process.argv.slice(2)) {
  try {
    await import(new URL(`../../${file}`, import.meta.url).href);
  } catch (error) {
    deno.test({
      name: "the file loads",
      fn: () => {
        throw error;
      },
    });
  }
}
