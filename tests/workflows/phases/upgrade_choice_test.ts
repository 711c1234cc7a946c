import assert from "node:assert/strict";
import { test } from "node:test";
import { chooseUpgrade } from "@coracle/operator/workflows";
import type { UpgradeSituation } from "../../../workflows/phases/upgrade_choice.ts";

const RUNNING: UpgradeSituation = {
  requested: "savepoint",
  job: "running",
  stateKnown: false,
  highlyAvailable: true,
  manager: "reachable",
};

/** What is chosen, in a few words. */
function choice(situation: Partial<UpgradeSituation>): string {
  const chosen = chooseUpgrade({ ...RUNNING, ...situation });
  if ("plan" in chosen) return `${chosen.plan.stop} ${chosen.plan.restore}`;
  if ("impossible" in chosen) return "impossible";
  return chosen.othersMayAct ? "wait" : "wait alone";
}

/** What is chosen by each mode: stateless, savepoint, last-state. */
function byMode(situation: Partial<UpgradeSituation>): string[] {
  return (["stateless", "savepoint", "last-state"] as const)
    .map((requested) => choice({ ...situation, requested }));
}

test("chooseUpgrade stops a running job by the mode that was asked for [L25]", () => {
  assert.deepEqual(byMode({}), [
    "cancel nothing",
    "savepoint savepoint",
    "delete last-state",
  ]);
  assert.deepEqual(byMode({ highlyAvailable: false }), [
    "cancel nothing",
    "savepoint savepoint",
    "cancel savepoint",
  ]);
  assert.equal(
    choice({ requested: "last-state", preferCancel: true }),
    "cancel savepoint",
  );
});

test("chooseUpgrade falls back to the last state, never to no state [L25] [L12]", () => {
  const unready = { job: "unready" } as const;
  assert.deepEqual(byMode(unready), [
    "cancel nothing",
    "delete last-state",
    "delete last-state",
  ]);
  assert.equal(choice({ ...unready, fallback: false }), "wait");
  const lost = { ...unready, highlyAvailable: false, cancelable: false };
  assert.equal(choice({ ...lost, manager: "unreachable" }), "wait");
  assert.equal(choice({ ...lost, manager: "gone" }), "impossible");
  assert.equal(choice({ ...lost, manager: "neverStarted" }), "delete same");
  assert.equal(
    choice({ ...unready, highlyAvailable: false }),
    "cancel savepoint",
  );
});

test("chooseUpgrade goes on from what an ended job has left, where that can be trusted [L25]", () => {
  const ended = { job: "ended", stateKnown: true } as const;
  assert.deepEqual(byMode(ended), [
    "nothing nothing",
    "nothing savepoint",
    "nothing savepoint",
  ]);
  assert.equal(choice({ ...ended, stateKnown: false }), "impossible");
  const unseen = { ...ended, manager: "unreachable" } as const;
  assert.equal(choice(unseen), "delete last-state", "it may have gone on");
  assert.equal(
    choice({ ...unseen, highlyAvailable: false }),
    "nothing savepoint",
  );
  assert.equal(choice({ ...unseen, job: "canceled" }), "nothing savepoint");
});

test("chooseUpgrade touches nothing while a job is being canceled [L25] [L37]", () => {
  assert.equal(choice({ job: "canceling" }), "wait alone");
  assert.equal(
    choice({ job: "canceling", requested: "last-state" }),
    "wait alone",
  );
});

test("chooseUpgrade takes only savepoints from one version to another [L25]", () => {
  const other = { requested: "last-state", versionChanged: true } as const;
  assert.equal(choice(other), "savepoint savepoint");
  assert.equal(choice({ ...other, savepoints: false }), "cancel savepoint");
  assert.equal(
    choice({ ...other, savepoints: false, cancelable: false }),
    "wait",
  );
  assert.equal(choice({ ...other, job: "unready" }), "cancel savepoint");
  const unready = { job: "unready", versionChanged: true } as const;
  assert.equal(
    choice({ ...unready, fallback: false }),
    "cancel savepoint",
    "with another version the fallback is not a matter of choice",
  );
});

test("chooseUpgrade takes a savepoint where the last checkpoint is too old [L25]", () => {
  const age = { now: 1_000, maxAge: 100, started: 0 };
  const at = (ages: object) =>
    choice({ requested: "last-state", age: { ...age, ...ages } });
  assert.equal(at({ started: 950 }), "delete last-state", "a young job");
  assert.equal(at({ completed: 950 }), "delete last-state", "a fresh one");
  assert.equal(at({ pending: 950 }), "wait", "one that is being taken");
  assert.equal(at({}), "savepoint savepoint", "none at all");
  assert.equal(at({ completed: 900 }), "savepoint savepoint", "a stale one");
  assert.equal(at({ completed: 10, pending: 20 }), "savepoint savepoint");
});

test("chooseUpgrade cancels a job only through a manager that it reaches", () => {
  const wanted = { requested: "last-state", preferCancel: true } as const;
  assert.equal(
    choice({ ...wanted, manager: "unreachable" }),
    "delete last-state",
  );
  assert.equal(
    choice({ ...wanted, highlyAvailable: false, manager: "unreachable" }),
    "delete last-state",
  );
});
