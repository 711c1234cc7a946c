import assert from "node:assert/strict";
import { test } from "node:test";
import { keyText, type ObjectKey } from "@coracle/operator/client";
import type { Context, EventSource } from "@coracle/operator/core";
import { ConfigMap, type KubernetesObject } from "@coracle/operator/kinds";
import { byLabel } from "@coracle/operator/sources";
import {
  bulkDependent,
  kubernetesDependent,
  readOnlyBulkDependent,
  readOnlyDependent,
} from "@coracle/operator/workflows";
import type { WatchingSource } from "../../../core/controller/watch/watch_source.ts";
import { gadget } from "../../support/source_context.ts";

type Source = EventSource<KubernetesObject, ConfigMap>;

const PRIMARY = gadget("x");

/** ConfigMap that a primary owns, by default ours. */
function map(name: string, owner = PRIMARY.metadata.uid): ConfigMap {
  const reference = { apiVersion: "example.com/v1", kind: "Gadget", name: "x" };
  return {
    metadata: {
      namespace: "default",
      name,
      uid: `uid of ${name}`,
      ownerReferences: [{ ...reference, uid: owner ?? "" }],
    },
  };
}

/** Run of a primary with ConfigMaps, and what it does. */
function running(...there: readonly ConfigMap[]) {
  const stored = new Map(
    there.map((one) => [keyText(one.metadata as ObjectKey), one]),
  );
  const calls: string[] = [];
  const source: Source = {
    name: "maps",
    kind: ConfigMap,
    start: () => Promise.resolve(),
    stop: () => Promise.resolve(),
    get(key) {
      calls.push(`get ${key.name}`);
      return stored.get(keyText(key));
    },
  };
  let busy = 0;
  let most = 0;
  const ctx = {
    key: PRIMARY.metadata,
    signal: new AbortController().signal,
    attributes: new Map(),
    fieldManager: "gadget",
    secondaries: () => Promise.resolve([...stored.values()]),
    secondary: () => Promise.resolve(there[0]),
    intent: (_kind: unknown, object: unknown) => Promise.resolve(object),
    apply(_kind: unknown, object: ConfigMap) {
      calls.push(`apply ${object.metadata.name}`);
      return Promise.resolve(object);
    },
    async delete(_kind: unknown, key: ObjectKey) {
      most = Math.max(most, ++busy);
      for (let turn = 0; turn < 20; turn++) await undefined;
      busy--;
      calls.push(`delete ${key.name}`);
    },
  } as unknown as Context<KubernetesObject>;
  return { calls, ctx, source, most: () => most };
}

test("kubernetesDependent computes its desired state once in a run", async () => {
  const { calls, ctx, source } = running(map("a"), map("b"));
  let computed = 0;
  const of = (name: string) =>
    kubernetesDependent<KubernetesObject, ConfigMap>(ConfigMap, {
      source,
      desired() {
        computed++;
        return { metadata: { name } };
      },
    });
  const [a, b] = [of("a"), of("b")];
  for (const dependent of [a, b, a, b]) await dependent.read(PRIMARY, ctx);
  assert.deepEqual(calls, ["get a", "get b", "get a", "get b"]);
  assert.equal(computed, 2);
});

test("kubernetesDependent reads by its key without the desired state", async () => {
  const { ctx, source } = running(map("a"));
  const dependent = kubernetesDependent<KubernetesObject, ConfigMap>(
    ConfigMap,
    {
      source,
      key: () => ({ namespace: "default", name: "a" }),
      desired: () => assert.fail("it is not needed"),
    },
  );
  assert.deepEqual(await dependent.read(PRIMARY, ctx), map("a"));
});

test("kubernetesDependent rejects what its desired state throws", async () => {
  const { ctx, source } = running();
  for (
    const desired of [
      () => {
        throw new Error("no spec");
      },
      () => Promise.reject(new Error("no spec")),
    ]
  ) {
    ctx.attributes.clear();
    const dependent = kubernetesDependent<KubernetesObject, ConfigMap>(
      ConfigMap,
      { source, desired },
    );
    const reconciled = dependent.reconcile(PRIMARY, ctx);
    await assert.rejects(reconciled, /no spec/);
  }
});

test("kubernetesDependent reads and deletes only what its primary owns", async () => {
  for (const [owner, deletes] of [[undefined, 1], ["other", 0]] as const) {
    const { calls, ctx, source } = running(map("a", owner));
    const dependent = kubernetesDependent<KubernetesObject, ConfigMap>(
      ConfigMap,
      { source, desired: () => ({ metadata: { name: "a" } }) },
    );
    const found = await dependent.read(PRIMARY, ctx);
    assert.equal(found === undefined, deletes === 0);
    await dependent.delete(PRIMARY, ctx);
    const deleted = calls.filter((call) => call.startsWith("delete"));
    assert.equal(deleted.length, deletes);
  }
});

