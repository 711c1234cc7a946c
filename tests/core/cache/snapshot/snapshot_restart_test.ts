import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { VirtualClock } from "@coracle/dev";
import { type Logger, silentLogger } from "@coracle/operator/client";
import { SnapshotFile } from "../../../../core/cache/snapshot/snapshot_file.ts";
import {
  COMMIT,
  findFrames,
  FrameComposer,
  PAGE,
  readHead,
  readRecords,
  recordsOf,
  SNAPSHOT_FORMAT,
} from "../../../../core/cache/snapshot/snapshot_format.ts";
import { FakeWatchServer } from "../../../support/fake_watch_server.ts";
import { temporaryFolder } from "../../../support/temporary_folder.ts";
import { until } from "../../../support/until.ts";
import {
  type Incarnation,
  incarnation,
  settled,
  type WarmOptions,
} from "./warm_informer.ts";

interface Parts {
  readonly server: FakeWatchServer;
  readonly path: string;
  readonly clock: VirtualClock;
  /** Starts an incarnation, and waits until it shows what the server has. */
  start(options?: Partial<WarmOptions>): Promise<Incarnation>;
}

async function withServer(run: (parts: Parts) => Promise<void>): Promise<void> {
  const server = await FakeWatchServer.start();
  const clock = new VirtualClock();
  const path = join(temporaryFolder(), "snapshots");
  const started: Incarnation[] = [];
  try {
    await run({
      ...{ server, path, clock },
      async start(options = {}) {
        const one = await incarnation(server, { path, clock, ...options });
        started.push(one);
        one.informer.start();
        await settled(server, one, clock);
        return one;
      },
    });
  } finally {
    for (const one of started) await one.stop();
    await server.stop();
  }
}

function lists({ calls }: FakeWatchServer): number {
  return calls.filter(({ verb, query }) =>
    verb === "list" || query.get("sendInitialEvents") === "true"
  ).length;
}

function files(path: string): string[] {
  return readdirSync(path).map((name) => join(path, name));
}

test("Snapshot lets a restarted watch resume without a list", () =>
  withServer(async ({ server, start }) => {
    server.put("one/kept");
    server.put("one/changed");
    server.put("one/deleted");
    await (await start()).stop();
    const before = lists(server);
    server.put("one/changed");
    server.delete("one/deleted");
    server.put("one/new");
    const { informer, events } = await start();
    assert.equal(lists(server), before);
    assert.deepEqual(events.toSorted(), [
      "added one/changed 102 initial",
      "added one/deleted 103 initial",
      "added one/kept 101 initial",
      "added one/new 106",
      "deleted one/deleted 105",
      "updated one/changed 104",
    ]);
    assert.deepEqual(
      informer.get("one/changed"),
      server.get("one/changed"),
    );
    assert.deepEqual(informer.get("one/kept"), server.get("one/kept"));
  }));

test("Snapshot gives an object once, in its last state, however often it changed", () =>
  withServer(async ({ server, start, path }) => {
    server.put("one/a");
    server.put("one/b");
    const first = await start();
    await first.folder.flush();
    for (let round = 0; round < 3; round++) {
      server.put("one/a");
      server.delete("one/b");
      if (round < 2) server.put("one/b");
      server.put("two/c");
      await settled(server, first, new VirtualClock());
      await first.folder.flush();
    }
    await first.stop();
    assert.equal(files(path).length, 1);
    const second = await start();
    assert.deepEqual(second.events.toSorted(), [
      `added one/a ${server.get("one/a")?.metadata.resourceVersion} initial`,
      `added two/c ${server.get("two/c")?.metadata.resourceVersion} initial`,
    ]);
  }));

test("Snapshot with an expired version is followed by a list", () =>
  withServer(async ({ server, start }) => {
    server.put("one/kept");
    server.put("one/deleted");
    await (await start()).stop();
    server.delete("one/deleted");
    server.compact();
    server.put("one/new");
    const before = lists(server);
    const { events } = await start();
    assert.equal(lists(server), before + 1);
    assert.deepEqual(events.toSorted(), [
      "added one/deleted 102 initial",
      "added one/kept 101 initial",
      "added one/new 104 initial",
      "deleted one/deleted 102",
    ]);
  }));

