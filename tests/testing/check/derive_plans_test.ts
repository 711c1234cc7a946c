import assert from "node:assert/strict";
import { test } from "node:test";
import { derivePlans } from "../../../dev/testing/check/derive_plans.ts";
import {
  planText,
  readPlan,
  worldPlan,
} from "../../../dev/testing/check/plan.ts";
import {
  checkedObject,
  event,
  note,
  run,
  scenario,
  write,
} from "./check_case.ts";

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
  assert.deepEqual(
    found.filter((text) => /stale/.test(text) && isOfAll(text)),
    [
      "life/stale:write=3,revision=5,ms=60000",
    ],
  );
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

test("Plans for Leases, webhooks and upgrades depend on the operator", () => {
  const record = run(created, [[gadget, config], [gadget, config]]);
  const found = texts(scenario("apply", "apply"), record, {
    upgrades: true,
    elects: true,
    admits: true,
  });
  assert.ok(found.includes("life/webhook:write=1,how=down,ms=60000"));
  assert.ok(found.includes("life/webhook:write=1,how=slow,ms=60000"));
  assert.ok(found.includes("life/webhook:write=1,how=rotated,ms=60000"));
  assert.ok(found.includes("life/leader:write=1"));
  assert.ok(found.includes("life/upgrade:step=0"));
});

