import assert from "node:assert/strict";
import { test } from "node:test";
import {
  type Condition,
  Failed,
  findCondition,
  intervalSchedule,
  jittered,
  setCondition,
  Stalled,
  Waiting,
} from "@coracle/operator/workflows";
import {
  computeReconcileResult,
  eventSchedule,
  hasRecovered,
  PROGRESSING_WITH_RETRY,
  progressiveStatus,
  summarizeResult,
} from "../../../workflows/conditions/reconcile_result.ts";
import {
  combineResults,
  isOutcome,
  type StepResult,
  withoutUrlSecrets,
} from "../../../workflows/conditions/outcome.ts";

const moment = { now: 0, generation: 7 };
const schedule = intervalSchedule("1m");
const MINUTE = 60_000;

function conditions(
  ...entries: readonly (readonly [string, Condition["status"], string?])[]
): Condition[] {
  let list: Condition[] = [];
  for (const [type, status, reason = `${type}Reason`] of entries) {
    const message = `${type} message`;
    list = setCondition(list, { type, status, reason, message }, moment);
  }
  return list;
}

function types(list: readonly Condition[]): string {
  return list.map(({ type }) => type).join();
}

const settled = (list: Condition[], result: StepResult, error?: unknown) =>
  computeReconcileResult(list, { result, error }, { schedule, moment });

test("computeReconcileResult keeps Ready and requeues by interval on success [F1]", () => {
  const end = settled(conditions(["Ready", "True"]), "success");
  assert.equal(types(end.conditions), "Ready");
  assert.equal(end.observed, true);
  assert.deepEqual(end.next, { after: MINUTE, success: true });
  assert.equal(end.error, undefined);
});

test("computeReconcileResult removes Reconciling on success [F2]", () => {
  const end = settled(conditions(["Reconciling", "True"]), "success");
  assert.equal(types(end.conditions), "");
});

test("computeReconcileResult removes a lone Stalled on success and still observes [F3]", () => {
  const end = settled(conditions(["Stalled", "True"]), "success");
  assert.equal(types(end.conditions), "");
  assert.equal(end.observed, true);
});

test("computeReconcileResult requeues immediately and observes nothing [F4]", () => {
  const end = settled(conditions(["Ready", "True"]), "requeue");
  assert.equal(end.next.after, 0);
  assert.equal(end.observed, false);
});

test("computeReconcileResult sets Stalled and schedules no run [F5]", () => {
  const end = settled(
    conditions(["Reconciling", "True"]),
    "empty",
    new Stalled("InvalidURL", "no such URL"),
  );
  assert.equal(types(end.conditions), "Stalled");
  assert.equal(end.conditions[0]?.reason, "InvalidURL");
  assert.equal(end.conditions[0]?.message, "no such URL");
  assert.equal(end.next.after, undefined);
  assert.equal(end.error, undefined);
  assert.equal(end.observed, true);
});

test("computeReconcileResult fails with a stall beside another result, which is misuse [F5]", () => {
  const error = new Stalled("InvalidURL", "no such URL");
  const end = settled(conditions(["Stalled", "True"]), "success", error);
  assert.equal(end.error, error);
  assert.equal(types(end.conditions), "Stalled");
});

test("computeReconcileResult waits for the interval where the wait names no time [F6]", () => {
  const waiting = new Waiting("DependencyNotReady", "db");
  const end = settled(conditions(["Ready", "False"]), "empty", waiting);
  assert.deepEqual(end.next, { after: MINUTE, success: false });
  assert.equal(end.error, undefined);
  assert.equal(end.observed, false);
  const timed = new Waiting("DependencyNotReady", "db", { after: 5_000 });
  assert.equal(settled([], "empty", timed).next.after, 5_000);
});

test("computeReconcileResult removes Stalled and fails with any other error [F7]", () => {
  for (const error of [new Failed("Broken", "b"), new Error("plain"), "text"]) {
    const end = settled(conditions(["Stalled", "True"]), "empty", error);
    assert.equal(types(end.conditions), "");
    assert.equal(end.error, error);
  }
});

test("computeReconcileResult ends in peace on a harmless failure [F8]", () => {
  const end = settled(
    conditions(["Reconciling", "True"]),
    "empty",
    new Failed("NothingToDo", "n", { harmless: true }),
  );
  assert.equal(types(end.conditions), "");
  assert.equal(end.error, undefined);
  assert.equal(end.next.after, MINUTE);
  assert.equal(end.observed, true);
});

test("computeReconcileResult keeps the message of Reconciling during retries [F9]", () => {
  const end = settled(
    conditions(["Reconciling", "True"]),
    "empty",
    new Error(),
  );
  const reconciling = findCondition(end.conditions, "Reconciling");
  assert.equal(reconciling?.reason, PROGRESSING_WITH_RETRY);
  assert.equal(reconciling?.message, "Reconciling message");
});

test("computeReconcileResult observes nothing while there is no condition [F10]", () => {
  assert.equal(settled([], "success").observed, false);
  assert.equal(settled([], "empty").observed, false);
});

