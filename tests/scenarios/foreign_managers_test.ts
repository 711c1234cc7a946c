import assert from "node:assert/strict";
import { kubernetesDependent, Workflow } from "@coracle/operator";
import { ConfigMap } from "@coracle/operator/kinds";
import { watch, type WatchSource } from "@coracle/operator/sources";
import {
  Gadget,
  type OperatorFixture,
  scenario,
} from "../support/operator_fixture.ts";

type Source = WatchSource<Gadget, ConfigMap>;

function source(): Source {
  return watch<Gadget, ConfigMap>(ConfigMap);
}

/** A controller that keeps a ConfigMap of its own for each gadget. */
function register(
  fixture: OperatorFixture,
  operator: ReturnType<OperatorFixture["operator"]>,
  { name, from }: { readonly name: string; readonly from: Source },
) {
  const counter = { runs: 0 };
  const workflow = new Workflow<Gadget>().add(
    "map",
    kubernetesDependent(ConfigMap, {
      source: from,
      desired: ({ metadata, spec }) => ({
        metadata: { name: `${metadata.name}-${name}` },
        data: { value: spec.value },
      }),
    }),
  );
  const controller = operator.register(Gadget, {
    reconcile() {
      counter.runs++;
    },
  }, { name, workflow });
  return {
    controller,
    async again() {
      const before = counter.runs;
      controller.trigger("default/a");
      await fixture.until(() => counter.runs > before);
    },
    ran: () => counter.runs > 0,
  };
}

async function managersOf(fixture: OperatorFixture, name: string) {
  const map = await fixture.client.get(ConfigMap, {
    namespace: "default",
    name,
  });
  return (map.metadata.managedFields ?? []).map(({ manager }) => manager);
}

async function cachedManagers(from: Source, name: string) {
  const map = await from.get?.({ namespace: "default", name });
  return map?.metadata.managedFields?.map(({ manager }) => manager);
}

/** Requests to the server without watches. */
function asked(fixture: OperatorFixture): number {
  return fixture.requests.filter(({ verb }) => verb !== "watch").length;
}

/** How often ConfigMaps were watched from the beginning. */
function watches(fixture: OperatorFixture): number {
  return fixture.requests.filter(({ resource, target }) =>
    resource === "configmaps" && target.includes("sendInitialEvents=true")
  ).length;
}

/** Writes into a ConfigMap of an operator under another name. */
async function meddle(fixture: OperatorFixture, name: string): Promise<void> {
  await fixture.client.apply(ConfigMap, {
    metadata: { namespace: "default", name, labels: { by: "someone" } },
  }, { fieldManager: "someone" });
}

scenario(
  "Controllers share a cache with their own managed fields only, without requests",
  async (fixture) => {
    const start = async () => {
      const sources = { one: source(), two: source() };
      const operator = fixture.operator();
      const first = register(fixture, operator, {
        name: "one",
        from: sources.one,
      });
      const second = register(fixture, operator, {
        name: "two",
        from: sources.two,
      });
      await fixture.start(operator);
      await fixture.until(() => first.ran() && second.ran());
      return { operator, sources, first, second };
    };
    await fixture.create("a");
    const { operator, sources, first, second } = await start();
    assert.equal(watches(fixture), 1);
    await meddle(fixture, "a-one");
    await fixture.until(async () =>
      (await sources.one.get?.({ namespace: "default", name: "a-one" }))
        ?.metadata.labels?.["by"] === "someone"
    );
    await meddle(fixture, "a-two");
    await fixture.settle();
    await first.again();
    await second.again();
    assert.deepEqual((await managersOf(fixture, "a-one")).sort(), [
      "one",
      "someone",
    ]);
    assert.deepEqual(await cachedManagers(sources.one, "a-one"), ["one"]);
    assert.deepEqual(await cachedManagers(sources.two, "a-two"), ["two"]);

    let before = asked(fixture);
    for (let i = 0; i < 10; i++) {
      await first.again();
      await second.again();
    }
    assert.equal(asked(fixture), before);
    await fixture.done(operator.stop());

    const writes = () =>
      fixture.requests.filter(({ method }) => method !== "GET").length;
    before = writes();
    const next = await start();
    await next.first.again();
    await next.second.again();
    assert.equal(writes(), before, "nor after a restart");
  },
);

scenario(
  "A later controller finds its managed fields, and an unpruned cache keeps all",
  async (fixture) => {
    const sources = { early: source(), late: source() };
    const whole = watch<Gadget, ConfigMap>(ConfigMap, {
      name: "whole",
      prune: [],
    });
    await fixture.create("a");
    const operator = fixture.operator();
    const early = register(fixture, operator, {
      name: "early",
      from: sources.early,
    });
    await fixture.start(operator);
    await fixture.until(() => early.ran());
    const late = register(fixture, operator, {
      name: "late",
      from: sources.late,
    });
    await fixture.until(() => late.ran());
    await meddle(fixture, "a-late");
    await fixture.done(late.controller.addSource(whole));
    await fixture.until(async () =>
      (await cachedManagers(whole, "a-late"))?.length === 2
    );
    const before = asked(fixture);
    await late.again();
    await early.again();
    assert.equal(asked(fixture), before);
    assert.deepEqual(await cachedManagers(sources.late, "a-late"), ["late"]);
  },
);

scenario(
  "A replaced secondary keeps the managed fields of others",
  async (fixture) => {
    const from = source();
    await fixture.create("a");
    await fixture.client.create(ConfigMap, {
      metadata: { namespace: "default", name: "m" },
      data: { other: "x" },
    }, { fieldManager: "someone" });
    let errors = 0;
    const operator = fixture.operator();
    operator.register(Gadget, {
      async reconcile(_gadget, ctx) {
        const map = await from.get?.({ namespace: "default", name: "m" });
        if (map === undefined) return;
        await ctx.replace(ConfigMap, {
          ...map,
          data: { ...map.data, value: "ours" },
        });
      },
      onError() {
        errors++;
      },
    }, { name: "page", sources: [from] });
    await fixture.start(operator);
    await fixture.until(async () =>
      (await managersOf(fixture, "m")).length === 2
    );
    assert.deepEqual((await managersOf(fixture, "m")).sort(), [
      "page",
      "someone",
    ]);
    assert.equal(errors, 0);
    assert.deepEqual(await cachedManagers(from, "m"), ["page"]);
  },
);
