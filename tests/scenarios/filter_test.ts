import assert from "node:assert/strict";
import { type Kind, patchStatus, untyped } from "@coracle/operator/core";
import { ConfigMap, Secret } from "@coracle/operator/kinds";
import { timerSource, watch } from "@coracle/operator/sources";
import { KEY, startGadgets } from "../support/gadget_runs.ts";
import {
  Gadget,
  type OperatorFixture,
  scenario,
} from "../support/operator_fixture.ts";

/** A kind with generation and status that no controller of a cluster writes. */
const Ingress = untyped({
  group: "networking.k8s.io",
  version: "v1",
  kind: "Ingress",
});

function ingressSpec(name: string): object {
  return { defaultBackend: { service: { name, port: { number: 80 } } } };
}

async function changeMap(
  fixture: OperatorFixture,
  data: Record<string, string>,
  key = KEY,
): Promise<void> {
  await fixture.client.patch(ConfigMap, key, { data });
}

scenario(
  "Filters on primaries and secondaries prevent runs [FilterIT]",
  async (fixture) => {
    const { runs } = await startGadgets(fixture, async (gadget, ctx) => {
      await ctx.apply(ConfigMap, {
        metadata: { name: gadget.metadata.name },
        data: { made: "yes" },
      });
    }, {
      filters: { update: (gadget) => gadget.spec.value !== "ignored" },
      sources: [watch(ConfigMap, {
        filters: { update: (map) => map.data?.["ignored"] === undefined },
      })],
    });
    await fixture.create("a");
    await fixture.until(() => runs.length === 1);
    await fixture.change("a", { value: "seen" });
    await fixture.until(() => runs.length === 2);
    await fixture.change("a", { value: "ignored" });
    await fixture.advance(5_000);
    assert.equal(runs.length, 2);
    await changeMap(fixture, { other: "value" });
    await fixture.until(() => runs.length === 3);
    await changeMap(fixture, { ignored: "yes" });
    await fixture.advance(5_000);
    assert.equal(runs.length, 3);
  },
);

scenario(
  "Without the default filters the user's filters decide alone [WithoutDefaultFiltersIT]",
  async (fixture) => {
    const { runs } = await startGadgets(fixture, () => {}, {
      defaultFilters: false,
      filters: {
        update: (gadget) => gadget.metadata.labels?.["skip"] === undefined,
      },
    });
    await fixture.create("a");
    await fixture.until(() => runs.length === 1);
    await fixture.mark("a", { annotations: { any: "thing" } });
    await fixture.until(() => runs.length === 2);
    await fixture.change("a", { value: "second" });
    await fixture.until(() => runs.length === 3);
    await fixture.mark("a", { labels: { skip: "yes" } });
    await fixture.change("a", { value: "third" });
    await fixture.advance(5_000);
    assert.equal(runs.length, 3);
  },
);

scenario(
  "Metadata and status changes cause no run, and a spec change after them does [SubResourceUpdateIT]",
  async (fixture) => {
    for (const cleanup of [undefined, () => {}]) {
      const seen: string[] = [];
      const operator = fixture.operator();
      operator.register(Gadget, {
        reconcile(gadget) {
          seen.push(gadget.spec.value);
          return patchStatus({ value: gadget.spec.value });
        },
        ...(cleanup && { cleanup }),
      });
      await fixture.start(operator);
      const name = cleanup ? "with" : "without";
      await fixture.create(name);
      await fixture.until(() => seen.length === 1);
      await fixture.advance(5_000);
      assert.deepEqual(seen, ["first"], "the own status write causes no run");
      await fixture.client.status.patch(
        Gadget,
        { namespace: "default", name },
        {
          status: { count: 5 },
        },
        { type: "merge" },
      );
      await fixture.advance(5_000);
      assert.equal(seen.length, 1);
      await fixture.change(name, { value: "second" });
      await fixture.until(() => seen.length === 2);
      await fixture.remove(name);
      await fixture.until(async () => await fixture.gadget(name) === undefined);
      await fixture.done(operator.stop());
    }
  },
);

