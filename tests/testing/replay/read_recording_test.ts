import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { randomBytes } from "node:crypto";
import { chmodSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { VirtualClock } from "@coracle/dev";
import { MetricsRegistry } from "@coracle/operator/core";
import { encodeHead } from "../../../core/cache/snapshot/snapshot_format.ts";
import {
  decodeEntry,
  encodeRun,
  OBJECT,
  RUN,
  type RunRecord,
  unpackRun,
} from "../../../core/controller/record/recording_format.ts";
import { RecordingRing } from "../../../core/controller/record/recording_ring.ts";
import type { RecordSettings } from "../../../core/controller/record/record_options.ts";
import { leveledLogger } from "../../../core/logger.ts";
import { readRecording } from "../../../dev/testing/replay/read_recording.ts";
import { temporaryFolder } from "../../support/temporary_folder.ts";

const folder = temporaryFolder();

function ring(given: Partial<RecordSettings>) {
  const clock = new VirtualClock();
  const metrics = new MetricsRegistry();
  const entries: { readonly level: string; readonly message: string }[] = [];
  const log = leveledLogger("info", (level, message) => {
    entries.push({ level, message });
  });
  const made = new RecordingRing({
    settings: {
      ...{ path: undefined, sink: undefined, objects: ["*"] },
      ...{ last: 3_600_000, size: 512 * 1024, ...given },
    },
    ...{ clock, log, metrics },
    onPart() {},
  });
  return { ring: made, clock, metrics, entries };
}

/** Adds a run that has read one object, each time with another content. */
function add(
  to: RecordingRing,
  number: number,
  size = 100,
  { at = number, t = 0 } = {},
): void {
  if (!to.hasRoom()) return;
  const noise = randomBytes(size);
  const object = { metadata: { name: "a" }, data: noise.toString("base64") };
  to.add(OBJECT, [number, Buffer.from(JSON.stringify(object))]);
  to.add(
    RUN,
    encodeRun({
      ...{ controller: "shop", key: `default/${number}`, n: 2 * number },
      ...{ at, cause: { type: "modified", events: 1 }, attempt: 0 },
      ...{ last: false, waited: 0, primary: number, reads: [] },
      ...{ decisions: [], steps: [] },
      end: { n: 2 * number + 1, t, outcome: "done", step: "reconcile" },
    }, []),
  );
}

async function recorded(name: string, runs = 3): Promise<string> {
  const path = `${folder}/${name}`;
  const { ring: made } = ring({ path });
  for (let number = 1; number <= runs; number++) add(made, number);
  await made.close();
  return path;
}

const keys = async (path: string) =>
  (await readRecording(path)).processes.flatMap(({ runs }) =>
    runs.map(({ key }) => key)
  );

test("recording: a file never grows beyond its size, and the newest runs stay", async () => {
  const path = `${folder}/large`;
  const { ring: made } = ring({ path });
  for (let number = 1; number <= 100; number++) {
    add(made, number, 20_000);
    await made.flush();
  }
  await made.close();
  assert.ok(statSync(path).size <= 512 * 1024);
  const found = await keys(path);
  assert.equal(found.at(-1), "default/100");
  assert.ok(found.length < 30 && found.length > 8, `${found.length} runs`);
});

test("recording: the next process goes on in the same file", async () => {
  const path = await recorded("again");
  const { ring: made } = ring({ path });
  add(made, 7);
  await made.close();
  assert.equal((await readRecording(path)).processes.length, 2);
  assert.equal((await keys(path)).length, 4);
});

test("recording: two processes of one file leave each other's parts", async () => {
  const path = `${folder}/shared`;
  const [{ ring: one }, { ring: other }] = [ring({ path }), ring({ path })];
  for (let number = 1; number <= 6; number++) {
    for (const made of [one, other]) {
      add(made, number, 20_000);
      await made.flush();
    }
  }
  await one.close();
  await other.close();
  const { processes, damaged } = await readRecording(path);
  assert.deepEqual(processes.map(({ runs }) => runs.length), [6, 6]);
  assert.equal(damaged, 0);
});

test("recording: a file that was cut or damaged has its whole frames", async () => {
  const path = `${folder}/cut`;
  const { ring: made } = ring({ path });
  for (const number of [1, 2, 3]) {
    add(made, number);
    await made.flush();
  }
  await made.close();
  const bytes = readFileSync(path);
  writeFileSync(path, bytes.subarray(0, bytes.length - 10));
  assert.deepEqual(await keys(path), ["default/1", "default/2"]);
  bytes.writeUInt8(bytes[bytes.length - 30]! ^ 1, bytes.length - 30);
  writeFileSync(path, bytes);
  assert.deepEqual(await keys(path), ["default/1", "default/2"]);
  writeFileSync(path, bytes.subarray(0, 60));
  await assert.rejects(
    () => readRecording(path),
    /^SyntaxError: Cannot read .*cut: it is damaged, or was cut: no part of it is whole$/,
  );
});

test("recording: a run is read as it was written, to the microsecond", () => {
  const run: RunRecord = {
    ...{ controller: "shop", key: "default/a", n: 1, at: 1_795_975_995_596.25 },
    cause: { type: "source", source: 'a "b"', events: 2 },
    ...{ attempt: 1, last: false, waited: 0.001, reads: [], decisions: [] },
    steps: [],
    end: { n: 9, t: 3.5, outcome: "done", step: "reconcile" },
  };
  const request = { method: "PATCH", path: "/apis/a/b?c=d", body: -1 };
  const runs: RunRecord[] = [run, {
    ...{ ...run, last: true, deleted: true, finalStateUnknown: false },
    ...{ key: "ä/\u2028\n", primary: 7, secrets: true, at: 0 },
    reads: [["get v1 Pod a/b", 3], ["list", [1, null]], ["x", { value: 0 }]],
    decisions: [["fight", { a: "ü" }]],
    steps: [
      { n: 2, t: 0, request },
      { n: 3, t: 0.1, request: { ...request, type: "a/b\\", body: 5 } },
      { n: 4, t: 1, to: 2, answer: { status: 200, body: 70 } },
      { n: 5, t: 1, to: 3, answer: { status: 429, headers: {}, body: -2 } },
      { n: 6, t: 2, to: 3, error: { message: "no" }, isAborted: true },
      { n: 7, t: 2, aborted: "timeout" },
      { n: 8, t: 2, event: { type: "Normal", reason: "A", message: '"' } },
    ],
    end: {
      ...{ n: 9, t: 3, outcome: "failed", step: "cleanup", error: "a\nb" },
      ...{ delay: 5, next: ["retry", 2_000] },
    },
  }];
  for (const one of runs) {
    const parts = encodeRun(one, ["body"]).map((part) => Buffer.from(part));
    const { entry, bodies } = decodeEntry(Buffer.concat(parts)) ?? {};
    assert.equal(bodies?.toString(), "body");
    const read = JSON.stringify(unpackRun(entry));
    assert.deepEqual(JSON.parse(read), JSON.parse(JSON.stringify(one)));
  }
});

test("recording: other files and those of newer versions are refused", async () => {
  const refused = async (bytes: Uint8Array | string, why: RegExp) => {
    const path = `${folder}/refused`;
    writeFileSync(path, bytes);
    await assert.rejects(() => readRecording(path), why);
  };
  await refused("apiVersion: v1\n", /: it is no recording of runs$/);
  await refused("", /: it is no recording of runs$/);
  const part = { part: 0, writer: "a", last: 1 };
  await refused(
    encodeHead(JSON.stringify({ recording: 99, ...part })).bytes,
    /: another version of Coracle has written it: its format must be 1: received 99$/,
  );
  await refused(
    encodeHead(JSON.stringify({ cluster: "a" })).bytes,
    /: it is the snapshot of a cache, and no recording of runs$/,
  );
  const newer = Buffer.from(encodeHead(JSON.stringify(part)).bytes);
  newer.writeUInt32LE(9, 8);
  await refused(
    newer,
    /: another version of Coracle has written it: its format/,
  );
  await assert.rejects(
    () => readRecording(`${folder}/none`),
    /: it must be a recording of runs: received no such file$/,
  );
});

test("recording: a failure is logged once and counted, and tried again", async () => {
  // A folder in place of the file, and a file of something else.
  writeFileSync(`${folder}/foreign`, "mine");
  for (const path of [folder, `${folder}/foreign`]) {
    const { ring: made, clock, metrics, entries } = ring({ path });
    for (const number of [1, 2, 3]) {
      add(made, number);
      await made.flush();
      await clock.advance("61s");
    }
    assert.deepEqual(
      entries.map(({ message }) => message),
      ["Cannot record runs, which is tried again later"],
    );
    assert.match(metrics.text(), /coracle_record_errors_total 3\n/);
    await made.close();
  }
  assert.equal(readFileSync(`${folder}/foreign`, "utf8"), "mine");
});

test("recording: a full disk costs the runs of a minute, which are counted", {
  skip: process.platform !== "linux",
}, async () => {
  const { ring: made, metrics, clock, entries } = ring({ path: "/dev/full" });
  add(made, 1);
  await made.flush();
  add(made, 2);
  add(made, 3);
  await made.flush();
  await clock.advance("61s");
  add(made, 4);
  await made.close();
  assert.equal(entries.filter(({ level }) => level === "warn").length, 1);
  assert.match(metrics.text(), /coracle_record_errors_total 2\n/);
  assert.match(metrics.text(), /coracle_record_dropped_runs_total 2\n/);
});

test("recording: parts of a sink are a recording, one after the other", async () => {
  const parts: Uint8Array[] = [];
  const { ring: made } = ring({
    path: undefined,
    sink: (part: Uint8Array) => void parts.push(part),
  });
  for (const number of [1, 2, 3]) {
    add(made, number);
    await made.flush();
  }
  await made.close();
  assert.equal(parts.length, 3);
  const path = `${folder}/parts`;
  writeFileSync(path, Buffer.concat(parts));
  assert.deepEqual(await keys(path), ["default/1", "default/2", "default/3"]);
  writeFileSync(path, parts[1]!);
  assert.deepEqual(await keys(path), ["default/2"]);
});

test("recording: cut anywhere, it has its whole frames or is refused", async () => {
  const path = `${folder}/anywhere`;
  const { ring: made } = ring({ path });
  for (const number of [1, 2, 3]) {
    add(made, number);
    await made.flush();
  }
  await made.close();
  const bytes = readFileSync(path);
  let most = 0;
  for (let length = 0; length < bytes.length; length += 13) {
    writeFileSync(path, bytes.subarray(0, length));
    const found = await keys(path).catch((error: unknown) => {
      assert.ok(error instanceof SyntaxError, String(error));
      return [];
    });
    assert.ok(found.length >= most && found.length < 3);
    most = found.length;
  }
  assert.equal(most, 2);
});

test("recording: an object larger than a part costs only its own run", async () => {
  const path = `${folder}/huge`;
  const { ring: made, metrics, entries } = ring({ path });
  add(made, 1);
  add(made, 2, 5 * 1024 * 1024);
  add(made, 3);
  await made.close();
  const recording = await readRecording(path);
  assert.deepEqual(await keys(path), ["default/1", "default/3"]);
  assert.equal(recording.incomplete + recording.missing, 1);
  assert.deepEqual(entries, []);
  assert.doesNotMatch(metrics.text(), /coracle_record_errors_total \d/);
});

test("recording: a clock that is set back leaves the newest runs", async () => {
  const path = `${folder}/back`;
  const { ring: made } = ring({ path, last: 60_000 });
  for (const [index, at] of [0, 7_200_000, 7_210_000, 10_000].entries()) {
    add(made, index + 1, 100, { at });
  }
  await made.close();
  assert.deepEqual(await keys(path), ["default/2", "default/3", "default/4"]);
});

test("recording: a run that takes longer than the recording goes back is in it", async () => {
  const path = `${folder}/long`;
  const { ring: made } = ring({ path, last: 60_000 });
  add(made, 1, 100, { at: 0, t: 600_000 });
  add(made, 2, 100, { at: 610_000 });
  await made.close();
  assert.deepEqual(await keys(path), ["default/1", "default/2"]);
});

test("recording: a file that others could read is closed to them", {
  skip: process.platform === "win32",
}, async () => {
  const path = await recorded("open");
  chmodSync(path, 0o644);
  await recorded("open");
  assert.equal(statSync(path).mode & 0o777, 0o600);
});

test("recording: what is added after its end is left out", async () => {
  const path = `${folder}/ended`;
  const { ring: made } = ring({ path });
  add(made, 1);
  await made.close();
  made.add(OBJECT, [2, Buffer.alloc(600 * 1024)]);
  await made.flush();
  assert.deepEqual(await keys(path), ["default/1"]);
});
