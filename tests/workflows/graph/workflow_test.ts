import assert from "node:assert/strict";
import { test } from "node:test";
import type { Context } from "@coracle/operator/core";
import { ConfigMap, type KubernetesObject } from "@coracle/operator/kinds";
import { watch } from "@coracle/operator/sources";
import {
  bulkDependent,
  kubernetesDependent,
  objectsDependent,
  readOnlyDependent,
  Workflow,
  type WorkflowNode,
} from "@coracle/operator/workflows";
import { fc } from "../../support/property.ts";
import type { NodeState } from "../../../workflows/graph/node.ts";

const primary: KubernetesObject = { metadata: { name: "x" } };
// The executors and these dependents look at nothing else of the context.
const ctx = { attributes: new Map() } as unknown as Context<KubernetesObject>;

/** What the nodes of a test do, and in which order they did it. */
class World {
  readonly trace: string[] = [];
  running = 0;
  mostRunning = 0;

  dependent(
    name: string,
    options: { fails?: boolean; deleteFails?: boolean; owned?: boolean } = {},
  ) {
    const act = async (verb: string, fails: boolean | undefined) => {
      this.mostRunning = Math.max(this.mostRunning, ++this.running);
      await new Promise((resolve) => setImmediate(resolve));
      this.running--;
      this.trace.push(`${verb} ${name}`);
      if (fails) throw new Error(`${name} is broken`);
    };
    return {
      garbageCollected: options.owned,
      read: () => `${name} resource`,
      reconcile: async () => {
        await act("reconcile", options.fails);
        return { operation: "updated", resource: `${name} resource` } as const;
      },
      delete: () => act("delete", options.deleteFails),
    };
  }
}

const collect = { errors: "collect" } as const;

function states(result: { nodes: ReadonlyMap<string, { state: NodeState }> }) {
  return Object.fromEntries(
    [...result.nodes].map(([name, { state }]) => [name, state]),
  );
}

test("Workflow reconciles a node when all that it depends on is ready [OrderedManagedDependentIT]", async () => {
  const world = new World();
  const flow = new Workflow()
    .add("a", world.dependent("a"))
    .add("b", world.dependent("b"))
    .add("c", world.dependent("c"), { dependsOn: ["a", "b"] });
  const result = await flow.reconcile(primary, ctx);
  assert.equal(world.trace[2], "reconcile c");
  assert.equal(result.done, true);
  assert.equal(result.node("c").resource, "c resource");
  assert.equal(result.node("c").operation, "updated");
});

test("Conditions of a dependent hold besides those of its node", async () => {
  const world = new World();
  const own = { ready: false, gone: false };
  const flow = (met: boolean) =>
    new Workflow<KubernetesObject>(collect).add("a", {
      ...world.dependent("a"),
      readyWhen: () => ({ met: own.ready, message: "not installed" }),
      deletedWhen: () => own.gone,
    }, { readyWhen: () => met, deletedWhen: () => met });
  assert.equal(flow(true).needsFinalizer, true);
  const told = async (met: boolean) => {
    const { nodes } = await flow(met).reconcile(primary, ctx);
    const { state: deleted } = (await flow(met).cleanup(primary, ctx)).node(
      "a",
    );
    return [nodes.get("a")?.state, deleted];
  };
  assert.deepEqual(await told(true), ["notReady", "deleting"]);
  const { verdicts } = (await flow(true).reconcile(primary, ctx)).node("a");
  assert.equal(verdicts.readyWhen?.message, "not installed");
  Object.assign(own, { ready: true, gone: true });
  assert.deepEqual(await told(false), ["notReady", "deleting"]);
  assert.deepEqual(await told(true), ["reconciled", "deleted"]);
});

test("Two sets of one name in a workflow are refused", () => {
  const set = (name?: string) => objectsDependent({ objects: () => [], name });
  const flow = new Workflow().add("a", set()).add("b", set("other"));
  assert.throws(
    () => flow.add("c", set("objects")),
    /sets of "a" and "c" would delete each other's objects.*received "objects" twice/,
  );
});

