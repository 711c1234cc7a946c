import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { PROJECT, runCommand } from "../support/child_process.ts";
import { runtimeCommand } from "../support/program.ts";

test("Neither operator nor API server loads Node's implementation of fetch", async () => {
  const of = (path: string) =>
    JSON.stringify(pathToFileURL(join(PROJECT, path)).href);
  const { code, stdout, stderr } = await runCommand([
    ...runtimeCommand("node"),
    "--conditions=@coracle/source",
    "--input-type=module",
    "--eval",
    `await import(${of("mod.ts")});
    const { ApiServer } = await import(${of("dev/apiserver/mod.ts")});
    await (await ApiServer.start()).stop();
    const loaded = process.moduleLoadList.map((name) => name.split(" ").at(-1));
    console.log(loaded.includes("https"), loaded.filter((name) => /undici/.test(name)));`,
  ]);
  assert.equal(code, 0, stderr);
  assert.equal(stdout, "true []\n");
});
