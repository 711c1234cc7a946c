import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import { VirtualClock, withTestCluster } from "@coracle/dev";
import {
  type Context,
  defineKind,
  type EventSource,
  Operator,
  pollingSource,
} from "@coracle/operator";
import { keyText, untyped } from "@coracle/operator/client";
import { ConfigMap, type KubernetesObject } from "@coracle/operator/kinds";
import {
  configMapState,
  externalBulkDependent,
  externalDependent,
  isGone,
  statusState,
  Workflow,
} from "@coracle/operator/workflows";
import { keyOf } from "../../../core/api/object_key.ts";
import { nextTurn } from "../../../core/clock.ts";
import { gadget } from "../../support/source_context.ts";

const Gadget = untyped({
  group: "example.com",
  version: "v1",
  kind: "Gadget",
  plural: "gadgets",
  scope: "Namespaced",
});

interface Disk {
  readonly id: string;
  readonly size: number;
}

/** System with disks, which replaces a disk in order to change its size. */
class Disks {
  readonly all: Map<string, Disk> = new Map();
  /** Stored ids by key. */
  ids: ReadonlyMap<string, string> = new Map();
  /** What the source was told of. */
  readonly told: string[] = [];
  #made = 0;

  readonly options = {
    source: {
      name: "disks",
      start: () => Promise.resolve(),
      stop: () => Promise.resolve(),
      ownExternalWrite: (_primary: object, { id }: Disk) =>
        void this.told.push(`write ${id}`),
      ownExternalDelete: (_primary: object, { id }: Disk) =>
        void this.told.push(`delete ${id}`),
      ownExternalFailure: () => void this.told.push("failure"),
    } as EventSource<KubernetesObject, Disk>,
    create: ({ size }: { readonly size: number }) => this.make(size),
    update: ({ size }: { readonly size: number }, { id }: Disk) => {
      this.all.delete(id);
      return this.make(size);
    },
    delete: ({ id }: Disk) => {
      this.all.delete(id);
      return Promise.resolve();
    },
    state: {
      id: ({ id }: Disk) => id,
      store: {
        read: () => this.ids,
        write: async (ids: ReadonlyMap<string, string>) => {
          await Promise.resolve();
          this.told.push(`ids ${[...ids.values()].join()}`);
          this.ids = ids;
        },
      },
    },
  };
  readonly ctx = {
    signal: new AbortController().signal,
    secondaries: () => Promise.resolve([...this.all.values()]),
  } as unknown as Context<KubernetesObject>;

  make(size: number): Promise<Disk> {
    const disk = { id: `disk-${++this.#made}`, size };
    this.all.set(disk.id, disk);
    return Promise.resolve(disk);
  }
}

test("externalDependent stores the new id of a resource that was replaced", async () => {
  const disks = new Disks();
  const theirs = await disks.make(7);
  let size = 1;
  const dependent = externalDependent({
    ...disks.options,
    desired: () => ({ size }),
  });
  const primary = gadget("a");
  const operations: string[] = [];
  for (size of [1, 1, 2, 2, 3]) {
    const { operation } = await dependent.reconcile(primary, disks.ctx);
    operations.push(operation);
  }
  assert.deepEqual(operations, [
    "created",
    "none",
    "updated",
    "none",
    "updated",
  ]);
  assert.deepEqual([...disks.ids], [["id", "disk-4"]]);
  await dependent.delete?.(primary, disks.ctx);
  assert.deepEqual([...disks.all.values()], [theirs]);
  assert.equal(disks.ids.size, 0);
});

for (const stored of [[], [["id", "disk-0"]]] as const) {
  const which = stored.length === 0 ? "no" : "another";
  test(`externalDependent stores the id of a selected resource after ${which} one`, async () => {
    const disks = new Disks();
    await disks.make(1);
    disks.ids = new Map(stored);
    const dependent = externalDependent({
      ...disks.options,
      desired: () => ({ size: 1 }),
      select: ({ id }) => id === "disk-1",
    });
    const { operation } = await dependent.reconcile(gadget("a"), disks.ctx);
    assert.equal(operation, "none");
    assert.deepEqual([...disks.ids], [["id", "disk-1"]]);
  });
}