test("Workflow does not start a node above one that is not ready", async () => {
  const world = new World();
  const result = await new Workflow()
    .add("a", world.dependent("a"), {
      readyWhen: ({ resource }) => ({ met: false, detail: resource }),
    })
    .add("b", world.dependent("b"), { dependsOn: ["a"] })
    .reconcile(primary, ctx);
  assert.deepEqual(states(result), { a: "notReady", b: "waiting" });
  assert.deepEqual(result.node("a").verdicts.readyWhen, {
    met: false,
    detail: "a resource",
  });
  assert.deepEqual(result.node("b").waitingFor, ["a"]);
  assert.equal(result.done, false);
  assert.deepEqual(result.toCondition("Ready"), {
    type: "Ready",
    status: "False",
    reason: "Progressing",
    message: "Waiting for a",
  });
});

test("Workflow neither starts nor deletes a node above one that has failed", async () => {
  const world = new World();
  const result = await new Workflow(collect)
    .add("a", world.dependent("a", { fails: true }))
    .add("b", world.dependent("b"), { dependsOn: ["a"] })
    .add("c", world.dependent("c"), { dependsOn: ["b"] })
    .reconcile(primary, ctx);
  assert.deepEqual(states(result), { a: "failed", b: "waiting", c: "waiting" });
  assert.deepEqual(world.trace, ["reconcile a"]);
});

test("Workflow deletes an unwanted node after all that depends on it", async () => {
  const world = new World();
  const result = await new Workflow(collect)
    .add("a", world.dependent("a"))
    .add("b", world.dependent("b"), {
      dependsOn: ["a"],
      reconcileWhen: () => false,
    })
    .add("c", world.dependent("c"), { dependsOn: ["b"] })
    .add("d", world.dependent("d"), { dependsOn: ["c", "a"] })
    .reconcile(primary, ctx);
  assert.deepEqual(world.trace, [
    "reconcile a",
    "delete d",
    "delete c",
    "delete b",
  ]);
  assert.equal(result.done, true);
});

test("Workflow keeps the dependencies of a node that still exists [WorkflowAllFeatureIT]", async () => {
  const world = new World();
  const result = await new Workflow()
    .add("a", world.dependent("a"), { reconcileWhen: () => false })
    .add("b", world.dependent("b"), {
      dependsOn: ["a"],
      deletedWhen: () => false,
    })
    .reconcile(primary, ctx);
  assert.deepEqual(world.trace, ["delete b"]);
  assert.deepEqual(states(result), { a: "deleting", b: "deleting" });
});

test("Workflow leaves a skipped node alone and goes on above it", async () => {
  const world = new World();
  const result = await new Workflow()
    .add("a", world.dependent("a"), { skipWhen: () => true })
    .add("b", world.dependent("b"), { dependsOn: ["a"] })
    .reconcile(primary, ctx);
  assert.deepEqual(world.trace, ["reconcile b"]);
  assert.deepEqual(states(result), { a: "skipped", b: "reconciled" });
});

test("Workflow does not touch an inactive node and deletes what depends on it [PreconditionAndActivationIT]", async () => {
  const world = new World();
  const result = await new Workflow()
    .add("route", world.dependent("route"), {
      activeWhen: () => false,
      reconcileWhen: () => assert.fail("asked though inactive"),
    })
    .add("above", world.dependent("above"), { dependsOn: ["route"] })
    .add("beside", world.dependent("beside"))
    .reconcile(primary, ctx);
  assert.deepEqual(world.trace.toSorted(), [
    "delete above",
    "reconcile beside",
  ]);
  assert.equal(result.done, true);
});

