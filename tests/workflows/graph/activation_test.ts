import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@coracle/dev";
import type {
  Context,
  EventSource,
  KubernetesObject,
  ResolvedKind,
} from "@coracle/operator/core";
import { crdPresent, type WorkflowNode } from "@coracle/operator/workflows";
import { Activation } from "../../../workflows/graph/activation.ts";
import { gadget, recordedContext } from "../../support/source_context.ts";

type Node = WorkflowNode<KubernetesObject>;

/** A node that uses event sources. */
function node(
  name: string,
  sources: readonly EventSource<KubernetesObject>[],
  activeWhen?: Node["when"]["activeWhen"],
): Node {
  const when = { activeWhen };
  return { name, dependsOn: [], dependent: { sources }, when } as never;
}

/** An event source that records its starts and stops. */
function recorded(name: string) {
  const calls: string[] = [];
  const record = (call: string) => () => {
    calls.push(call);
    return Promise.resolve();
  };
  const source: EventSource<KubernetesObject> = {
    name,
    start: record("start"),
    stop: record("stop"),
  };
  return { source, calls };
}

const ROUTE: ResolvedKind = {
  group: "example.com",
  version: "v1",
  kind: "Route",
  plural: "routes",
  scope: "Namespaced",
};

test("Activation starts a source that a node without activeWhen uses, too", () => {
  const { source } = recorded("maps");
  const always = node("always", [source]);
  const rarely = node("rarely", [source], () => false);
  for (const nodes of [[always, rarely], [rarely, always]]) {
    assert.deepEqual(new Activation(nodes).sources, [source]);
  }
});

test("Activation holds a source for each active node and primary", async () => {
  const { source, calls } = recorded("maps");
  const active = new Set(["first a", "second a", "first b"]);
  const nodes = ["first", "second"].map((name) =>
    node(
      name,
      [source, source],
      ({ primary }) => active.has(`${name} ${primary.metadata.name}`),
    )
  );
  const activation = new Activation(nodes);
  const [gated] = activation.sources;
  await gated!.start(recordedContext(new VirtualClock()));
  const run = async (name: string) => {
    const verdicts = [];
    for (const one of nodes) {
      const verdict = await activation.verdict(one, {
        primary: gadget(name),
        ctx: {} as Context<KubernetesObject>,
      });
      verdicts.push(verdict?.met);
    }
    return verdicts;
  };
  assert.deepEqual(await run("c"), [false, false]);
  assert.deepEqual(calls, []);
  assert.deepEqual(await run("a"), [true, true]);
  assert.deepEqual(await run("b"), [true, false]);
  active.delete("first a");
  active.delete("first b");
  assert.deepEqual(await run("a"), [false, true]);
  assert.deepEqual(await run("b"), [false, false]);
  assert.deepEqual(calls, ["start"], "a node is active for one primary");
  active.clear();
  await run("a");
  assert.deepEqual(calls, ["start", "stop"]);
});

test("Activation watches a definition once for each version that nodes need", async () => {
  const served = ["v1"];
  const crd = () => ({
    metadata: { name: "routes.example.com" },
    spec: {
      versions: ["v1", "v2"].map((name) => ({
        name,
        served: served.includes(name),
      })),
    },
    status: { conditions: [{ type: "Established", status: "True" }] },
  });
  const acquired: unknown[] = [];
  const context = recordedContext(new VirtualClock(), [], {
    informers: {
      acquire(kind: ResolvedKind, selection: object) {
        acquired.push([kind.kind, selection]);
        const addHandler = () => ({ synced: Promise.resolve() });
        return { informer: { addHandler, get: crd }, release() {} };
      },
    } as never,
  });
  const first = node("first", [], crdPresent(ROUTE));
  const again = node("again", [], crdPresent({ ...ROUTE }));
  const second = node("second", [], crdPresent({ ...ROUTE, version: "v2" }));
  const activation = new Activation([first, second, again]);
  for (const source of activation.sources) await source.start(context);
  const fieldSelector = "metadata.name=routes.example.com";
  const watch = ["CustomResourceDefinition", { fieldSelector }];
  assert.deepEqual(acquired, [watch, watch]);
  const verdicts = [first, second, again].map((one) =>
    activation.verdict(one, { primary: gadget("a"), ctx: {} as never })
  );
  const met = (await Promise.all(verdicts)).map((verdict) => verdict?.met);
  assert.deepEqual(met, [true, false, true]);
});