test("Snapshot is private to the user: folder 0700, files 0600", {
  skip: globalThis.navigator?.platform?.startsWith("Win"),
}, () =>
  withServer(async ({ server, start, path }) => {
    server.put("one/a");
    await (await start()).stop();
    assert.equal(statSync(path).mode & 0o777, 0o700);
    for (const file of files(path)) {
      assert.equal(statSync(file).mode & 0o777, 0o600);
    }
    // A copy of it has the same mode.
    server.put("one/b");
    await (await start()).stop();
    for (const file of files(path)) {
      assert.equal(statSync(file).mode & 0o777, 0o600);
    }
  }));

test("Snapshot of another cluster or selection is not used", () =>
  withServer(async ({ server, start, path }) => {
    server.put("one/a");
    await (await start()).stop();
    const others: Partial<WarmOptions>[] = [
      { cluster: "two" },
      { informer: { namespaces: ["one"] } },
      { informer: { metadataOnly: true } },
      { informer: { prune: ["spec.size"] } },
    ];
    for (const other of others) {
      const before = lists(server);
      await (await start(other)).stop();
      assert.equal(lists(server), before + 1);
    }
    assert.equal(files(path).length, 5);
  }));

test("Snapshot with another identity than its name says is refused and counted", () =>
  withServer(async ({ server, start, path }) => {
    server.put("one/a");
    await (await start()).stop();
    const [file = ""] = files(path);
    const bytes = readFileSync(file);
    await (await start({ cluster: "two" })).stop();
    const other = files(path).find((name) => name !== file) ?? "";
    writeFileSync(other, bytes);
    const before = lists(server);
    const { metrics } = await start({ cluster: "two" });
    assert.equal(lists(server), before + 1);
    assert.match(
      metrics.text(),
      /coracle_snapshot_refused_total\{kind="example.dev\/v1 Widget",reason="identity"\} 1/,
    );
  }));

test("Snapshot shows its size, its age and what was restored in the metrics", () =>
  withServer(async ({ server, start, clock }) => {
    server.put("one/a");
    await (await start()).stop();
    const { metrics, folder } = await start();
    await folder.flush();
    await clock.advance(30_000);
    const text = metrics.text();
    assert.match(text, /coracle_snapshot_restored_objects\{[^}]*\} 1\n/);
    assert.match(text, /coracle_snapshot_age_seconds\{[^}]*\} 30\n/);
    assert.match(text, /coracle_snapshot_bytes\{[^}]*\} \d{3}\n/);
  }));

test("Snapshot is never written by two processes: the last one has it", () =>
  withServer(async ({ server, start, path }) => {
    server.put("one/a");
    await (await start()).stop();
    const old = await start();
    await old.folder.flush();
    const young = await start();
    await young.folder.flush();
    server.put("one/b");
    await settled(server, old, new VirtualClock());
    await settled(server, young, new VirtualClock());
    await old.folder.flush();
    await young.folder.flush();
    server.put("one/c");
    await settled(server, young, new VirtualClock());
    await young.folder.flush();
    await old.stop();
    assert.equal(files(path).length, 1);
    const before = lists(server);
    const last = await start();
    assert.equal(lists(server), before);
    assert.equal(last.informer.size, 3);
  }));

test("Snapshot that is cut off is used up to its last whole group", () =>
  withServer(async ({ server, start, path, clock }) => {
    server.put("one/a");
    const first = await start();
    await first.folder.flush();
    const [file = ""] = files(path);
    const { length } = readFileSync(file);
    server.put("one/b");
    await settled(server, first, clock);
    await first.stop();
    const whole = readFileSync(file);
    server.put("one/a");
    for (const end of [length - 1, length, whole.length - 1, whole.length]) {
      writeFileSync(file, whole.subarray(0, end));
      const before = lists(server);
      const { events, stop } = await start();
      assert.equal(lists(server) - before, end < length ? 1 : 0);
      assert.deepEqual(
        events.toSorted(),
        end < length
          ? ["added one/a 103 initial", "added one/b 102 initial"]
          : [
            "added one/a 101 initial",
            `added one/b 102${end === whole.length ? " initial" : ""}`,
            "updated one/a 103",
          ],
      );
      await stop();
    }
  }));

