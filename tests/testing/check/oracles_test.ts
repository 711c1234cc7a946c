import assert from "node:assert/strict";
import { test } from "node:test";
import type { JsonObject } from "../../../core/patch/json_value.ts";
import type { Plan } from "../../../dev/testing/check/plan.ts";
import {
  judgePaths,
  judgeReference,
} from "../../../dev/testing/check/oracles.ts";
import type { Scenario } from "../../../dev/testing/check/workload.ts";
import { differingPlaces } from "../../../dev/testing/check/check_session.ts";
import type { RunRecord } from "../../../dev/testing/check/run_record.ts";
import {
  checkedObject,
  clean,
  create,
  event,
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

test("A run that is the same as the reference violates nothing", () => {
  assert.deepEqual(judged(reference), []);
  assert.deepEqual(clean(reference, "apply"), []);
});

test("A missing object is found, and the write that did not happen is named", () => {
  const found = only(judged(run([event("ADDED Gadget a")], [[gadget]])));
  assert.equal(found.oracle, "end-state");
  assert.equal(
    found.text,
    'Service default/a is missing after "step 0", and nobody creates it again',
  );
  assert.deepEqual(found.writes, ["missing: create Service default/a"]);
  assert.equal(found.diff, "- Service default/a   (missing)");
});

test("A field that differs is found unless it is masked", () => {
  const other = checkedObject("Service", "a", { spec: { port: 81 } });
  const record = run([create], [[gadget, other]]);
  const found = only(judged(record));
  assert.match(found.text, /Service default\/a has another spec\.port after/);
  assert.deepEqual(
    judged(record, { masked: new Set(["Service .spec.port"]) }),
    [],
  );
});

test("An object that the operator deletes and creates once more is found", () => {
  const again = { ...create, uid: "again" };
  const trace = [create, write("delete Service a"), again];
  const found = only(judged(run(trace, [[gadget, service]])));
  assert.equal(
    found.text,
    "Service default/a is deleted once, in the reference never",
  );
  assert.deepEqual(found.writes, ["delete Service default/a"]);
});

test("Only data that is created once more tells of a loss by others", () => {
  const twice = (kind: string, perturbations: Plan["perturbations"] = []) =>
    judged(
      run([create, ...[1, 2].map(() => write(`create ${kind} a`))], [[
        gadget,
        service,
      ]]),
      {
        reference: run([create, write(`create ${kind} a`)], [[
          gadget,
          service,
        ]]),
        plan: { scenario: "life", perturbations },
      },
    ).map(({ text }) => text);
  assert.deepEqual(twice("ConfigMap"), []);
  // The garbage collector removes what was made for an owner that is gone.
  assert.deepEqual(twice("Secret", [{ do: "stale", write: 1 }]), []);
  assert.deepEqual(twice("PersistentVolumeClaim"), [
    "PersistentVolumeClaim default/a is created 2 times, in the reference once",
  ]);
});

test("The loss of data is named", () => {
  const trace = [create, write("delete PersistentVolumeClaim a")];
  const found = only(judged(run(trace, [[gadget, service]])));
  assert.match(found.text, /: its data is lost$/);
});

test("An object that others deleted may be created once more", () => {
  const trace = [create, create];
  const perturbations = [{
    do: "delete",
    kind: "Service",
    namespace: "default",
    name: "a",
  }];
  const plan = { scenario: "life", perturbations };
  assert.deepEqual(judged(run(trace, [[gadget, service]]), { plan }), []);
});

test("Objects with generated names are counted by their prefix", () => {
  const job = (name: string) =>
    write(`create Job ${name}`, { body: { metadata: { generateName: "j-" } } });
  const usual = run([job("j-1")], [[gadget]]);
  const found = judged(run([job("j-2"), job("j-3")], [[gadget]]), {
    reference: usual,
  });
  assert.equal(
    only(found).text,
    "Job default/j-* is created 2 times, in the reference once",
  );
  for (const masked of ["Job", "Job default/j-*"]) {
    const options = { reference: usual, masked: new Set([masked]) };
    assert.deepEqual(
      judged(run([job("j-2"), job("j-3")], [[gadget]]), options),
      [],
    );
  }
});

test("An operator that does not come to rest repeats a write, which is named", () => {
  const trace = Array.from({ length: 5 }, () => write("patch Service a"));
  const record = run([create, ...trace], [[gadget, service]]);
  const steps = record.steps.map((step) => ({ ...step, quiet: false }));
  const found = only(judged({ ...record, steps }));
  assert.equal(found.oracle, "settles");
  assert.match(found.text, /it repeats "patch Service default\/a"$/);
});

test("A stuck finalizer is found", () => {
  const stuck = checkedObject("Gadget", "a", {
    metadata: { deletionTimestamp: "2026-01-01T00:00:00Z", finalizers: ["f"] },
  });
  const [found] = judged(run([create], [[stuck, service]]));
  assert.equal(found?.oracle, "finalizer");
  assert.match(found?.text ?? "", /its finalizers stay: \["f"\]$/);
  const ending = checkedObject("Pod", "a", {
    metadata: { deletionTimestamp: "2026-01-01T00:00:00Z", finalizers: [] },
  });
  const more = { reference: run([create], [[gadget, service, ending]]) };
  assert.deepEqual(
    judged(run([create], [[gadget, service, ending]]), more),
    [],
  );
});

test("Data that nobody made while the operator was down is not missing", () => {
  const volume = checkedObject("PersistentVolumeClaim", "data");
  const usual = run([create], [[gadget, service, volume], [volume]]);
  const found = run([], [[gadget], []]);
  const more = {
    reference: usual,
    scenario: scenario("apply", "delete"),
    plan: {
      scenario: "life",
      perturbations: [{ do: "down", write: 1, step: 0 }],
    },
  };
  const { steps } = more.scenario;
  // Nobody waits for the operator while it is down.
  const away = steps.map((one, at) => ({ ...one, settle: at > 0 }));
  const [first] = judged(found, {
    ...more,
    scenario: { ...more.scenario, steps: away },
  });
  assert.equal(first, undefined);
  const missing = (expected: RunRecord, found: RunRecord) =>
    judged(found, { ...more, reference: expected })[0]?.text ?? "";
  const text = /^PersistentVolumeClaim default\/data is missing/;
  const lost = run([create], [[volume], []]);
  assert.match(missing(run([create], [[volume], [volume]]), lost), text);
  // The operator is there again when the second step is at rest.
  const late = run([create], [[gadget, service], [gadget, service]]);
  const needed = run([create], [[gadget, service], [gadget, service, volume]]);
  assert.match(missing(needed, late), text);
});

test("An object that is left when the last primary is gone is an orphan", () => {
  const record = run([create], [[gadget, service], [service]]);
  const found = only(clean(record, "apply", "delete"));
  assert.equal(found.oracle, "orphan");
  assert.deepEqual(found.writes, [
    "missing: delete Service default/a",
    "create Service default/a",
  ]);
  const secret = checkedObject("Secret", "a");
  const kept = run([write("create Secret a")], [[gadget, secret], [secret]]);
  assert.deepEqual(clean(kept, "apply", "delete"), []);
});

test("A status of an older generation or with odd conditions is found", () => {
  const faulty = (status: JsonObject) =>
    clean(
      run([], [[
        checkedObject("Gadget", "a", { metadata: { generation: 2 }, status }),
      ]]),
      "apply",
    ).map(({ text }) => text);
  assert.deepEqual(faulty({ observedGeneration: 2 }), []);
  assert.match(
    faulty({ observedGeneration: 1 })[0] ?? "",
    /before the generation/,
  );
  const reconciling = { type: "Reconciling", status: "True" };
  assert.deepEqual(
    faulty({ observedGeneration: 1, conditions: [reconciling] }),
    [],
  );
  assert.match(
    faulty({ observedGeneration: 3, conditions: [reconciling] })[0] ?? "",
    /after the generation/,
  );
  const ready = { type: "Ready", status: "True", observedGeneration: 1 };
  assert.match(faulty({ conditions: [ready] })[0] ?? "", /older generation/);
  assert.match(
    faulty({ conditions: [{ type: "A", status: "yes" }] })[0] ?? "",
    /neither True, False nor Unknown/,
  );
});

test("Missing rights, unhandled errors and external actions are named", () => {
  const trace = [
    create,
    note("rejection", "boom"),
    note("forbidden", "list secrets"),
    note("external", "POST http://example.com/a"),
    note("external", "GET http://example.com/b"),
  ];
  const oracles = judged(run(trace, [[gadget, service]]));
  assert.deepEqual(oracles.map(({ oracle, text }) => `${oracle}: ${text}`), [
    "rejection: an error was not handled: boom",
    "rights: the operator may not list secrets",
    'external: "POST http://example.com/a" is done once outside the cluster, in the reference never',
  ]);
});

test("What a terminating namespace or a busy server refuses is no finding", () => {
  const refused = write("create Service b", { effect: "nothing", code: 403 });
  const terminating = { ...refused, reason: "NamespaceTerminating" };
  assert.deepEqual(
    judged(run([create, terminating], [[gadget, service]])),
    [],
  );
  assert.equal(
    only(judged(run([create, refused], [[gadget, service]]))).oracle,
    "rights",
  );
  const busy = Array.from({ length: 1_000 }, () => ({ ...refused, code: 429 }));
  assert.deepEqual(judged(run([create, ...busy], [[gadget, service]])), []);
});

test("External actions that may be repeated count once in a row", () => {
  const external = (...texts: readonly string[]) =>
    run([create, ...texts.map((text) => note("external", text))], [[
      gadget,
      service,
    ]]);
  const [put, remove] = [
    "PUT http://example.com/a",
    "DELETE http://example.com/a",
  ];
  const usual = external(put, remove, put);
  const repeated = external(put, put, remove, remove, put, put);
  assert.deepEqual(judged(repeated, { reference: usual }), []);
  const closed = external(put, remove, put, remove, put);
  const texts = judged(closed, { reference: usual }).map(({ text }) => text);
  // What is made once more after the removal is put right, the removal is not.
  assert.equal(texts.length, 1);
  assert.match(texts[0] ?? "", /^"DELETE .*" is done 2 times/);
  const left = judged(external(put, remove), { reference: external(put) });
  assert.equal(left.length, 1);
});

test("Fields of external actions that differ with the seed are not compared", () => {
  const sent = (method: string, ...bodies: readonly string[]) =>
    run(
      [
        create,
        ...bodies.map((body) => ({
          ...note("external", `${method} http://acme.test/a ${body}`),
          body,
        })),
      ],
      [[gadget, service]],
    );
  const user = (password: string, name = "ann") =>
    JSON.stringify({ user: { name, password } });
  const body = '{"user":{"name":"ann","password":"<differs>"}}';
  for (
    const [method, first, second, other, found] of [
      ["PUT", user("1"), user("2"), user("3"), []],
      ["POST", user("1"), user("2"), user("3"), []],
      ["PUT", "1", "2", "3", []],
      ["POST", user("1"), user("2"), user("3", "bob"), [
        `"POST http://acme.test/a ${body.replace("ann", "bob")}" is done once`,
      ]],
    ] as const
  ) {
    const usual = sent(method, first);
    const masked = differingPlaces(usual, sent(method, second));
    const titles = (record: RunRecord) =>
      judged(record, { reference: usual, masked }).map(({ text }) =>
        text.split(" outside")[0]
      );
    assert.deepEqual(titles(sent(method, other)), found);
  }
  const usual = sent("POST", user("1"));
  const masked = differingPlaces(usual, sent("POST", user("2")));
  assert.deepEqual([...masked], ["POST:http://acme.test .body.user.password"]);
  const twice = judged(sent("POST", user("3"), user("4")), {
    reference: usual,
    masked,
  });
  assert.match(only(twice).text, /password":"<differs>.* is done 2 times/);
});

test("What is made and removed in a step that usually makes nothing is spared", () => {
  const [made, removed] = [
    write("create Service b"),
    write("delete Service b"),
  ];
  const transient = run([create, made, removed], [[gadget, service]]);
  assert.deepEqual(judged(transient), []);
  const lasting = run([create, { ...made, step: -1 }, removed], [[
    gadget,
    service,
  ]]);
  const found = only(judged(lasting));
  assert.match(found.text, /^Service default\/b is deleted once/);
});

test("What is made once more and removed in a step is spared, the first is not", () => {
  const again = (uid: string) => [
    create,
    { ...create, uid: "again" },
    write("delete Service a", { uid }),
  ];
  const judgedAs = (uid: string) =>
    judged(run(again(uid), [[gadget, service]]));
  assert.deepEqual(judgedAs("again"), []);
  assert.match(only(judgedAs(create.uid)).text, /is deleted once/);
});

test("External actions after an edit by others and ignored ones are spared", () => {
  const text = "POST http://acme.test/order {}";
  const record = run([create, note("external", text)], [[gadget, service]]);
  assert.match(only(judged(record)).text, /is done once outside the cluster/);
  const masked = new Set(["POST http://acme.test/"]);
  assert.deepEqual(judged(record, { masked }), []);
  const plan = { scenario: "life", perturbations: [{ do: "edit" }] };
  assert.deepEqual(judged(record, { plan }), []);
});

test("Too many writes in a step and on an idle day are found", () => {
  const many = Array.from(
    { length: 400 },
    () => write("patch Service a", { effect: "nothing" }),
  );
  const record = run([create, ...many], [[gadget, service]]);
  assert.equal(only(judged(record)).oracle, "bounded");
  const idle = { duration: 86_400_000, writes: 1_000 };
  const late = run([create, write("patch Service a", { step: 1 })], [[
    gadget,
    service,
  ]], { idle });
  const found = only(clean(late, "apply"));
  assert.equal(found.oracle, "stays");
  assert.match(found.text, /1000 times in 24 hours in which nothing changes/);
});

test("Own invariants that do not hold are findings of their name", () => {
  const violations = [{ oracle: "always:one", text: "two leaders", step: 0 }];
  const record = run([create], [[gadget, service]], { violations });
  assert.equal(only(judged(record)).oracle, "always:one");
});

test("A state that depends on the path to it is found", () => {
  const sameAs = { scenario: "change", step: 0 };
  const other = checkedObject("Service", "a", {
    spec: { port: 80, old: true },
  });
  const changed = run([create], [[gadget, other]]);
  const options = {
    scenario: { ...scenario("apply"), sameAs },
    masked: new Set<string>(),
  };
  const found = only(judgePaths(reference, changed, options));
  assert.match(
    found.text,
    /differs after "change" from a direct creation: spec\.old$/,
  );
  assert.deepEqual(judgePaths(reference, reference, options), []);
  // A path on which the user was refused something leads elsewhere.
  const steps = changed.steps.map((step) => ({
    ...step,
    refused: { code: 403, causes: [] },
  }));
  assert.deepEqual(judgePaths(reference, { ...changed, steps }, options), []);
});

test("A part to which two objects give one name is found, unless a spec names it", () => {
  const second = checkedObject("Gadget", "b");
  const failure = note(
    "failed",
    'default/b: Error: Cannot own v1 Service default/a: another controller owns it, so choose another name: received owner v1 Gadget "a"',
    1,
  );
  const record = run([create, failure], [[gadget, service], [
    gadget,
    service,
    second,
  ]]);
  const judgedAs = (object: JsonObject, removal: Scenario["steps"] = []) =>
    judgeReference({
      scenario: {
        name: "share",
        known: 0,
        steps: [{ apply: gadget }, ...removal, { apply: object }],
      },
      reference: record,
      masked: new Set(),
      primaryKinds: new Set(["Gadget"]),
    });
  const found = only(judgedAs(second));
  assert.equal(found.oracle, "path");
  assert.equal(
    found.text,
    'v1 Service default/a is of two objects after "step 1", so that one of them fails',
  );
  assert.deepEqual(judgedAs({ ...second, spec: { target: "a" } }), []);
  assert.deepEqual(judgedAs(second, [{ delete: gadget }]), []);
});