test("combineResults prefers requeue, then success, then empty [F11]", () => {
  assert.equal(combineResults("empty", "requeue"), "requeue");
  assert.equal(combineResults("empty", "success"), "success");
  assert.equal(combineResults("success", "requeue"), "requeue");
  assert.equal(combineResults("success", "success"), "success");
  assert.equal(combineResults("empty", "empty"), "empty");
});

test("hasRecovered is true only if a failure condition was removed [F12]", () => {
  const failing = conditions(["FetchFailed", "True"]);
  const fine = conditions(["Ready", "True"]);
  const types = ["FetchFailed", "StoreFailed"];
  assert.equal(hasRecovered(failing, fine, types), true);
  assert.equal(hasRecovered(fine, fine, types), false);
  assert.equal(hasRecovered(failing, failing, types), false);
  assert.equal(
    hasRecovered(failing, conditions(["StoreFailed", "True"]), types),
    false,
  );
});

const ready = {
  target: "Ready",
  of: ["FetchFailed", "Outdated", "Stored", "Stalled", "Reconciling"],
  abnormal: ["FetchFailed", "Outdated", "Stalled", "Reconciling"],
};

test("summarizeResult gives Ready the reason of a failure and does not observe [F14]", () => {
  const end = summarizeResult(
    conditions(["Outdated", "True"], ["Reconciling", "True"]),
    { result: "empty", error: new Error("down") },
    { schedule, moment, summaries: [ready] },
  );
  const found = findCondition(end.conditions, "Ready");
  assert.equal(found?.status, "False");
  assert.equal(found?.reason, "OutdatedReason");
  assert.equal(end.observed, false);
});

test("summarizeResult gives Ready the reason of a failure beside Stalled [F15]", () => {
  const end = summarizeResult(
    conditions(["FetchFailed", "True"]),
    { result: "empty", error: new Stalled("InvalidURL", "no such URL") },
    { schedule, moment, summaries: [ready] },
  );
  assert.equal(
    findCondition(end.conditions, "Ready")?.reason,
    "FetchFailedReason",
  );
  assert.equal(findCondition(end.conditions, "Stalled")?.reason, "InvalidURL");
  assert.equal(end.error, undefined);
});

test("summarizeResult fails a success that is not Ready [F16]", () => {
  const end = summarizeResult(
    conditions(["FetchFailed", "True"]),
    { result: "success" },
    { schedule, moment, summaries: [ready] },
  );
  assert.match(String(end.error), /FetchFailedReason/);
});

test("summarizeResult does not fail for a False summary other than Ready [F17]", () => {
  const end = summarizeResult(
    conditions(["FetchFailed", "True"], ["Stored", "True"]),
    { result: "success" },
    {
      schedule,
      moment,
      summaries: [
        { target: "Ready", of: ["Stored"] },
        { target: "Healthy", of: ["FetchFailed"], abnormal: ["FetchFailed"] },
      ],
    },
  );
  assert.equal(findCondition(end.conditions, "Healthy")?.status, "False");
  assert.equal(end.error, undefined);
});

test("summarizeResult makes Ready False with the message of the first False gate [F18]", () => {
  const list = conditions(
    ["Verified", "False"],
    ["Signed", "False"],
    ["Stored", "True"],
  );
  const end = summarizeResult(list, { result: "empty" }, {
    schedule,
    moment,
    summaries: [ready],
    gates: ["Signed", "Verified"],
  });
  const found = findCondition(end.conditions, "Ready");
  assert.equal(found?.reason, "SignedReason");
  assert.equal(found?.status, "False");
});

test("summarizeResult does not let a True gate beat a failure [F18]", () => {
  const list = conditions(["Verified", "True"], ["FetchFailed", "True"]);
  const end = summarizeResult(list, { result: "empty" }, {
    schedule,
    moment,
    summaries: [ready],
    gates: ["Verified"],
  });
  assert.equal(
    findCondition(end.conditions, "Ready")?.reason,
    "FetchFailedReason",
  );
});

test("summarizeResult resolves Stalled beside Reconciling for Stalled [F21]", () => {
  const end = summarizeResult(
    conditions(["Stalled", "True"], ["Reconciling", "True"], ["Ready", "True"]),
    { result: "empty", error: new Stalled("InvalidURL", "no such URL") },
    { schedule, moment, summaries: [ready] },
  );
  assert.equal(findCondition(end.conditions, "Reconciling"), undefined);
  const found = findCondition(end.conditions, "Ready");
  assert.deepEqual([found?.status, found?.reason, found?.message], [
    "False",
    "InvalidURL",
    "no such URL",
  ]);
  assert.equal(end.observed, true);
});

test("summarizeResult removes Stalled when a run was asked for [F22]", () => {
  const later = new Waiting("Later", "l", { after: 5_000 });
  for (
    const steps of [
      { result: "requeue" },
      { result: "empty", error: later },
    ] as const
  ) {
    const end = summarizeResult(conditions(["Stalled", "True"]), steps, {
      schedule,
      moment,
    });
    assert.equal(findCondition(end.conditions, "Stalled"), undefined);
  }
});

