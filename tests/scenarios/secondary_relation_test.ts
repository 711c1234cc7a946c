import assert from "node:assert/strict";
import { type ControllerHandle, patchStatus } from "@coracle/operator/core";
import { ConfigMap } from "@coracle/operator/kinds";
import { byFunction, watch } from "@coracle/operator/sources";
import { keyOf } from "../../core/api/object_key.ts";
import { KEY } from "../support/gadget_runs.ts";
import { Gadget, scenario } from "../support/operator_fixture.ts";

scenario(
  "An index on primaries maps a changed ConfigMap to them [PrimaryIndexerIT]",
  async (fixture) => {
    const seen: string[] = [];
    const operator = fixture.operator();
    const controller: ControllerHandle<Gadget> = operator.register(Gadget, {
      reconcile(gadget, ctx) {
        if (ctx.cause.type === "source") seen.push(gadget.metadata.name);
      },
    }, {
      indexes: { value: { byFunction: ({ spec }) => [spec.value] } },
      sources: [watch<Gadget, ConfigMap>(ConfigMap, {
        mapper: byFunction(({ metadata }) =>
          controller.primaries.byIndex("value", metadata.name).map(keyOf)
        ),
      })],
    });
    await fixture.start(operator);
    assert.throws(() => controller.primaries.byIndex("x", "y"), RangeError);
    await fixture.create("one", { value: "shared" });
    await fixture.create("two", { value: "shared" });
    await fixture.create("three", { value: "other" });
    await fixture.settle();
    await fixture.client.create(ConfigMap, {
      metadata: { namespace: "default", name: "shared" },
    });
    await fixture.until(() => seen.length === 2);
    await fixture.advance(1_000);
    assert.deepEqual(seen.toSorted(), ["one", "two"]);
  },
);

scenario(
  "Many primaries may share one secondary without references to them [PrimaryToSecondaryIT]",
  async (fixture) => {
    const seen: string[] = [];
    const operator = fixture.operator();
    operator.register(Gadget, {
      async reconcile(gadget, ctx) {
        const shared = await ctx.secondary(ConfigMap);
        seen.push(`${gadget.metadata.name} ${shared?.data?.["value"]}`);
      },
    }, {
      sources: [watch<Gadget, ConfigMap>(ConfigMap, {
        references: (gadget) => [`default/${gadget.spec.value}`],
      })],
    });
    await fixture.start(operator);
    await fixture.client.create(ConfigMap, {
      metadata: { namespace: "default", name: "shared" },
      data: { value: "1" },
    });
    await fixture.create("one", { value: "shared" });
    await fixture.create("two", { value: "shared" });
    await fixture.until(() => seen.length >= 2);
    await fixture.advance(1_000);
    seen.length = 0;
    await fixture.client.patch(
      ConfigMap,
      { namespace: "default", name: "shared" },
      { data: { value: "2" } },
    );
    await fixture.until(() => seen.length === 2);
    assert.deepEqual(seen.toSorted(), ["one 2", "two 2"]);
  },
);

scenario(
  "A reference that a run writes to its own object is followed",
  async (fixture) => {
    const seen: unknown[] = [];
    const operator = fixture.operator();
    operator.register(Gadget, {
      async reconcile({ spec }, ctx) {
        const shared = await ctx.secondary(ConfigMap);
        seen.push(shared?.data?.["value"]);
        return patchStatus({ value: spec.value });
      },
    }, {
      sources: [watch<Gadget, ConfigMap>(ConfigMap, {
        references: ({ status }) =>
          status?.value === undefined ? [] : [`default/${status.value}`],
      })],
    });
    await fixture.start(operator);
    await fixture.create("one", { value: "chosen" });
    const key = { namespace: "default", name: "chosen" };
    await fixture.client.create(ConfigMap, { metadata: key });
    let changes = 0;
    // The answer to the write of the run may come after the first ones.
    await fixture.until(async () => {
      const data = { value: `${++changes}` };
      await fixture.client.patch(ConfigMap, key, { data });
      return seen.some((value) => value !== undefined);
    });
  },
);