test("externalDependent names two resources for one, and leaves both", async () => {
  const disks = new Disks();
  await disks.make(1);
  await disks.make(1);
  const { state: _state, ...stateless } = disks.options;
  const desired = () => ({ size: 2 });
  const cases = [
    [
      { ...disks.options, desired, select: () => true },
      '"select" must leave one, and until it does none is changed or deleted: received 2 from "disks" (disk-1, disk-2)',
    ],
    [
      { ...stateless, desired },
      'the primary must have one, and until it does none is changed or deleted: received 2 from "disks"',
    ],
  ] as const;
  for (const [options, why] of cases) {
    const dependent = externalDependent(options);
    const message = `Cannot select an external resource: ${why}`;
    for (const verb of ["reconcile", "delete"] as const) {
      const call = async () => await dependent[verb]?.(gadget("a"), disks.ctx);
      await assert.rejects(call, { name: "RangeError", message });
    }
  }
  assert.equal(disks.all.size, 2);
});

test("externalBulkDependent refuses a store for one id before it creates", () => {
  const { state: { id }, ...options } = new Disks().options;
  const store = statusState<KubernetesObject>(Gadget, "disk");
  assert.throws(
    () =>
      externalBulkDependent({
        ...options,
        state: { store, id },
        desired: () => new Map([["a", { size: 1 }]]),
      }),
    /Cannot keep the ids of many resources: .*\{ many: true \}/,
  );
});

test("statusState refuses a field that the status of its kind cannot store", () => {
  const Volume = defineKind({
    group: "example.com",
    version: "v1",
    kind: "Volume",
    spec: z.object({}),
    status: z.object({
      diskId: z.string(),
      disks: z.record(z.string(), z.string()),
    }).partial(),
  });
  assert.throws(
    () => statusState(Volume, "diksId"),
    /the status of Volume has no such field, did you mean "diskId"\?/,
  );
  assert.throws(
    () => statusState(Volume, "disks"),
    /the field must be text/,
  );
  assert.throws(
    () => statusState(Volume, "diskId", { many: true }),
    /with \{ many: true \} the field must be an object/,
  );
  statusState(Volume, "diskId");
  statusState(Volume, "disks", { many: true });
  const Open = defineKind({
    group: "example.com",
    version: "v1",
    kind: "Open",
    spec: z.object({}),
    status: z.looseObject({ phase: z.string().optional() }),
  });
  statusState(Open, "diskId");
});

test("externalDependent keeps the id of a resource whose deletion failed", async () => {
  const disks = new Disks();
  let fails = true;
  const dependent = externalDependent({
    ...disks.options,
    desired: () => ({ size: 1 }),
    delete: (disk: Disk) => {
      if (fails) return Promise.reject(new Error("in use"));
      return disks.options.delete(disk);
    },
  });
  const primary = gadget("a");
  await dependent.reconcile(primary, disks.ctx);
  await assert.rejects(
    async () => await dependent.delete?.(primary, disks.ctx),
    /in use/,
  );
  assert.deepEqual([...disks.ids.values()], ["disk-1"]);
  fails = false;
  await dependent.delete?.(primary, disks.ctx);
  assert.equal(disks.all.size, 0);
  assert.equal(disks.ids.size, 0);
});

test("externalBulkDependent keeps the id of a resource until its deletion has ended", async () => {
  const disks = new Disks();
  const dependent = externalBulkDependent({
    ...disks.options,
    desired: () => new Map([["a", { size: 1 }], ["b", { size: 2 }]]),
    delete: (disk: Disk) =>
      disk.size === 2
        ? Promise.resolve({ ...disk, size: 0 })
        : disks.options.delete(disk),
  });
  const primary = gadget("a");
  await dependent.reconcile(primary, disks.ctx);
  await dependent.delete?.(primary, disks.ctx);
  assert.deepEqual([...disks.ids], [["b", "disk-2"]]);
  disks.all.clear();
  await dependent.delete?.(primary, disks.ctx);
  assert.equal(disks.ids.size, 0);
});

/** Disks whose deletion takes two polls, and the primary that waits for them. */
const slow = { disks: new Map<string, number | undefined>(), deletions: 0 };

