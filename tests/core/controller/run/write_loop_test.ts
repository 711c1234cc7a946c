import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@coracle/dev";
import {
  type KubernetesObject,
  MetricsRegistry,
  silentLogger,
  untyped,
} from "@coracle/operator/core";
import type { Run } from "../../../../core/controller/run/run.ts";
import {
  type FieldFight,
  FieldFightDetector,
  type StoredWrite,
  WriteLoopDetector,
  WriteObserver,
} from "../../../../core/controller/run/write_loop.ts";

/** Fight in which another writer resets `.status.parts.count` after each write. */
function fight(fieldsV1: Record<string, object>): FieldFight {
  const detector = new FieldFightDetector("ours");
  const status = (count: number) => ({ parts: { count, other: 1 } });
  const live = {
    metadata: {
      name: "a",
      managedFields: Object.entries({ ours: {}, ...fieldsV1 }).map((
        [manager, status],
      ) => ({ manager, fieldsV1: { "f:status": status } })),
    },
  };
  const fights: FieldFight[] = [];
  for (let write = 0; write < 12; write++) {
    const found = detector.observe("v1 Pod default/a", {
      before: {
        metadata: {},
        status: status(0),
      } as unknown as KubernetesObject,
      after: { statusJson: JSON.stringify(status(1)) } as never,
      live: live as never,
    });
    if (found) fights.push(found);
  }
  assert.equal(fights.length, 1, "it is told once");
  return fights[0]!;
}

test("FieldFightDetector names the writer of the field, not one of its neighbours", () => {
  const neighbour = { "f:parts": { ".": {}, "f:other": {} }, "f:phase": {} };
  const writer = { "f:parts": { "f:count": {} } };
  const { field, manager, times } = fight({ neighbour, writer });
  assert.deepEqual([field, manager, times], [
    ".status.parts.count",
    "writer",
    5,
  ]);
  assert.equal(fight({ neighbour }).manager, undefined);
});

test("FieldFightDetector names the writer of the whole in which the field is", () => {
  assert.equal(fight({ writer: { "f:parts": {} } }).manager, "writer");
});

test("WriteLoopDetector counts from the start after a write that changed nothing", () => {
  const detector = new WriteLoopDetector();
  let version = 1;
  const write = (changes: boolean) => {
    const state = (size: number) => ({
      metadata: { name: "a", uid: "a", resourceVersion: `${version}` },
      spec: { size },
    });
    const before = state(1);
    if (changes) version++;
    const object = state(2);
    const after = {
      uid: "a",
      resourceVersion: `${version}`,
      sent: "2",
      object,
    };
    const known = { id: "a", before, now: 0, waited: 0 };
    return detector.observe({ ...known, after: after as never })?.times;
  };
  const loops = [true, true, true, true, false, true, true, true, true, true];
  assert.deepEqual(loops.map(write), [...Array(9), 5]);
});

/** Pauses that a loop of creations leads to, which come so long after another. */
function pauses(
  { every, sent = () => "same" }: {
    readonly every: number;
    readonly sent?: (write: number) => string;
  },
): readonly (number | undefined)[] {
  const detector = new WriteLoopDetector();
  return Array.from({ length: 12 }, (_, write) => {
    const after = { uid: `${write}`, resourceVersion: `${write}` };
    const created = { ...after, sent: sent(write), object: {} };
    const loop = detector.observe({
      id: "a",
      before: undefined,
      now: write * every,
      waited: 0,
      after: created as never,
    });
    if (loop !== undefined) assert.deepEqual(loop.fields, []);
    return loop && loop.pause / 1_000;
  });
}

test("WriteLoopDetector pauses longer after each write within a minute, up to one", () => {
  const none = undefined;
  assert.deepEqual(
    pauses({ every: 60_000 }),
    [none, none, none, none, 1, 2, 4, 8, 16, 32, 60, 60],
  );
  const never = Array(12).fill(none);
  assert.deepEqual(pauses({ every: 60_001 }), never);
  assert.deepEqual(pauses({ every: 1, sent: String }), never);
});

test("FieldFightDetector needs the live object only before it names a fight", () => {
  const detector = new FieldFightDetector("ours");
  const near: boolean[] = [];
  for (let write = 0; write < 6; write++) {
    near.push(detector.isNear(() => "a"));
    const before = { metadata: {}, status: { count: 0 } };
    const after = { statusJson: '{"count":1}' };
    detector.observe("a", { before, after, live: undefined } as never);
  }
  assert.deepEqual(near, [false, false, false, false, true, false]);
});