test("Workflow throws all errors together, or collects them [WorkflowSilentExceptionHandlingIT]", async () => {
  const world = new World();
  const nodes = [..."ab"].map((name): WorkflowNode<KubernetesObject> => ({
    name,
    dependsOn: [],
    dependent: world.dependent(name, { fails: true, deleteFails: true }),
    when: {},
  }));
  await assert.rejects(
    new Workflow({}, nodes).reconcile(primary, ctx),
    (error: unknown) => {
      assert.ok(error instanceof AggregateError);
      assert.match(error.message, /2 of 2 nodes failed.*a is broken; b/);
      return true;
    },
  );
  const silent = new Workflow(collect, nodes);
  assert.equal((await silent.reconcile(primary, ctx)).errors.size, 2);
  assert.equal((await silent.cleanup(primary, ctx)).errors.size, 2);
});

test("Workflow cleans up in reverse and leaves to the garbage collector what is its", async () => {
  const world = new World();
  const flow = new Workflow()
    .add("a", world.dependent("a"))
    .add("owned", world.dependent("owned", { owned: true }), {
      dependsOn: ["a"],
    })
    .add("c", world.dependent("c"), { dependsOn: ["owned"] });
  const result = await flow.cleanup(primary, ctx);
  assert.deepEqual(world.trace, ["delete c", "delete a"]);
  assert.equal(result.done, true);
  assert.equal(flow.needsFinalizer, true);
  assert.equal(
    new Workflow().add("owned", world.dependent("owned", { owned: true }))
      .needsFinalizer,
    false,
  );
});

test("Workflow deletes an owned node with deletedWhen, and what depends on it", async () => {
  const world = new World();
  const owned = (name: string) => world.dependent(name, { owned: true });
  const flow = new Workflow()
    .add("left", owned("left"))
    .add("awaited", owned("awaited"), {
      dependsOn: ["left"],
      deletedWhen: () => world.trace.includes("delete awaited"),
    })
    .add("above", owned("above"), { dependsOn: ["awaited"] });
  assert.equal((await flow.cleanup(primary, ctx)).done, true);
  assert.deepEqual(world.trace, ["delete above", "delete awaited"]);
});

test("Workflow refuses a bulk that would delete the objects of another node", () => {
  const one = kubernetesDependent(ConfigMap, {
    desired: () => ({ metadata: { name: "one" } }),
  });
  const bulk = (
    options: Partial<
      Parameters<typeof bulkDependent<KubernetesObject, ConfigMap>>[1]
    > = {},
  ) => bulkDependent(ConfigMap, { desired: () => [], ...options });
  const both = (many: ReturnType<typeof bulk>) =>
    new Workflow().add("many", many).add("one", one);
  const refused =
    /the bulk dependent of "many" would delete the objects of "one".*labelSelector/;
  assert.throws(() => both(bulk()), refused);
  assert.throws(() => both(bulk({ source: one.source })), refused);
  assert.throws(
    () => new Workflow().add("many", bulk()).add("one", bulk()),
    refused,
  );
  both(bulk({ unwanted: "orphan" }));
  both(bulk({ source: watch(ConfigMap) }));
  const selected = bulk({ watch: { labelSelector: "part=many" } });
  both(selected);
  for (
    const labelSelector of ["part=many", { matchLabels: { part: "many" } }]
  ) {
    assert.throws(
      () =>
        new Workflow().add("many", selected)
          .add("one", bulk({ watch: { labelSelector } })),
      refused,
    );
  }
  new Workflow().add("many", selected)
    .add("one", bulk({ watch: { labelSelector: "part=one" } }));
  const labelSelector = "part=many";
  new Workflow().add(
    "many",
    bulk({ watch: { labelSelector, namespaces: ["a"] } }),
  )
    .add("one", bulk({ watch: { labelSelector, namespaces: ["b"] } }));
  new Workflow().add("many", bulk()).add("one", readOnlyDependent(ConfigMap));
});

test("Workflow is not done before the deleted conditions hold [ManagedDependentDeleteConditionIT]", async () => {
  const world = new World();
  let gone = false;
  const flow = new Workflow()
    .add("parent", world.dependent("parent"))
    .add("map", world.dependent("map"), {
      dependsOn: ["parent"],
      deletedWhen: () => gone,
    });
  assert.deepEqual(states(await flow.cleanup(primary, ctx)), {
    parent: "deleting",
    map: "deleting",
  });
  assert.deepEqual(world.trace, ["delete map"]);
  gone = true;
  assert.equal((await flow.cleanup(primary, ctx)).done, true);
});

