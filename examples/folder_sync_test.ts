import { checkOperator, TestCluster, VirtualClock } from "@coracle/dev";
import { ConfigMap } from "@coracle/operator/kinds";
import assert from "node:assert/strict";
import { test } from "node:test";
import { operator } from "./folder_sync.ts";

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

test("The folder example applies, mends and prunes what its folder has", async () => {
  const repository = repositoryOf(manifest("a", "one"), manifest("b", "one"));
  const clock = new VirtualClock();
  const cluster = await TestCluster.start({
    clock,
    namespace: "default",
    operator: (options) =>
      operator({ ...options, leaderElection: undefined }, repository),
  });
  try {
    const { client } = cluster;
    const value = async (name: string) =>
      (await client.find(ConfigMap, { namespace: "default", name }))?.data
        ?.["value"];
    const holds = (
      a: string | undefined,
      b: string | undefined,
      within: "2m" | "15m",
    ) =>
      cluster.until(
        async () => await value("a") === a && await value("b") === b,
        { within },
      );
    await holds("one", "one", "2m");
    repository.manifests = [manifest("a", "two")];
    await clock.advance(120_000);
    assert.equal(await value("a"), "one", "the revision is the same");
    repository.revision = "2";
    await holds("two", undefined, "2m");
    await client.patch(ConfigMap, { namespace: "default", name: "a" }, {
      data: { value: "other" },
    });
    await holds("two", undefined, "15m");
  } finally {
    await cluster.stop();
  }
});

test("The folder example stands its whole check", async () => {
  const { findings, plans, coverage } = await checkOperator({
    operator: (options) =>
      operator(
        { ...options, leaderElection: undefined },
        repositoryOf(manifest("a", "one"), manifest("b", "one")),
      ),
    workload: [
      { apply: manifest("a", "other"), settle: false },
      { delete: manifest("b", "one") },
    ],
  });
  assert.deepEqual(findings.map(({ title }) => title), []);
  assert.ok(plans > 5, `${plans} plans`);
  assert.equal(plans, coverage.planned);
});
