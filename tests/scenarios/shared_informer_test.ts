import assert from "node:assert/strict";
import { ConfigMap } from "@coracle/operator/kinds";
import { byAnnotation, watch } from "@coracle/operator/sources";
import {
  Gadget,
  type OperatorFixture,
  scenario,
} from "../support/operator_fixture.ts";

/** A source of annotated ConfigMaps. */
function maps(name: string, shared: boolean) {
  return watch<Gadget, ConfigMap>(ConfigMap, {
    name,
    shared,
    mapper: byAnnotation(),
  });
}

/** How often ConfigMaps were listed and watched from the beginning. */
function watches(fixture: OperatorFixture): number {
  return fixture.requests.filter(({ resource, target }) =>
    resource === "configmaps" && target.includes("sendInitialEvents=true")
  ).length;
}

function makeMap(fixture: OperatorFixture, name: string) {
  return fixture.client.create(ConfigMap, {
    metadata: {
      namespace: "default",
      name,
      annotations: { "coracle.dev/primary-name": "a" },
    },
  });
}

/** An operator of two controllers, and how many ConfigMaps each has seen. */
function twoControllers(fixture: OperatorFixture, shared: boolean) {
  const seen: Record<string, number> = { one: 0, two: 0 };
  const operator = fixture.operator();
  const controllers = ["one", "two"].map((name) =>
    operator.register(Gadget, {
      async reconcile(_gadget, ctx) {
        const source = sources[name];
        seen[name] = source === undefined
          ? 0
          : (await ctx.secondaries(source)).length;
      },
    }, { name })
  );
  const sources: Record<string, ReturnType<typeof maps>> = {};
  const add = async (index: number) => {
    const controller = controllers[index]!;
    const source = maps(`maps of ${controller.name}`, shared);
    sources[controller.name] = source;
    await fixture.done(controller.addSource(source));
    controller.trigger("default/a");
  };
  const remove = (index: number) =>
    fixture.done(controllers[index]!.removeSource(
      `maps of ${controllers[index]!.name}`,
    ));
  return { operator, seen, add, remove };
}

/** Two controllers that have a source from the start. */
async function playTogether(
  fixture: OperatorFixture,
  shared: boolean,
): Promise<void> {
  const runs: Record<string, number> = { one: 0, two: 0 };
  const operator = fixture.operator();
  for (const name of ["one", "two"]) {
    operator.register(Gadget, {
      reconcile() {
        runs[name] = (runs[name] ?? 0) + 1;
      },
    }, { name, sources: [maps(`maps of ${name}`, shared)] });
  }
  await fixture.start(operator);
  assert.equal(watches(fixture), shared ? 1 : 2);
  await fixture.create("a");
  await fixture.until(() => runs["one"] === 1 && runs["two"] === 1);
  await makeMap(fixture, "m");
  await fixture.until(() => runs["one"] === 2 && runs["two"] === 2);
}

/** A source joins while another one watches. */
async function playJoining(
  fixture: OperatorFixture,
  shared: boolean,
): Promise<void> {
  const { operator, seen, add } = twoControllers(fixture, shared);
  await makeMap(fixture, "m");
  await fixture.start(operator);
  await fixture.create("a");
  await add(0);
  await fixture.until(() => seen["one"] === 1);
  await add(1);
  await fixture.until(() => seen["two"] === 1);
  assert.equal(watches(fixture), shared ? 1 : 2);
  await makeMap(fixture, "n");
  await fixture.until(() => seen["one"] === 2 && seen["two"] === 2);
}

/** Sources leave one after the other. */
async function playLeaving(
  fixture: OperatorFixture,
  shared: boolean,
): Promise<void> {
  const { operator, seen, add, remove } = twoControllers(fixture, shared);
  await fixture.start(operator);
  await fixture.create("a");
  await add(0);
  await add(1);
  await remove(0);
  await makeMap(fixture, "m");
  await fixture.until(() => seen["two"] === 1);
  assert.equal(seen["one"], 0);
  await remove(1);
  const before = watches(fixture);
  assert.equal(before, shared ? 1 : 2);
  await makeMap(fixture, "n");
  await fixture.advance(5_000);
  assert.deepEqual(seen, { one: 0, two: 1 });
  await add(0);
  await fixture.until(() => seen["one"] === 2);
  assert.equal(watches(fixture), before + 1);
}

scenario(
  "Two controllers of one kind of secondaries share a watch, and both run [SharedInformerIT]",
  (fixture) => playTogether(fixture, true),
);

scenario(
  "Two sources that do not share have a watch each, and both run [NonSharingInformerPoolSharedInformerIT]",
  (fixture) => playTogether(fixture, false),
);

scenario(
  "A source that joins a running watch gets the existing objects [DynamicSharedInformerIT]",
  (fixture) => playJoining(fixture, true),
);

scenario(
  "A source that joins with its own watch gets the existing objects [NonSharingInformerPoolDynamicSharedInformerIT]",
  (fixture) => playJoining(fixture, false),
);

scenario(
  "A shared watch ends with its last source and can start again [DeregisterSharedInformerIT]",
  (fixture) => playLeaving(fixture, true),
);

scenario(
  "A watch ends with its source and can start again [NonSharingInformerPoolDeregisterSharedInformerIT]",
  (fixture) => playLeaving(fixture, false),
);
