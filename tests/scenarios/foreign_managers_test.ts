import assert from "node:assert/strict";
import { ConfigMap } from "../../core/kinds/mod.ts";
import type { InformerEventSource } from "../../sources/informer_source_options.ts";
import { informerSource } from "../../sources/informer_source.ts";
import { kubernetesDependent } from "../../workflows/dependents/kubernetes_dependent.ts";
import { Workflow } from "../../workflows/graph/workflow.ts";
import {
  Gadget,
  type OperatorCase,
  scenario,
} from "../support/operator_case.ts";

type Source = InformerEventSource<Gadget, ConfigMap>;

function source(): Source {
  return informerSource<Gadget, ConfigMap>(ConfigMap);
}

/** A controller that keeps a ConfigMap of its own for each gadget. */
function register(
  one: OperatorCase,
  operator: ReturnType<OperatorCase["operator"]>,
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
      await one.until(() => counter.runs > before);
    },
    ran: () => counter.runs > 0,
  };
}

async function managersOf(one: OperatorCase, name: string) {
  const map = await one.client.get(ConfigMap, { namespace: "default", name });
  return (map.metadata.managedFields ?? []).map(({ manager }) => manager);
}

async function cachedManagers(from: Source, name: string) {
  const map = await from.get?.({ namespace: "default", name });
  return map?.metadata.managedFields?.map(({ manager }) => manager);
}

/** What was asked of the server but for watches. */
function asked(one: OperatorCase): number {
  return one.requests.filter(({ verb }) => verb !== "watch").length;
}

/** How often ConfigMaps were watched from the beginning. */
function watches(one: OperatorCase): number {
  return one.requests.filter(({ resource, target }) =>
    resource === "configmaps" && target.includes("sendInitialEvents=true")
  ).length;
}

/** Writes into a ConfigMap of an operator under another name. */
async function meddle(one: OperatorCase, name: string): Promise<void> {
  await one.client.apply(ConfigMap, {
    metadata: { namespace: "default", name, labels: { by: "someone" } },
  }, { fieldManager: "someone" });
}

scenario(
  "Controllers of one operator find what they own in one cache, which keeps nothing of other managers, and send no request while nothing changes",
  async (one) => {
    const start = async () => {
      const sources = { one: source(), two: source() };
      const operator = one.operator();
      const first = register(one, operator, { name: "one", from: sources.one });
      const second = register(one, operator, {
        name: "two",
        from: sources.two,
      });
      await one.start(operator);
      await one.until(() => first.ran() && second.ran());
      return { operator, sources, first, second };
    };
    await one.create("a");
    const { operator, sources, first, second } = await start();
    assert.equal(watches(one), 1);
    await meddle(one, "a-one");
    await one.until(async () =>
      (await sources.one.get?.({ namespace: "default", name: "a-one" }))
        ?.metadata.labels?.["by"] === "someone"
    );
    await meddle(one, "a-two");
    await one.settle();
    await first.again();
    await second.again();
    assert.deepEqual((await managersOf(one, "a-one")).sort(), [
      "one",
      "someone",
    ]);
    assert.deepEqual(await cachedManagers(sources.one, "a-one"), ["one"]);
    assert.deepEqual(await cachedManagers(sources.two, "a-two"), ["two"]);

    let before = asked(one);
    for (let i = 0; i < 10; i++) {
      await first.again();
      await second.again();
    }
    assert.equal(asked(one), before);
    await one.done(operator.stop());

    const writes = () =>
      one.requests.filter(({ method }) => method !== "GET").length;
    before = writes();
    const next = await start();
    await next.first.again();
    await next.second.again();
    assert.equal(writes(), before, "nor after a restart");
  },
);

scenario(
  "A controller that comes later finds what it owns, and a cache without paths to prune keeps every manager",
  async (one) => {
    const sources = { early: source(), late: source() };
    const whole = informerSource<Gadget, ConfigMap>(ConfigMap, {
      name: "whole",
      prune: [],
    });
    await one.create("a");
    const operator = one.operator();
    const early = register(one, operator, {
      name: "early",
      from: sources.early,
    });
    await one.start(operator);
    await one.until(() => early.ran());
    const late = register(one, operator, { name: "late", from: sources.late });
    await one.until(() => late.ran());
    await meddle(one, "a-late");
    await one.done(late.controller.addSource(whole));
    await one.until(async () =>
      (await cachedManagers(whole, "a-late"))?.length === 2
    );
    const before = asked(one);
    await late.again();
    await early.again();
    assert.equal(asked(one), before);
    assert.deepEqual(await cachedManagers(sources.late, "a-late"), ["late"]);
  },
);

scenario(
  "A secondary that is replaced as the cache has it stays owned by others",
  async (one) => {
    const from = source();
    await one.create("a");
    await one.client.create(ConfigMap, {
      metadata: { namespace: "default", name: "m" },
      data: { other: "x" },
    }, { fieldManager: "someone" });
    let errors = 0;
    const operator = one.operator();
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
    await one.start(operator);
    await one.until(async () => (await managersOf(one, "m")).length === 2);
    assert.deepEqual((await managersOf(one, "m")).sort(), ["page", "someone"]);
    assert.equal(errors, 0);
    assert.deepEqual(await cachedManagers(from, "m"), ["page"]);
  },
);
