import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import { untyped } from "../../../core/api/kind.ts";
import type { KubernetesObject } from "../../../core/api/object.ts";
import { keyOf, keyText } from "../../../core/api/object_key.ts";
import type { EventSource } from "../../../core/controller/event_source.ts";
import type { Context } from "../../../core/controller/context.ts";
import { defineKind } from "../../../core/crd/define_kind.ts";
import { ConfigMap } from "../../../core/kinds/mod.ts";
import { Operator } from "../../../core/operator/operator.ts";
import { pollingSource } from "../../../sources/mod.ts";
import { VirtualClock, withTestCluster } from "../../../testing/mod.ts";
import {
  externalBulkDependent,
  externalDependent,
  statusState,
} from "../../../workflows/dependents/external_dependent.ts";
import { isGone, Workflow } from "../../../workflows/mod.ts";
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
  #made = 0;

  readonly options = {
    source: {
      name: "disks",
      start: () => Promise.resolve(),
      stop: () => Promise.resolve(),
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
        write: (ids: ReadonlyMap<string, string>) => {
          this.ids = ids;
          return Promise.resolve();
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
