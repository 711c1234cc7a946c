import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import {
  type IndexDefinition,
  type KubernetesObject,
  MemoryBudget,
  silentLogger,
  systemClock,
  type UntypedObject,
} from "@coracle/operator/client";
import { SnapshotFile } from "../../../../core/cache/snapshot/snapshot_file.ts";
import {
  BASIS,
  COMMIT,
  FACTS,
  FrameComposer,
  PAGE,
  PENDING,
  SNAPSHOT_FORMAT,
  VERSION,
} from "../../../../core/cache/snapshot/snapshot_format.ts";
import {
  encodeBasis,
  EntryWriter,
  pageHead,
} from "../../../../core/cache/snapshot/page_record.ts";
import { WatchSnapshot } from "../../../../core/cache/snapshot/watch_snapshot.ts";
import type { ObjectStore } from "../../../../core/cache/store/object_store.ts";
import { compressPage } from "../../../../core/cache/store/page_codec.ts";
import { composePage } from "../../../../core/cache/store/page_layout.ts";
import { TimeSlice } from "../../../../core/cache/watch/receive.ts";
import { wholeRange } from "../../../../core/json/byte_range.ts";
import { Carry } from "../../../../core/json/carry.ts";
import { headerOf } from "../../../../core/client/response.ts";
import { podStore } from "../../../support/pod_store.ts";
import { temporaryFolder } from "../../../support/temporary_folder.ts";

type Indexes = Readonly<Record<string, IndexDefinition<UntypedObject>>>;

/** Store with a snapshot, which takes part in a small budget. */
function parts(path: string, indexes: Indexes = {}) {
  const refusals: string[] = [];
  const damage: unknown[] = [];
  const store: ObjectStore<UntypedObject> = podStore({
    indexes,
    budget: new MemoryBudget("64KiB"),
  });
  let version = 0;
  const snapshot = new WatchSnapshot({
    path,
    identity: "{}",
    store: store as unknown as ObjectStore<KubernetesObject>,
    version: () => String(version),
    clock: systemClock,
    log: silentLogger,
    inTurn: (work) => work(),
    onRestored: () => {},
    onRefused: (reason) => void refusals.push(reason),
    onFailed: () => assert.fail("Unexpected failure"),
    onDamaged: (error) => void damage.push(error),
    onClosed: () => {},
  });
  store.follower = snapshot;
  const put = (number: number, app: string, repeats: number = 200) => {
    const metadata = {
      namespace: `team-${number % 3}`,
      name: `pod-"${number}-ü`,
      uid: number % 2 === 0
        ? `${number}`
        : `00000000-0000-4000-8000-${String(number).padStart(12, "0")}`,
      resourceVersion: String(++version),
      generation: number,
      labels: { app },
      ownerReferences: [{ uid: `owner-${number % 7}` }, { uid: "all" }],
    };
    const spec = { text: `${number}`.repeat(repeats) };
    store.put(headerOf(JSON.stringify({ metadata, spec })));
  };
  const restore = () =>
    snapshot.restore({ begin() {}, take() {} }, {
      slice: new TimeSlice(systemClock),
      clock: systemClock,
      budget: undefined,
      signal: new AbortController().signal,
      onBytes() {},
      onIdle() {},
    });
  return { damage, put, refusals, restore, snapshot, store };
}

/** What a reader of the store sees, by key. */
const stateOf = (store: ObjectStore<UntypedObject>) =>
  store.list().map((object) => JSON.stringify(object)).toSorted();

const SAVED: Indexes = {
  owner: { byOwner: true },
  app: { byLabel: "app" },
};

