import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { ApiServer } from "../../../dev/apiserver/server.ts";
import { PROJECT, runCommand } from "../../support/child_process.ts";
import { temporaryFolder, writeText } from "../../support/temporary_folder.ts";

/** Operator without leader election, whose first run writes an Event. */
const OPERATOR = `
import { Operator } from "${join(PROJECT, "mod.ts")}";
const kind = (kind, plural) => ({ group: "", version: "v1", kind, plural, scope: "Namespaced" });
const operator = new Operator({ namespaces: ["default"] });
operator.register(kind("ConfigMap", "configmaps"), {
  async reconcile(_object, ctx) {
    ctx.events.normal("Seen", "It was seen");
    await ctx.apply(kind("Secret", "secrets"), { metadata: { name: "seen" } });
    console.log("reconciled");
    setTimeout(() => void operator.stop());
  },
});
await operator.start();
`;

test("An operator on Deno needs the permissions that the docs name", async () => {
  const docs = readFileSync(join(PROJECT, "docs/containers.md"), "utf8");
  const [system = ""] = docs.match(/--allow-sys=[\w,]+/) ?? [];
  const names = ["KUBECONFIG", "HTTPS_PROXY", "https_proxy"];
  const libraries = ["LOG_TOKENS", "LOG_STREAM"];
  for (const name of libraries) assert.match(docs, new RegExp(`\`${name}\``));
  const folder = temporaryFolder();
  const server = await ApiServer.start({ port: 0 });
  try {
    const kubeconfig = writeText(folder, "kubeconfig", server.kubeconfig);
    const program = writeText(folder, "operator.mjs", OPERATOR);
    const run = (env: string, sys: string) =>
      runCommand([
        "deno",
        ...["run", "--no-prompt", "--no-check", "--no-remote"],
        ...["--conditions=@coracle/source", "--config", "deno.json"],
        ...["--allow-net", "--allow-read", env, sys],
        program,
      ], { env: { KUBECONFIG: kubeconfig, DENO_NO_UPDATE_CHECK: "1" } });
    const { code, stdout, stderr } = await run("--allow-env", system);
    assert.deepEqual([code, /^reconciled$/m.test(stdout)], [0, true], stderr);
    const unnamed = await run(`--allow-env=${names}`, system);
    assert.match(unnamed.stderr, /NotCapable: .*LOG_(?:TOKENS|STREAM)/);
    const hostless = await run("--allow-env", "--allow-sys=systemMemoryInfo");
    assert.match(hostless.stderr, /NotCapable: .*hostname/);
  } finally {
    await server.stop();
  }
});
