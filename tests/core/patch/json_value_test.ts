import assert from "node:assert/strict";
import { test } from "node:test";
import {
  differences,
  jsonEquals,
  roundedInteger,
} from "../../../core/patch/json_value.ts";

test("jsonEquals compares fields by name, in any order, and items in order", () => {
  assert.ok(jsonEquals({ a: 1, b: [{ c: null }] }, { b: [{ c: null }], a: 1 }));
  for (
    const [a, b] of [
      [{ a: undefined }, { b: 1 }],
      [{ a: 1 }, { a: 1, b: 2 }],
      [{ a: 1, b: 2 }, { a: 1 }],
      [[1, 2], [2, 1]],
      [[1], [1, 2]],
      [[1, 2], [1]],
      [[], {}],
      [{}, []],
      [null, {}],
      ["1", 1],
    ]
  ) assert.ok(!jsonEquals(a, b), JSON.stringify([a, b]));
});

test("differences names the deepest parts, and lists of another length whole", () => {
  assert.deepEqual([
    ...differences(
      { a: { b: 1, c: 2 }, list: [1, { d: 3 }], gone: 1 },
      { a: { b: 1, c: 4 }, list: [1, { d: 5 }], new: 1 },
    ),
  ], [
    { path: ["a", "c"], before: 2, after: 4 },
    { path: ["list", 1, "d"], before: 3, after: 5 },
    { path: ["gone"], before: 1 },
    { path: ["new"], after: 1 },
  ]);
  for (const [before, after] of [[[1], [1, 2]], [[1, 2], [1]]]) {
    assert.deepEqual([...differences(before, after)], [
      { path: [], before, after },
    ]);
  }
});

test("differences knows fields by their objects, not by what each inherits", () => {
  for (const name of ["constructor", "__proto__"]) {
    const labels = Object.fromEntries([[name, "x"]]);
    const path = ["labels", name];
    assert.deepEqual([...differences({ labels: {} }, { labels })], [
      { path, after: "x" },
    ]);
    assert.deepEqual([...differences({ labels }, { labels: {} })], [
      { path, before: "x" },
    ]);
  }
});

test("roundedInteger finds integers beyond 2^53 − 1 within 64 bits", () => {
  const cases: readonly (readonly [unknown, string | undefined])[] = [
    [{ a: { b: [0, 2 ** 53] } }, "a.b[1]"],
    [{ a: [[-(2 ** 53)]] }, "a[0][0]"],
    [{ a: [{ b: 2 ** 63 }] }, "a[0].b"],
    [{ a: 2 ** 53 - 1, b: -(2 ** 53) + 1 }, undefined],
    [{ a: 2 ** 64, b: 1e300, c: 0.5, d: null, e: `${2 ** 60}` }, undefined],
  ];
  for (const [value, path] of cases) assert.equal(roundedInteger(value), path);
});