test("Restored pages are not read, and have the objects and their index values", async () => {
  const path = join(temporaryFolder(), "pods.snapshot");
  const one = parts(path, SAVED);
  for (let i = 0; i < 96; i++) one.put(i, `app-${i % 5}`);
  assert.ok(one.store.usage().compressed.objects > 0);
  await one.snapshot.flush();
  // Pages that are written once more, in part, or not at all.
  for (let i = 0; i < 96; i += 9) one.put(i, "changed");
  for (let i = 40; i < 70; i++) {
    one.store.delete({ namespace: `team-${i % 3}`, name: `pod-"${i}-ü` });
  }
  await one.snapshot.close();
  const other = parts(path, {
    ...SAVED,
    size: { byFunction: ({ metadata }) => [String(metadata.generation)] },
  });
  assert.notEqual(await other.restore(), undefined);
  assert.deepEqual(stateOf(other.store), stateOf(one.store));
  const keys = (store: ObjectStore<UntypedObject>, index: string, of: string) =>
    store.keysByIndex(index, of).map(({ name }) => name).toSorted();
  for (
    const [index, of] of [
      ["owner", "all"],
      ["owner", "owner-3"],
      ["app", "changed"],
      ["app", "app-2"],
      ["app", "none"],
    ] as const
  ) {
    assert.deepEqual(
      keys(other.store, index, of),
      keys(one.store, index, of),
      `${index} ${of}`,
    );
  }
  assert.deepEqual(keys(other.store, "size", "11"), ['pod-"11-ü']);
  const unread = parts(path, SAVED);
  unread.store.headerAt = () => assert.fail("A page was read");
  assert.notEqual(await unread.restore(), undefined);
  assert.equal(unread.store.size, one.store.size);
  // It goes on: pages of the process before are written, and restored, again.
  for (let i = 0; i < 20; i++) other.put(i + 300, "later");
  await other.snapshot.close();
  const third = parts(path);
  await third.restore();
  assert.deepEqual(stateOf(third.store), stateOf(other.store));
});

test("Snapshot of objects larger than a dictionary is restored", async () => {
  const path = join(temporaryFolder(), "pods.snapshot");
  const one = parts(path);
  for (let i = 10; i < 34; i++) one.put(i, "large", 40_000);
  assert.ok(one.store.usage().compressed.objects > 0);
  await one.snapshot.close();
  const other = parts(path);
  assert.equal(await other.restore(), "24");
  assert.deepEqual(stateOf(other.store), stateOf(one.store));
});

test("Snapshot with another dictionary than that of pages is not used", async () => {
  const path = join(temporaryFolder(), "pods.snapshot");
  const one = parts(path);
  for (let i = 0; i < 96; i++) one.put(i, "saved");
  await one.snapshot.close();
  const other = parts(path);
  for (let i = 100; i < 400; i++) other.put(i, "stored before the restore");
  const before = stateOf(other.store);
  assert.ok(other.store.usage().compressed.objects > 0);
  assert.equal(await other.restore(), undefined);
  assert.deepEqual(stateOf(other.store), before);
});

/** Writes a snapshot with one page, whose digests are right. */
async function forge(
  path: string,
  page: Buffer,
  pending: string = "{}",
): Promise<void> {
  const file = await SnapshotFile.create(path, "{}");
  const composer = new FrameComposer();
  composer.addParts(BASIS, [encodeBasis(undefined)]);
  await file.write(composer, 0);
  composer.addText(FACTS, '{"definitions":[],"isRegular":true}');
  composer.addParts(PAGE, [page]);
  composer.addText(VERSION, "7");
  composer.addText(PENDING, pending);
  await file.write(composer, COMMIT);
  await file.settle();
}

/** Page with a number of bodies, and the entries of one object. */
function pageOf(
  content: Uint8Array,
  sizes: { readonly count: number; readonly length: number },
): Buffer {
  const { put, store } = parts("unused");
  put(1, "web");
  const writer = new EntryWriter();
  writer.add(store as never, 0, { ordinal: 0, values: [] });
  const head = pageHead({ ...sizes, isPlain: true }, 1, writer.take());
  return Buffer.concat([head, content]);
}

const UNREADABLE: readonly {
  readonly by: string;
  readonly content: Uint8Array;
  readonly length: number;
}[] = [
  { by: "page", content: Buffer.alloc(100, 7), length: 100 },
  ...["{", '{"spec":{"a":tru}}'].map((text) => {
    const body = wholeRange(Buffer.from(text));
    const page = composePage(new Carry(), 1, () => body);
    const content = compressPage(page, undefined);
    return { by: text, content, length: page.length };
  }),
  { by: "no place of a UID", ...withoutPlace() },
];

/** Page of a body that has no place for the UID that it leaves out. */
function withoutPlace() {
  const uid = Buffer.from("5f0f61d5-61d8-4f5c-a0f2-f2b2fd5a0a0a");
  const body = wholeRange(`{"metadata":{"uid":"${uid}"}}`);
  const page = composePage(new Carry(), 1, () => body, () => uid);
  page.write("1", page.length - 5);
  return { content: compressPage(page, undefined), length: page.length };
}

