import assert from "node:assert/strict";
import { z } from "zod";
import { defineKind, patchStatus } from "@coracle/operator/core";
import { ConfigMap } from "@coracle/operator/kinds";
import { watch } from "@coracle/operator/sources";
import {
  Gadget,
  type OperatorFixture,
  scenario,
} from "../support/operator_fixture.ts";

const BULK = "x".repeat(2_000);
/** Objects of a test: more than the caches of its operator hold. */
const OBJECTS = 60;

const Plot = defineKind({
  group: "sample.coracle.dev",
  version: "v1",
  kind: "Plot",
  scope: "Cluster",
  spec: z.object({ value: z.string(), bulk: z.string() }),
  status: z.object({ value: z.string() }).partial(),
});

/** Changes every object twice; each change must be seen. */
async function live(
  fixture: OperatorFixture,
  change: (index: number, value: string) => Promise<unknown>,
  seen: Map<string, string>,
): Promise<void> {
  for (const value of ["second", "third"]) {
    for (let index = 0; index < OBJECTS; index++) await change(index, value);
    await fixture.until(() =>
      seen.size === OBJECTS &&
      [...seen.values()].every((last) => last === value)
    );
  }
}

scenario(
  "A tiny cache is sufficient, with namespaces [CaffeineBoundedCacheNamespacedIT]",
  async (fixture) => {
    const seen = new Map<string, string>();
    const operator = fixture.operator({ cache: { budget: "64KiB" } });
    operator.register(Gadget, {
      async reconcile(gadget, ctx) {
        const { name } = gadget.metadata;
        await ctx.apply(ConfigMap, {
          metadata: { name },
          data: { value: gadget.spec.value, bulk: BULK },
        });
        assert.equal(
          (await ctx.secondary(ConfigMap))?.data?.["value"],
          gadget.spec.value,
        );
        seen.set(name, gadget.spec.value);
        return patchStatus({ value: gadget.spec.value });
      },
    }, { sources: [watch(ConfigMap)] });
    await fixture.start(operator);
    for (let index = 0; index < OBJECTS; index++) {
      await fixture.create(`gadget-${index}`);
    }
    await live(
      fixture,
      (index, value) => fixture.change(`gadget-${index}`, { value }),
      seen,
    );
  },
);

scenario(
  "A tiny cache is sufficient, without namespaces [CaffeineBoundedCacheClusterScopeIT]",
  async (fixture) => {
    await fixture.install(Plot);
    const seen = new Map<string, string>();
    const operator = fixture.operator({ cache: { budget: "64KiB" } });
    operator.register(Plot, {
      reconcile(plot) {
        assert.equal(plot.spec.bulk, BULK);
        seen.set(plot.metadata.name, plot.spec.value);
        return patchStatus({ value: plot.spec.value });
      },
    });
    await fixture.start(operator);
    for (let index = 0; index < OBJECTS; index++) {
      await fixture.client.create(Plot, {
        metadata: { name: `plot-${index}` },
        spec: { value: "first", bulk: BULK },
      });
    }
    await live(
      fixture,
      (index, value) =>
        fixture.client.patch(Plot, { name: `plot-${index}` }, {
          spec: { value },
        }),
      seen,
    );
  },
);