test("Workflow limits the number of concurrent nodes", async () => {
  const world = new World();
  const nodes = Array.from({ length: 20 }, (_, index) => ({
    name: `n${index}`,
    dependsOn: [],
    dependent: world.dependent(`n${index}`),
    when: {},
  }));
  await new Workflow({ concurrency: 3 }, nodes).reconcile(primary, ctx);
  assert.equal(world.mostRunning, 3);
  assert.throws(() => new Workflow({ concurrency: 0 }), RangeError);
});

test("Workflow draws its nodes, their order and what became of them", async () => {
  const flow = new Workflow()
    .add("a", { read: () => 1 })
    .add("b", { read: () => 2 }, { dependsOn: ["a"] });
  assert.equal(
    flow.toMermaid(),
    'flowchart TD\n  n0["a"]\n  n1["b"]\n  n0 --> n1\n',
  );
  const drawn = flow.toMermaid(await flow.reconcile(primary, ctx));
  assert.match(drawn, /n1\["b<br\/>reconciled"\]:::reconciled/);
});

interface Shape {
  readonly dependsOn: readonly number[];
  readonly active: boolean;
  readonly skip: boolean;
  readonly wanted: boolean;
  readonly ready: boolean;
  readonly gone: boolean;
  readonly fails: boolean;
  readonly deleteFails: boolean;
}

const shape = fc.record<Shape>({
  dependsOn: fc.array(fc.nat(12), { maxLength: 3 }),
  active: fc.boolean(),
  skip: fc.boolean(),
  wanted: fc.boolean(),
  ready: fc.boolean(),
  gone: fc.boolean(),
  fails: fc.boolean(),
  deleteFails: fc.boolean(),
});

/** Mostly nodes with nothing special, so that chains get somewhere. */
const shapes = fc.array(
  fc.oneof(
    {
      weight: 3,
      arbitrary: fc.record({ dependsOn: shape.map((s) => s.dependsOn) }).map(
        (s): Shape => ({
          ...s,
          active: true,
          skip: false,
          wanted: true,
          ready: true,
          gone: true,
          fails: false,
          deleteFails: false,
        }),
      ),
    },
    { weight: 2, arbitrary: shape },
  ),
  { maxLength: 13 },
);

/** What should become of each node, computed one after the other. */
function expected(nodes: readonly Shape[], cleanup: boolean): NodeState[] {
  const parents = (index: number) =>
    nodes[index]!.dependsOn.filter((other) => other < index);
  const states: (NodeState | "unwanted")[] = [];
  for (const [index, node] of nodes.entries()) {
    const before = parents(index).map((parent) => states[parent]);
    if (cleanup || before.some((s) => s === "unwanted" || s === "inactive")) {
      states.push("unwanted");
    } else if (before.some((s) => s !== "reconciled" && s !== "skipped")) {
      states.push("waiting");
    } else if (!node.active) states.push("inactive");
    else if (node.skip) states.push("skipped");
    else if (!node.wanted) states.push("unwanted");
    else if (node.fails) states.push("failed");
    else states.push(node.ready ? "reconciled" : "notReady");
  }
  for (let index = nodes.length - 1; index >= 0; index--) {
    if (states[index] !== "unwanted") continue;
    const node = nodes[index]!;
    const children = [...nodes.keys()].filter((child) =>
      parents(child).includes(index)
    );
    states[index] = children.some((child) =>
        !["deleted", "inactive"].includes(states[child]!)
      )
      ? "deleting"
      : !node.active
      ? "inactive"
      : node.deleteFails
      ? "failed"
      : node.gone
      ? "deleted"
      : "deleting";
  }
  return states as NodeState[];
}