test(
  "A primary waits until an external resource is gone, where that is asked for",
  withTestCluster({
    clock: new VirtualClock(),
    operator(options) {
      const operator = new Operator(options);
      const source = pollingSource<ConfigMap, string>({
        name: "disks",
        interval: "20s",
        fetch: async ({ list }) => {
          for (const [id, polls] of slow.disks) {
            if (polls === 0) slow.disks.delete(id);
            else if (polls !== undefined) slow.disks.set(id, polls - 1);
          }
          const [one] = (await list(ConfigMap)).filter(({ data }) => data);
          return new Map(
            one ? [[keyText(keyOf(one)), [...slow.disks.keys()]]] : [],
          );
        },
      });
      const disk = externalDependent<ConfigMap, string>({
        source,
        desired: () => "disk",
        create(id) {
          slow.disks.set(id, undefined);
          return Promise.resolve(id);
        },
        delete(id) {
          slow.deletions++;
          slow.disks.set(id, slow.disks.get(id) ?? 2);
          return Promise.resolve(id);
        },
      });
      operator.register(ConfigMap, { reconcile() {} }, {
        workflow: new Workflow<ConfigMap>()
          .add("disk", disk, { deletedWhen: isGone }),
        fieldSelector: "metadata.name=machine",
      });
      return operator;
    },
  }, async (cluster) => {
    const { client, namespace } = cluster;
    const key = { namespace, name: "machine" };
    await client.create(ConfigMap, { metadata: key, data: { a: "b" } });
    await cluster.until(() => slow.disks.size === 1);
    await client.delete(ConfigMap, key);
    await cluster.until(async () =>
      await client.find(ConfigMap, key) === undefined
    );
    assert.equal(slow.disks.size, 0, "the finalizer was removed before");
    assert.ok(slow.deletions > 0);
  }),
);

test("externalBulkDependent removes ids whose resources are gone already", async () => {
  const disks = new Disks();
  const dependent = externalBulkDependent({
    ...disks.options,
    desired: () => new Map([["a", { size: 1 }], ["b", { size: 2 }]]),
  });
  const primary = gadget("a");
  await dependent.reconcile(primary, disks.ctx);
  assert.deepEqual([...disks.ids.keys()], ["a", "b"]);
  disks.all.delete("disk-1");
  await dependent.delete?.(primary, disks.ctx);
  assert.equal(disks.all.size, 0);
  assert.equal(disks.ids.size, 0);
});

test("statusState writes ids only into the status of the primary that it read", async () => {
  const bodies: unknown[] = [];
  const ctx = {
    patch: (_kind: unknown, _key: unknown, body: unknown) => {
      bodies.push(body);
      return Promise.resolve();
    },
  } as unknown as Context<KubernetesObject>;
  const state = statusState<KubernetesObject>(Gadget, "disk");
  const primary = gadget("a");
  await state.write(new Map([["id", "disk-1"]]), primary, ctx);
  await state.write(new Map(), primary, ctx);
  const metadata = { uid: primary.metadata.uid };
  assert.deepEqual(bodies, [
    { metadata, status: { disk: "disk-1" } },
    { metadata, status: { disk: null } },
  ]);
});

test("externalDependent stores the id of a resource before the source has it", async () => {
  const disks = new Disks();
  const dependent = externalDependent({
    ...disks.options,
    desired: () => Promise.resolve({ size: 1 }),
  });
  const primary = gadget("a");
  for (let run = 0; run < 3; run++) {
    await dependent.reconcile(primary, disks.ctx);
  }
  assert.deepEqual(disks.told, ["ids disk-1", "write disk-1"]);
  assert.deepEqual([...disks.all.values()], [{ id: "disk-1", size: 1 }]);
  await dependent.delete?.(primary, disks.ctx);
  assert.deepEqual(disks.told.slice(2), ["delete disk-1", "ids "]);
});

