/**
 * Types of the results of a reconciler: a field that the kind does not have is
 * an error of the compiler, also beside fields that it has.
 */
import { test } from "node:test";
import {
  type Kind,
  noUpdate,
  patchResource,
  patchResourceAndStatus,
  patchStatus,
  type Reconciler,
  setStatus,
} from "@coracle/operator/core";
import {
  type Condition,
  Deployment,
  type KubernetesObject,
  Secret,
} from "@coracle/operator/kinds";

interface Typed extends KubernetesObject {
  spec: { size: number; parts?: { name: string; weight?: number }[] };
  status?: {
    ready?: number;
    text?: string;
    inner?: { done: boolean; hint?: string };
    labels?: Record<string, string>;
    conditions?: Condition[];
  };
}

type Reconcile = Reconciler<Typed>["reconcile"];
const condition: Condition = {
  type: "Ready",
  status: "True",
  reason: "Up",
  message: "",
  lastTransitionTime: "2026-01-01T00:00:00Z",
};

const right: readonly Reconcile[] = [
  () => patchStatus({ ready: 1 }),
  () => patchStatus({}),
  () => patchStatus({ ready: null, inner: null }),
  () => patchStatus({ inner: { done: true }, labels: { any: "x" } }),
  () => patchStatus({ conditions: [condition] }).rescheduleAfter("10s"),
  async () => await Promise.resolve(setStatus({ ready: 1, text: "x" })),
  ({ spec }) => spec.size > 1 ? noUpdate() : setStatus({ ready: 1 }),
  ({ status }) => setStatus({ ...status, ready: 2 }),
  ({ spec }) => patchResource({ spec: { ...spec, size: 2 } }),
  () => patchResource({ metadata: { labels: { "a/b": "c" } } }),
  // Names that are known only when it runs.
  ({ metadata: { name } }) => patchStatus({ labels: { [name]: "x" } }),
  ({ metadata: { name } }) => patchStatus({ labels: { [name]: null } }),
  () => setStatus({ labels: Object.fromEntries([["a", "x"]]) }),
  ({ metadata: { name } }) =>
    patchResource({ metadata: { labels: { [name]: null } } }),
  () => patchResourceAndStatus({ spec: { size: 1 } }, { ready: 1 }),
  (): ReturnType<Reconcile> => {},
];

const wrong: readonly Reconcile[] = [
  // @ts-expect-error: there is no such field
  () => patchStatus({ readdy: 1, ready: 2 }),
  // @ts-expect-error: there is no such field
  () => setStatus({ readdy: 1, ready: 2 }),
  // @ts-expect-error: there is no such field
  () => setStatus({ readdy: 1, ready: 2 }).rescheduleAfter("10s"),
  // @ts-expect-error: there is no such field
  async () => await Promise.resolve(patchStatus({ readdy: 1, ready: 2 })),
  // @ts-expect-error: there is no such field within a field
  () => patchStatus({ inner: { done: true, hnt: "x" } }),
  // @ts-expect-error: there is no such field in an item of a list
  () => patchStatus({ conditions: [{ ...condition, reson: "x" }] }),
  // @ts-expect-error: there is no such field in a spread object
  ({ status }) => setStatus({ ...status, redy: 2 }),
  // @ts-expect-error: there is no such field of the object
  () => patchResource({ spec: { size: 1, parst: [] } }),
  // @ts-expect-error: there is no such field of the status
  () => patchResourceAndStatus({ spec: { size: 1 } }, { ready: 1, redy: 1 }),
];

const untyped: Reconciler<KubernetesObject>["reconcile"] = () =>
  patchStatus({ anything: { goes: [1] } });

test("Results with a field that their kind does not have do not compile", () => {
  void [right, wrong, untyped];
});

test("The deletions of a context take kinds of a list", () => {
  const cleanup: Reconciler<Typed>["cleanup"] = async (_object, ctx) => {
    for (const kind of [Deployment, Secret]) {
      await ctx.delete(kind, "web");
      await ctx.client.deleteCollection(kind, { labelSelector: "app=web" });
    }
  };
  void cleanup;
});

test("A patch by a context has the fields of the kind, or is a JSON patch", () => {
  const kind = { group: "test.dev", version: "v1", kind: "Typed" } as Kind<
    Typed
  >;
  const reconcile: Reconcile = async (_object, ctx) => {
    const subresource = "status";
    await ctx.patch(kind, "a", { status: { ready: null } }, { subresource });
    await ctx.patch(kind, "a", { metadata: { labels: { a: "b" } } });
    await ctx.patch(kind, "a", [{ op: "remove", path: "/status" }], {
      type: "json",
    });
    // @ts-expect-error: there is no such field
    await ctx.patch(kind, "a", { spec: { siez: 1 } });
  };
  void reconcile;
});