scenario(
  "A filter of generations ignores writes of the status of owned objects",
  async (fixture) => {
    const { runs } = await startGadgets(fixture, async ({ metadata }, ctx) => {
      await ctx.apply(Ingress, {
        metadata: { name: metadata.name },
        spec: ingressSpec("first"),
      });
      await ctx.apply(ConfigMap, { metadata: { name: metadata.name } });
    }, {
      owns: [Ingress, ConfigMap].map((kind: Kind) =>
        watch(kind, {
          filters: {
            event: ({ type, header: { generation }, previousHeader }) =>
              type !== "updated" || generation === undefined ||
              generation !== previousHeader?.generation,
          },
        })
      ),
    });
    await fixture.create("a");
    await fixture.until(() => runs.length === 1);
    await fixture.client.status.patch(Ingress, KEY, {
      status: { loadBalancer: { ingress: [{ ip: "192.0.2.1" }] } },
    });
    await fixture.client.patch(Ingress, KEY, {
      metadata: { labels: { other: "value" } },
    });
    await fixture.advance(5_000);
    assert.equal(runs.length, 1);
    await fixture.client.patch(Ingress, KEY, { spec: ingressSpec("second") });
    await fixture.until(() => runs.length === 2);
    await changeMap(fixture, { other: "value" });
    await fixture.until(() => runs.length === 3);
  },
);

scenario(
  "A filter that throws accepts the event and is reported",
  async (fixture) => {
    const { runs } = await startGadgets(fixture, () => {}, {
      filters: {
        add() {
          throw new Error("No opinion");
        },
      },
    });
    await fixture.create("a");
    await fixture.until(() => runs.length === 1);
    assert.ok(
      fixture.log.some(({ message }) =>
        message.startsWith("A filter has thrown")
      ),
    );
  },
);

scenario(
  "Only labelled objects are reconciled; losing the label is a deletion [LabelSelectorIT]",
  async (fixture) => {
    const seen: string[] = [];
    const operator = fixture.operator();
    const controller = operator.register(Gadget, {
      reconcile(gadget) {
        seen.push(gadget.metadata.name);
      },
    }, { labelSelector: "app=test" });
    await fixture.start(operator);
    await fixture.create("in", {}, { labels: { app: "test" } });
    await fixture.create("out");
    await fixture.until(() => seen.length === 1);
    await fixture.advance(1_000);
    assert.deepEqual(seen, ["in"]);
    await fixture.mark("in", { labels: { app: "other" } });
    await fixture.until(() => controller.health().primaries === 0);
    assert.equal(controller.health().delayed, 0);
  },
);

scenario(
  "A field selector limits primaries and secondaries, reconciled and cached [FieldSelectorIT]",
  async (fixture) => {
    const seen: string[] = [];
    let cached: readonly string[] = [];
    const operator = fixture.operator();
    operator.register(Secret, {
      async reconcile(secret, ctx) {
        seen.push(secret.metadata.name);
        cached = (await ctx.list(Secret)).map(({ metadata }) => metadata.name);
      },
    }, { fieldSelector: "type=example.com/watched" });
    await fixture.start(operator);
    for (
      const [name, type] of [["plain", "Opaque"], [
        "watched",
        "example.com/watched",
      ]] as const
    ) {
      await fixture.client.create(Secret, {
        metadata: { namespace: "default", name },
        type,
      });
    }
    await fixture.until(() => seen.length > 0);
    await fixture.advance(1_000);
    assert.deepEqual(seen, ["watched"]);
    assert.deepEqual(cached, ["watched"]);
  },
);

scenario(
  "Own creations and changes of a secondary cause no run [CreateUpdateInformerEventSourceEventFilterIT] [OwnSecondaryUpdateIT]",
  async (fixture) => {
    const { runs } = await startGadgets(fixture, async (gadget, ctx) => {
      await ctx.apply(ConfigMap, {
        metadata: { name: gadget.metadata.name },
        data: { value: gadget.spec.value },
      });
      assert.equal(
        (await ctx.secondary(ConfigMap))?.data?.["value"],
        gadget.spec.value,
        "read after write",
      );
    }, { sources: [watch(ConfigMap)] });
    await fixture.create("a");
    await fixture.until(() => runs.length === 1);
    await fixture.advance(5_000);
    assert.equal(runs.length, 1);
    await fixture.change("a", { value: "second" });
    await fixture.until(() => runs.length === 2);
    await fixture.advance(5_000);
    assert.equal(runs.length, 2);
  },
);