for (const cleanup of [false, true]) {
  const verb = cleanup ? "cleans up" : "reconciles";
  test(`Workflow ${verb} random graphs as a plain model does, in order`, async () => {
    await fc.assert(
      fc.asyncProperty(
        shapes,
        fc.integer({ min: 1, max: 4 }),
        async (nodes, concurrency) => {
          const world = new World();
          const flow = new Workflow(
            { errors: "collect", concurrency },
            nodes.map((node, index): WorkflowNode<KubernetesObject> => ({
              name: `n${index}`,
              dependsOn: node.dependsOn.filter((other) => other < index)
                .map((other) => `n${other}`),
              dependent: world.dependent(`n${index}`, node),
              when: {
                activeWhen: () => node.active,
                skipWhen: () => node.skip,
                reconcileWhen: () => node.wanted,
                readyWhen: () => node.ready,
                deletedWhen: () => node.gone,
              },
            })).toReversed(),
          );
          const result = cleanup
            ? await flow.cleanup(primary, ctx)
            : await flow.reconcile(primary, ctx);
          const model = expected(nodes, cleanup);
          for (const [index, state] of model.entries()) {
            assert.equal(
              result.nodes.get(`n${index}`)?.state,
              state,
              `n${index}`,
            );
          }
          for (const { name, dependsOn } of flow.nodes) {
            for (const dependency of dependsOn) {
              assertOrder(
                world.trace,
                `reconcile ${dependency}`,
                `reconcile ${name}`,
              );
              assertOrder(
                world.trace,
                `delete ${name}`,
                `delete ${dependency}`,
              );
            }
          }
          assert.equal(
            new Set(world.trace).size,
            world.trace.length,
            "each once",
          );
          assert.ok(world.mostRunning <= concurrency);
        },
      ),
      { numRuns: 300 },
    );
  });
}

function assertOrder(trace: readonly string[], first: string, second: string) {
  const [a, b] = [trace.indexOf(first), trace.indexOf(second)];
  if (a >= 0 && b >= 0) assert.ok(a < b, `${first} before ${second}`);
}

test("Workflow deletes all nodes in reverse where its reconcileWhen is not met", async () => {
  const world = new World();
  let verdict: unknown = { met: true };
  let evaluated = 0;
  const flow = new Workflow({
    reconcileWhen: ({ primary }) => {
      assert.equal(primary.metadata.name, "x");
      evaluated++;
      return verdict as boolean;
    },
  })
    .add("a", world.dependent("a"))
    .add("b", world.dependent("b"), { dependsOn: ["a"] })
    .add("c", world.dependent("c"), {
      dependsOn: ["b"],
      reconcileWhen: () => false,
    });
  const first = await flow.reconcile(primary, ctx);
  assert.deepEqual(states(first), {
    a: "reconciled",
    b: "reconciled",
    c: "deleted",
  });
  world.trace.length = 0;
  verdict = { met: false, message: "No label", recheckAfter: "5s" };
  const second = await flow.reconcile(primary, ctx);
  assert.deepEqual(states(second), {
    a: "deleted",
    b: "deleted",
    c: "deleted",
  });
  assert.deepEqual(world.trace, ["delete c", "delete b", "delete a"]);
  assert.equal(second.rescheduleAfter, 5_000);
  assert.equal(second.node("a").verdicts.reconcileWhen?.message, "No label");
  assert.equal(evaluated, 2, "once a run");
  await flow.cleanup(primary, ctx);
  assert.equal(evaluated, 2, "not by a cleanup");
  verdict = "yes";
  await assert.rejects(
    flow.reconcile(primary, ctx),
    /^TypeError: Cannot decide on a workflow: "reconcileWhen" must answer true, false or a verdict: received string$/,
  );
});

