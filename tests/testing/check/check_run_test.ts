import assert from "node:assert/strict";
import { test } from "node:test";
import type { CheckOptions } from "@coracle/dev";
import { type Duration, noUpdate, Operator } from "@coracle/operator/core";
import { ConfigMap, Secret } from "@coracle/operator/kinds";
import { runScenario } from "../../../dev/testing/check/check_run.ts";
import { operatorSource } from "../../../dev/testing/check/operator_source.ts";
import type { Perturbation } from "../../../dev/testing/check/plan.ts";
import {
  notesOf,
  type RunRecord,
  writesOf,
  writeText,
} from "../../../dev/testing/check/run_record.ts";
import type { CheckStep } from "../../../dev/testing/check/workload.ts";

const map = (data: Record<string, string>, name = "a") => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { namespace: "default", name },
  data,
});

/** Runs an operator that copies ConfigMaps to Secrets, and keeps them so. */
async function copied(
  steps: readonly CheckStep[],
  { plan = [], keeps = true, every, ...more }: {
    readonly plan?: readonly Perturbation[];
    /** Whether it restores a Secret that others change. */
    readonly keeps?: boolean;
    readonly invariants?: CheckOptions["invariants"];
    readonly idle?: number;
    readonly externals?: CheckOptions["externals"];
    /** Period in which it changes the Secret. */
    readonly every?: Duration;
    readonly reconcile?: (number: number) => Promise<unknown>;
  } = {},
): Promise<RunRecord> {
  let runs = 0;
  const { reconcile, ...setup } = more;
  const source = await operatorSource((given) => {
    const operator = new Operator(given);
    operator.register(ConfigMap, {
      async reconcile({ metadata, data }, ctx) {
        const { name, namespace } = metadata;
        if (name.endsWith(".crt")) return undefined;
        await reconcile?.(++runs);
        const at = every === undefined ? {} : { at: `${ctx.clock.now()}` };
        const stringData = { ...data, ...at };
        const wanted = { metadata: { name, namespace }, stringData };
        if (keeps) await ctx.apply(Secret, wanted);
        else await ctx.client.create(Secret, wanted).catch(() => {});
        return every === undefined
          ? undefined
          : noUpdate().rescheduleAfter(every);
      },
    }, keeps ? { owns: [Secret] } : {});
    return operator;
  });
  return await runScenario({ name: "life", steps, known: 0 }, plan, {
    source,
    seed: 1,
    simulate: false,
    ...setup,
  });
}

const DATA = { text: "a", number: "12" };

test("Custom invariants that do not hold are noted once, with their step", async () => {
  const seen: unknown[] = [];
  const { violations } = await copied([
    { apply: map(DATA) },
    { apply: map({ ...DATA, text: "b" }) },
  ], {
    invariants: {
      always: {
        "No Secret": ({ list }) => list("Secret").length === 0,
        "It holds": ({ list }) => list("Secret").length < 2,
        "No b": ({ list }) =>
          !JSON.stringify(list("ConfigMap")).includes('"text":"b"'),
        "It fails": () => {
          throw new Error("broken");
        },
      },
      eventually: {
        "Two": ({ list }) =>
          list("ConfigMap").some((one) =>
              JSON.stringify(one).includes('"text":"b"')
            )
            ? "there is b"
            : undefined,
        "No Secret": ({ list }) => void seen.push(list("Secret").length),
      },
    },
  });
  const start = "a custom invariant does not hold: ";
  assert.deepEqual(
    violations.map(({ oracle, text, step }) => [
      oracle,
      text.slice(start.length),
      step,
    ]).toSorted(),
    [
      ["always:It fails", "It fails: broken", 0],
      ["always:No Secret", "No Secret", 0],
      ["always:No b", "No b", 1],
      ["eventually:Two", "Two: there is b", 1],
    ],
  );
  assert.deepEqual(seen.slice(-2), [1, 1]);
});

test("A step that the server refuses is no error, and is followed by the next", async () => {
  const refused = {
    ...map({}),
    metadata: { name: "A_B", namespace: "default" },
  };
  const { steps } = await copied([
    { apply: refused },
    { delete: map({}, "missing") },
    { apply: map(DATA) },
  ]);
  assert.deepEqual(steps.map(({ quiet }) => quiet), [true, true, true]);
  assert.ok(
    steps[2]?.objects.some(({ kind }) => kind === "Secret"),
  );
});

test("A step patches the status too, as another controller writes it", async () => {
  const { apiVersion, kind, metadata } = BUDGET;
  const status = { disruptionsAllowed: 1 };
  const { steps } = await copied([
    { apply: BUDGET },
    {
      patch: { apiVersion, kind, metadata, spec: { minAvailable: 2 }, status },
    },
  ]);
  const [found] = steps[1]!.objects.filter((one) =>
    one["kind"] === kind
  ) as unknown as readonly { spec: object; status: object }[];
  assert.deepEqual(found?.spec, { ...BUDGET.spec, minAvailable: 2 });
  assert.partialDeepStrictEqual(found?.status, status);
});

test("A step patches the status of a kind without a subresource for it", async () => {
  const group = "plain.coracle.dev";
  const plain = {
    apiVersion: `${group}/v1`,
    kind: "Plain",
    metadata: { namespace: "default", name: "a" },
  };
  const schema = {
    type: "object",
    properties: {
      status: { type: "object", properties: { phase: { type: "string" } } },
    },
  };
  const version = { served: true, storage: true };
  const { steps } = await copied([
    {
      apply: {
        apiVersion: "apiextensions.k8s.io/v1",
        kind: "CustomResourceDefinition",
        metadata: { name: `plains.${group}` },
        spec: {
          group,
          names: { plural: "plains", kind: "Plain" },
          scope: "Namespaced",
          versions: [{
            name: "v1",
            ...version,
            schema: { openAPIV3Schema: schema },
          }],
        },
      },
    },
    { apply: plain },
    { patch: { ...plain, status: { phase: "Done" } } },
  ]);
  assert.equal(steps[2]?.refused, undefined);
  const found = steps[2]?.objects.find(({ kind }) => kind === "Plain");
  assert.deepEqual(found?.["status"], { phase: "Done" });
});

