import { TestCluster, VirtualClock } from "@coracle/dev";
import { ConfigMap } from "@coracle/operator/kinds";
import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { folderSync, objectsIn } from "./folder_sync.ts";

const manifest = (name: string, value: string) => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { namespace: "default", name },
  data: { value },
});

/** Repository in memory. */
function repositoryOf(...manifests: readonly ReturnType<typeof manifest>[]) {
  return {
    revision: "1",
    manifests,
    pull() {
      return Promise.resolve(this.revision);
    },
    objects() {
      return Promise.resolve(this.manifests);
    },
  };
}

test("The folder example reads all documents of all YAML files", async () => {
  const folder = await mkdtemp(join(tmpdir(), "coracle-folder-"));
  try {
    const text = (name: string) =>
      `apiVersion: v1\nkind: ConfigMap\nmetadata: { name: ${name} }\n`;
    await writeFile(join(folder, "b.yml"), `${text("b")}---\n${text("c")}`);
    await writeFile(join(folder, "a.yaml"), text("a"));
    await writeFile(join(folder, "README.md"), "# No manifest");
    const names = (await objectsIn(folder)).map(({ metadata }) =>
      metadata.name
    );
    assert.deepEqual(names, ["a", "b", "c"]);
    await writeFile(join(folder, "c.yaml"), "a: [");
    await assert.rejects(objectsIn(folder), /^Error: Cannot read c.yaml: /);
  } finally {
    await rm(folder, { recursive: true });
  }
});

test("The folder example applies, mends and prunes what its folder has", async () => {
  const repository = repositoryOf(manifest("a", "one"), manifest("b", "one"));
  const clock = new VirtualClock();
  const cluster = await TestCluster.start({
    clock,
    namespace: "default",
    operator: (options) =>
      folderSync({ ...options, leaderElection: undefined }, repository),
  });
  try {
    const { client } = cluster;
    const value = async (name: string) =>
      (await client.find(ConfigMap, { namespace: "default", name }))?.data
        ?.["value"];
    const holds = (
      a: string | undefined,
      b: string | undefined,
      within: "1m" | "15m",
    ) =>
      cluster.until(
        async () => await value("a") === a && await value("b") === b,
        { within },
      );
    await holds("one", "one", "1m");
    repository.manifests = [manifest("a", "two")];
    await clock.advance(60_000);
    assert.equal(await value("a"), "one", "the revision is the same");
    repository.revision = "2";
    await holds("two", undefined, "1m");
    await client.patch(ConfigMap, { namespace: "default", name: "a" }, {
      data: { value: "other" },
    });
    await holds("two", undefined, "15m");
  } finally {
    await cluster.stop();
  }
});
