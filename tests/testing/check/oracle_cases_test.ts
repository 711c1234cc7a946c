import assert from "node:assert/strict";
import { test } from "node:test";
import {
  judgePaths,
  judgeReference,
} from "../../../dev/testing/check/oracles.ts";
import type { Case, Violation } from "../../../dev/testing/check/violation.ts";
import type { JsonObject } from "../../../core/patch/json_value.ts";
import type { RunRecord } from "../../../dev/testing/check/run_record.ts";
import type { Scenario } from "../../../dev/testing/check/workload.ts";
import {
  checkedObject,
  clean,
  create,
  gadget,
  judged,
  note,
  only,
  reference,
  run,
  scenario,
  service,
  write,
} from "./check_case.ts";

const textsOf = (found: readonly Violation[]) =>
  found.map(({ oracle, text }) => `${oracle}: ${text}`);
const unquiet = (record: RunRecord, step = 0): RunRecord => ({
  ...record,
  steps: record.steps.map((one, at) =>
    at === step ? { ...one, quiet: false } : one
  ),
});
const plan = (...perturbations: Case["plan"]["perturbations"]) => ({
  plan: { scenario: "life", perturbations },
});
const stuck = checkedObject("Gadget", "a", {
  metadata: { deletionTimestamp: "2026-01-01T00:00:00Z", finalizers: ["f"] },
});
const idle = (writes: number) => ({ idle: { duration: 86_400_000, writes } });
const many = (count: number, step = 0) =>
  Array.from(
    { length: count },
    () => write("patch Service a", { effect: "nothing", step }),
  );
const refused = write("create Service b", { effect: "nothing", code: 403 });
const port = (value: number) =>
  checkedObject("Service", "a", { spec: { port: value } });
const withoutRest = (scenario: Scenario): Scenario => ({
  ...scenario,
  steps: scenario.steps.map((step) => ({ ...step, settle: false })),
});

const CLEAN: readonly (readonly [RunRecord, string])[] = [
  [run([create, note("rejection", "boom")], [[gadget, service]]), "rejection"],
  [run([create, refused], [[gadget, service]]), "rights"],
  [
    run([create], [[gadget, service]], {
      violations: [{ oracle: "always:one", text: "two", step: 0 }],
    }),
    "always:one",
  ],
  [unquiet(reference), "settles"],
  [run([create], [[stuck, service]]), "finalizer"],
  [run([create, ...many(400)], [[gadget, service]]), "bounded"],
  [run([create], [[gadget, service]], idle(1_000)), "stays"],
];

for (const [record, oracle] of CLEAN) {
  test(`A run without disturbances is judged by ${oracle}`, () => {
    assert.equal(only(clean(record, "apply")).oracle, oracle);
  });
}

test("Each disturbed view of an operator excuses what it makes again", () => {
  const twice = [create, write("create Secret a"), write("create Secret a")];
  for (const name of ["stale", "missed", "order", "cut", "expire"]) {
    const usual = run(twice.slice(0, 2), [[gadget, service]]);
    const options = { reference: usual, ...plan({ do: name, write: 1 }) };
    const record = run(twice, [[gadget, service]]);
    assert.deepEqual(judged(record, options), [], name);
  }
});

test("What is deleted is lost data only of kinds that hold data", () => {
  const lost = (kind: string) =>
    only(judged(run([create, write(`delete ${kind} b`)], [[gadget, service]])))
      .text.endsWith(": its data is lost");
  assert.equal(lost("PersistentVolume"), true);
  assert.equal(lost("Secret"), true);
  assert.equal(lost("ConfigMap"), false);
});

test("A refusal that the check itself made is not a missing right", () => {
  const record = run([create, { ...refused, disturbed: true }], [[
    gadget,
    service,
  ]]);
  assert.deepEqual(judged(record), []);
});

test("An invariant that fails in several ways is one finding of its name", () => {
  const violations = ["two leaders", "no leader"].map((text) => ({
    oracle: "always:one",
    text,
    step: 0,
  }));
  const record = run([create], [[gadget, service]], { violations });
  assert.equal(only(judged(record)).signature, "always:one");
});

