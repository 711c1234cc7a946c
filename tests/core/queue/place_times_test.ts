import assert from "node:assert/strict";
import process from "node:process";
import { test } from "node:test";
import { fc } from "../../support/property.ts";
import { PlaceTimes } from "../../../core/queue/place_times.ts";

test("PlaceTimes equals a map of the times of its places", () => {
  const place = fc.constantFrom(0, 1, 17, 4_095, 4_096, 9_000, 2 ** 40);
  const step = fc.record({
    name: fc.constantFrom("wait", "set", "clear", "move", "take", "due"),
    place,
    to: place,
    time: fc.nat(20),
  });
  fc.assert(fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
    const times = new PlaceTimes();
    const model = new Map<number, number | "waits">();
    for (const [now, { name, place, to, time }] of steps.entries()) {
      switch (name) {
        case "wait":
          times.wait(place, now);
          model.set(place, "waits");
          break;
        case "set":
          times.set(place, time);
          model.set(place, time);
          break;
        case "clear":
          times.set(place, Infinity);
          model.delete(place);
          break;
        case "move": {
          if (place === to) break;
          const moved = model.get(place);
          const known = model.get(to);
          times.move(place, to, now);
          model.delete(place);
          if (
            moved === "waits" ||
            (moved !== undefined && known !== "waits" &&
              moved < (known ?? Infinity))
          ) model.set(to, moved);
          break;
        }
        case "take":
          if (times.waiting > 0) {
            const taken = times.take();
            assert.equal(model.get(taken.place), "waits");
            assert.ok(taken.since <= now);
            model.delete(taken.place);
          }
          break;
        case "due": {
          const due = times.takeDue(time, 2);
          const expected = [...model].filter(([, at]) =>
            at !== "waits" && at <= time
          );
          assert.equal(due.length, Math.min(2, expected.length));
          for (const place of due) {
            assert.ok(expected.some(([known]) => known === place));
            model.delete(place);
          }
        }
      }
      const values = [...model.values()];
      const dues = values.filter((value) => value !== "waits");
      assert.equal(times.delayed, dues.length);
      assert.equal(times.waiting, values.length - dues.length);
      assert.ok(times.earliest <= Math.min(...dues));
      // A clock's timer would be left for what is not due.
      assert.equal(times.earliest === Infinity, dues.length === 0);
      for (const [place, value] of model) {
        assert.equal(times.isWaiting(place), value === "waits");
      }
    }
    for (const place of model.keys()) times.set(place, Infinity);
    assert.deepEqual([times.waiting, times.delayed, times.earliest], [
      0,
      0,
      Infinity,
    ]);
  }));
});

test("PlaceTimes keeps the earlier run of a place that another moves to", () => {
  for (
    const [from, to, due] of [[5, 3, 3], [3, 5, 3], [5, 5, 5]] as const
  ) {
    const times = new PlaceTimes();
    times.set(0, from);
    times.set(1, to);
    times.move(0, 1, 0);
    assert.deepEqual(times.takeDue(due - 1, 10), []);
    assert.deepEqual(times.takeDue(due, 10), [1]);
    assert.equal(times.delayed, 0);
  }
  const times = new PlaceTimes();
  times.wait(1, 0);
  times.set(0, 5);
  times.move(0, 1, 0);
  assert.equal(times.isWaiting(1), true);
  assert.deepEqual([times.waiting, times.delayed], [1, 0]);
});

test("PlaceTimes leaves what is due beyond the limit for the next call", () => {
  const times = new PlaceTimes();
  for (const place of [0, 1, 2, 5_000, 5_001]) times.set(place, 1);
  const taken = [1, 2, 3, 4].map(() => times.takeDue(1, 2));
  assert.deepEqual(taken.map(({ length }) => length), [2, 2, 1, 0]);
  assert.deepEqual(taken.flat(), [0, 1, 2, 5_000, 5_001]);
});

test("PlaceTimes has no earliest time once the last is dropped, whatever waits", () => {
  const times = new PlaceTimes();
  times.wait(1, 0);
  times.set(0, 10);
  times.set(0, Infinity);
  assert.deepEqual(times.takeDue(5, 1), []);
  assert.equal(times.earliest, Infinity);
});

test("PlaceTimes takes each waiting place once a round, while others begin to wait", () => {
  const times = new PlaceTimes();
  for (let place = 0; place < 10_000; place++) times.wait(place, 0);
  const taken = new Set<number>();
  for (let turn = 0; turn < 20_000 && taken.size < 10_000; turn++) {
    const { place } = times.take();
    taken.add(place);
    // The first ones wait again and again.
    if (place < 100) times.wait(place, 1);
  }
  assert.equal(taken.size, 10_000);
});

test("PlaceTimes holds eight bytes a place, and frees what is not used", () => {
  const times = new PlaceTimes();
  const { arrayBuffers } = process.memoryUsage();
  const held = () => process.memoryUsage().arrayBuffers - arrayBuffers;
  for (let place = 0; place < 1_000_000; place++) times.set(place, 1 + place);
  if (arrayBuffers > 0) assert.ok(held() < 17_000_000, `${held()} bytes`);
  const due = times.takeDue(1_000_000, 2_000_000);
  assert.equal(due.length, 1_000_000);
  assert.equal(times.earliest, Infinity);
});
