import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import {
  type Context,
  defineKind,
  type ObjectOf,
  Operator,
  setStatus,
} from "@coracle/operator/core";
import { ConfigMap, Secret } from "@coracle/operator/kinds";
import type { JsonObject } from "../../../core/patch/json_value.ts";
import { checkOperator } from "../../../dev/testing/check/check_operator.ts";
import { MARK, withoutMark } from "../../../dev/testing/check/mark.ts";
import type { Perturbation } from "../../../dev/testing/check/plan.ts";
import type { TracedWrite } from "../../../dev/testing/check/run_record.ts";
import type { Case } from "../../../dev/testing/check/violation.ts";
import {
  checkedObject,
  clean,
  create,
  gadget,
  judged,
  note,
  run,
  service,
  write,
} from "./check_case.ts";

const CRASH: Perturbation = { do: "crash", write: 1, place: "after" };

type Values = readonly (readonly [
  value: string,
  uid?: string,
  kind?: string,
])[];

/** Run that writes these values, one after the other. */
function writing(values: Values, before: readonly string[] = []) {
  return run(
    values.map(([key, uid = "1", kind = "Secret"], at) =>
      write(`${at === 0 ? "create" : "apply"} ${kind} a`, {
        uid,
        body: { data: { key } },
      })
    ),
    [[gadget, checkedObject("Secret", "a")]],
    { before },
  );
}

/** Titles of what is found in a run that writes these values. */
function drawn(
  values: Values,
  more: Partial<Case> & { readonly do?: Perturbation } = {},
) {
  const { do: one = CRASH, ...rest } = more;
  return judged(writing(values), {
    reference: writing(values.slice(0, 1)),
    masked: new Set(["Secret .data.key", "ConfigMap .data.key"]),
    plan: { scenario: "life", perturbations: [one] },
    ...rest,
  }).map(({ text, oracle }) => `${oracle}: ${text}`);
}

test("A random value of a Secret that is drawn again is lost data", () => {
  assert.deepEqual(drawn([["one"], ["two"]]), [
    "extra-writes: Secret default/a gets another data.key, in the reference it keeps the first one: its data is lost",
  ]);
  assert.deepEqual(drawn([["one"], ["one"]]), []);
  // Another Secret of the same name has a value of its own.
  assert.deepEqual(drawn([["one"], ["two", "2"]]), []);
  assert.deepEqual(
    drawn([["one", "1", "ConfigMap"], ["two", "1", "ConfigMap"]]),
    [],
  );
});

test("A value is no lost data if it is ignored, due, or was renewed before", () => {
  const two = [["one"], ["two"]] as const;
  const field = new Set(["Secret .data.key"]);
  assert.deepEqual(drawn(two, { masked: new Set() }), []);
  assert.deepEqual(drawn(two, { ignored: field }), []);
  assert.deepEqual(drawn(two, { masked: new Set([...field, "Secret"]) }), []);
  assert.deepEqual(drawn(two, { do: { do: "clock", write: 1, ms: 1 } }), []);
  assert.deepEqual(drawn(two, { reference: writing(two) }), []);
  const given = writing(two.slice(0, 1), ["Secret default/a"]);
  assert.deepEqual(drawn(two, { reference: given }), []);
});

const ANNOTATE: Perturbation = {
  do: "annotate",
  step: 0,
  apiVersion: "v1",
  kind: "Service",
  namespace: "default",
  name: "a",
};

/** Titles of what is found where another writer has annotated a Service. */
function marked(metadata: object, ...notes: readonly string[]) {
  const found = checkedObject("Service", "a", {
    ...service,
    metadata: { ...metadata },
  });
  const disturbances = notes.map((text) => note("disturbance", text));
  return judged(run([create, ...disturbances], [[gadget, found]]), {
    plan: { scenario: "life", perturbations: [ANNOTATE] },
  }).map(({ text, oracle }) => `${oracle}: ${text}`);
}

test("An annotation or label of others that goes is found, and one that stays is not", () => {
  const done = "someone else: MODIFIED Service default/a";
  const { annotations, labels } = MARK;
  assert.deepEqual(marked({ annotations, labels }, done), []);
  assert.deepEqual(marked({ labels }, done), [
    'others: Service default/a has lost the annotations of others after "step 0"',
  ]);
  assert.deepEqual(marked({ annotations }, done), [
    'others: Service default/a has lost the labels of others after "step 0"',
  ]);
  // It was refused, or the object is another one.
  assert.deepEqual(marked({}), []);
  assert.deepEqual(marked({ annotations, labels, uid: "other" }, done), []);
  const other = { name: "a", labels: { app: "a" } };
  assert.deepEqual(
    withoutMark({
      metadata: {
        ...other,
        annotations,
        labels: { ...labels as object, app: "a" },
      },
    }),
    { metadata: other },
  );
});

const Shop = defineKind({
  group: "test.coracle.dev",
  version: "v1",
  kind: "Shop",
  spec: z.object({ size: z.int() }),
});
type Shop = ObjectOf<typeof Shop>;

