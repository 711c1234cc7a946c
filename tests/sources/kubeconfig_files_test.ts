import assert from "node:assert/strict";
import { renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { VirtualClock } from "@coracle/dev";
import type { ClusterConfig } from "@coracle/operator/client";
import {
  type Cluster,
  type ClusterSetContext,
  kubeconfigFiles,
} from "@coracle/operator/sources";
import { temporaryFolder, writeText } from "../support/temporary_folder.ts";

const kubeconfig = (server: string, token = "a-token") =>
  JSON.stringify({
    "current-context": "c",
    contexts: [{ name: "c", context: { cluster: "there", user: "me" } }],
    clusters: [{ name: "there", cluster: { server } }],
    users: [{ name: "me", user: { token } }],
  });

/** Iteration over the sets of a folder, with the lines of its log. */
function follow(folder: string) {
  const clock = new VirtualClock();
  const warnings: string[] = [];
  const ending = new AbortController();
  const log = {
    debug() {},
    info() {},
    warn: (message: string) => void warnings.push(message),
    error() {},
    with: () => log,
  };
  const context = {
    clock,
    log,
    signal: ending.signal,
  } as unknown as ClusterSetContext;
  const sets = kubeconfigFiles(folder, { every: "10s" })(context)
    [Symbol.asyncIterator]();
  const next = async () => {
    let isSettled = false;
    const settled = sets.next().finally(() => isSettled = true);
    settled.catch(() => {}); // Awaited below.
    await clock.settle();
    while (!isSettled) await clock.advance(10_000);
    const value: readonly Cluster[] = (await settled).value ?? [];
    return Object.fromEntries(
      value.map(({ name, target }) => [
        name,
        target instanceof Error
          ? target.message
          : (target as ClusterConfig).server,
      ]),
    );
  };
  return { next, warnings, end: () => ending.abort() };
}

test("Folder of kubeconfigs has a cluster for each file, as files change", async () => {
  const folder = temporaryFolder();
  writeText(folder, "east.yaml", kubeconfig("https://east"));
  writeText(folder, ".hidden", "not a kubeconfig");
  writeText(folder, "README.txt", "not a cluster");
  const { next, warnings, end } = follow(folder);
  assert.deepEqual(await next(), { east: "https://east" });
  writeText(folder, "west", kubeconfig("https://west"));
  assert.deepEqual(await next(), {
    east: "https://east",
    west: "https://west",
  });
  // A replacement that is renamed into its place, as Kubernetes does.
  writeText(folder, ".new", kubeconfig("https://east.example.com"));
  renameSync(join(folder, ".new"), join(folder, "east.yaml"));
  rmSync(join(folder, "west"));
  assert.deepEqual(await next(), { east: "https://east.example.com" });
  writeText(folder, "east.yaml", "clusters: 3");
  assert.match(
    (await next())["east"] ?? "",
    /^Cannot read kubeconfig .*east\.yaml: /,
  );
  writeText(folder, "east.yaml", "");
  assert.match(
    (await next())["east"] ?? "",
    /"current-context" must be one of/,
  );
  assert.deepEqual(warnings, [
    "A kubeconfig is ignored, since it does not name a cluster",
  ]);
  end();
});

test("Folder of kubeconfigs that cannot be read is named", async () => {
  const folder = join(temporaryFolder(), "none");
  const { next } = follow(folder);
  await assert.rejects(next(), {
    message: `Cannot read the folder of kubeconfigs ${folder}: received ENOENT`,
  });
});

test("kubeconfigFiles refuses options that are wrong", () => {
  assert.throws(() => kubeconfigFiles(""), /"folder" must be/);
  assert.throws(
    () => kubeconfigFiles("/x", { every: "soon" as "1s" }),
    /"every"/,
  );
});

test("Folder of kubeconfigs takes a file again when a file that it names is there", async () => {
  const folder = temporaryFolder();
  const text = kubeconfig("https://east").replace(
    '"token":"a-token"',
    '"tokenFile":"token.d/token"',
  );
  writeText(folder, "east", text);
  const { next, end } = follow(folder);
  assert.match((await next())["east"] ?? "", /token must be a readable file/);
  writeText(folder, "token.d/token", "a-token");
  assert.equal((await next())["east"], "https://east");
  end();
});