scenario(
  "With a bounded cache of keys alone every run fetches its objects",
  async (fixture) => {
    const seen = new Map<string, string>();
    const operator = fixture.operator({ cache: { budget: 1 } });
    operator.register(Gadget, {
      async reconcile(gadget, ctx) {
        const { name } = gadget.metadata;
        const { value } = gadget.spec;
        await ctx.apply(ConfigMap, { metadata: { name }, data: { value } });
        const [configMap] = await ctx.secondaries(ConfigMap);
        assert.equal(configMap?.data?.["value"], value);
        seen.set(name, value);
        return patchStatus({ value });
      },
    }, {
      cache: { bounded: true },
      sources: [watch(ConfigMap, { bounded: true })],
    });
    for (let index = 0; index < OBJECTS; index++) {
      await fixture.create(`gadget-${index}`);
    }
    await fixture.start(operator);
    await fixture.until(() => seen.size === OBJECTS);
    await live(
      fixture,
      (index, value) => fixture.change(`gadget-${index}`, { value }),
      seen,
    );
    const keysAlone = (kind: string) =>
      Number(
        new RegExp(
          `coracle_cache_objects\\{kind="${kind}",tier="key_only"\\} (\\d+)`,
        ).exec(operator.metrics())?.[1],
      );
    assert.ok(keysAlone("sample.coracle.dev/v1 Gadget") > 32);
    assert.ok(keysAlone("v1 ConfigMap") > 32);
    assert.match(operator.metrics(), /^coracle_cache_budget_bytes 1$/m);
    // A foreign change of what was given up is undone, and a deletion, too.
    const key = { namespace: "default", name: "gadget-7" };
    await fixture.client.delete(ConfigMap, key);
    await fixture.until(async () =>
      await fixture.client.find(ConfigMap, key) !== undefined
    );
    const owners = async () =>
      (await fixture.client.get(ConfigMap, other)).metadata.ownerReferences;
    const other = { namespace: "default", name: "gadget-8" };
    const { metadata } = await fixture.client.patch(ConfigMap, other, {
      metadata: { ownerReferences: null as never },
    });
    assert.equal(metadata.ownerReferences, undefined);
    await fixture.until(async () => (await owners())?.length === 1);
  },
);

scenario(
  "A source gets events of primaries that a bounded cache evicted",
  async (fixture) => {
    const operator = fixture.operator({ cache: { budget: 1 } });
    const options = { cache: { bounded: true } };
    operator.register(Gadget, { reconcile() {} }, options);
    for (let index = 0; index < OBJECTS; index++) {
      await fixture.create(`gadget-${index}`, { value: `value-${index}` });
    }
    await fixture.start(operator);
    const keysAlone = () => {
      const text = /objects\{kind=".*Gadget",tier="key_only"\} (\d+)/;
      return Number(text.exec(operator.metrics())?.[1]);
    };
    await fixture.until(() => keysAlone() > 32);
    const told = new Map<string, string | undefined>();
    operator.register(Gadget, { reconcile() {} }, {
      ...options,
      name: "late",
      sources: [{
        name: "follower",
        start: () => Promise.resolve(),
        stop: () => Promise.resolve(),
        onPrimary({ key, object }) {
          told.set(key.name, object?.spec.value);
        },
      }],
    });
    await fixture.until(() => told.size === OBJECTS);
    for (const [name, value] of told) {
      assert.equal(value, name.replace("gadget", "value"));
    }
  },
);

scenario(
  "First runs keep no decoded objects, which all of them would replace",
  async (fixture) => {
    let runs = 0;
    const operator = fixture.operator();
    const labels = { run: "first" };
    const controller = operator.register(ConfigMap, {
      async reconcile({ data }, ctx) {
        assert.equal(data?.["value"], "first");
        // It changes nothing, and is compared with what the run has read.
        const stored = await ctx.patch(ConfigMap, ctx.key, { data });
        assert.ok(Object.isFrozen(stored.data));
        runs++;
      },
    }, { labelSelector: "run=first" });
    for (let index = 0; index < OBJECTS; index++) {
      await fixture.client.create(ConfigMap, {
        metadata: { namespace: "default", name: `first-${index}`, labels },
        data: { value: "first" },
      });
    }
    await fixture.start(operator);
    await fixture.until(() => runs === OBJECTS);
    const decoded = () =>
      /coracle_cache_objects\{kind="v1 ConfigMap",tier="decoded"\} (\d+)/
        .exec(operator.metrics())?.[1];
    assert.equal(decoded(), "0");
    controller.trigger("default/first-1");
    await fixture.until(() => runs === OBJECTS + 1);
    assert.equal(decoded(), "1");
  },
);