test("FieldFightDetector does not take fields for contested that only we change", () => {
  const detector = new FieldFightDetector("ours");
  const fights: FieldFight[] = [];
  for (let write = 0; write < 8; write++) {
    const before = {
      metadata: {},
      status: { attempts: write, phase: "Theirs" },
    };
    const after = { attempts: write + 1, phase: "Ours" };
    const found = detector.observe("a", {
      before,
      after: { statusJson: JSON.stringify(after) },
      live: undefined,
    } as never);
    if (found) fights.push(found);
  }
  assert.deepEqual(fights.map(({ field }) => field), [".status.phase"]);
});

test("FieldFightDetector counts from the start after a write that found its own status", () => {
  const detector = new FieldFightDetector("ours");
  let fights = 0;
  for (const isContested of [1, 1, 1, 1, 0, 1, 1, 1, 0].map(Boolean)) {
    const status = { phase: isContested ? "Theirs" : "Ours" };
    const found = detector.observe("a", {
      before: { metadata: {}, status },
      after: { statusJson: '{"phase":"Ours"}' },
      live: undefined,
    } as never);
    if (found) fights++;
  }
  assert.equal(fights, 0);
});

test("FieldFightDetector counts from the start after a write without a known status", () => {
  const detector = new FieldFightDetector("ours");
  let fights = 0;
  for (const isKnown of [1, 1, 1, 1, 0, 1, 1, 1, 1].map(Boolean)) {
    const before = { metadata: {}, status: { phase: "Theirs" } };
    const found = detector.observe("a", {
      before: isKnown ? before : undefined,
      after: { statusJson: '{"phase":"Ours"}' },
      live: undefined,
    } as never);
    if (found) fights++;
  }
  assert.equal(fights, 0);
});

test("FieldFightDetector names a field of a status that another writer removes", () => {
  const detector = new FieldFightDetector("ours");
  const fights = Array.from({ length: 6 }, () =>
    detector.observe("a", {
      before: { metadata: {} },
      after: { statusJson: '{"phase":"Ours"}' },
      live: undefined,
    } as never)).filter((found) => found !== undefined);
  assert.deepEqual(fights.map(({ field }) => field), [".status.phase"]);
});

test("WriteLoopDetector takes an object that is created again for another", () => {
  const detector = new WriteLoopDetector();
  let version = 0;
  /** Loop that a write reveals, to an object that was replaced in between or not. */
  const observe = (before: string | undefined, after: string) =>
    detector.observe({
      id: "a",
      before: before === undefined ? undefined : {
        metadata: { name: "a", uid: before, resourceVersion: `${++version}` },
      },
      now: 0,
      waited: 0,
      after: {
        uid: after,
        resourceVersion: `${++version}`,
        sent: "same",
        object: {},
      } as never,
    })?.times;
  const none = Array(4).fill(undefined);
  // Each object is created, then changed once.
  for (const uid of ["1", "2", "3", "4"]) {
    assert.equal(observe(undefined, uid), undefined);
    assert.equal(observe(uid, uid), undefined);
  }
  assert.equal(observe("4", "5"), 5, "the fifth creation");
  const others = ["6", "6", "6", "6"].map((uid) => observe(undefined, uid));
  assert.deepEqual(others, [6, ...none.slice(1)], "no cache holds it");
});

const GADGET = untyped({
  group: "example.com",
  version: "v1",
  kind: "Gadget",
  plural: "gadgets",
  scope: "Namespaced",
});
const OTHER = { ...GADGET, kind: "Other", plural: "others" };