test("A run that does not end names the writes of its step, or its exit", () => {
  const patches = many(3).map((one) => ({
    ...one,
    effect: "changed" as const,
  }));
  const late = [
    write("patch Gadget a", { step: 1 }),
    note("exit", "It exits", 1),
  ];
  const states = [[gadget, service], [gadget, service]];
  const record = unquiet(run([create, ...patches, ...late], states), 1);
  const found = only(clean(record, "apply", "apply"));
  assert.match(found.text, /after "step 1": it repeats "patch Gadget/);
  assert.equal(found.signature, "settles patch Gadget");
  const exiting = unquiet(
    run([create, note("exit", "It exits", 1)], states),
    1,
  );
  assert.equal(
    only(clean(exiting, "apply", "apply")).text,
    "It exits, again and again",
  );
});

test("A stuck object is reported once, and only when the operator rests", () => {
  const record = run([create], [[stuck, service], [stuck, service]]);
  assert.equal(only(clean(record, "apply", "apply")).step, 0);
  const given = withoutRest(scenario("apply"));
  assert.deepEqual(
    judged(run([create], [[stuck, service]]), { scenario: given }),
    [],
  );
  const kept = checkedObject("Gadget", "a", {
    metadata: { finalizers: ["f"] },
  });
  assert.deepEqual(clean(run([create], [[kept, service]]), "apply"), []);
});

test("What is made again after an edit by others is spared, a deletion is not", () => {
  const options = plan({ do: "edit", kind: "Service" });
  const made = (name: string) =>
    write(`create Job ${name}`, { body: { metadata: { generateName: "j-" } } });
  const again = run([create, made("j-1")], [[gadget, service]]);
  assert.deepEqual(judged(again, options), []);
  assert.match(only(judged(again)).text, /is created once/);
  const removed = run([create, write("delete Service b")], [[gadget, service]]);
  assert.match(only(judged(removed, options)).text, /is deleted once/);
});

test("A change outside that is never made is found where nothing else differs", () => {
  const url = "http://example.com/a";
  const [post, put] = [`POST ${url}`, `PUT ${url} 2`];
  const external = (...texts: readonly string[]) =>
    run(
      [create, ...texts.map((text, step) => note("external", text, step))],
      [[gadget, service], [gadget, service]],
    );
  const usual = external(post, put);
  const found = (record: RunRecord, kind = "refuse", settle = true) => {
    const { steps, ...rest } = scenario("apply", "apply");
    return judged(record, {
      reference: usual,
      scenario: { ...rest, steps: steps.map((one) => ({ ...one, settle })) },
      plan: { scenario: "life", perturbations: [{ do: kind, write: 1 }] },
    }).map(({ text }) => text);
  };
  const text =
    `"${put}" is never done outside the cluster, in the reference it is`;
  assert.deepEqual(found(external(post)), [text]);
  assert.deepEqual(found(external(post, put)), []);
  assert.deepEqual(found(external(post), "stale"), []);
  // Two steps without a rest between them may be one change.
  assert.deepEqual(found(external(post), "refuse", false), []);
  // What was made as it has to be needs no change.
  assert.match(found(external(`${post} 2`))[0] ?? "", /^"POST /);
  assert.equal(found(external(`${post} 2`)).length, 1);
  assert.deepEqual(
    found(unquiet(external(post), 1)).filter((one) => one.startsWith('"PUT')),
    [],
  );
});

test("External actions count by their method, and removals come first", () => {
  const external = (...texts: readonly string[]) =>
    run([create, ...texts.map((text) => note("external", text))], [[
      gadget,
      service,
    ]]);
  const url = "http://example.com/a";
  const calls = (found: readonly string[], usual: readonly string[]) =>
    judged(external(...found), { reference: external(...usual) })
      .map(({ text }) => text.split(" http")[0]);
  const patch = `PATCH ${url}`;
  assert.deepEqual(calls([patch, patch], [patch]), ['"PATCH']);
  const [first, second] = [`PUT ${url} 1`, `PUT ${url} 2`];
  assert.deepEqual(calls([first, second, first], [first]), []);
  assert.deepEqual(calls([first, second], [first]), ['"PUT']);
  assert.deepEqual(
    calls([`POST ${url} 1`, `DELETE ${url}`], []),
    ['"DELETE', '"POST'],
  );
});

test("States are compared only after steps at whose end the operator rests", () => {
  const other = run([create], [[gadget, port(81)]]);
  assert.deepEqual(
    judged(unquiet(other)).map(({ oracle }) => oracle),
    ["settles"],
  );
  const given = withoutRest(scenario("apply"));
  assert.deepEqual(judged(other, { scenario: given }), []);
});

test("Objects from before the workload are not compared", () => {
  const usual = run([create], [[gadget, service]], {
    before: ["Service default/a"],
  });
  const other = run([create], [[gadget, port(81)]]);
  assert.deepEqual(judged(other, { reference: usual }), []);
});

test("A field that is missing or left is distinguished from an object", () => {
  const [fewer, more] = [{}, { port: 80, old: true }].map((spec) =>
    checkedObject("Service", "a", { spec })
  ) as [JsonObject, JsonObject];
  for (const other of [fewer, more]) {
    const { oracle, text } = only(judged(run([create], [[gadget, other]])));
    assert.equal(oracle, "end-state");
    assert.match(text, /^Service default\/a has another spec/);
  }
});

test("A difference in the status alone is a finding of the status", () => {
  const told = (status: JsonObject, size = 1) =>
    checkedObject("Gadget", "a", { spec: { size }, status });
  const usual = run([create], [[told({ a: 1 }), service]]);
  const oracleOf = (other: JsonObject) =>
    only(judged(run([create], [[other, service]]), { reference: usual }))
      .oracle;
  assert.equal(oracleOf(told({ a: 2 })), "status");
  assert.equal(oracleOf(told({ a: 2 }, 2)), "end-state");
});

test("What others deleted and nobody restores is one finding of its kind", () => {
  const record = run([create], [[gadget]]);
  for (const name of ["delete", "edit"]) {
    const change = {
      do: name,
      kind: "Service",
      namespace: "default",
      name: "a",
    };
    assert.equal(
      only(judged(record, plan(change))).signature,
      `${name} Service`,
    );
  }
});

test("A difference names the writes that only one of the runs performed", () => {
  const writesOf = (record: RunRecord, usual = reference) =>
    only(judged(record, { reference: usual })).writes;
  const other = [[gadget, port(81)]];
  const patch = write("patch Service a");
  const vain = { ...patch, effect: "nothing" as const };
  // The same writes are in both: those of the object are shown.
  assert.deepEqual(writesOf(run([create, vain], other)), [
    "create Service default/a",
  ]);
  const twice = run([create, patch, patch], [[gadget, service]]);
  assert.deepEqual(writesOf(run([create, patch], other), twice), [
    "missing: patch Service default/a",
  ]);
});

/** Violations of a change and its reversal: the last state must equal the first. */
function wayBack(
  states: readonly (readonly JsonObject[])[],
  steps: readonly ("apply" | "delete")[],
  { at = 0, quiet = true } = {},
): readonly string[] {
  const record = run([create], states);
  const last = states.length - 1;
  return textsOf(judgeReference({
    scenario: { ...scenario(...steps), backTo: at },
    reference: quiet ? record : unquiet(record, last),
    masked: new Set(),
    primaryKinds: new Set(["Gadget"]),
  }));
}

test("A way back that ends in another state is found", () => {
  const [usual, other] = [[gadget, service], [gadget, port(81)]];
  const three = ["apply", "apply", "apply"] as const;
  assert.deepEqual(wayBack([usual, other, usual], three), []);
  assert.deepEqual(wayBack([usual, other, other], three), [
    "path: Service default/a differs after a change and back: spec.port",
  ]);
  assert.deepEqual(wayBack([usual, [], other], ["apply", "delete", "apply"]), [
    "path: Service default/a differs after a deletion and creation: spec.port",
  ]);
  // A deletion before the state that is expected is not on the way.
  assert.deepEqual(
    wayBack([usual, [], usual, usual, other], [
      "apply",
      "delete",
      ...three,
    ], { at: 2 }),
    ["path: Service default/a differs after a change and back: spec.port"],
  );
  // A run that has ended early has not come back.
  assert.deepEqual(wayBack([usual, other], three), []);
  assert.deepEqual(
    wayBack([usual, other, other], three, { quiet: false })
      .map((text) => text.split(":")[0]),
    ["settles"],
  );
});

test("Only what the operator made and no primary needs is an orphan", () => {
  const orphans = (
    states: readonly (readonly JsonObject[])[],
    { trace = [create], steps = scenario("apply", "delete") } = {},
  ) =>
    judgeReference({
      scenario: steps,
      reference: run(trace, states),
      masked: new Set(),
      primaryKinds: new Set(["Gadget"]),
    }).map(({ oracle }) => oracle);
  const states = [[gadget, service], [service]];
  assert.deepEqual(orphans(states), ["orphan"]);
  const other = checkedObject("Gadget", "b");
  assert.deepEqual(orphans([[gadget, service], [other, service]]), []);
  assert.deepEqual(orphans([[service]], { steps: scenario("apply") }), []);
  assert.deepEqual(orphans(states, { trace: [] }), []);
  const own = scenario("apply", "delete");
  const applied = { ...own, steps: [{ apply: service }, own.steps[1]!] };
  assert.deepEqual(orphans(states, { steps: applied }), []);
});

test("The status of a primary is judged by its conditions", () => {
  const faults = (kind: string, status: JsonObject, steps = 1) =>
    clean(
      run(
        [],
        Array.from({ length: steps }, () => [
          checkedObject(kind, "a", { metadata: { generation: 2 }, status }),
        ]),
      ),
      ...Array.from({ length: steps }, () => "apply" as const),
    ).map(({ text }) => text);
  const condition = (type: string, status: string, more: JsonObject = {}) => ({
    type,
    status,
    ...more,
  });
  const twice = [condition("A", "True"), condition("A", "False")];
  assert.match(faults("Gadget", { conditions: twice })[0] ?? "", /A twice/);
  assert.equal(faults("Gadget", { conditions: twice }, 2).length, 1);
  assert.deepEqual(faults("ConfigMap", { conditions: twice }), []);
  for (const status of ["True", "False", "Unknown"]) {
    assert.deepEqual(
      faults("Gadget", { conditions: [condition("A", status)] }),
      [],
    );
  }
  const old = { observedGeneration: 1 };
  assert.deepEqual(
    faults("Gadget", { conditions: [condition("Ready", "False", old)] }),
    [],
  );
  const rested = { ...old, conditions: [condition("Reconciling", "False")] };
  assert.match(faults("Gadget", rested)[0] ?? "", /before the generation/);
});

test("A disturbed run has only the faults of a status that the reference lacks", () => {
  const faulty = checkedObject("Gadget", "a", {
    metadata: { generation: 2 },
    status: { observedGeneration: 1 },
  });
  const disturbed = run([create], [[faulty, service]]);
  const usual = run([create], [[faulty, service]]);
  assert.deepEqual(judged(disturbed, { reference: usual }), []);
  const fair = checkedObject("Gadget", "a", {
    metadata: { generation: 2 },
    status: { observedGeneration: 2 },
  });
  assert(
    textsOf(judged(disturbed, { reference: run([create], [[fair, service]]) }))
      .some((text) => /before the generation/.test(text)),
  );
});

test("The number of writes is bounded in each step, by that of the reference", () => {
  const states = [[gadget, service], [gadget, service]];
  const spread = run([create, ...many(200), ...many(200, 1)], states);
  assert.deepEqual(clean(spread, "apply", "apply"), []);
  const busy = run([create, ...many(400)], [[gadget, service]]);
  const usual = run([create, ...many(30)], [[gadget, service]]);
  assert.deepEqual(judged(busy, { reference: usual }), []);
  assert.equal(only(judged(busy)).oracle, "bounded");
});

test("No more than one equal read in two seconds of an idle hour is asked for", () => {
  const reading = (reads: Readonly<Record<string, number>>) =>
    clean(
      run([create], [[gadget, service]], {
        idle: { duration: 3_600_000, writes: 0, reads },
      }),
      "apply",
    );
  const many = { "get Secret": 1_800, "list ConfigMap": 1_800 };
  assert.deepEqual(reading(many), []);
  const found = only(reading({ ...many, "get Secret": 1_801 }));
  assert.equal(found.oracle, "stays");
  assert.match(found.text, /1801 times in an hour .*: "get Secret"$/);
});

test("The writes of an idle day are bounded by those of the reference", () => {
  const record = run([create], [[gadget, service]], idle(1_000));
  assert.equal(only(judged(record)).oracle, "stays");
  const usual = run([create], [[gadget, service]], idle(600));
  assert.deepEqual(judged(record, { reference: usual }), []);
  const late = {
    ...record,
    trace: [create, write("patch Service a", { step: 1 })],
  };
  assert.match(only(clean(late, "apply")).text, /, most often "patch Service/);
});

test("A direct creation is compared with the step of another path", () => {
  const differs = (
    other: RunRecord,
    sameAs: Partial<NonNullable<Scenario["sameAs"]>> = {},
    direct = reference,
  ) =>
    textsOf(judgePaths(direct, other, {
      scenario: {
        ...scenario("apply"),
        sameAs: { scenario: "change", step: 1, ...sameAs },
      },
      masked: new Set(),
    }));
  const [usual, other] = [[gadget, service], [gadget, port(81)]];
  assert.deepEqual(differs(run([create], [other, usual])), []);
  assert.equal(differs(run([create], [usual, other])).length, 1);
  const extra = checkedObject("ConfigMap", "a", { data: {} });
  const left = run([create], [usual, [gadget, service, extra]]);
  assert.equal(differs(left).length, 1);
  assert.deepEqual(differs(left, { isShared: true }), []);
  assert.equal(
    differs(run([create], [usual, other]), { isShared: true }).length,
    1,
  );
  assert.equal(
    differs(run([create], [usual, [gadget]]), { isShared: true }).length,
    1,
  );
  // What was there before is not compared.
  const before = { ...reference, before: ["Service default/a"] };
  assert.deepEqual(
    differs(run([create], [usual, [gadget]]), {}, before),
    [],
  );
});

test("Errors that nobody handled are one finding, that of the first", () => {
  const notes = [note("rejection", "first"), note("rejection", "second")];
  const found = only(
    clean(run([create, ...notes], [[gadget, service]]), "apply"),
  );
  assert.match(found.text, /: first$/);
});

test("An error that nobody handled is the same finding in each process", () => {
  const [first, second] = [1, 2].map((number) => {
    const text =
      `Error: no\n    at ask (file:///shop.ts?incarnation=${number}:1)`;
    const trace = [create, note("rejection", text)];
    return only(clean(run(trace, [[gadget, service]]), "apply"));
  });
  assert.equal(first?.signature, second?.signature);
  assert.equal(first?.text, "an error was not handled: Error: no");
});

test("An exit explains a step without rest only if it is of that step", () => {
  const record = unquiet(
    run(
      [note("exit", "It exits", 0), note("exit", "It exits later", 1)],
      [[gadget], [gadget]],
    ),
  );
  assert.match(
    only(clean(record, "apply", "apply")).text,
    /^It exits, again and again/,
  );
});

test("Deletions without a UID, and those after the last expected, are found", () => {
  const unknown = { uid: "" };
  const trace = [
    create,
    write("create Secret b", unknown),
    write("delete Secret b", unknown),
  ];
  const found = judged(run(trace, [[gadget, service]]));
  assert.ok(found.some(({ text }) => /is deleted once/.test(text)));
  const late = [
    create,
    write("delete Secret c"),
    write("delete Secret c", { step: 1 }),
  ];
  const states = [[gadget, service], [gadget, service]];
  const usual = run([create, write("delete Secret c")], states);
  const life = { reference: usual, scenario: scenario("apply", "apply") };
  const extra = only(judged(run(late, states), life));
  assert.equal(extra.step, 1);
  assert.match(extra.text, /is deleted twice|is deleted 2 times/);
  // Others delete in this plan, and the operator may as well.
  const isRestored = plan({ do: "delete", step: 0 });
  assert.deepEqual(judged(run(late, states), { ...life, ...isRestored }), []);
});

test("The writes of a second object with a generated name are named", () => {
  const body = { metadata: { generateName: "job-" } };
  const job = (name: string) =>
    checkedObject("Job", name, {
      metadata: { generateName: "job-", uid: `Job-${name}` },
    });
  const made = (name: string) => write(`create Job ${name}`, { body });
  const usual = run([create, made("job-1")], [[gadget, service, job("job-1")]]);
  const twice = run(
    [create, made("job-1"), made("job-2")],
    [[gadget, service, job("job-1"), job("job-2")]],
  );
  const found = judged(twice, { reference: usual })
    .find(({ oracle }) => oracle === "end-state");
  assert.match(found?.text ?? "", /job-\* \(2\) is left/);
  assert.deepEqual(found?.writes, ["create Job default/job-2"]);
});

test("An object of the name of no creation is no orphan", () => {
  const other = checkedObject("Service", "other");
  const record = run([create], [[gadget, service, other], [other]]);
  assert.deepEqual(clean(record, "apply", "delete"), []);
});

test("A fault of several statuses is that of the first object", () => {
  const faulty = (name: string) =>
    checkedObject("Gadget", name, {
      metadata: { generation: 2 },
      status: { observedGeneration: 1 },
    });
  const record = run([], [[faulty("a"), faulty("b")]]);
  assert.match(
    only(clean(record, "apply")).text,
    /^the status of Gadget default\/a/,
  );
});

test("A condition without a generation is Ready for the newest", () => {
  const ready = (more: JsonObject) =>
    clean(
      run([], [[checkedObject("Gadget", "a", {
        metadata: { generation: 2 },
        status: { conditions: [{ type: "Ready", status: "True", ...more }] },
      })]]),
      "apply",
    );
  assert.deepEqual(ready({}), []);
  assert.deepEqual(ready({ observedGeneration: 2 }), []);
  assert.match(
    only(ready({ observedGeneration: 1 })).text,
    /is Ready for an old/,
  );
});

test("Writes up to the limits of a step and of an idle day are no finding", () => {
  const states = [[gadget, service]];
  const inStep = (count: number) => run([create, ...many(count - 1)], states);
  assert.deepEqual(clean(inStep(300), "apply"), []);
  assert.equal(only(clean(inStep(301), "apply")).oracle, "bounded");
  // A reference with one write does not limit a step to 20.
  assert.deepEqual(judged(inStep(300)), []);
  assert.deepEqual(clean(run([create], states, idle(144)), "apply"), []);
  assert.equal(
    only(clean(run([create], states, idle(145)), "apply")).oracle,
    "stays",
  );
});

test("What was there before another path is not compared", () => {
  const sameAs = { scenario: "change", step: 0 };
  const extra = checkedObject("ConfigMap", "a", { data: {} });
  const other = (before: readonly string[]) =>
    judgePaths(
      reference,
      run([create], [[gadget, service, extra]], { before }),
      {
        scenario: { ...scenario("apply"), sameAs },
        masked: new Set(),
      },
    );
  assert.equal(other([]).length, 1);
  assert.deepEqual(other(["ConfigMap default/a"]), []);
});

test("A right that is missing again and again is one finding", () => {
  const notes = [
    note("forbidden", "list nodes"),
    note("forbidden", "get pods"),
  ];
  const trace = [create, refused, refused, ...notes, ...notes];
  assert.deepEqual(
    judged(run(trace, [[gadget, service]])).map(({ text }) => text),
    ["create Service default/b", "list nodes", "get pods"].map((right) =>
      `the operator may not ${right}`
    ),
  );
});

test("A step without a rest has neither stuck objects nor orphans", () => {
  const oracles = (record: RunRecord, ...steps: ("apply" | "delete")[]) =>
    clean(unquiet(record, steps.length - 1), ...steps)
      .map(({ oracle }) => oracle);
  assert.deepEqual(oracles(run([create], [[stuck, service]]), "apply"), [
    "settles",
  ]);
  const left = run([create], [[gadget, service], [service]]);
  assert.deepEqual(oracles(left, "apply", "delete"), ["settles"]);
});

test("The signature of a state has up to three fields, and what became of it", () => {
  const signatureOf = (...spec: readonly string[]) => {
    const other = checkedObject("Service", "a", {
      spec: Object.fromEntries(spec.map((name) => [name, 1])),
    });
    return only(judged(run([create], [[gadget, other]]))).signature;
  };
  assert.equal(signatureOf("port"), "end-state Service .spec.port ");
  assert.equal(
    signatureOf("port", "a", "b", "c").split(",").length,
    3,
  );
  assert.match(
    only(judged(run([create], [[gadget]]))).signature,
    / missing$/,
  );
  const extra = checkedObject("ConfigMap", "b");
  assert.match(
    only(judged(run([create], [[gadget, service, extra]]))).signature,
    / left$/,
  );
});

test("A fault of a status is found beside another that the reference has, too", () => {
  const faulty = (...types: readonly string[]) =>
    checkedObject("Gadget", "a", {
      status: {
        conditions: types.flatMap((type) => [
          { type, status: "True" },
          { type, status: "True" },
        ]),
      },
    });
  const usual = run([create], [[faulty("A"), service]]);
  const texts = textsOf(
    judged(run([create], [[faulty("A", "B"), service]]), { reference: usual }),
  );
  assert.ok(texts.some((text) => /has the condition B twice/.test(text)));
  assert.ok(!texts.some((text) => /has the condition A twice/.test(text)));
});

test("Writes of an idle time are those of the last step", () => {
  const states = [[gadget, service], [gadget, service]];
  const found = only(
    clean(run([create], states, idle(1_000)), "apply", "apply"),
  );
  assert.equal(found.step, 1);
});