for (const { by, content, length } of UNREADABLE) {
  test(`Unreadable object of a snapshot is found and replaced: ${by}`, async () => {
    const path = join(temporaryFolder(), "pods.snapshot");
    await forge(path, pageOf(content, { count: 1, length }));
    const key = { namespace: "team-1", name: 'pod-"1-ü' };
    const reads: Record<
      string,
      (store: ObjectStore<UntypedObject>) => unknown
    > = {
      get: (store) => store.get(key),
      find: (store) => store.find(key),
      list: (store) => store.list(),
      getAt: (store) => store.getAt(0),
      addIndex(store) {
        const names = ({ metadata }: UntypedObject) => [metadata.name];
        store.addIndex("name", { byFunction: names });
        throw new Error("The index has no value");
      },
      // Neither reads more than it needs.
      ...(by === "page" && { bodyAt: (store) => store.bodyAt(0) }),
      ...(by !== UNREADABLE[2]?.by && {
        headerAt(store) {
          assert.ok(store.headerAt(0).isPartial);
          throw new Error("It is partial");
        },
      }),
    };
    for (const [name, read] of Object.entries(reads)) {
      const { damage, restore, snapshot, store } = parts(path);
      assert.equal(await restore(), "7");
      assert.equal(snapshot.isDamaged, false);
      assert.throws(() => read(store), name);
      assert.throws(() => store.get(key));
      assert.equal(damage.length, 1, name);
      assert.equal(snapshot.isDamaged, true, name);
      const metadata = {
        ...key,
        uid: store.slots.uid(0),
        resourceVersion: store.slots.version(0),
      };
      const header = headerOf(JSON.stringify({ metadata, spec: {} }));
      assert.equal(store.put(header).outcome, "unchanged");
      assert.equal(store.put(header, { repair: true }).outcome, "updated");
      assert.equal(store.put(header, { repair: true }).outcome, "unchanged");
      assert.deepEqual(store.get(key)?.metadata, metadata);
    }
    // An index needs its values during the restore.
    const names = ({ metadata }: UntypedObject) => [metadata.name];
    const indexed = parts(path, { name: { byFunction: names } });
    await indexed.restore();
    assert.equal(indexed.damage.length, 1);
  });
}

test("Forged pages are refused, or fail to be read, within their stated size", async () => {
  const path = join(temporaryFolder(), "pods.snapshot");
  const bomb = compressPage(Buffer.alloc(32 * 1024 * 1024), undefined);
  const good = { count: 1, length: 100 };
  for (const content of [bomb, gzipSync("?"), Buffer.alloc(100, 7)]) {
    await forge(path, pageOf(content, good));
    const { restore, store } = parts(path);
    assert.equal(await restore(), "7");
    assert.equal(store.size, 1);
    assert.throws(() => store.list());
  }
  const entry = pageOf(bomb, good);
  const cases: Buffer[] = [
    Buffer.alloc(0),
    pageOf(bomb, { count: 0, length: 100 }),
    pageOf(bomb, { count: 17, length: 100 }),
    pageOf(bomb, { count: 1, length: 0xffffffff }),
    pageOf(bomb, { count: 1, length: 7 }),
  ];
  // Each number of the head and the entry, as large as it can be.
  const sizes = [[2, 2], [8, 4], [12, 1], [13, 1], [14, 4], [24, 4], [53, 8]];
  for (const [at = 0, size = 0] of sizes) {
    const changed = Buffer.from(entry);
    changed.fill(0xff, at, at + size);
    cases.push(changed);
  }
  // No name, and a version that is no whole number.
  for (const [at, number] of [[24, 0], [57, 0x3fe00000]] as const) {
    const changed = pageOf(Buffer.alloc(100, 7), good);
    changed.writeUInt32LE(number, at);
    cases.push(changed);
  }
  for (const [number, page] of cases.entries()) {
    await forge(path, page);
    const { refusals, restore, store } = parts(path);
    assert.equal(await restore(), undefined, `case ${number}`);
    assert.equal(refusals.length, 1);
    assert.equal(store.size, 0);
  }
  await forge(path, entry, '{"known":[],"broken":5}');
  const pending = parts(path);
  assert.equal(await pending.restore(), undefined);
  assert.equal(pending.snapshot.isRestored, false);
  assert.equal(pending.snapshot.wasIdle("known", "a"), false);
  await forge(path, entry);
  const older = readFileSync(path);
  older.writeUInt32LE(SNAPSHOT_FORMAT - 1, 8);
  writeFileSync(path, older);
  const { refusals, restore } = parts(path);
  assert.equal(await restore(), undefined);
  assert.deepEqual(refusals, ["format"]);
});