/** Observer of the writes of a controller of gadgets, and what it reports. */
function observing({ keepsChanges = false } = {}) {
  const clock = new VirtualClock();
  const metrics = new MetricsRegistry();
  const warned: unknown[] = [];
  const observer = new WriteObserver({
    controller: "gadgets",
    kind: GADGET,
    fieldManager: "ours",
    clock,
    log: { ...silentLogger, warn: (...line) => void warned.push(line) },
    metrics,
    keepsChanges,
  });
  const recorded: unknown[] = [];
  let version = 0;
  /** Records a write that changes `a` fields, the `earlier`th one of its run. */
  const write = (
    parts: Partial<StoredWrite> & {
      readonly run?: string;
      readonly earlier?: number;
      readonly key?: string;
      readonly pause?: number;
      readonly status?: string;
    } = {},
    fields = 1,
  ) => {
    const { run: key = "default/a", earlier = 0, pause = 0 } = parts;
    const { key: keyText = key, status, ...write } = parts;
    const spec = (value: number) =>
      Object.fromEntries(Array.from({ length: fields }, (_, n) => [n, value]));
    const metadata = { name: "a", uid: "1" };
    const run = {
      key,
      pause,
      waited: 0,
      wroteAt: undefined as number | undefined,
      generated: 0,
      wrote(one: object) {
        recorded.push(one);
        return earlier;
      },
    };
    const before = {
      metadata: { ...metadata, resourceVersion: `${++version}` },
      spec: spec(0),
      status: { phase: "Theirs" },
    };
    const fight = observer.observe(run as unknown as Run<KubernetesObject>, {
      verb: "apply",
      kind: GADGET,
      before,
      after: {
        keyText,
        uid: "1",
        resourceVersion: `${++version}`,
        sent: "same",
        statusJson: status,
        object: { ...before, metadata, spec: spec(1) } as KubernetesObject,
      },
      isStatus: false,
      ...write,
    });
    return { fight, run };
  };
  const count = () =>
    /^coracle_write_loops_total\{controller="gadgets"\} (\d+)$/m
      .exec(metrics.text())?.[1];
  return { clock, count, observer, recorded, warned, write };
}

test("WriteObserver delays an object whose runs repeat a write, and reports it", async () => {
  const { clock, count, warned, write } = observing();
  await clock.advance(5_000);
  assert.equal(count(), "0", "an alert sees its growth");
  for (let times = 1; times < 5; times++) {
    const { run } = write({}, 7);
    assert.deepEqual([run.pause, run.wroteAt], [0, 5_000]);
  }
  assert.deepEqual(warned, []);
  assert.equal(write({}, 7).run.pause, 1_000);
  assert.equal(count(), "1");
  const fields = ["spec.0", "spec.1", "spec.2", "spec.3", "spec.4"];
  const target = "example.com/v1 Gadget default/a";
  assert.deepEqual(warned, [[
    "Runs repeat the same write: another client or write reverts it, or the server stores it in another form",
    { object: "default/a", target, times: 5, fields, pause: 1_000 },
  ]]);
  assert.equal(write({ pause: 60_000 }).run.pause, 60_000, "the longer one");
  assert.equal(count(), "2");
});

test("WriteObserver reports an object that is created again and again", () => {
  const { warned, write } = observing();
  for (let times = 1; times <= 5; times++) {
    const created = {
      keyText: "default/b",
      uid: `${times}`,
      resourceVersion: `${times}`,
      sent: "same",
      object: { metadata: { name: "b" } },
      statusJson: undefined,
    };
    write({ kind: OTHER, before: undefined, after: created });
  }
  assert.deepEqual(warned, [[
    "Runs create the same object repeatedly: something deletes it each time",
    {
      object: "default/a",
      target: "example.com/v1 Other default/b",
      times: 5,
      fields: [],
      pause: 1_000,
    },
  ]]);
});

test("WriteObserver reports runs that make an object with a generated name each", () => {
  const { warned, write } = observing();
  const pauses: number[] = [];
  for (let times = 1; times <= 30; times++) {
    const { run } = write({
      kind: OTHER,
      before: undefined,
      prefix: "part-*",
      after: {
        keyText: `default/part-${times}`,
        uid: `${times}`,
        resourceVersion: `${times}`,
        sent: "same",
        object: { metadata: { name: `part-${times}` } },
        statusJson: undefined,
      },
    });
    pauses.push(run.pause);
  }
  assert.deepEqual(pauses.slice(0, 4), [0, 0, 0, 0]);
  assert.deepEqual([...new Set(pauses.slice(4, 24))], [1_000]);
  assert.deepEqual([...new Set(pauses.slice(24))], [2_000]);
  assert.match(JSON.stringify(warned[0]), /Runs create another object/);
});