const BUDGET = {
  apiVersion: "policy/v1",
  kind: "PodDisruptionBudget",
  metadata: { namespace: "default", name: "a" },
  spec: { minAvailable: 1, selector: { matchLabels: { app: "web" } } },
};

for (
  const [field, value, given] of [
    ["data/text", "a-x", map(DATA)],
    ["data/number", "13", map(DATA)],
    ["immutable", true, { ...map(DATA), immutable: false }],
    ["spec/minAvailable", 2, BUDGET],
    ["metadata/labels/app", "web-x", {
      ...map(DATA),
      metadata: { ...map({}).metadata, labels: { app: "web" } },
    }],
    // There is no such field to change.
    ["data/none", undefined, map(DATA)],
  ] as const
) {
  test(`Someone else changes the field ${field} to another value`, async () => {
    const { apiVersion, kind } = given;
    const target = { apiVersion, kind, namespace: "default", name: "a" };
    // Another object comes before it.
    const { steps } = await copied([
      { apply: map({}, "0") },
      { apply: given },
    ], { keeps: false, plan: [{ do: "edit", step: 1, ...target, field }] });
    const valueIn = (object: unknown) =>
      field.split("/").reduce<unknown>(
        (inner, part) => Object(inner)[part],
        object,
      );
    const changed = steps[1]?.objects.find((one) =>
      one["kind"] === kind && Object(one["metadata"])["name"] === "a"
    );
    assert.deepEqual(valueIn(changed), value);
    const other = steps[1]?.objects.find((one) =>
      one["kind"] === "ConfigMap" && Object(one["metadata"])["name"] === "0"
    );
    assert.equal(valueIn(other), undefined);
  });
}

test("Someone else deletes an object after its step, which the operator restores", async () => {
  const target = { apiVersion: "v1", namespace: "default", name: "a" };
  const record = await copied(
    [{ apply: map(DATA) }, { apply: map({ ...DATA, text: "b" }) }],
    { plan: [{ do: "delete", step: 1, kind: "Secret", ...target }] },
  );
  assert.deepEqual(
    notesOf(record, "disturbance").map(({ text, step }) => `${step} ${text}`),
    ["1 someone else: DELETED Secret default/a"],
  );
  const created = writesOf(record).filter(({ effect }) => effect === "created");
  assert.deepEqual(created.map((one) => `${one.step} ${writeText(one)}`), [
    "0 apply Secret default/a",
    "1 apply Secret default/a",
  ]);
});

test("Idle time is that at the end, and counts the writes of an operator", async () => {
  const record = await copied([{ apply: map(DATA) }], { idle: 3_600_000 });
  assert.deepEqual(record.idle, { duration: 3_600_000, writes: 0, reads: {} });
  assert.deepEqual(record.steps.map(({ text, writes }) => [text, writes]), [
    ["apply ConfigMap default/a", 1],
  ]);
});

test("A failed run, and the requests of a run, are in its trace", async () => {
  const record = await copied([{ apply: map(DATA) }], {
    async reconcile(number) {
      if (number === 1) throw new Error("first\nsecond");
      await fetch("http://none.test/", {
        method: "POST",
        body: "x".repeat(300),
      })
        .catch(() => {});
    },
  });
  assert.deepEqual(notesOf(record, "failed").map(({ text }) => text), [
    "default/a: Error: first",
  ]);
  const [call] = notesOf(record, "external");
  assert.equal(call?.text, `POST http://none.test/ ${"x".repeat(200)}`);
  assert.equal(call.body?.length, 300);
  assert.deepEqual(record.unanswered, ["POST http://none.test/"]);
  const answered = await copied([{ apply: map(DATA) }], {
    reconcile: () => fetch("http://here.test/"),
    externals: () => Promise.resolve(new Response("here")),
  });
  assert.deepEqual(answered.unanswered, []);
});

test("Idle time counts the writes of an operator that acts by itself", async () => {
  const { idle } = await copied([{ apply: map(DATA) }], {
    every: "20m",
    idle: 3 * 3_600_000,
  });
  assert.equal(idle.writes, 9);
});

test("What the cluster does itself, and what is no failure, has no note", async () => {
  const record = await copied([
    { apply: map(DATA) },
    { delete: map({}) },
  ]);
  const { objects = [] } = record.steps[1] ?? {};
  assert.ok(!objects.some(({ kind }) => kind === "Secret"));
  assert.deepEqual(notesOf(record, "disturbance"), []);
  assert.deepEqual(notesOf(record, "failed"), []);
});

test("A write has the name in its body, and no code without an answer", async () => {
  const record = await copied([{ apply: map(DATA) }], {
    keeps: false,
    plan: [{ do: "lost", write: 1 }],
  });
  const [first] = writesOf(record);
  assert.ok(first !== undefined);
  assert.equal(writeText(first), "create Secret default/a");
  const { code, disturbed, effect } = first;
  assert.deepEqual([code, disturbed, effect], [0, true, "created"]);
});

test("A step that is no object of the API fails the run", async () => {
  const step = { apply: { apiVersion: "v1", kind: "ConfigMap" } };
  await assert.rejects(copied([step]), TypeError);
});