/** Writes a snapshot again, with right digests, and pages that cannot be read. */
async function spoilPages(file: string): Promise<void> {
  const bytes = readFileSync(file);
  const readAt = (position: number, length: number) =>
    Promise.resolve(bytes.subarray(position, position + length));
  let identity = "";
  const start = await readHead(readAt, (text) => {
    identity = text;
    return true;
  }, SNAPSHOT_FORMAT);
  const { frames } = await findFrames(readAt, start);
  const spoilt = await SnapshotFile.create(file, identity);
  for (const [at, frame] of frames.entries()) {
    const composer = new FrameComposer();
    for (const record of recordsOf(await readRecords(readAt, frame))) {
      const { type, start, end } = record;
      const copy = Buffer.from(record.bytes.subarray(start, end));
      if (type === PAGE) copy.fill(7, 12 + copy.readUInt32LE(8));
      composer.addParts(type, [copy]);
    }
    await spoilt.write(composer, at === frames.length - 1 ? COMMIT : 0);
  }
  await spoilt.settle();
}

test("Snapshot with pages that cannot be read does not stop the watch", () =>
  withServer(async ({ server, path, clock, start }) => {
    const names = ["a", "b", "c", "d", "e"];
    for (const name of names) server.put(`one/${name}`);
    await (await start()).stop();
    await spoilPages(files(path)[0] as string);
    for (const name of names.slice(0, 3)) server.delete(`one/${name}`);
    server.put("one/d");
    server.delete("one/e");
    server.compact(); // so that a list follows
    const next = await incarnation(server, { path, clock });
    const previous: unknown[] = [];
    next.informer.addHandler((event) =>
      void (event.type === "updated" &&
        previous.push(event.hasSameMetadata, event.previousHeader))
    );
    try {
      next.informer.start();
      await settled(server, next, clock);
      assert.deepEqual(previous, [false, undefined]);
      assert.deepEqual(
        next.events.filter((text) => text.startsWith("deleted")).toSorted(),
        ["a", "b", "c", "e"].map((name, at) =>
          `deleted one/${name} ${at === 3 ? 105 : 101 + at}`
        ),
      );
    } finally {
      await next.stop();
    }
  }));

for (const isRead of [true, false]) {
  const by = isRead ? "handlers" : "get()";
  test(`Snapshot pages that cannot be read by ${by} are replaced by one list`, () =>
    withServer(async ({ server, path, clock, start }) => {
      for (const name of ["a", "b", "c"]) server.put(`one/${name}`);
      await (await start()).stop();
      await spoilPages(files(path)[0] as string);
      const before = lists(server);
      const warnings: unknown[] = [];
      const log: Logger = {
        ...silentLogger,
        warn: (_, fields) => void warnings.push(fields?.["reason"]),
        with: () => log,
      };
      const next = await incarnation(server, { path, clock, log, isRead });
      const { informer, events, metrics } = next;
      try {
        informer.start();
        if (!isRead) {
          await until("the watch has caught up", () => {
            server.bookmark();
            return informer.hasSynced;
          });
          assert.equal(lists(server), before);
          assert.throws(() => informer.get("one/b"));
          assert.throws(() => informer.list());
        }
        await until("the objects are readable", () => {
          server.bookmark();
          try {
            return informer.hasSynced && informer.list().length === 3;
          } catch {
            return false;
          }
        });
        await settled(server, next, clock);
        assert.deepEqual(informer.get("one/b"), server.get("one/b"));
        assert.equal(lists(server), before + 1);
        assert.deepEqual(warnings, ["unreadable"]);
        assert.match(
          metrics.text(),
          /coracle_informer_errors_total\{kind="example.dev\/v1 Widget",reason="unreadable"\} 1\n/,
        );
        assert.deepEqual(
          events.filter((text) => text.startsWith("updated")).toSorted(),
          ["a 101", "b 102", "c 103"].map((text) =>
            `updated one/${text}${isRead ? " initial" : ""}`
          ),
        );
      } finally {
        await next.stop();
      }
      const last = await start();
      assert.equal(lists(server), before + 1);
      assert.deepEqual(last.informer.get("one/a"), server.get("one/a"));
      assert.equal(last.informer.size, 3);
    }));
}