test("WriteObserver takes only equal writes of a primary at one place for a loop", () => {
  const { warned, write } = observing();
  const status = { subresource: "status" } as const;
  for (let times = 1; times <= 4; times++) {
    write();
    write({ verb: "patch" });
    write({ earlier: 1 });
    write({ ...status });
    write({ run: "default/b", key: "default/a" });
    write({ run: "default/c", key: "default/a", ...status });
    write({ kind: OTHER });
    write({ kind: OTHER, ...status, earlier: 1 });
    write({ kind: OTHER, key: "default/x" });
  }
  assert.deepEqual(warned, []);
});

test("WriteObserver reports a fight for a field of a status once", () => {
  const { observer, warned, write } = observing();
  const key = { namespace: "default", name: "a" };
  const json = '{"phase":"Ours"}';
  let fights = 0;
  for (let times = 1; times <= 7; times++) {
    const isNear = observer.needsLive(GADGET, key);
    assert.equal(isNear, times === 5, `${times}`);
    assert.equal(observer.needsLive(OTHER, key), false);
    const parts = { subresource: "status", status: json } as const;
    assert.equal(write({ ...parts, key: "default/b" }).fight, undefined);
    if (write({ ...parts, verb: `${times}`, isStatus: true }).fight) fights++;
  }
  assert.equal(fights, 1);
  const lines = warned as [string, { readonly field?: string }][];
  const found = lines.filter(([, { field }]) => field !== undefined);
  assert.deepEqual(found, [[
    "A status field changes after each write: another writer changes it, too",
    {
      object: "default/a",
      target: "example.com/v1 Gadget default/a",
      field: ".status.phase",
      manager: undefined,
      times: 5,
    },
  ]]);
});

test("WriteObserver lists the writes of a run, with their changes on request", () => {
  for (const keepsChanges of [false, true]) {
    const { recorded, write } = observing({ keepsChanges });
    write();
    write({ before: undefined, kind: OTHER, key: "default/b" });
    const changes = keepsChanges ? ["spec.0: 0 → 1"] : undefined;
    const apply = { verb: "apply", subresource: undefined };
    assert.deepEqual(recorded, [
      { ...apply, kind: GADGET, key: "default/a", changes },
      { ...apply, kind: OTHER, key: "default/b", changes: undefined },
    ]);
  }
});

/** Numbers of writes to an object until a loop of so many objects is seen. */
function writesUntilSeen(
  { objects, pass, others = 0 }: {
    readonly objects: number;
    /** Time of one write to each object, in milliseconds. */
    readonly pass: number;
    /** Number of objects that are written once a pass, each time differently. */
    readonly others?: number;
  },
): number {
  const detector = new WriteLoopDetector();
  for (let write = 1; write <= 20; write++) {
    for (let i = 0; i < objects + others; i++) {
      const after = { uid: `${i}`, resourceVersion: `${write}` };
      const found = detector.observe({
        id: `default/object-${i}`,
        before: {
          metadata: {
            name: `${i}`,
            uid: `${i}`,
            resourceVersion: `${write - 1}`,
          },
        },
        now: write * pass,
        waited: Math.max(0, pass - 1_000),
        after: {
          ...after,
          sent: i < objects ? "same" : `${write}`,
          object: { metadata: {}, spec: {} },
        } as never,
      });
      if (found !== undefined) return write;
    }
  }
  return Infinity;
}

test("WriteLoopDetector sees a loop over any number of objects within 20 writes", () => {
  for (const objects of [1_000, 4_500, 30_000]) {
    assert.ok(writesUntilSeen({ objects, pass: 1_000 }) <= 20, `${objects}`);
  }
  const few = { objects: 1_000, others: 30_000, pass: 1_000 };
  assert.ok(writesUntilSeen(few) <= 20, "a loop among other writes");
});

test("WriteLoopDetector does not count the wait in the queue as a pause", () => {
  assert.equal(writesUntilSeen({ objects: 1, pass: 600_000 }), 5);
});

test("FieldFightDetector sees a fight over any number of objects", () => {
  const detector = new FieldFightDetector("ours");
  const fights: FieldFight[] = [];
  for (let write = 0; write < 8; write++) {
    for (let i = 0; i < 6_000; i++) {
      const found = detector.observe(`default/object-${i}`, {
        before: { metadata: {}, status: { phase: "Theirs" } },
        after: { statusJson: '{"phase":"Ours"}' },
        live: undefined,
      } as never);
      if (found) fights.push(found);
    }
  }
  assert.ok(fights.length > 0);
});