test("Workflow asks activeWhen once in a run, and its result has the answer", async () => {
  const world = new World();
  let asked = 0;
  const activeWhen = () => {
    asked++;
    return { met: true, detail: "present" };
  };
  const result = await new Workflow()
    .add("wanted", world.dependent("wanted"), { activeWhen })
    .add("unwanted", world.dependent("unwanted"), {
      activeWhen,
      reconcileWhen: () => false,
    })
    .reconcile(primary, ctx);
  assert.deepEqual(states(result), {
    wanted: "reconciled",
    unwanted: "deleted",
  });
  assert.equal(asked, 2);
  for (const name of ["wanted", "unwanted"] as const) {
    assert.deepEqual(result.node(name).verdicts.activeWhen, {
      met: true,
      detail: "present",
    });
  }
});

test("Workflow passes conditions the resource, as it was reconciled or is read", async () => {
  const seen: unknown[] = [];
  const note = (what: string, met: boolean) =>
  (
    { resource }: { readonly resource: unknown },
  ) => {
    seen.push(`${what} ${resource}`);
    return met;
  };
  const dependent = {
    read: () => "read",
    reconcile: () =>
      Promise.resolve(
        { operation: "updated", resource: "reconciled" } as const,
      ),
    delete: () => Promise.resolve(),
  };
  await new Workflow()
    .add("a", dependent, {
      skipWhen: note("skip", false),
      reconcileWhen: note("wanted", true),
      readyWhen: note("ready", true),
    })
    .add("b", dependent, {
      reconcileWhen: () => false,
      deletedWhen: note("deleted", true),
    })
    .reconcile(primary, ctx);
  assert.deepEqual(seen.toSorted(), [
    "deleted read",
    "ready reconciled",
    "skip read",
    "wanted read",
  ]);
});

test("Workflow names all that a node waits for, and calls a read no operation", async () => {
  const world = new World();
  const unready = { readyWhen: () => false };
  const flow = new Workflow()
    .add("a", world.dependent("a"), unready)
    .add("b", world.dependent("b"), unready)
    .add("c", world.dependent("c"), { dependsOn: ["a", "b"] })
    .add("read", { read: () => "there" });
  const done = await flow.reconcile(primary, ctx);
  assert.deepEqual(done.node("c").waitingFor, ["a", "b"]);
  assert.equal(done.node("read").operation, "none");
  assert.equal(done.resource("read"), "there");
});

test("Workflow runs ten nodes at a time unless an option says otherwise", async () => {
  for (const [options, most] of [[{}, 10], [{ concurrency: 3 }, 3]] as const) {
    const world = new World();
    const names = Array.from({ length: 14 }, (_, index) => `n${index}`);
    const nodes = names.map((name) => ({
      name,
      dependsOn: [],
      dependent: world.dependent(name),
      when: {},
    }));
    await new Workflow(options, nodes).reconcile(primary, ctx);
    assert.equal(world.mostRunning, most);
  }
});

test("Workflow needs a finalizer for what the garbage collector does not delete", () => {
  const needs = (
    dependent: { delete?: () => Promise<void>; garbageCollected?: boolean },
    when: { deletedWhen?: () => boolean } = {},
  ) =>
    new Workflow().add<"a", string>(
      "a",
      { read: () => "a", ...dependent },
      when,
    )
      .needsFinalizer;
  const deletes = { delete: () => Promise.resolve() };
  assert.equal(needs(deletes), true);
  assert.equal(needs({}), false);
  assert.equal(needs({ ...deletes, garbageCollected: true }), false);
  const waits = { deletedWhen: () => true };
  assert.equal(needs({ ...deletes, garbageCollected: true }, waits), true);
  assert.equal(needs({}, waits), false);
});

test("Workflow keeps the result of a run that failed, with the clock of the run", async () => {
  const world = new World();
  const attributes = new Map();
  const clock = { wallTime: () => 5_000 };
  const own = { attributes, clock } as unknown as Context<KubernetesObject>;
  const flow = new Workflow().add("a", world.dependent("a", { fails: true }));
  await assert.rejects(flow.reconcile(primary, own), /a is broken/);
  const [ready] = flow.resultOf(own).rollUp(primary);
  assert.equal(ready?.reason, "Failed");
  assert.equal(ready?.lastTransitionTime, "1970-01-01T00:00:05Z");
});
