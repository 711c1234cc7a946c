import assert from "node:assert/strict";
import { test } from "node:test";
import { changeMap } from "@coracle/operator/workflows";
import { diffText } from "../../../workflows/phases/change_map.ts";

const diff = changeMap({
  replicas: "scale",
  "backup.*": "none",
  token: { change: "upgrade", ignoreNull: true },
  path: "redeploy",
});

test("changeMap lets the strongest change win [L42]", () => {
  const before = { replicas: 1, image: "a", path: "x", backup: { at: 1 } };
  const change = (after: object) =>
    diff(before, { ...before, ...after }).change;
  assert.equal(change({}), "none");
  assert.equal(change({ backup: { at: 2 } }), "none");
  assert.equal(change({ replicas: 2 }), "scale");
  assert.equal(change({ replicas: 2, image: "b" }), "upgrade");
  assert.equal(change({ path: "y", image: "b" }), "redeploy");
  assert.equal(change({ backup: null }), "none");
});

test("changeMap ignores a removed token with ignoreNull [L42]", () => {
  assert.equal(diff({ token: "1" }, {}).change, "none");
  assert.equal(diff({}, { token: "1" }).change, "upgrade");
});

test("changeMap compares lists as a whole and absence with null as equal [L42]", () => {
  assert.equal(diff({ list: [1, 2] }, { list: [2, 1] }).fields.length, 1);
  assert.equal(diff({ list: null }, {}).change, "none");
  assert.equal(diff({ map: null }, { map: { a: 1 } }).change, "upgrade");
});

test("changeMap lets a rule hold for some specs only, all others upgrade [L42]", () => {
  const standalone = (spec: unknown) =>
    (spec as { mode?: string }).mode === "standalone";
  const scale = changeMap({
    parallelism: { change: "scale", when: standalone },
    mode: "none",
  });
  const change = (mode: string) =>
    scale({ parallelism: 1, mode }, { parallelism: 2, mode }).change;
  assert.equal(change("standalone"), "scale");
  assert.equal(change("native"), "upgrade");
});

test("changeMap takes the longest rule that a path begins with [L42]", () => {
  const rules = changeMap({
    "config.*": "none",
    "config.job.*": "scale",
    "config.job.name": "redeploy",
    "*": "upgrade",
  });
  const change = (after: object) => rules({}, after).change;
  assert.equal(change({ config: { log: 1 } }), "none");
  assert.equal(change({ config: { job: { slots: 1 } } }), "none");
  const before = { config: { job: {} } };
  const deep = (job: object) => rules(before, { config: { job } }).change;
  assert.equal(deep({ slots: 1 }), "scale");
  assert.equal(deep({ name: "x" }), "redeploy");
  assert.equal(rules(before, { ...before, other: 1 }).change, "upgrade");
});

test("diffText names fields by their path", () => {
  const text = diffText(diff({ a: { b: 1 } }, { a: { b: 2 }, c: "x" }));
  assert.equal(text, 'a.b: 1 -> 2, c: unset -> "x"');
});

test("changeMap takes no rule from the names that every object has", () => {
  const { change } = changeMap({})({}, { constructor: 1 });
  assert.equal(change, "upgrade");
});

test("diffText shows 80 characters of a value", () => {
  const text = (length: number) =>
    diffText(changeMap({})({}, { a: "x".repeat(length) }));
  assert.equal(text(78), `a: unset -> "${"x".repeat(78)}"`);
  assert.equal(text(79), `a: unset -> "${"x".repeat(79)}…`);
});