test("The world knows every plan that is derived", () => {
  const pod = [...created, write("create Deployment a")];
  const record = run(pod, [[gadget, config]]);
  const all = { elects: true, admits: true };
  for (const text of texts(scenario("apply"), record, all)) {
    const { perturbations } = readPlan(text);
    const plan = worldPlan(perturbations);
    assert.equal(plan.perturbations.length + plan.foreign.length, 1, text);
  }
  const { perturbations } = readPlan("life/down:write=1,step=0+cascade:step=1");
  assert.partialDeepStrictEqual(worldPlan(perturbations), {
    perturbations: [
      { do: "crash", write: 1, place: "after", downMs: 600_000 },
    ],
    away: new Set([0]),
    cascades: new Set([1]),
  });
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

/** Plans of a kind, without their scenario. */
function plansOf(
  kind: string,
  ...given: Parameters<typeof derivePlans>
): readonly string[] {
  const start = `life/${kind}`;
  return texts(...given).filter((text) => text.startsWith(start))
    .map((text) => text.slice("life/".length));
}

/** Whether a plan shows an older state of all kinds. */
const isOfAll = (text: string) => !text.includes("resource=");

const one = scenario("apply");
const two = scenario("apply", "apply");
const both = [[gadget, config], [gadget, config]];

test("A crash before a write is left out only if it follows another directly", () => {
  const first = write("create ConfigMap a");
  const before = (...trace: Parameters<typeof run>[0]) =>
    plansOf("crash", two, run(trace, both))
      .filter((text) => text.endsWith("place=before"));
  const patch = write("patch ConfigMap b");
  const [once, again] = [1, 2].map((n) => `crash:write=${n},place=before`);
  assert.deepEqual(before(first, patch), [once]);
  assert.deepEqual(before(first, { ...patch, step: 1 }), [once, again]);
  assert.deepEqual(before(first, { ...patch, at: 1_000 }), [once]);
  assert.deepEqual(before(first, { ...patch, at: 1_001 }), [once, again]);
  const nothing = write("apply Secret b", { effect: "nothing" });
  assert.deepEqual(before(first, nothing, patch), [
    once,
    "crash:write=3,place=before",
  ]);
  assert.deepEqual(before(first, note("external", "GET a"), patch), [
    once,
    again,
  ]);
  // The event of the first write itself changes nothing.
  assert.deepEqual(before(first, event("ADDED ConfigMap a"), patch), [once]);
});

test("A write that was disturbed is not disturbed again", () => {
  const trace = [write("create ConfigMap a", { disturbed: true })];
  const record = run(trace, [[gadget]]);
  assert.ok(!texts(one, record).some((text) => text.includes("write=")));
});

test("The answer of an apply that changes an object may not be lost", () => {
  const lost = (text: string) => plansOf("lost", one, run([write(text)], [[]]));
  assert.deepEqual(lost("apply ConfigMap a"), []);
  assert.deepEqual(lost("patch ConfigMap a"), ["lost:write=1"]);
  assert.deepEqual(lost("create ConfigMap a"), ["lost:write=1"]);
  const conflict = (text: string) =>
    plansOf("conflict", one, run([write(text)], [[]]));
  assert.deepEqual(conflict("delete ConfigMap a"), []);
  assert.deepEqual(conflict("create ConfigMap a"), []);
});

test("The clock jumps, and the server throttles, at the first write of a step", () => {
  const trace = [
    write("create ConfigMap a"),
    write("create ConfigMap b"),
    write("patch ConfigMap a", { step: 1 }),
    write("patch ConfigMap b", { step: 1 }),
  ];
  const record = run(trace, both);
  assert.deepEqual(plansOf("clock", two, record), [
    "clock:write=1,ms=90000000",
    "clock:write=1,ms=-3600000",
    "clock:write=3,ms=90000000",
    "clock:write=3,ms=-3600000",
  ]);
  assert.deepEqual(plansOf("throttle", two, record), [
    "throttle:write=1,ms=3600000",
    "throttle:write=3,ms=3600000",
  ]);
});

test("An operator without an election, or with one step, has fewer plans", () => {
  const record = run(created, [[gadget, config]]);
  assert.deepEqual(plansOf("leader", one, record), []);
  assert.deepEqual(plansOf("upgrade", one, record, { upgrades: true }), []);
});

test("An older state is shown only if the operator has written since", () => {
  const changes = event("MODIFIED Gadget a", { step: 1 });
  const stale = (...trace: Parameters<typeof run>[0]) =>
    plansOf("stale", two, run(trace, both)).filter(isOfAll);
  assert.deepEqual(stale(...created, changes), []);
  assert.deepEqual(stale(event("ADDED Gadget a"), changes), []);
  const apply = write("apply ConfigMap a", { step: 1, effect: "nothing" });
  assert.deepEqual(stale(...created, changes, apply), []);
  assert.deepEqual(
    stale(...created, changes, { ...apply, effect: "changed" }),
    ["stale:write=3,revision=5,ms=60000"],
  );
});

test("A kind lags only when it gets another object beside the first", () => {
  const trace = [
    ...created,
    event("ADDED Gadget b", { step: 1 }),
    write("create ConfigMap b", { step: 1 }),
  ];
  const lagging = (...states: Parameters<typeof run>[1]) =>
    plansOf("stale", two, run(trace, states))
      .filter((text) => text.includes("resource=gadgets"));
  assert.deepEqual(lagging([config], [gadget, config]), []);
  assert.deepEqual(lagging([gadget], [gadget]), []);
  const second = checkedObject("Gadget", "b");
  assert.equal(lagging([gadget], [gadget, second]).length, 1);
});

test("Only an event that the next of its object undoes is missed", () => {
  const hurried = {
    ...two,
    steps: two.steps.map((step) => ({ ...step, settle: false })),
  };
  const missed = (...names: readonly string[]) =>
    plansOf(
      "missed",
      hurried,
      run(names.map((name, step) => event(name, { step })), both),
    );
  assert.equal(missed("ADDED Gadget a", "DELETED Gadget a").length, 1);
  assert.deepEqual(missed("ADDED Gadget a", "ADDED Gadget a"), []);
  assert.deepEqual(missed("ADDED Gadget a", "DELETED Gadget b"), []);
  assert.deepEqual(missed("MODIFIED Gadget a", "DELETED Gadget a"), []);
});

test("An event changes places with the next three of its step", () => {
  const kinds = ["A", "B", "C", "D", "E"];
  const trace = kinds.map((kind) => event(`ADDED ${kind} a`));
  const first = plansOf("order:event=1", one, run(trace, [[]]));
  assert.deepEqual(first, [2, 3, 4].map((n) => `order:event=1,after=${n}`));
  const later = trace.map((entry, at) => ({ ...entry, step: Math.min(at, 1) }));
  assert.deepEqual(plansOf("order:event=1", two, run(later, [[], []])), []);
  const groups = ["", "test.dev"].map((group) =>
    event("ADDED Event a", { group })
  );
  assert.equal(plansOf("order", one, run(groups, [[]])).length, 1);
});

test("Repeated events of an object are cut each", () => {
  const trace = Array.from({ length: 2 }, () => event("MODIFIED Gadget a"));
  assert.deepEqual(plansOf("cut", one, run(trace, [[gadget]])), [
    "cut:event=1",
    "cut:event=2",
  ]);
});

test("Others change what the operator wrote, up to eight fields of an object", () => {
  const data = Object.fromEntries(
    Array.from({ length: 10 }, (_, at) => [`f${at}`, "v"]),
  );
  const fields = (body: object, object: object, more: object = {}) =>
    plansOf(
      "edit",
      one,
      run([
        write("create ConfigMap a", { body: {} }),
        write("patch ConfigMap a", {
          body: body as typeof config,
          ...more,
        }),
      ], [[{ ...config, ...object }]]),
    ).map((text) => decodeURIComponent(text.split("field=")[1] ?? ""));
  assert.deepEqual(
    fields({ data }, { data }),
    Object.keys(data).slice(0, 8).map((name) => `data/${name}`),
  );
  const x = { data: { x: "1" } };
  assert.deepEqual(fields(x, x), ["data/x"]);
  assert.deepEqual(fields(x, { data: {} }), []);
  assert.deepEqual(fields(x, x, { subresource: "scale" }), []);
  assert.deepEqual(fields(x, x, { step: 1 }), []);
  assert.deepEqual(fields({ spec: { a: [1] } }, { spec: { a: [1] } }), []);
  assert.deepEqual(fields({ status: { a: 1 } }, { status: { a: 1 } }), []);
  const metadata = { labels: { a: "b" }, annotations: { c: "d" } };
  assert.deepEqual(
    fields({ metadata }, {
      metadata: { ...config["metadata"] as object, ...metadata },
    }),
    ["metadata/labels/a"],
  );
});

test("Others delete no objects that go away, nor those of the user", () => {
  const deleted = (object: typeof config, trace = created) =>
    plansOf("delete", one, run(trace, [[gadget, object]]));
  assert.equal(deleted(config).length, 1);
  const metadata = {
    ...config["metadata"] as object,
    deletionTimestamp: "2026-01-01T00:00:00Z",
  };
  assert.deepEqual(deleted({ ...config, metadata }), []);
  const trace = [write("create Gadget a"), ...created.slice(1)];
  assert.deepEqual(
    plansOf("delete", one, run(trace, [[gadget]])),
    [],
  );
});

/** Whether a run after another has plans of its writes. */
function isNew(
  first: Parameters<typeof run>[0],
  second: Parameters<typeof run>[0],
): boolean {
  const seen = new Set<string>();
  derivePlans(two, run(first, [[], []]), { seen });
  return derivePlans(two, run(second, [[], []]), { seen }).plans
    // Those depend on the next step, too.
    .some((plan) => !planText(plan).startsWith("life/down:"));
}

test("A write is planned again if it, or those before it in its step, differ", () => {
  const patch = write("patch ConfigMap a", { body: { data: { k: "v" } } });
  assert.equal(isNew([patch], [patch]), false);
  for (
    const more of [
      { subresource: "status" },
      { body: { data: { k: "w" } } },
      { name: "b" },
      { namespace: "other" },
      { kind: "Secret" },
      { verb: "update" },
      { effect: "created" as const },
    ]
  ) assert.equal(isNew([patch], [{ ...patch, ...more }]), true);
  const before = write("create Secret a");
  assert.equal(isNew([before, patch], [before, patch]), false);
  const alone = [before, { ...patch, step: 1 }];
  assert.equal(isNew(alone, [patch]), false);
  assert.equal(isNew(alone, [before, patch]), true);
});

test("Objects and their fields are planned again if their content differs", () => {
  const foreign = (object: object) => {
    const trace = [
      write("create ConfigMap a", { body: { data: { k: "v", l: "v" } } }),
    ];
    return run(trace, [[{ ...config, ...object }]]);
  };
  const seen = new Set<string>();
  const plans = (object: object) =>
    derivePlans(one, foreign(object), { seen }).plans.map(planText)
      .filter((text) => /\/(delete|edit):/.test(text)).length;
  const data = { k: "v", l: "v" };
  assert.equal(plans({ data }), 3);
  assert.equal(plans({ data, status: { size: 2 } }), 0);
  assert.equal(plans({ data: { ...data, k: "w" } }), 3);
});

test("Steps that are known from other scenarios give no plans", () => {
  const known = (
    life: ReturnType<typeof scenario>,
    ...given: Parameters<typeof run>
  ) => {
    const record = run(...given);
    assert.ok(derivePlans(life, record).plans.length > 0);
    const { length } = life.steps;
    return texts({ ...life, known: length }, record);
  };
  const trace = [
    ...created,
    event("ADDED Gadget b", { step: 1 }),
    write("create ConfigMap b", { step: 1 }),
    event("DELETED Gadget b", { step: 1 }),
  ];
  const second = checkedObject("Gadget", "b");
  const states = [[gadget, config], [gadget, second, config]];
  assert.deepEqual(known(two, trace, states), []);
  const hurried = {
    ...two,
    steps: two.steps.map((step) => ({ ...step, settle: false })),
  };
  assert.deepEqual(known(hurried, trace, states), []);
});

test("Nothing is shown or changed after a step without a rest", () => {
  const trace = [
    ...created,
    event("ADDED Gadget b", { step: 1 }),
    write("create ConfigMap b", { step: 1 }),
  ];
  const second = checkedObject("Gadget", "b");
  const record = run(trace, [[gadget, config], [gadget, second, config]]);
  const steps = two.steps.map((step) => ({ ...step, settle: false }));
  const found = texts({ ...two, steps }, record);
  assert.ok(found.length > 0);
  assert.deepEqual(
    found.filter((text) => /\/(stale|delete|edit)/.test(text)),
    [],
  );
});

test("A kind lags only if the operator has written, and its step applies", () => {
  const second = checkedObject("Gadget", "b");
  const states = [[gadget], [gadget, second]];
  const seen = event("ADDED Gadget b", { step: 1 });
  assert.deepEqual(plansOf("stale", two, run([seen], states)), []);
  const [first] = two.steps;
  for (const step of [{ wait: "1h" }, { patch: { kind: "Gadget" } }]) {
    const life = { ...two, steps: [first!, step] };
    const found = texts(life, run([...created, seen], states));
    assert.ok(!found.some((text) => text.includes("resource=gadgets")));
  }
});

test("Pods that become ready late are planned for each kind that has pods", () => {
  const plans = (kind: string) =>
    texts(one, run([write(`create ${kind} a`)], [[]]))
      .filter((text) => !text.includes("write="));
  const kinds = ["Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"];
  for (const kind of [...kinds, "Job", "Pod"]) {
    assert.deepEqual(plans(kind), ["life/late", "life/flap"], kind);
  }
  assert.deepEqual(plans("ConfigMap"), []);
});

test("Others change neither what was there before nor what is not compared", () => {
  const deleted = (object: typeof config, before: readonly string[] = []) =>
    plansOf(
      "delete",
      one,
      run(
        [
          write(`create ${object["kind"]} a`),
        ],
        [[gadget, object]],
        { before },
      ),
    );
  assert.equal(deleted(config).length, 1);
  assert.deepEqual(deleted(config, ["ConfigMap default/a"]), []);
  assert.deepEqual(deleted(checkedObject("Lease", "a")), []);
  const { namespace: _, ...metadata } = config["metadata"] as Record<
    string,
    string
  >;
  assert.deepEqual(deleted({ ...config, metadata }), [
    "delete:step=0,apiVersion=v1,kind=ConfigMap,name=a",
  ]);
  // It has changed what another made.
  const patched = run([write("patch ConfigMap a")], [[gadget, config]]);
  assert.deepEqual(plansOf("delete", one, patched), []);
});

test("An event is undone by the next of the same object that is no change", () => {
  const missed = (
    steps: readonly boolean[],
    ...trace: Parameters<typeof run>[0]
  ) => {
    const [step] = two.steps;
    const life = {
      ...two,
      steps: steps.map((settle) => ({ ...step!, settle })),
    };
    return plansOf("missed", life, run(trace, steps.map(() => [])));
  };
  const [added, deleted] = [
    event("ADDED Gadget a"),
    event("DELETED Gadget a", { step: 1 }),
  ];
  assert.equal(missed([false, true], added, deleted).length, 1);
  assert.deepEqual(missed([true, false], added, deleted), []);
  const hurried = [false, false];
  const changed = event("MODIFIED Gadget a");
  assert.deepEqual(missed(hurried, added, changed), []);
  assert.equal(missed(hurried, added, changed, deleted).length, 1);
  for (
    const more of [{ group: "b.io" }, { namespace: "b" }, { resource: "b" }]
  ) assert.deepEqual(missed(hurried, added, { ...deleted, ...more }), []);
});

test("Deliveries are told apart by their type, and are counted by step", () => {
  const change = event("MODIFIED Gadget a");
  const cut = (...trace: Parameters<typeof run>[0]) =>
    plansOf("cut", two, run(trace, both));
  assert.deepEqual(cut(change, { ...change, step: 1 }), ["cut:event=1"]);
  const { plans, pruned } = derivePlans(
    one,
    run([event("ADDED Gadget a"), change], [[]]),
  );
  assert.deepEqual(
    plans.map(planText),
    [1, 2].flatMap((number) =>
      ["cut", "expire"].map((kind) => `life/${kind}:event=${number}`)
    ),
  );
  assert.equal(pruned, 0);
  const idle = run([write("apply Secret a", { effect: "nothing" })], [[]]);
  assert.equal(derivePlans(one, idle).pruned, 3);
});

test("Plans of one situation are left out, of a leader and of a delivery, too", () => {
  const seen = new Set<string>();
  const [added, changed] = [
    event("ADDED Gadget a"),
    event("MODIFIED Gadget a"),
  ];
  const trace = [added, changed, write("create ConfigMap a")];
  const options = { seen, elects: true };
  const plans = (...trace: Parameters<typeof run>[0]) =>
    derivePlans(one, run(trace, [[]]), options).plans.map(planText);
  assert.ok(plans(...trace).includes("life/leader:write=1"));
  assert.deepEqual(plans(changed, write("create ConfigMap a")), []);
});

test("An older state is not shown before the write that it would change", () => {
  const three = scenario("apply", "apply", "apply");
  const late = write("patch ConfigMap a", { step: 2 });
  const change = (step: number) => event("MODIFIED Gadget a", { step });
  assert.deepEqual(
    plansOf(
      "stale",
      three,
      run([...created, change(1), change(2), late], [...both, both[0]!]),
    ).filter(isOfAll),
    ["stale:write=3,revision=5,ms=60000", "stale:write=3,revision=6,ms=60000"],
  );
});

test("An operator is down during the next step after each write of a step", () => {
  assert.deepEqual(plansOf("down", one, run(created, [[gadget, config]])), []);
  const trace = [...created, write("delete ConfigMap a", { step: 1 })];
  const states = [[gadget, config], [], []];
  // An object that is going away cannot be created again until then.
  assert.deepEqual(
    plansOf("down", scenario("apply", "delete", "apply"), run(trace, states)),
    ["down:write=1,step=0", "down:write=2,step=0"],
  );
  const { steps, ...rest } = scenario("apply", "delete");
  const hasty = steps.map((step) => ({ ...step, settle: false }));
  assert.deepEqual(
    plansOf("down", { ...rest, steps: hasty }, run(trace, states)),
    [],
  );
});

test("An object is deleted after its parts, if it has any", () => {
  const part = checkedObject("ConfigMap", "a", {
    metadata: { ownerReferences: [{ uid: "Gadget-a" }] },
  });
  const steps = scenario("apply", "delete");
  const cascades = (...objects: (typeof part)[]) =>
    plansOf("cascade", steps, run(created, [objects, []]));
  assert.deepEqual(cascades(gadget, part), ["cascade:step=1"]);
  assert.deepEqual(cascades(gadget, config), []);
  assert.deepEqual(cascades(part), []);
});

test("A part is deleted again once its object has been changed", () => {
  const changed = checkedObject("Gadget", "a", { metadata: { generation: 2 } });
  const states = [[gadget, config], [changed, config], [changed, config]];
  const steps = scenario("apply", "apply", "apply");
  assert.deepEqual(
    plansOf("delete", steps, run(created, states)).map((text) =>
      text.slice(0, text.indexOf(","))
    ),
    ["delete:step=0", "delete:step=1"],
  );
});

test("The situations of a step with hundreds of writes take little memory", () => {
  const body = { data: { text: "x".repeat(1_000) } };
  const trace = Array.from(
    { length: 300 },
    (_, at) => write(`create ConfigMap c${at}`, { body }),
  );
  const seen = new Set<string>();
  const { plans } = derivePlans(two, run(trace, [[gadget], [gadget]]), {
    seen,
  });
  assert.ok(plans.length > 300, String(plans.length));
  const size = [...seen].reduce((sum, { length }) => sum + length, 0);
  assert.ok(size < 2_000 * 300, `${size} characters`);
});

test("Nobody deletes the object in which a job keeps its last run", () => {
  const annotations = { "jobs.coracle.dev/nightly": "2026-01-01T02:00:00Z" };
  const state = checkedObject("ConfigMap", "a", { metadata: { annotations } });
  const deleted = (part: typeof state) =>
    plansOf("delete", two, run(created, [[gadget, part], [gadget, part]]));
  assert.equal(deleted(config).length, 1);
  assert.deepEqual(deleted(state), []);
});

test("A kind of parts lags behind the others after a step that writes to it", () => {
  const lagging = (...given: Parameters<typeof run>) =>
    plansOf("stale", two, run(...given)).filter((text) => !isOfAll(text));
  const change = write("apply ConfigMap a", { step: 1 });
  const changed = event("MODIFIED ConfigMap a", { step: 1 });
  const made = "stale:write=2,revision=2,ms=60000,resource=configmaps";
  assert.deepEqual(lagging(created, both), [made]);
  assert.deepEqual(lagging([...created, change, changed], both), [
    made,
    "stale:write=3,revision=6,ms=60000,resource=configmaps",
  ]);
  // What the operator does not watch, or has not written, misleads nobody.
  assert.deepEqual(lagging([...created, change], both), [made]);
  assert.deepEqual(lagging([...created, changed], both), [made]);
  assert.deepEqual(
    lagging([...created, { ...change, effect: "nothing" }, changed], both),
    [made],
  );
  // Nothing is decided for an object that is gone.
  const gone = [
    write("delete ConfigMap a", { step: 1 }),
    event("DELETED ConfigMap a", { step: 1 }),
  ];
  const life = scenario("apply", "delete");
  assert.deepEqual(
    plansOf("stale", life, run([...created, ...gone], [both[0]!, []]))
      .filter((text) => !isOfAll(text)),
    [made],
  );
});

test("Others annotate an owned object once, and before each change of it", () => {
  const annotated = (...more: Parameters<typeof run>[0]) =>
    plansOf("annotate", two, run([...created, ...more], both))
      .map((text) => text.slice(0, text.indexOf(",")));
  const patch = write("patch ConfigMap a", { step: 1 });
  assert.deepEqual(annotated(), ["annotate:step=0"]);
  assert.deepEqual(annotated(patch), ["annotate:step=0", "annotate:step=1"]);
  assert.deepEqual(annotated({ ...patch, effect: "nothing" }), [
    "annotate:step=0",
  ]);
});
