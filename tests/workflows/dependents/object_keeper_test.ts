import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@coracle/dev";
import {
  ApiError,
  keyText,
  type ObjectKey,
  silentLogger,
} from "@coracle/operator/client";
import type { Context, EventSource } from "@coracle/operator/core";
import { ConfigMap, type KubernetesObject } from "@coracle/operator/kinds";
import { kubernetesDependent } from "@coracle/operator/workflows";
import { DependentResource } from "../../../workflows/dependents/dependent_resource.ts";
import { gadget } from "../../support/source_context.ts";

/** A server and a cache with nothing but ConfigMaps. */
class Maps {
  readonly stored: Map<string, ConfigMap> = new Map();
  readonly #gone: ((key: string | undefined) => void)[] = [];
  applies = 0;
  /** How often it was asked what would be applied. */
  intents = 0;
  /** UIDs that deletions named. */
  readonly deleted: unknown[] = [];
  #spoiled = 0;

  /** A source of them that tells what is gone, or does not. */
  source(
    tells: boolean,
  ): EventSource<KubernetesObject, ConfigMap> {
    const source: EventSource<KubernetesObject, ConfigMap> = {
      name: "maps",
      kind: ConfigMap,
      start: () => Promise.resolve(),
      stop: () => Promise.resolve(),
      get: (key) => this.stored.get(keyText(key)),
    };
    const onGone = (listener: (key: string | undefined) => void) => {
      this.#gone.push(listener);
    };
    return tells ? { ...source, onGone } as typeof source : source;
  }

  /** The part of a context that a keeper uses. */
  get ctx(): Context<KubernetesObject> {
    return {
      key: { namespace: "default", name: "x" },
      fieldManager: "gadget",
      log: silentLogger,
      intent: (_kind: unknown, object: unknown) => {
        this.intents++;
        return Promise.resolve(object);
      },
      apply: (_kind: unknown, object: ConfigMap) => this.#apply(object),
      delete: (_kind: unknown, key: ObjectKey, { uid }: { uid?: string }) => {
        this.deleted.push(uid);
        this.stored.delete(keyText(key));
        return Promise.resolve();
      },
      attributes: new Map(),
      clock: new VirtualClock(),
    } as unknown as Context<KubernetesObject>;
  }

