import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { VirtualClock } from "@coracle/dev";
import {
  type Clock,
  type KubernetesObject,
  silentLogger,
  systemClock,
  type UntypedObject,
} from "@coracle/operator/client";
import type { ObjectStore } from "../../../../core/cache/store/object_store.ts";
import { SnapshotFile } from "../../../../core/cache/snapshot/snapshot_file.ts";
import { WatchSnapshot } from "../../../../core/cache/snapshot/watch_snapshot.ts";
import { TimeSlice } from "../../../../core/cache/watch/receive.ts";
import { headerOf } from "../../../../core/client/response.ts";
import { nextTurn } from "../../../../core/clock.ts";
import { partOfRounds } from "../../../support/part_of_rounds.ts";
import { fc } from "../../../support/property.ts";
import { podStore } from "../../../support/pod_store.ts";
import { temporaryFolder } from "../../../support/temporary_folder.ts";

/** A store with its snapshot, and the version of its stream. */
class Parts {
  readonly store: ObjectStore<UntypedObject> = podStore();
  readonly snapshot: WatchSnapshot;
  readonly refusals: string[] = [];
  version = 0;
  isListing = false;

  constructor(path: string, clock: Clock = systemClock) {
    this.snapshot = new WatchSnapshot({
      path,
      identity: "{}",
      store: this.store as unknown as ObjectStore<KubernetesObject>,
      version: () => this.isListing ? "" : String(this.version),
      clock,
      log: silentLogger,
      inTurn: (work) => work(),
      onRestored: () => {},
      onRefused: (reason) => void this.refusals.push(reason),
      onFailed: () => assert.fail("Unexpected failure"),
      onDamaged: () => assert.fail("Unexpected damage"),
      onClosed: () => {},
    });
    this.store.follower = this.snapshot;
  }

  /** Puts an object; one of another size has another UID. */
  put(name: string, content: number | string = 1): void {
    const resourceVersion = String(++this.version);
    const text = typeof content === "string" ? content : "x".repeat(content);
    const uid = `${name}-${text.length % 1_000}`;
    const metadata = { name, uid, resourceVersion };
    const header = headerOf(JSON.stringify({ metadata, spec: { text } }));
    if (this.store.put(header).outcome !== "recreated") return;
    this.store.delete({ name });
    this.store.put(header);
  }

  delete(name: string): void {
    this.version++;
    this.store.delete({ name });
  }

  /** What a reader sees, by name. */
  get state(): Record<string, unknown> {
    return Object.fromEntries(
      this.store.list().map((pod) => [pod.metadata.name, pod] as const)
        .toSorted(([a = ""], [b = ""]) => a < b ? -1 : 1),
    );
  }

  /** Restores the file into the store, which must be empty. */
  restore(): Promise<string | undefined> {
    return this.snapshot.restore({
      begin: () => {},
      take: (slot) => assert.notEqual(this.store.keyAt(slot), undefined),
    }, {
      slice: new TimeSlice(systemClock),
      clock: systemClock,
      budget: undefined,
      signal: new AbortController().signal,
      onBytes: () => {},
      onIdle: () => {},
    });
  }
}

test("Snapshot with any byte changed or cut off shows a whole state or none", async () => {
  const path = join(temporaryFolder(), "pods.snapshot");
  const parts = new Parts(path);
  const states = new Map<string | undefined, string>([[undefined, "{}"]]);
  const note = async () => {
    await parts.snapshot.flush();
    states.set(String(parts.version), JSON.stringify(parts.state));
  };
  parts.put("a", 1_200);
  parts.put("b");
  await note();
  parts.delete("a");
  await note();
  parts.put("a", 5);
  await note();
  await parts.snapshot.close();
  const whole = readFileSync(path);
  const seen = new Set<string | undefined>();
  const check = async (bytes: Uint8Array) => {
    writeFileSync(path, bytes);
    const other = new Parts(path);
    const version = await other.restore();
    seen.add(version);
    assert.equal(JSON.stringify(other.state), states.get(version));
    assert.equal(other.refusals.length, version === undefined ? 1 : 0);
  };
  // With a quarter of the rounds it is every fourth byte.
  const step = Math.round(whole.length / partOfRounds(whole.length));
  for (let at = 0; at < whole.length; at += step) {
    await check(whole.subarray(0, at));
    const changed = Buffer.from(whole);
    changed.writeUInt8(whole.readUInt8(at) ^ (1 << (at % 8)), at);
    await check(changed);
  }
  assert.deepEqual([...seen].toSorted(), ["2", "3", undefined]);
  await check(whole);
  assert.equal(seen.has("4"), true);
});

