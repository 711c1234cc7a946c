import assert from "node:assert/strict";
import { test } from "node:test";
import type { KubernetesObject } from "../../../../core/api/object.ts";
import {
  type FieldFight,
  FieldFightDetector,
  WriteLoopDetector,
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
    const known = { id: "a", before, now: 0 };
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
