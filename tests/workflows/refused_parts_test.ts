import assert from "node:assert/strict";
import { test } from "node:test";
import { ConfigMap } from "@coracle/operator/kinds";
import { inboundSource, watch } from "@coracle/operator/sources";
import {
  accessByClient,
  Canary,
  externalDependent,
  kubernetesDependent,
  SharedStatus,
  summarized,
  Workflow,
} from "@coracle/operator/workflows";

const add = (dependent: object) =>
  new Workflow().add("a", { read() {}, ...dependent } as never);
const outside = (options: object) =>
  externalDependent(
    { source: inboundSource("a"), desired: () => 1, ...options } as never,
  );

/** Parts that users implement, and the error for each invalid one. */
const CASES: readonly (readonly [make: () => unknown, said: RegExp])[] = [
  [() => add({ reconcile: 5 }), /dependent: "reconcile" must be a function/],
  [() => add({ delete: true }), /dependent: "delete" must be a function/],
  [() => add({ sources: {} }), /dependent: "sources" must be an array/],
  [() => add({ sources: [5] }), /source of its dependent: .*name, start: rec/],
  [() => add({ sources: [{ name: "a" }] }), /"start" must be a function/],
  [() => add({ garbageCollected: "no" }), /"garbageCollected" must be true/],
  [
    () => new Workflow({}, 5 as never),
    /its nodes must be iterable: .*a number/,
  ],
  [() => new Workflow({}, [5] as never), /a node of a workflow: .*a number/],
  [
    () => new Workflow({}, [{ name: "a" }] as never),
    /a node of a workflow: "dependsOn" must be an array of strings/,
  ],
  [
    () =>
      kubernetesDependent(
        ConfigMap,
        { desired: () => ({}), source: {} } as never,
      ),
    /a dependent of ConfigMap, source: "name" must be a string/,
  ],
  [
    () =>
      kubernetesDependent(ConfigMap, {
        desired: () => ({ metadata: { name: "a" } }),
        source: watch(ConfigMap),
        watch: { labelSelector: "app=web" },
      }),
    /a dependent of ConfigMap: "watch" is only for a dependent without "source": received labelSelector/,
  ],
  [() => outside({ source: {} }), /an external dependent, source: "name" must/],
  [() => outside({ state: {} }), /state: "store" must be an object/],
  [
    () => outside({ state: { store: {}, id: () => "" } }),
    /an external dependent, store: "read" must be a function/,
  ],
  [
    () => new SharedStatus({} as never, { access: {} } as never),
    /a SharedStatus, access: "read" must be a function/,
  ],
  [
    () =>
      accessByClient(ConfigMap, { metadata: { name: "a" } }, {
        client: {} as never,
      }),
    /accessByClient\(\), client: "get" must be a function/,
  ],
  [
    () => new Canary(ConfigMap, { client: {} as never, touch: () => ({}) }),
    /a canary, client: "patch" must be a function/,
  ],
  [
    () =>
      summarized(
        ConfigMap as never,
        { schedule: () => ({}) as never, notifier: {} as never },
        [],
      ),
    /a summarized reconciler, notifier: "notify" must be a function/,
  ],
];

test("Parts of workflows that users implement are refused where they are given", () => {
  for (const [make, said] of CASES) {
    assert.throws(make, ({ message }: Error) => {
      assert.match(message, /^Cannot .+: .+: received /s);
      assert.match(message, said);
      return true;
    });
  }
});
