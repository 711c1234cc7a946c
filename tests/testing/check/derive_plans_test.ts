import assert from "node:assert/strict";
import { test } from "node:test";
import { derivePlans } from "../../../testing/check/derive_plans.ts";
import { planText, readPlan, worldPlan } from "../../../testing/check/plan.ts";
import { checkedObject, event, run, scenario, write } from "./check_case.ts";

const gadget = checkedObject("Gadget", "a");
const config = checkedObject("ConfigMap", "a", { data: { k: "v" } });

/** A gadget is created, and the operator makes a ConfigMap and a status. */
const created = [
  event("ADDED Gadget a"),
  write("create ConfigMap a", { body: { data: { k: "v" } } }),
  event("ADDED ConfigMap a"),
  write("patch Gadget a", { subresource: "status" }),
  event("MODIFIED Gadget a"),
];

function texts(
  ...given: Parameters<typeof derivePlans>
): readonly string[] {
  return derivePlans(...given).plans.map(planText);
}

test("A crash is planned before, after and without an answer of each write", () => {
  const found = texts(scenario("apply"), run(created, [[gadget, config]]));
  assert.deepEqual(found.filter((text) => text.includes("crash")), [
    "life/crash:write=1,place=before",
    "life/crash:write=1,place=unanswered",
    "life/crash:write=1,place=after",
    "life/crash:write=2,place=unanswered",
    "life/crash:write=2,place=after",
  ]);
});

test("A crash before a write is planned if something happened since the last", () => {
  const other = event("ADDED Secret b");
  const trace = created.toSpliced(3, 0, other);
  const found = texts(scenario("apply"), run(trace, [[gadget, config]]));
  assert.ok(found.includes("life/crash:write=2,place=before"));
});

test("Updates conflict, creations lose their answer, and all are refused", () => {
  const found = texts(scenario("apply"), run(created, [[gadget, config]]));
  assert.ok(found.includes("life/conflict:write=2,times=2"));
  assert.ok(!found.some((text) => text.startsWith("life/conflict:write=1,")));
  assert.ok(found.includes("life/lost:write=1"));
  assert.ok(found.includes("life/refuse:write=1,times=3"));
});

test("Owned objects are deleted and changed by others, those of the user are not", () => {
  const found = texts(scenario("apply"), run(created, [[gadget, config]]));
  const foreign = found.filter((text) => /\/(delete|edit):/.test(text));
  assert.deepEqual(foreign, [
    "life/delete:step=0,apiVersion=v1,kind=ConfigMap,namespace=default,name=a",
    "life/edit:step=0,apiVersion=v1,kind=ConfigMap,namespace=default,name=a,field=data%2Fk",
  ]);
});

test("A restarted operator sees each older state since which it has written", () => {
  const trace = [
    ...created,
    event("DELETED Gadget a", { step: 1 }),
    write("delete ConfigMap a", { step: 1 }),
    event("DELETED ConfigMap a", { step: 1 }),
  ];
  const found = texts(
    scenario("apply", "delete"),
    run(trace, [[gadget, config], []]),
  );
  assert.deepEqual(found.filter((text) => text.includes("stale")), [
    "life/stale:write=3,revision=5,ms=60000",
  ]);
});

test("A restarted operator sees all but the second object of a kind", () => {
  const second = checkedObject("Gadget", "b");
  const trace = [
    ...created,
    event("ADDED Gadget b", { step: 1 }),
    write("create ConfigMap b", { step: 1 }),
  ];
  const { steps } = scenario("apply", "apply");
  const found = texts(
    { ...scenario("apply", "apply"), steps },
    run(trace, [[gadget, config], [gadget, second, config]]),
  );
  assert.deepEqual(found.filter((text) => text.includes("resource=gadgets")), [
    "life/stale:write=3,revision=5,ms=60000,resource=gadgets",
  ]);
});

test("An event is missed if the operator does not rest before the next one", () => {
  const trace = [
    ...created,
    event("DELETED Gadget a", { step: 1 }),
    event("ADDED Gadget a", { step: 2 }),
  ];
  const life = scenario("apply", "delete", "apply");
  const missed = (steps: typeof life.steps) =>
    texts({ ...life, steps }, run(trace, [[gadget], [], [gadget]]))
      .filter((text) => text.includes("missed"));
  assert.deepEqual(missed(life.steps), []);
  const hurried = life.steps.map((step) => ({ ...step, settle: false }));
  assert.deepEqual(missed(hurried), [
    "life/missed:resource=gadgets,group=,from=1,to=2",
    "life/missed:resource=gadgets,group=,from=6,to=7",
  ]);
});

test("Events of different kinds change places within one step", () => {
  const found = texts(scenario("apply"), run(created, [[gadget, config]]));
  assert.deepEqual(found.filter((text) => text.includes("order")), [
    "life/order:event=1,after=2",
    "life/order:event=2,after=3",
  ]);
});

test("The same situation in another scenario is not planned a second time", () => {
  const seen = new Set<string>();
  const options = { seen };
  const first = derivePlans(
    scenario("apply"),
    run(created, [[gadget, config]]),
    options,
  );
  const again = derivePlans(
    { ...scenario("apply"), name: "again" },
    run(created, [[gadget, config]]),
    options,
  );
  assert.ok(first.plans.length > 10);
  assert.deepEqual(again.plans, []);
  assert.ok(again.pruned >= first.plans.length);
});

test("Writes that change nothing and known steps give no plans of writes", () => {
  const idle = [
    event("ADDED Gadget a"),
    write("apply ConfigMap a", { effect: "nothing" }),
  ];
  const found = texts(scenario("apply"), run(idle, [[gadget]]));
  assert.deepEqual(found.filter((text) => text.includes("write=")), []);
  const known = { ...scenario("apply"), known: 1 };
  assert.deepEqual(texts(known, run(created, [[gadget, config]])), []);
});

test("Plans for Leases and upgrades depend on the operator", () => {
  const record = run(created, [[gadget, config], [gadget, config]]);
  const found = texts(scenario("apply", "apply"), record, {
    upgrades: true,
    elects: true,
  });
  assert.ok(found.includes("life/leader:write=1"));
  assert.ok(found.includes("life/upgrade:step=0"));
});

test("The world knows every plan that is derived", () => {
  const pod = [...created, write("create Deployment a")];
  const record = run(pod, [[gadget, config]]);
  for (const text of texts(scenario("apply"), record, { elects: true })) {
    const { perturbations } = readPlan(text);
    const plan = worldPlan(perturbations);
    assert.equal(plan.perturbations.length + plan.foreign.length, 1, text);
  }
  const refused = [
    ["life/crush:write=1", /there is no such perturbation/],
    ["life/crash:write=x,place=after", /"write" must be a number/],
    ["life/crash:place=after", /"write" must be a number: received nothing/],
    ["life/crash:write=1,place=on", /"place" must be one of before/],
    ["life/clock:step=1", /perturbation "clock" of the plan: "ms" must be/],
    ["life/edit:step=1,kinds=Gadget", /did you mean "kind"/],
  ] as const;
  for (const [text, message] of refused) {
    assert.throws(() => worldPlan(readPlan(text).perturbations), { message });
  }
});
