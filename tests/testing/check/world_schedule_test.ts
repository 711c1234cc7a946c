import assert from "node:assert/strict";
import { test } from "node:test";
import {
  type Action,
  type Chooser,
  Schedule,
} from "../../../dev/testing/check/world_schedule.ts";

/** Action that its name identifies in what a schedule gives. */
function action(label: string, more: Partial<Action> = {}): Action {
  return { key: label, name: label, run() {}, ...more };
}

/** Event of a watch. */
const event = (label: string, watch: number, revision: number) =>
  action(label, { key: undefined, watch, revision });

/** Names of the actions in the order in which they may happen. */
function ordered(
  all: readonly Action[],
  chooser?: Chooser,
): readonly (string | undefined)[] {
  const schedule = new Schedule(chooser);
  for (const one of all) schedule.add(one);
  const names: (string | undefined)[] = [];
  for (let one = schedule.next(); one !== undefined; one = schedule.next()) {
    names.push(one.name);
  }
  return names;
}

test("Events come before requests, by their revisions, and requests by their keys", () => {
  assert.deepEqual(
    ordered([
      action("c"),
      action("a"),
      event("w2@5", 2, 5),
      event("w1@5", 1, 5),
      event("w3@4", 3, 4),
      action("b"),
    ]),
    ["w3@4", "w1@5", "w2@5", "a", "b", "c"],
  );
});

test("Events of one watch stay in the order in which they were sent", () => {
  const all = [event("first", 1, 9), event("second", 1, 3)];
  assert.deepEqual(ordered(all), ["first", "second"]);
  const asked: number[] = [];
  const last: Chooser = {
    order(choices) {
      asked.push(choices.length);
      return choices.length - 1;
    },
  };
  assert.deepEqual(ordered([...all, event("other", 2, 20)], last), [
    "other",
    "first",
    "second",
  ]);
  assert.deepEqual(asked, [2], "there is no choice of one");
});

test("An action that must wait lets others pass, but none of its watch", () => {
  let isBlocked = true;
  const blocked = () => isBlocked;
  const schedule = new Schedule(undefined);
  schedule.add({ ...event("waits", 1, 1), blocked });
  schedule.add(event("behind", 1, 2));
  schedule.add(action("request"));
  assert.equal(schedule.next()?.name, "request");
  assert.equal(schedule.next(), undefined);
  assert.equal(schedule.waiting, true);
  isBlocked = false;
  assert.equal(schedule.next()?.name, "waits");
  assert.equal(schedule.next()?.name, "behind");
  assert.equal(schedule.waiting, false);
});

test("An action that arrives later comes after those that are ready", () => {
  const schedule = new Schedule(undefined);
  for (const label of ["x", "y"]) schedule.add(action(label));
  assert.equal(schedule.next()?.name, "x");
  schedule.add(action("a"));
  assert.equal(schedule.next()?.name, "y");
  assert.equal(schedule.next()?.name, "a");
});

test("An action that is deleted does not happen, whether it is ready or not", () => {
  const schedule = new Schedule(undefined);
  const [one, two, three] = ["1", "2", "3"].map((label) => action(label));
  assert(one && two && three);
  schedule.add(one);
  schedule.add(two);
  assert.equal(schedule.next(), one);
  schedule.add(three);
  schedule.delete(two);
  assert.equal(schedule.waiting, true);
  schedule.delete(three);
  assert.equal(schedule.waiting, false);
  assert.equal(schedule.next(), undefined);
});
