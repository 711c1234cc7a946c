/** Caches that primaries and watched objects of their kind share. */
import assert from "node:assert/strict";
import type { ControllerOptions } from "@coracle/operator";
import { MetricsRegistry } from "@coracle/operator/core";
import { ConfigMap } from "@coracle/operator/kinds";
import { byFunction, watch } from "@coracle/operator/sources";
import {
  Gadget,
  type OperatorFixture,
  scenario,
} from "../../support/operator_fixture.ts";

const idle = { reconcile() {} };
const toParent = byFunction<Gadget, Gadget>(({ metadata }) =>
  metadata.labels?.["parent"] ? [`default/${metadata.labels["parent"]}`] : []
);

/** Starts an operator of gadgets; gives the numbers of watches and cached objects. */
async function started(
  fixture: OperatorFixture,
  options: ControllerOptions<Gadget>,
  beside?: ControllerOptions<ConfigMap>,
): Promise<{ readonly watches: number; readonly cached: number }> {
  for (const name of ["a", "b"]) await fixture.create(name);
  const metrics = new MetricsRegistry();
  const operator = fixture.operator({ metrics });
  operator.register(Gadget, idle, options);
  if (beside !== undefined) operator.register(ConfigMap, idle, beside);
  await fixture.start(operator);
  const watches =
    fixture.requests.filter(({ verb, resource }) =>
      verb === "watch" && resource === "gadgets"
    ).length;
  const [, cached] = /^coracle_cache_objects\{.*Gadget",tier="bytes"\} (\d+)$/m
    .exec(metrics.text()) ?? [];
  return { watches, cached: Number(cached) };
}

const SHARED = { watches: 1, cached: 2 };

scenario(
  "Primaries and watched objects of their kind have one watch and one cache",
  async (fixture) => {
    const watches = [watch<Gadget, Gadget>(Gadget, { mapper: toParent })];
    assert.deepEqual(await started(fixture, { watches }), SHARED);
  },
);

scenario(
  "Primaries share the cache of another controller that watches their kind",
  async (fixture) => {
    const watches = [watch<ConfigMap, Gadget>(Gadget, { mapper: toParent })];
    assert.deepEqual(await started(fixture, {}, { watches }), SHARED);
  },
);

scenario(
  "Primaries with managers to take over share a cache with owned ones",
  async (fixture) => {
    const options = { owns: [Gadget], takeOver: ["helm"] };
    assert.deepEqual(await started(fixture, options), SHARED);
  },
);

for (
  const [text, options] of [
    ["other labels", { labelSelector: "parent" }],
    ["metadata only", { metadataOnly: true }],
    ["another form", { prune: ["spec.value"] }],
    ["a watch of their own", { shared: false }],
  ] as const
) {
  scenario(
    `Watched objects with ${text} have a cache beside that of the primaries`,
    async (fixture) => {
      const watches = [
        watch<Gadget, Gadget>(Gadget, { mapper: toParent, ...options }),
      ];
      assert.equal((await started(fixture, { watches })).watches, 2);
    },
  );
}

scenario(
  "A primary that is written by its own run triggers those mapped to it",
  async (fixture) => {
    const runs: string[] = [];
    const operator = fixture.operator();
    operator.register(Gadget, {
      async reconcile({ metadata: { name }, spec }, ctx) {
        runs.push(name);
        if (name === "parent" || runs.includes("done")) return;
        runs.push("done");
        assert.equal(spec.value, "first");
        const labels = { parent: "parent" };
        await ctx.client.patch(Gadget, ctx.key, { metadata: { labels } });
      },
    }, { watches: [watch<Gadget, Gadget>(Gadget, { mapper: toParent })] });
    await fixture.create("parent");
    await fixture.start(operator);
    await fixture.until(() => runs.length > 0);
    runs.length = 0;
    await fixture.create("child");
    await fixture.until(() => runs.includes("parent"));
    assert.deepEqual(runs.slice(0, 2), ["child", "done"]);
  },
);
