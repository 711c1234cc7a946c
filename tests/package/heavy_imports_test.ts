import assert from "node:assert/strict";
import { test } from "node:test";
import { runCommand } from "../support/child_process.ts";

/** Entry points that load no other package. */
const LIGHT = [
  "@coracle/operator",
  "@coracle/operator/client",
  "@coracle/operator/core",
  "@coracle/operator/internal",
  "@coracle/operator/kinds",
  "@coracle/dev/apiserver",
];

/** Prints which installed packages a module loads when it is imported. */
const PROBE = `
  import { registerHooks } from "node:module";
  const loaded = new Set();
  registerHooks({
    load(url, context, next) {
      const [, name] = /node_modules\\/((?:@[^/]+\\/)?[^/]+)/.exec(url) ?? [];
      if (name !== undefined) loaded.add(name);
      return next(url, context);
    },
  });
  await import(process.argv[1]);
  console.log(JSON.stringify([...loaded]));
`;

test("Importing an entry point loads no other package", async () => {
  for (const entry of LIGHT) {
    const { code, stdout, stderr } = await runCommand([
      "node",
      "--input-type=module",
      "--eval",
      PROBE,
      "--",
      entry,
    ]);
    assert.equal(code, 0, stderr);
    assert.deepEqual(JSON.parse(stdout), [], entry);
  }
});
