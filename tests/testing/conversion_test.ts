import assert from "node:assert/strict";
import { test } from "node:test";
import { TestCluster } from "@coracle/dev";
import {
  ApiError,
  untyped,
  type UntypedObject,
} from "@coracle/operator/client";
import { installCrd } from "@coracle/operator/crd";
import { KEPT_ANNOTATION } from "../../core/conversion/convert_object.ts";
import { failureOf } from "../../core/conversion/unconverted.ts";
import { Fleet } from "../core/conversion/versioned_kind.ts";

const kindOf = (version: string) =>
  untyped({ group: "sea.example.org", version, kind: "Fleet" });
const [OLD, BETA, NEW] = ["v1alpha1", "v1beta1", "v1"].map(kindOf) as [
  ReturnType<typeof kindOf>,
  ReturnType<typeof kindOf>,
  ReturnType<typeof kindOf>,
];

async function withFleets(
  run: (cluster: TestCluster) => Promise<void>,
): Promise<void> {
  const cluster = await TestCluster.start({
    kinds: [Fleet],
    cluster: "embedded",
  });
  try {
    await run(cluster);
  } finally {
    await cluster.stop();
  }
}

const SPEC = {
  min: 1,
  max: 5,
  boats: [{ name: "gull", mast: 2 }, { name: "tern" }],
};

test("A test cluster converts between the versions of its kinds", async () => {
  await withFleets(async ({ client, namespace }) => {
    const key = { name: "a", namespace };
    await client.create(NEW, { metadata: key, spec: SPEC });
    const beta = await client.get(BETA, key);
    assert.deepEqual(beta.spec, { size: 1, boats: ["gull", "tern"] });
    assert.ok(beta.metadata.annotations?.[KEPT_ANNOTATION]);
    // An unchanged object, written in another version, stays as it was.
    await client.replace(BETA, beta);
    const same = await client.get(NEW, key);
    assert.deepEqual(same.spec, SPEC);
    assert.equal(same.metadata.annotations, undefined);
    const old = await client.list(OLD, { namespace });
    assert.deepEqual(old.items.map(({ spec }) => spec), [{ size: "1" }]);
  });
});

test("Applies in two versions keep their managers and each other's fields", async () => {
  await withFleets(async ({ client, namespace }) => {
    const key = { name: "a", namespace };
    const apply = (kind: typeof OLD, manager: string, spec: object) =>
      client.apply(kind, { metadata: key, spec } as never, {
        fieldManager: manager,
      });
    await apply(NEW, "new", SPEC);
    await apply(OLD, "old", { colour: "red", size: "1" });
    const stored = await client.get(NEW, key) as UntypedObject;
    assert.deepEqual(stored.spec, SPEC);
    const managers = stored.metadata.managedFields ?? [];
    assert.deepEqual(
      managers.map(({ manager, apiVersion }) => [manager, apiVersion]).sort(),
      [["new", "sea.example.org/v1"], ["old", "sea.example.org/v1alpha1"]],
    );
    const old = await client.get(OLD, key);
    assert.deepEqual(old.spec, { size: "1", colour: "red" });
    await apply(OLD, "old", { colour: "blue", size: "1" });
    assert.deepEqual((await client.get(NEW, key)).spec, SPEC);
    assert.equal(
      ((await client.get(OLD, key)).spec as { colour: string }).colour,
      "blue",
    );
  });
});

test("An object that cannot be converted fails no list and no watch", async () => {
  await withFleets(async ({ client, namespace }) => {
    for (const [name, size] of [["good", "3"], ["bad", "many"]] as const) {
      await client.create(OLD, {
        metadata: { name, namespace },
        spec: { size },
      });
    }
    const { items, metadata } = await client.list(NEW, { namespace });
    assert.deepEqual(
      items.map((item) => [item.metadata.name, failureOf(item)]).sort(),
      [["bad", "up of v1alpha1 has thrown Error: no size: many"], [
        "good",
        undefined,
      ]],
    );
    const bad = await client.get(OLD, { name: "bad", namespace });
    assert.deepEqual(bad.spec, { size: "many" });
    const events = client.watch(NEW, {
      namespace,
      resourceVersion: metadata.resourceVersion,
    });
    await client.replace(OLD, { ...bad, spec: { size: "7" } });
    for await (const event of events) {
      assert.equal(failureOf(event.object), undefined);
      assert.deepEqual(event.object.spec, { min: 7, max: 7, boats: [] });
      break;
    }
  });
});

test("installCrd() refuses a kind that nobody converts", async () => {
  const cluster = await TestCluster.start({ cluster: "embedded" });
  try {
    await assert.rejects(
      installCrd(cluster.client, Fleet),
      /Cannot install fleets.sea.example.org: its versions are converted by functions/,
    );
    await assert.rejects(
      cluster.client.get(NEW, { name: "a", namespace: "default" }),
      (error) => ApiError.is(error) && error.isNotFound,
    );
  } finally {
    await cluster.stop();
  }
});