  #apply(object: ConfigMap): Promise<ConfigMap> {
    const { name } = object.metadata;
    const stored: ConfigMap = {
      ...object,
      metadata: {
        name,
        namespace: "default",
        uid: `uid of ${name}`,
        resourceVersion: `${++this.applies}`,
        managedFields: [{
          manager: "gadget",
          operation: "Apply",
          apiVersion: "v1",
          fieldsV1: { "f:data": { "f:value": {} } },
        }],
      },
    };
    this.stored.set(`default/${name}`, stored);
    return Promise.resolve(stored);
  }

  /** Has another writer change one. */
  spoil(name: string): void {
    const map = this.stored.get(`default/${name}`)!;
    this.stored.set(`default/${name}`, {
      ...map,
      metadata: {
        ...map.metadata,
        resourceVersion: `others ${++this.#spoiled}`,
      },
      data: { value: "of others" },
    });
  }

  /** Has a garbage collector delete one. */
  collect(name: string): void {
    this.stored.delete(`default/${name}`);
    for (const listener of this.#gone) listener(`default/${name}`);
  }

  /** Stops the source. */
  stop(): void {
    for (const listener of this.#gone) listener(undefined);
  }
}

async function ensure(
  keeper: DependentResource<KubernetesObject, ConfigMap>,
  name: string,
  ctx: Context<KubernetesObject>,
): Promise<string> {
  const object = { metadata: { name }, data: { value: "1" } };
  const wish = await keeper.desired(object, { primary: gadget(name), ctx });
  return (await keeper.reconcile(wish, ctx)).operation;
}

test("DependentResource keeps no state of 10,000 collected objects", async () => {
  const maps = new Maps();
  const { ctx } = maps;
  const keeper = new DependentResource(ConfigMap, maps.source(true));
  for (let index = 0; index < 10_000; index++) {
    const name = `m${index}`;
    assert.equal(await ensure(keeper, name, ctx), "created");
    if (index % 100 === 0) {
      assert.equal(await ensure(keeper, name, ctx), "none");
      assert.equal(keeper.remembered, 1);
    }
    maps.collect(name);
  }
  assert.equal(keeper.remembered, 0);
  await ensure(keeper, "last", ctx);
  maps.stop();
  assert.equal(keeper.remembered, 0, "nor after a stop");
});

test("DependentResource limits its memory if no deletions are reported", async () => {
  const maps = new Maps();
  const { ctx } = maps;
  const keeper = new DependentResource(ConfigMap, maps.source(false));
  for (let index = 0; index < 10_100; index++) {
    await ensure(keeper, `m${index}`, ctx);
    assert.ok(keeper.remembered <= 10_000);
  }
  assert.ok(keeper.remembered >= 5_000);
});

test("DependentResource compares again for a recreated primary", async () => {
  const maps = new Maps();
  const { ctx } = maps;
  const keeper = new DependentResource(ConfigMap, maps.source(true));
  const object = { metadata: { name: "m" }, data: { value: "1" } };
  const reborn = gadget("m");
  reborn.metadata.uid = "another";
  const first = await keeper.desired(object, { primary: gadget("m"), ctx });
  const second = await keeper.desired(object, { primary: reborn, ctx });
  assert.equal((await keeper.reconcile(first, ctx)).operation, "created");
  const before = maps.intents;
  assert.equal((await keeper.reconcile(first, ctx)).operation, "none");
  assert.equal(maps.intents, before, "known without being put together");
  assert.equal((await keeper.reconcile(second, ctx)).operation, "none");
  assert.equal(maps.intents, before + 1);
});

test("DependentResource deletes only the object that it has read", async () => {
  const maps = new Maps();
  const { ctx } = maps;
  const keeper = new DependentResource(ConfigMap, maps.source(true));
  await ensure(keeper, "m", ctx);
  const key = { namespace: "default", name: "m" };
  await keeper.delete(key, ctx, gadget("m").metadata.uid);
  await keeper.delete(key, ctx, gadget("m").metadata.uid);
  assert.deepEqual(maps.deleted, ["uid of m"]);
});

test("DependentResource deletes no object of a namesake in another namespace", async () => {
  for (const namespace of ["other", "default"]) {
    const maps = new Maps();
    const { ctx } = maps;
    const keeper = new DependentResource(ConfigMap, maps.source(true));
    await ensure(keeper, "m", ctx);
    const map = maps.stored.get("default/m")!;
    const annotations = {
      "coracle.dev/primary-name": "x",
      "coracle.dev/primary-namespace": namespace,
    };
    const metadata = { ...map.metadata, annotations };
    maps.stored.set("default/m", { ...map, metadata });
    await keeper.delete({ namespace: "default", name: "m" }, ctx, "uid of x");
    assert.equal(maps.deleted.length, namespace === "default" ? 1 : 0);
  }
});

test("DependentResource takes over no object of others while it recreates", async () => {
  const maps = new Maps();
  const { ctx } = maps;
  const versions: (string | undefined)[] = [];
  const apply = ctx.apply.bind(ctx);
  ctx.apply = (kind, object) => {
    versions.push(object.metadata.resourceVersion);
    if (versions.length !== 2) return apply(kind, object);
    return Promise.reject(
      new ApiError("Cannot apply ConfigMap m: field is immutable", {
        status: 422,
        reason: "Invalid",
      }),
    );
  };
  const options = { recreate: true };
  const keeper = new DependentResource(ConfigMap, maps.source(true), options);
  await ensure(keeper, "m", ctx);
  maps.spoil("m");
  assert.equal(await ensure(keeper, "m", ctx), "updated");
  const [created, updated, recreated] = versions;
  assert.deepEqual({ created, updated, recreated }, {
    created: "1",
    updated: undefined,
    recreated: "1",
  });
});

test("DependentResource says that an object it recreates still exists", async () => {
  const maps = new Maps();
  const { ctx } = maps;
  const keeper = new DependentResource(ConfigMap, maps.source(true), {
    recreate: true,
  });
  await ensure(keeper, "m", ctx);
  maps.spoil("m");
  const answers = [
    new ApiError("field is immutable", { status: 422, reason: "Invalid" }),
    new ApiError("it was modified", { status: 409, reason: "Conflict" }),
  ];
  ctx.apply = () => Promise.reject(answers.shift());
  await assert.rejects(
    ensure(keeper, "m", ctx),
    /^Error: Cannot recreate ConfigMap default\/m: it still exists, as when /,
  );
});

test("DependentResource recreates only for an immutable field, if it may", async () => {
  for (
    const [recreate, message] of [
      [false, "field is immutable"],
      [true, "must be positive"],
    ] as const
  ) {
    const maps = new Maps();
    const { ctx } = maps;
    const keeper = new DependentResource(ConfigMap, maps.source(true), {
      recreate,
    });
    await ensure(keeper, "m", ctx);
    maps.spoil("m");
    const refused = new ApiError(message, { status: 422, reason: "Invalid" });
    ctx.apply = () => Promise.reject(refused);
    await assert.rejects(
      ensure(keeper, "m", ctx),
      (error) => error === refused,
    );
    assert.deepEqual(maps.deleted, []);
  }
});

test("DependentResource takes no series of lasting updates for a loop", async () => {
  const maps = new Maps();
  const { ctx } = maps;
  const keeper = new DependentResource(ConfigMap, maps.source(true));
  await ensure(keeper, "m", ctx);
  for (let cycle = 0; cycle < 20; cycle++) {
    maps.spoil("m");
    assert.equal(await ensure(keeper, "m", ctx), "updated");
    maps.spoil("m");
    maps.stored.get("default/m")!.data = { value: "1" };
    assert.equal(await ensure(keeper, "m", ctx), "none");
  }
});

test("DependentResource forgets the loop of an object that was deleted", async () => {
  const maps = new Maps();
  const { ctx } = maps;
  const keeper = new DependentResource(ConfigMap, maps.source(true));
  const loop = async () => {
    await ensure(keeper, "m", ctx);
    let writes = 0;
    for (;;) {
      maps.spoil("m");
      try {
        await ensure(keeper, "m", ctx);
        writes++;
      } catch (error) {
        assert.match(String(error), /^UpdateLoopError: /);
        return writes;
      }
    }
  };
  assert.equal(await loop(), 6);
  await keeper.delete(
    { namespace: "default", name: "m" },
    ctx,
    gadget("m").metadata.uid,
  );
  assert.equal(await loop(), 6, "after a deletion by the workflow");
  maps.collect("m");
  assert.equal(await loop(), 6, "after a deletion by the garbage collector");
});

test("DependentResource takes no series of refused updates for a loop", async () => {
  const maps = new Maps();
  const { ctx } = maps;
  const keeper = new DependentResource(ConfigMap, maps.source(true));
  await ensure(keeper, "m", ctx);
  maps.spoil("m");
  const busy = () => Promise.reject(new Error("429"));
  for (let attempt = 0; attempt < 20; attempt++) {
    const refused = { ...ctx, apply: busy } as unknown as typeof ctx;
    await assert.rejects(() => ensure(keeper, "m", refused), /^Error: 429$/);
  }
  assert.equal(await ensure(keeper, "m", ctx), "updated");
});

test("DependentResource refuses an object without a name or with a status", async () => {
  const maps = new Maps();
  const { ctx } = maps;
  const keeper = new DependentResource(ConfigMap, maps.source(true));
  const wish = async (object: unknown) =>
    await keeper.desired(object as never, { primary: gadget("m"), ctx });
  for (
    const object of [undefined, "text", {}, { metadata: {} }, {
      metadata: { name: 1 },
    }]
  ) {
    await assert.rejects(
      wish(object),
      /^TypeError: Cannot use a desired ConfigMap: it must/,
    );
  }
  const asked = await wish({ metadata: { name: "m" }, status: { a: 1 } });
  await assert.rejects(
    async () => await keeper.reconcile(asked, ctx),
    /must not have a status/,
  );
});

test("DependentResource leaves the comparison to a user's function [testCustomMatcher_returnsExpectedMatchBasedOnReadOnlyLabel]", async () => {
  const maps = new Maps();
  const { ctx } = maps;
  const keeper = new DependentResource(ConfigMap, maps.source(true), {
    matches: (_desired, actual) =>
      actual.metadata.labels?.["readonly"] === "true" ? true : undefined,
  });
  const ensureValue = async (value: string) => {
    const object = { metadata: { name: "m" }, data: { value } };
    const wish = await keeper.desired(object, { primary: gadget("m"), ctx });
    return (await keeper.reconcile(wish, ctx)).operation;
  };
  assert.equal(await ensureValue("1"), "created");
  assert.equal(await ensureValue("2"), "updated");
  const stored = maps.stored.get("default/m")!;
  stored.metadata.labels = { readonly: "true" };
  assert.equal(await ensureValue("3"), "none");
  assert.equal(stored.data?.["value"], "2");
});

test("kubernetesDependent computes the desired state once a run", async () => {
  const maps = new Maps();
  let computed = 0;
  const dependent = kubernetesDependent(ConfigMap, {
    source: maps.source(true),
    desired: () => {
      computed++;
      return { metadata: { name: "m" }, data: { value: `${computed}` } };
    },
  });
  const primary = gadget("m");
  const operations: string[] = [];
  for (let run = 0; run < 3; run++) {
    const ctx = { ...maps.ctx, attributes: new Map() };
    await dependent.read(primary, ctx);
    operations.push((await dependent.reconcile(primary, ctx)).operation);
    await dependent.read(primary, ctx);
  }
  assert.deepEqual(operations, ["created", "updated", "updated"]);
  assert.equal(computed, 3);
});