scenario(
  "Referenced objects are found after eviction and dropped with their primaries",
  async (fixture) => {
    const seen: string[] = [];
    const operator = fixture.operator({ cache: { budget: 1 } });
    operator.register(Gadget, {
      async reconcile(gadget, ctx) {
        const maps = await ctx.secondaries(ConfigMap);
        const values = maps.map(({ data }) => data?.["value"]);
        seen.push(`${gadget.metadata.name} ${values}`);
      },
    }, {
      sources: [watch<Gadget, ConfigMap>(ConfigMap, {
        bounded: true,
        references: ({ spec: { value } }) => [
          `default/map-${value}`,
          "default/none",
        ],
      })],
    });
    for (let index = 0; index < 100; index++) {
      await fixture.client.create(ConfigMap, {
        metadata: { namespace: "default", name: `map-${index}` },
        data: { value: `${index}` },
      });
    }
    await fixture.start(operator);
    await fixture.until(() =>
      /objects\{kind="v1 ConfigMap",tier="key_only"\} [1-9]\d/
        .test(operator.metrics())
    );
    await fixture.create("one", { value: "7" });
    await fixture.create("two", { value: "7" });
    await fixture.until(() => seen.length === 2);
    assert.deepEqual(seen.splice(0).toSorted(), ["one 7", "two 7"]);
    await fixture.remove("one");
    await fixture.until(() =>
      operator.health().controllers[0]?.primaries === 1
    );
    await fixture.client.patch(
      ConfigMap,
      { namespace: "default", name: "map-7" },
      { data: { value: "8" } },
    );
    await fixture.until(() => seen.length === 1);
    await fixture.advance(1_000);
    assert.deepEqual(seen, ["two 8"]);
  },
);

scenario(
  "Without a mapper to secondaries only the cache finds them, not the context [PrimaryToSecondaryMissingIT]",
  async (fixture) => {
    const found: [number, boolean][] = [];
    const operator = fixture.operator();
    operator.register(Gadget, {
      async reconcile(_gadget, ctx) {
        const related = await ctx.secondaries(ConfigMap);
        found.push([
          related.length,
          await ctx.get(ConfigMap, "shared") !== undefined,
        ]);
      },
    }, { sources: [watch(ConfigMap)] });
    await fixture.client.create(ConfigMap, {
      metadata: { namespace: "default", name: "shared" },
    });
    await fixture.start(operator);
    await fixture.create("a", { value: "shared" });
    await fixture.until(() => found.length === 1);
    assert.deepEqual(found, [[0, true]]);
  },
);

scenario(
  "When references of a secondary change, old, kept and new primaries run [SecondaryToPrimaryReferenceChangeIT]",
  async (fixture) => {
    let seen: string[] = [];
    let added = 0;
    const operator = fixture.operator();
    operator.register(Gadget, {
      reconcile(gadget, ctx) {
        if (ctx.cause.type === "source") seen.push(gadget.metadata.name);
        else added++;
      },
    }, {
      sources: [watch(ConfigMap, {
        mapper: byFunction((map) =>
          (map.data?.["for"] ?? "").split(",").filter((name) => name !== "")
            .map((name) => `default/${name}`)
        ),
      })],
    });
    await fixture.start(operator);
    for (const name of ["dropped", "kept", "new", "none"]) {
      await fixture.create(name);
    }
    await fixture.until(() => added === 4);
    await fixture.client.create(ConfigMap, {
      metadata: KEY,
      data: { for: "dropped,kept" },
    });
    await fixture.until(() => seen.length === 2);
    seen = [];
    await fixture.client.patch(ConfigMap, KEY, { data: { for: "kept,new" } });
    await fixture.until(() => seen.length === 3);
    await fixture.advance(1_000);
    assert.deepEqual(seen.toSorted(), ["dropped", "kept", "new"]);
  },
);

scenario(
  "Owner references of any version lead to the primary [OwnerRefMultiVersionIT]",
  async (fixture) => {
    const causes: string[] = [];
    const operator = fixture.operator();
    operator.register(Gadget, {
      reconcile(_gadget, ctx) {
        causes.push(ctx.cause.type);
      },
    }, { sources: [watch(ConfigMap)] });
    await fixture.start(operator);
    const { metadata: { uid = "" } } = await fixture.create("a");
    await fixture.until(() => causes.length === 1);
    await fixture.client.create(ConfigMap, {
      metadata: {
        ...KEY,
        ownerReferences: [{
          apiVersion: "sample.coracle.dev/v1alpha1",
          kind: "Gadget",
          name: "a",
          uid,
        }],
      },
    });
    await fixture.until(() => causes.length === 2);
    assert.deepEqual(causes, ["added", "source"]);
  },
);