test("Snapshot restores the state of its last flush after any changes", async () => {
  const name = fc.constantFrom("a", "b", "c", "d");
  const step = fc.oneof(
    fc.record({
      do: fc.constant("put" as const),
      name,
      size: fc.constantFrom(1, 1, 3, 700_000),
    }),
    fc.record({ do: fc.constant("delete" as const), name }),
    fc.record({
      do: fc.constantFrom("flush" as const, "list" as const, "start" as const),
    }),
  );
  const folder = temporaryFolder();
  let runs = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { maxLength: 25 }),
      async (steps) => {
        const path = join(folder, `${++runs}.snapshot`);
        let parts = new Parts(path);
        let flushed: { readonly version: string; readonly state: unknown } = {
          version: "",
          state: {},
        };
        const restart = async () => {
          const next = new Parts(path);
          const version = await next.restore();
          assert.equal(version ?? "", flushed.version);
          assert.deepEqual(next.state, flushed.state);
          next.version = Number(flushed.version);
          parts = next;
        };
        for (const one of steps) {
          if (one.do === "put") parts.put(one.name, one.size);
          else if (one.do === "delete") parts.delete(one.name);
          else if (one.do === "list") parts.isListing = !parts.isListing;
          else if (one.do === "start") await restart();
          else {
            // Another change comes while the file is opened or written.
            const flushing = parts.snapshot.flush();
            if (steps.length % 2 === 0) parts.put("c");
            await flushing;
            await parts.snapshot.flush();
            if (parts.isListing) continue;
            flushed = { version: String(parts.version), state: parts.state };
          }
        }
        await restart();
      },
    ),
    { numRuns: 150 },
  );
});

test("Snapshot has an object that was made again while it was written", async () => {
  const path = join(temporaryFolder(), "pods.snapshot");
  const parts = new Parts(path);
  const fill = (size: number) => {
    // A frame each, so that the file is written before the last object is.
    for (const name of ["a", "b", "c", "d"]) parts.put(name, size);
  };
  fill(600_000);
  parts.put("last");
  await parts.snapshot.flush();
  fill(600_001);
  const before = parts.snapshot.bytes;
  const flushing = parts.snapshot.flush();
  while (parts.snapshot.bytes === before) await nextTurn();
  parts.delete("last");
  parts.put("last", 2);
  await flushing;
  await parts.snapshot.close();
  const other = new Parts(path);
  assert.equal(await other.restore(), String(parts.version));
  assert.deepEqual(Object.keys(other.state), ["a", "b", "c", "d", "last"]);
  assert.deepEqual(other.state, parts.state);
});

test("Snapshot that cannot be begun leaves no file open", async () => {
  const folder = temporaryFolder();
  const probe = await open(join(folder, "probe"), "w");
  const handles = Object.getPrototypeOf(probe) as FileHandle;
  await probe.close();
  const { write } = handles;
  let handle: FileHandle | undefined;
  // As on a disk that is full.
  handles.write = function (this: FileHandle) {
    handle = this;
    return Promise.reject(new Error("no space left on device"));
  };
  try {
    await assert.rejects(
      SnapshotFile.create(join(folder, "pods.snapshot"), "{}"),
      /^Error: no space left on device$/,
    );
  } finally {
    handles.write = write;
  }
  assert.equal(handle?.fd, -1);
});

test("Snapshot is rewritten when most of its file is out of date", async () => {
  const path = join(temporaryFolder(), "pods.snapshot");
  const parts = new Parts(path, new VirtualClock());
  let written = 0;
  let largest = 0;
  for (let round = 0; round < 60; round++) {
    // Random digits, which compression halves.
    const digits = () => String(Math.random()).slice(2);
    parts.put("a", Array.from({ length: 5_000 }, digits).join(""));
    const before = parts.snapshot.bytes;
    await parts.snapshot.flush();
    written += Math.max(parts.snapshot.bytes - before, 0);
    largest = Math.max(largest, parts.snapshot.bytes);
  }
  assert.ok(written > 2 * 1024 * 1024, `received ${written}`);
  assert.ok(largest < 1.3 * 1024 * 1024, `received ${largest}`);
  await parts.snapshot.close();
  const other = new Parts(path);
  await other.restore();
  assert.deepEqual(other.state, parts.state);
});
