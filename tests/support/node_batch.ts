/**
 * The module that the runner gives Node to run several test files in one process:
 * it imports the files that are its arguments, and lets the tests begin when all
 * are loaded, as `node --test --test-isolation=none` does.
 *
 * Unlike that it does without the hook by which Node follows each promise to the
 * test that made it, which takes a sixth of the processor time. It only serves to
 * name the test of an error that nothing handles: such an error fails the process,
 * whose files then run one by one, with the hook.
 *
 * @module
 */

import { createRequire } from "node:module";
import process from "node:process";

/** The part of `node:async_hooks` that Node's test runner reads when it is loaded. */
interface Hooks {
  createHook: (callbacks: object) => unknown;
}

const hooks = createRequire(import.meta.url)("node:async_hooks") as Hooks;
const { createHook } = hooks;
const unused = { enable: () => unused, disable: () => unused };
hooks.createHook = () => unused;
const { before } = await import("node:test");
await import("./started_tests.ts");
const loaded = Promise.withResolvers<void>();
before(() => loaded.promise);
hooks.createHook = createHook;

for (const file of process.argv.slice(2)) {
  await import(new URL(`../../${file}`, import.meta.url).href);
}
loaded.resolve();