test("externalDependent tells its source that a write may have failed", async () => {
  for (const operation of ["create", "update", "write"] as const) {
    const disks = new Disks();
    let size = 1;
    const fail = () => Promise.reject(new Error("no answer"));
    const { store } = disks.options.state;
    const dependent = externalDependent({
      ...disks.options,
      desired: () => ({ size }),
      ...(operation !== "write" && { [operation]: fail }),
      state: {
        ...disks.options.state,
        store: operation === "write" ? { ...store, write: fail } : store,
      },
    });
    const primary = gadget("a");
    if (operation === "update") await dependent.reconcile(primary, disks.ctx);
    disks.told.length = 0;
    size = 2;
    await assert.rejects(
      async () => await dependent.reconcile(primary, disks.ctx),
      /no answer/,
    );
    assert.deepEqual(disks.told, ["failure"], operation);
  }
});

test("externalDependent leaves what it has no function for as it is", async () => {
  const disks = new Disks();
  const theirs = await disks.make(7);
  const { source } = disks.options;
  const desired = () => ({ size: 1 });
  const dependent = externalDependent<KubernetesObject, object, Disk>({
    source,
    desired,
  });
  const primary = gadget("a");
  const found = await dependent.reconcile(primary, disks.ctx);
  assert.deepEqual(found, { operation: "none", resource: theirs });
  assert.equal(dependent.delete, undefined);
  const bulk = externalBulkDependent<KubernetesObject, object, Disk>({
    source,
    desired: () => new Map([["b", desired()]]),
    key: ({ id }) => id,
  });
  assert.equal(bulk.delete, undefined);
  assert.deepEqual(
    await bulk.reconcile(primary, disks.ctx),
    { operation: "none", resource: new Map() },
  );
  const { delete: remove } = disks.options;
  const read = externalBulkDependent<KubernetesObject, object, Disk>({
    source,
    delete: remove,
    key: ({ id }) => id,
  });
  assert.equal(read.delete, undefined);
  assert.deepEqual(
    (await read.reconcile(primary, disks.ctx)).resource,
    new Map([["disk-1", theirs]]),
  );
  assert.deepEqual(disks.told, []);
  assert.deepEqual([...disks.all.values()], [theirs]);
});

test("externalDependent needs a select where a primary has several resources", async () => {
  const disks = new Disks();
  await disks.make(1);
  await disks.make(1);
  const { source } = disks.options;
  const desired = () => ({ size: 1 });
  for (const select of [undefined, () => true]) {
    const dependent = externalDependent<KubernetesObject, object, Disk>({
      source,
      desired,
      select,
    });
    await assert.rejects(
      async () => await dependent.read(gadget("a"), disks.ctx),
      /(?:the primary must have|"select" must leave) one, .* received 2 from "disks"/,
    );
  }
});

test("externalDependent compares the desired fields alone, at any depth", async () => {
  let actual: object = {
    id: "disk-1",
    tags: { of: "us", by: "them" },
    list: [1],
  };
  const updates: unknown[] = [];
  const ctx = {
    signal: new AbortController().signal,
    secondaries: () => Promise.resolve([actual]),
  } as unknown as Context<KubernetesObject>;
  const dependent = externalDependent<KubernetesObject, object>({
    source: new Disks().options.source as EventSource<KubernetesObject, object>,
    desired: () => ({ tags: { of: "us" }, list: [1] }),
    update(desired) {
      updates.push(desired);
      return Promise.resolve(actual);
    },
  });
  await dependent.reconcile(gadget("a"), ctx);
  assert.equal(updates.length, 0);
  for (const tags of [{ of: "them" }, undefined]) {
    actual = { ...actual, tags };
    await dependent.reconcile(gadget("a"), ctx);
  }
  actual = { tags: { of: "us" }, list: [1, 2] };
  await dependent.reconcile(gadget("a"), ctx);
  assert.equal(updates.length, 3);
});

test("externalBulkDependent takes the key of the user before that of a stored id", async () => {
  const disks = new Disks();
  await disks.make(1);
  disks.ids = new Map([["stored", "disk-1"]]);
  const named = externalBulkDependent({
    ...disks.options,
    key: ({ id }: Disk) => `our ${id}`,
  });
  const { key: _key, ...others } = { ...disks.options, key: undefined };
  const stored = externalBulkDependent(others);
  const keys = async (dependent: typeof named) =>
    [...await dependent.read(gadget("a"), disks.ctx) ?? []].map(([key]) => key);
  assert.deepEqual(await keys(named), ["our disk-1"]);
  assert.deepEqual(await keys(stored), ["stored"]);
  disks.ids = new Map();
  assert.deepEqual(await keys(stored), ["disk-1"]);
});