scenario(
  "A write with a trigger causes a run as a foreign write does [PreviousAnnotationDisabledIT]",
  async (fixture) => {
    let runs = 0;
    const operator = fixture.operator();
    operator.register(Gadget, {
      async reconcile(gadget, ctx) {
        runs++;
        if (runs % 2 === 0) return;
        await ctx.apply(ConfigMap, {
          metadata: { name: gadget.metadata.name },
          data: { value: gadget.spec.value },
        }, { trigger: true });
      },
    }, { sources: [watch(ConfigMap)] });
    await fixture.start(operator);
    await fixture.create("a");
    await fixture.advance(5_000);
    assert.equal(runs, 2);
    await fixture.change("a", { value: "second" });
    await fixture.advance(5_000);
    assert.equal(runs, 4);
  },
);

scenario(
  "A custom source triggers repeatedly [EventSourceIT]",
  async (fixture) => {
    const causes: (string | undefined)[] = [];
    const ticks = timerSource<Gadget>("ticks");
    const operator = fixture.operator();
    operator.register(Gadget, {
      reconcile(_gadget, ctx) {
        causes.push(ctx.cause.source);
        ticks.schedule(ctx.key, { after: "500ms" });
      },
    }, { sources: [ticks] });
    await fixture.start(operator);
    await fixture.create("a");
    await fixture.until(() => causes.length === 4);
    assert.deepEqual(causes, [undefined, ticks.name, ticks.name, ticks.name]);
  },
);

scenario(
  "Two sources for two secondaries both trigger runs that see the change [MultipleSecondaryEventSourceIT]",
  async (fixture) => {
    const seen: string[] = [];
    const operator = fixture.operator();
    const first = watch<Gadget, ConfigMap>(ConfigMap, {
      name: "first",
      labelSelector: "n=1",
    });
    const second = watch<Gadget, ConfigMap>(ConfigMap, {
      name: "second",
      labelSelector: "n=2",
    });
    operator.register(Gadget, {
      async reconcile(gadget, ctx) {
        for (const n of ["1", "2"]) {
          const name = `${gadget.metadata.name}-${n}`;
          if (
            await ctx.client.find(ConfigMap, { namespace: "default", name })
          ) continue;
          await ctx.apply(ConfigMap, {
            metadata: { name, labels: { n } },
            data: { value: "0" },
          });
        }
        const maps = [await ctx.secondary(first), await ctx.secondary(second)];
        seen.push(
          `${ctx.cause.source ?? ctx.cause.type}: ${
            maps.map((map) => map?.data?.["value"]).join()
          }`,
        );
      },
    }, { sources: [first, second] });
    await fixture.start(operator);
    await fixture.create("a");
    await fixture.until(() => seen.length === 1);
    await changeMap(fixture, { value: "1" }, { ...KEY, name: "a-1" });
    await fixture.until(() => seen.length === 2);
    await changeMap(fixture, { value: "2" }, { ...KEY, name: "a-2" });
    await fixture.until(() => seen.length === 3);
    assert.deepEqual(seen, ["added: 0,0", "first: 1,0", "second: 1,2"]);
  },
);

scenario(
  "Two operators with disjoint shards run each object once [ShardSelectorIT]",
  async (fixture) => {
    const seen: string[][] = [[], []];
    for (const index of [0, 1]) {
      const operator = fixture.operator();
      operator.register(Gadget, {
        reconcile(gadget) {
          seen[index]?.push(gadget.metadata.name);
        },
      }, { shard: { index, count: 2 }, sources: [watch(ConfigMap)] });
      await fixture.start(operator);
    }
    const names = Array.from({ length: 40 }, (_, index) => `gadget-${index}`);
    for (const name of names) await fixture.create(name);
    await fixture.until(() => seen.flat().length >= names.length);
    await fixture.advance(5_000);
    const [first = [], second = []] = seen;
    assert.ok(
      first.length > 5 && second.length > 5,
      `${first.length} and ${second.length}`,
    );
    assert.deepEqual([...first, ...second].sort(), names.sort());
  },
);