test("bulkDependent deletes what is not desired, before it makes the others", async () => {
  const { calls, ctx, source } = running(map("old"), map("kept"));
  const metadata = (name: string) => ({ metadata: { name } });
  const dependent = bulkDependent<KubernetesObject, ConfigMap>(ConfigMap, {
    source,
    desired: () => new Map([["1", metadata("new")], ["2", metadata("newer")]]),
  });
  await dependent.reconcile(PRIMARY, ctx);
  const writes = calls.filter((call) => !call.startsWith("get"));
  assert.deepEqual(writes.slice(0, 2).toSorted(), [
    "delete kept",
    "delete old",
  ]);
  assert.deepEqual(writes.slice(2).toSorted(), ["apply new", "apply newer"]);
  // What was pruned may not be made in the same run.
  const again = bulkDependent<KubernetesObject, ConfigMap>(ConfigMap, {
    source,
    desired: () => [metadata("old")],
  });
  await assert.rejects(again.reconcile(PRIMARY, ctx), /old/);
});

test("bulkDependent refuses two desired objects of one name", async () => {
  const { ctx, source } = running();
  const dependent = bulkDependent<KubernetesObject, ConfigMap>(ConfigMap, {
    source,
    desired: () => [{ metadata: { name: "a" } }, { metadata: { name: "a" } }],
  });
  await assert.rejects(
    dependent.reconcile(PRIMARY, ctx),
    /each needs a name of its own: received default\/a twice/,
  );
});

test("bulkDependent deletes all objects of its primary, ten at the same time", async () => {
  const ours = Array.from({ length: 12 }, (_, n) => map(`${n}`));
  const { calls, ctx, source, most } = running(...ours, map("theirs", "other"));
  const dependent = bulkDependent<KubernetesObject, ConfigMap>(ConfigMap, {
    source,
    desired: () => [],
  });
  await dependent.delete(PRIMARY, ctx);
  const deleted = calls.filter((call) => call.startsWith("delete"));
  assert.deepEqual(
    deleted.toSorted(),
    ours.map(({ metadata }) => `delete ${metadata.name}`).toSorted(),
  );
  assert.equal(most(), 10);
});

test("readOnlyDependent reads the object of its key, or the only secondary", async () => {
  const { ctx, source } = running(map("first"), map("a"));
  const key = () => ({ namespace: "default", name: "a" });
  const [keyed, only] = [{ source, key }, { source }].map((options) =>
    readOnlyDependent<KubernetesObject, ConfigMap>(ConfigMap, options)
  );
  assert.deepEqual(await keyed?.read(PRIMARY, ctx), map("a"));
  assert.deepEqual(await only?.read(PRIMARY, ctx), map("first"));
  const { metadata, ...others } = map("a");
  const other = { ...others, metadata: { ...metadata, namespace: "other" } };
  const bulk = running(map("a"), other);
  const all = readOnlyBulkDependent<KubernetesObject, ConfigMap>(ConfigMap, {
    source: bulk.source,
  });
  const found = await all.read(PRIMARY, bulk.ctx);
  assert.deepEqual([...found?.keys() ?? []], ["default/a", "other/a"]);
});

test("Dependents watch their objects as their options say", () => {
  const key = () => ({ namespace: "default", name: "a" });
  const mapper = byLabel("made-for");
  const sourceOf = (
    dependent: { readonly sources?: readonly unknown[] | undefined },
  ) => dependent.sources?.[0] as WatchingSource<KubernetesObject>;
  const desired = () => ({ metadata: { name: "a" } });
  const written = sourceOf(kubernetesDependent(ConfigMap, {
    desired,
    key,
    watch: { labelSelector: "app=web" },
  }));
  assert.deepEqual([written.readOnly, written.isOwned], [false, true]);
  assert.notEqual(written.whyHidden({ labels: {} }), undefined);
  const read = sourceOf(readOnlyDependent(ConfigMap));
  const keyed = sourceOf(readOnlyDependent(ConfigMap, { key }));
  const mapped = sourceOf(
    readOnlyDependent(ConfigMap, { key, watch: { mapper } }),
  );
  const all = [read, keyed, mapped];
  assert.deepEqual(all.map(({ readOnly }) => readOnly), [true, true, true]);
  assert.deepEqual(
    all.map(({ onPrimary }) => onPrimary !== undefined),
    [false, true, false],
    "whether it follows the references of primaries",
  );
  const broken = { kind: ConfigMap, stop() {} } as never;
  assert.throws(
    () => readOnlyDependent(ConfigMap, { source: broken }),
    /source: "name" must be/,
  );
});