test("externalDependent has the sources of its ids before its own", () => {
  const { options } = new Disks();
  const ids = { ...options.source, name: "ids" };
  const { state } = options;
  const store = { ...state.store, sources: [ids] };
  const desired = () => ({ size: 1 });
  const names = externalDependent({
    ...options,
    desired,
    state: { ...state, store },
  }).sources.map(({ name }) => name);
  assert.deepEqual(names, ["ids", "disks"]);
});

test("externalBulkDependent does not read the resources before it knows what it wants", async () => {
  const disks = new Disks();
  const dependent = externalBulkDependent({
    ...disks.options,
    async desired() {
      await disks.make(1);
      disks.ids = new Map([["a", "disk-1"]]);
      return new Map([["a", { size: 1 }]]);
    },
  });
  const { operation } = await dependent.reconcile(gadget("a"), disks.ctx);
  assert.equal(operation, "none");
});

test("statusState reads the newest status, and only ids that are text", async () => {
  const withStatus = (status: unknown) =>
    ({ ...gadget("a"), status }) as KubernetesObject;
  const read = async (many: boolean, status: unknown, current?: unknown) => {
    const state = statusState<KubernetesObject>(Gadget, "disk", { many });
    const ctx = {
      current: current === undefined ? undefined : withStatus(current),
    } as Context<KubernetesObject>;
    return Object.fromEntries(await state.read(withStatus(status), ctx));
  };
  assert.deepEqual(await read(false, { disk: "1" }), { id: "1" });
  assert.deepEqual(await read(false, { disk: "1" }, { disk: "2" }), {
    id: "2",
  });
  assert.deepEqual(await read(true, { disk: "text" }), {});
  for (const disk of [undefined, null, 5, ""]) {
    assert.deepEqual(await read(false, { disk }), {});
    assert.deepEqual(await read(true, { disk }), {});
  }
  assert.deepEqual(await read(true, { disk: { a: "1", b: 5, c: "" } }), {
    a: "1",
  });
});

test("statusState removes the ids that are gone, of the newest status", async () => {
  const sent: unknown[] = [];
  const status = { disk: { a: "1", b: "2" } };
  const ctx = {
    current: { ...gadget("a"), status },
    patch: (...[, , body, options]: unknown[]) =>
      Promise.resolve(void sent.push(body, options)),
  } as unknown as Context<KubernetesObject>;
  const state = statusState<KubernetesObject>(Gadget, "disk", { many: true });
  const primary = gadget("a");
  await state.write(new Map([["b", "2"], ["c", "3"]]), primary, ctx);
  assert.deepEqual(sent, [
    {
      metadata: { uid: primary.metadata.uid },
      status: { disk: { a: null, b: "2", c: "3" } },
    },
    { subresource: "status", fieldManager: "coracle-state" },
  ]);
});

test("configMapState keeps the ids in a ConfigMap beside the primary", async () => {
  const state = configMapState<KubernetesObject>("-disks");
  const [source] = state.sources ?? [];
  assert.deepEqual([source?.name, source?.startPriority], [
    "state-disks",
    "loader",
  ]);
  const calls: unknown[] = [];
  let isDeleted = false;
  const ctx = {
    apply: (...[, object]: unknown[]) =>
      Promise.resolve(void calls.push(object)),
    async delete(...[, key]: unknown[]) {
      calls.push(key);
      await nextTurn();
      isDeleted = true;
    },
  } as unknown as Context<KubernetesObject>;
  const { metadata, ...others } = gadget("a");
  const primary = { ...others, metadata: { ...metadata, namespace: "team" } };
  const key = { namespace: "team", name: "a-disks" };
  await state.write(new Map([["a", "1"]]), primary, ctx);
  await state.write(new Map(), primary, ctx);
  assert.equal(isDeleted, true);
  assert.deepEqual(calls, [{ metadata: key, data: { a: "1" } }, key]);
});