test("progressiveStatus makes Ready Unknown after drift or where it was not known", () => {
  const words = { reason: "Progressing", message: "new revision" };
  const known = conditions(["Ready", "True"], ["Stalled", "True"]);
  const kept = progressiveStatus(known, words, moment);
  assert.equal(findCondition(kept, "Ready")?.status, "True");
  assert.equal(findCondition(kept, "Stalled"), undefined);
  const drifted = progressiveStatus(known, { ...words, drift: true }, moment);
  assert.equal(findCondition(drifted, "Ready")?.status, "Unknown");
  const fresh = progressiveStatus([], words, moment);
  assert.equal(findCondition(fresh, "Ready")?.status, "Unknown");
});

test("every calls only an untroubled success a success, whatever the delays are [F19]", () => {
  const sameDelay = new Waiting("Later", "l", { after: MINUTE });
  assert.equal(schedule.next("empty", sameDelay).success, false);
  assert.equal(schedule.next("success", new Error()).success, false);
  assert.equal(schedule.next("requeue", undefined).success, false);
  assert.equal(schedule.next("empty", undefined).success, false);
  assert.equal(schedule.next("success", undefined).success, true);
});

test("summarizeResult leaves a wait on an object that is not Ready a wait [F6] [F19]", () => {
  const waiting = new Waiting("DependencyNotReady", "db");
  const end = summarizeResult(
    conditions(["FetchFailed", "True"]),
    { result: "empty", error: waiting },
    { schedule, moment, summaries: [ready] },
  );
  assert.equal(end.error, undefined);
  assert.equal(end.next.after, MINUTE);
});

test("onEvents asks for no run after a success and tolerates one that is not Ready [F23]", () => {
  const end = summarizeResult(
    conditions(["FetchFailed", "True"]),
    { result: "success" },
    { schedule: eventSchedule(), moment, summaries: [ready] },
  );
  assert.deepEqual(end.next, { after: undefined, success: true });
  assert.equal(end.error, undefined);
});

test("summarizeResult makes Ready True if nothing else has set it", () => {
  const succeeded = { reason: "Succeeded", message: "stored" };
  const end = summarizeResult([], { result: "success" }, {
    schedule,
    moment,
    succeeded,
  });
  assert.equal(findCondition(end.conditions, "Ready")?.status, "True");
  assert.equal(end.observed, true);
});

test("jittered stays within its bounds and leaves zero alone [F45]", () => {
  assert.equal(jittered(1_000, { percentage: 10, random: () => 0 }), 900);
  assert.equal(jittered(1_000, { percentage: 10, random: () => 1 }), 1_100);
  assert.equal(jittered(1_000, { percentage: 0, random: () => 0 }), 1_000);
  assert.equal(jittered(0), 0);
  assert.throws(() => jittered(1_000, { percentage: 100 }), RangeError);
  assert.throws(() => jittered(1_000, { percentage: -1 }), RangeError);
});

test("every refuses an interval of zero", () => {
  assert.throws(() => intervalSchedule(0), RangeError);
});

test("isOutcome distinguishes the three errors", () => {
  assert.equal(isOutcome(new Waiting("R", "m"), "waiting"), true);
  assert.equal(isOutcome(new Waiting("R", "m"), "failed"), false);
  assert.equal(isOutcome(new Error("m")), false);
  assert.deepEqual(new Failed("R", "m", { event: "None" }).reporting, {
    event: "None",
    log: false,
    notify: true,
  });
});

test("withoutUrlSecrets takes user, password and query out of every URL", () => {
  assert.equal(
    withoutUrlSecrets("get https://a.b/c?sig=SECRET&x=1: 403 http://d?e"),
    "get https://a.b/c 403 http://d",
  );
  assert.equal(
    withoutUrlSecrets("https://jane:s3cret@a.b:1/@c?d, HTTP://joe@e: no"),
    "https://a.b:1/@c HTTP://e: no",
  );
  assert.equal(
    withoutUrlSecrets("mail a@b.c, as http://d/e@f#g says"),
    "mail a@b.c, as http://d/e@f#g says",
  );
});

test("a wait of no time is one for the interval", () => {
  const wait = new Waiting("Busy", "wait", { after: 0 });
  assert.equal(settled([], "empty", wait).next.after, MINUTE);
});

test("jittered changes a duration by five per cent unless told otherwise", () => {
  assert.equal(jittered("100s", { random: () => 1 }), 105_000);
});

test("summarizeResult passes a gate whose status is not known", () => {
  const list = conditions(["Verified", "Unknown"], ["Ready", "True"]);
  const end = summarizeResult(list, { result: "success" }, {
    schedule,
    moment,
    gates: ["Verified"],
  });
  assert.equal(findCondition(end.conditions, "Ready")?.status, "True");
});