/** Titles of what plans of a kind find in an operator for shops. */
async function titles(
  kind: "annotate" | "stale",
  reconcile: (shop: Shop, ctx: Context<Shop>) => Promise<void>,
): Promise<readonly string[]> {
  const shop = (size: number) => ({
    apiVersion: "test.coracle.dev/v1",
    kind: "Shop",
    metadata: { name: "a", namespace: "default" },
    spec: { size },
  });
  const { findings, coverage } = await checkOperator({
    kinds: [Shop],
    only: [kind],
    operator(cluster) {
      const operator = new Operator(cluster);
      operator.register(Shop, { reconcile }, { owns: [ConfigMap, Secret] });
      return operator;
    },
    workload: [{ apply: shop(1) }, { apply: shop(2) }],
  });
  assert.ok((coverage.byKind[kind] ?? 0) > 0, JSON.stringify(coverage));
  return findings.map(({ title }) => title);
}

test("An operator that replaces a part without what others added is found", async () => {
  assert.deepEqual(
    await titles("annotate", async ({ spec }, ctx) => {
      const data = { size: String(spec.size) };
      const part = await ctx.get(ConfigMap, "part");
      if (part === undefined) {
        await ctx.apply(ConfigMap, { metadata: { name: "part" }, data });
      } else if (part.data?.["size"] !== data.size) {
        const { annotations: _, ...metadata } = part.metadata;
        await ctx.replace(ConfigMap, { ...part, metadata, data });
      }
    }),
    [
      'ConfigMap default/part has lost the annotations of others after "apply Shop default/a"',
    ],
  );
  assert.deepEqual(
    await titles("annotate", async ({ spec }, ctx) => {
      const data = { size: String(spec.size) };
      await ctx.apply(ConfigMap, { metadata: { name: "part" }, data });
    }),
    [],
  );
});

test("An operator that draws a key again when its cache lags is found", async () => {
  const drawing = (isLive: boolean) => async (_: Shop, ctx: Context<Shop>) => {
    const at = { name: "keys", namespace: "default" };
    const kept = isLive
      ? await ctx.client.find(Secret, at)
      : await ctx.get(Secret, at.name);
    const key = kept?.data?.["key"] ?? btoa(crypto.randomUUID());
    await ctx.apply(Secret, { metadata: { name: at.name }, data: { key } });
  };
  assert.deepEqual(await titles("stale", drawing(false)), [
    "Secret default/keys gets another data.key, in the reference it keeps the first one: its data is lost",
  ]);
  assert.deepEqual(await titles("stale", drawing(true)), []);
});

test("What a new process changes for no reason is named, with its time", () => {
  const config = (at: string, name = "a") =>
    checkedObject("ConfigMap", name, { data: { at } });
  const [noon, later] = ["2026-01-02T12:00:00Z", "2026-01-02T12:05:00Z"];
  const apply = write("apply ConfigMap a", { effect: "changed" });
  const found = (
    before: readonly JsonObject[],
    after: readonly JsonObject[],
    { writes = [apply], idle = 0, known = [] }: {
      readonly writes?: readonly TracedWrite[];
      /** Number of changes in the idle day. */
      readonly idle?: number;
      readonly known?: readonly string[];
    } = {},
  ) => {
    const late = Array.from({ length: idle }, () => ({ ...apply, step: 1 }));
    const record = run([create, ...late], [[gadget, service]], {
      restart: { before, after, writes },
      before: known,
    });
    return clean(record, "apply").map(({ oracle, text }) =>
      `${oracle}: ${text}`
    );
  };
  const end = "when the operator starts again, though nothing has changed";
  assert.deepEqual(found([config(noon)], [config(later)]), [
    `stays: ConfigMap default/a gets another data.at ${end}`,
  ]);
  assert.deepEqual(found([], [config(noon)]), [
    `stays: ConfigMap default/a is created ${end}`,
  ]);
  assert.deepEqual(found([config(noon)], []), [
    `stays: ConfigMap default/a is deleted ${end}`,
  ]);
  const [before, after] = [[config(noon)], [config(later)]];
  assert.deepEqual(found(before, before), []);
  // The runs at the end of the longest interval explain two changes in a day.
  assert.equal(found(before, after, { idle: 3 }).length, 1);
  assert.deepEqual(found(before, after, { idle: 4 }), []);
  // Others changed it, or it was there before.
  assert.deepEqual(found(before, after, { writes: [] }), []);
  const nothing = { ...apply, effect: "nothing" } as const;
  assert.deepEqual(found(before, after, { writes: [nothing] }), []);
  assert.deepEqual(
    found(before, after, { known: ["ConfigMap default/a"] }),
    [],
  );
});

test("A status with the time of each run is found without a plan", async () => {
  const Clock = defineKind({
    group: "test.coracle.dev",
    version: "v1",
    kind: "Clock",
    spec: z.object({ size: z.int() }),
    status: z.object({ seen: z.string(), since: z.string() }).partial(),
  });
  const titles = async (...ignore: readonly string[]) => {
    const { findings } = await checkOperator({
      operator(options) {
        const operator = new Operator(options);
        operator.register(Clock, {
          reconcile({ status }, { clock }) {
            const seen = new Date(clock.wallTime()).toISOString();
            return setStatus({ seen, since: status?.since ?? seen });
          },
        });
        return operator;
      },
      kinds: [Clock],
      ignore,
      plans: 1,
      workload: [{
        apply: {
          apiVersion: "test.coracle.dev/v1",
          kind: "Clock",
          metadata: { name: "a", namespace: "default" },
          spec: { size: 1 },
        },
      }],
    });
    return findings.map(({ title }) => title);
  };
  assert.deepEqual(await titles(), [
    "Clock default/a gets another status.seen when the operator starts again, though nothing has changed",
  ]);
  assert.deepEqual(await titles("Clock .status.seen"), []);
});
