import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock, withTestCluster } from "@coracle/dev";
import { Operator, type OperatorOptions } from "@coracle/operator/core";
import { ConfigMap, Namespace } from "@coracle/operator/kinds";
import { byFunction, watch } from "@coracle/operator/sources";

test("A primary that the run of another one made or changed runs itself", async () => {
  const runs: string[] = [];
  const operator = (options: OperatorOptions) => {
    const operator = new Operator(options);
    operator.register(ConfigMap, {
      async reconcile({ metadata: { name }, data }, ctx) {
        if (name.endsWith(".crt")) return;
        runs.push(`${name} ${data?.["text"]}`);
        if (name !== "parent") return;
        const child = { metadata: { name: "child" }, data };
        await ctx.apply(ConfigMap, child, { owned: false });
        // The cache has it at once.
        assert.deepEqual((await ctx.get(ConfigMap, "child"))?.data, data);
      },
    });
    return operator;
  };
  await withTestCluster(
    { operator, clock: new VirtualClock() },
    async ({ client, namespace, clock }) => {
      const parent = { namespace, name: "parent" };
      await client.create(ConfigMap, {
        metadata: parent,
        data: { text: "one" },
      });
      await clock.advance("1m");
      await client.patch(ConfigMap, parent, { data: { text: "two" } });
      await clock.advance("1m");
    },
  )();
  assert.deepEqual(runs, [
    "parent one",
    "child one",
    "parent two",
    "child two",
  ]);
});

for (const isWatched of [true, false]) {
  const where = isWatched ? "a cache" : "the server";
  test(`ctx.list of a cluster-scoped kind lists all of ${where}`, async () => {
    let names: readonly string[] = [];
    const operator = (options: OperatorOptions) => {
      const operator = new Operator(options);
      operator.register(ConfigMap, {
        async reconcile({ metadata: { name } }, ctx) {
          if (name !== "map") return;
          const all = await ctx.list(Namespace);
          names = all.map(({ metadata }) => metadata.name);
        },
      }, {
        watches: isWatched
          ? [watch(Namespace, { mapper: byFunction(() => []) })]
          : [],
      });
      return operator;
    };
    await withTestCluster(
      { operator, clock: new VirtualClock() },
      async ({ client, namespace, clock }) => {
        await client.create(ConfigMap, {
          metadata: { namespace, name: "map" },
        });
        await clock.advance("1m");
        assert(names.includes("default") && names.includes(namespace));
      },
    )();
  });
}
