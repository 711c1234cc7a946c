import assert from "node:assert/strict";
import { test } from "node:test";
import { Operator } from "@coracle/operator/core";
import { ConfigMap, Endpoints, Secret, Service } from "@coracle/operator/kinds";
import {
  CheckSession,
  type Exploration,
  type Job,
  type Judgement,
  type SessionOptions,
} from "../../../dev/testing/check/check_session.ts";
import type { Perturbation } from "../../../dev/testing/check/plan.ts";
import type { RunRecord } from "../../../dev/testing/check/run_record.ts";
import { temporaryFolder, writeText } from "../../support/temporary_folder.ts";
import type {
  CheckStep,
  Scenario,
} from "../../../dev/testing/check/workload.ts";

const map = (text: string, name = "a") => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { namespace: "default", name },
  data: { text },
});

function life(...steps: readonly CheckStep[]): Scenario {
  return { name: "life", steps, known: 0 };
}
const [a, b] = [{ apply: map("a") }, { apply: map("b") }];

/** Session of an operator that copies ConfigMaps to Secrets. */
async function session(
  { elects = false, keeps = false, ...options }: Partial<SessionOptions> & {
    readonly elects?: boolean;
    /** Whether it leaves a Secret as it was first. */
    readonly keeps?: boolean;
  } = {},
): Promise<CheckSession> {
  return await CheckSession.open({
    operator(given) {
      const leaderElection = { name: "copies", namespace: "default" };
      const operator = new Operator({
        ...given,
        ...elects && { leaderElection },
      });
      operator.register(ConfigMap, {
        async reconcile({ metadata, data }, ctx) {
          const { name, namespace } = metadata;
          if (name.endsWith(".crt")) return;
          const key = { name, namespace };
          if (keeps && await ctx.client.find(Secret, key)) return;
          await ctx.apply(Secret, { metadata: key, stringData: data });
        },
      }, { owns: [Secret] });
      return operator;
    },
    seed: 1,
    simulate: false,
    ...options,
  });
}

async function run<Result>(
  of: CheckSession,
  job: Job,
): Promise<Result> {
  return await of.run(job) as Result;
}

test("A session keeps its last 32 reference runs by seed and steps", async () => {
  const of = await session();
  const reference = (scenario: Scenario, seed?: number) =>
    run<RunRecord>(of, {
      do: "reference",
      scenario: { ...scenario, name: "short" },
      ...seed !== undefined && { seed },
    });
  const first = await reference(life(a));
  assert.equal(await reference(life(a)), first);
  assert.notEqual(await reference(life(a), 2), first);
  assert.notEqual(await reference(life(b)), first);
  for (let seed = 3; seed < 32; seed++) await reference(life(a), seed);
  assert.equal(await reference(life(a)), first);
  await reference(life(a), 32);
  assert.notEqual(await reference(life(a)), first);
});

test("The seed of a reference run determines the UIDs of its objects", async () => {
  const of = await session();
  const uids = async (seed?: number) => {
    const { steps } = await of.reference(life(a), seed);
    return JSON.stringify(
      steps[0]?.objects.map((one) => Object(one["metadata"])["uid"]),
    );
  };
  assert.equal(await uids(), await uids(1));
  assert.notEqual(await uids(1), await uids(2));
});

test("A reference run is idle for a day or an hour, with a leader too", async () => {
  const idle = async (elects: boolean, name: string) => {
    const of = await session({ elects });
    const { idle } = await of.reference({ ...life(a), name });
    return idle.duration;
  };
  assert.equal(await idle(false, "life"), 86_400_000);
  assert.equal(await idle(false, "workload"), 86_400_000);
  assert.equal(await idle(false, "change-data"), 3_600_000);
  assert.equal(await idle(true, "life"), 86_400_000);
});

test("Undisturbed runs are judged alone, and by the state of another path", async () => {
  const of = await session({ keeps: true });
  const direct = {
    ...life(b),
    name: "direct",
    sameAs: { scenario: "change", step: 1 },
  };
  const other = { ...life(a, b), name: "change" };
  const clean = async (more: object) =>
    (await run<Judgement>(of, {
      do: "clean",
      scenario: direct,
      masked: [],
      ...more,
    })).violations.map(({ oracle }) => oracle);
  assert.deepEqual(await clean({}), []);
  assert.deepEqual(await clean({ other }), ["path"]);
  const masked = ["Secret .data.text"];
  assert.deepEqual(await clean({ other, masked }), []);
});

test("A judgement names the write, the event or the object of its plan", async () => {
  const of = await session({
    invariants: { always: { "Nothing exists": () => false } },
  });
  const target = { apiVersion: "v1", namespace: "default", name: "a" };
  const disturbed = async (...perturbations: readonly Perturbation[]) => {
    const job = { do: "plan", scenario: life(a), perturbations } as const;
    const found = await run<Judgement>(of, { ...job, masked: [] });
    assert.notEqual(found.sequence, "");
    assert.match(found.mermaid, /^sequenceDiagram/);
    return found.disturbed;
  };
  const lost = { do: "lost", write: 1 };
  assert.deepEqual(await disturbed(lost), ["apply Secret default/a"]);
  const deletion = { do: "delete", step: 0, kind: "Secret", ...target };
  assert.deepEqual(await disturbed(deletion), ["delete Secret default/a"]);
  const [event, ...others] = await disturbed({ do: "cut", event: 1 });
  assert.match(event ?? "", /^event ADDED ConfigMap /);
  assert.deepEqual(others, []);
  assert.deepEqual(await disturbed({ do: "late" }), []);
  // A schedule with a kill names the write of the kill.
  assert.deepEqual(await disturbed({ do: "schedule", choices: "a" }), []);
});

test("A judgement without violations has no sequence", async () => {
  const of = await session();
  const perturbations = [{ do: "lost", write: 1 }];
  const { cpu, ...rest } = await run<Judgement>(of, {
    do: "plan",
    scenario: life(a),
    perturbations,
    masked: [],
  });
  assert.ok(cpu > 0);
  assert.deepEqual(rest, {
    violations: [],
    sequence: "",
    mermaid: "",
    disturbed: [],
  });
});

test("A search that has no time left is not complete", async () => {
  const of = await session();
  const explore = (limit: number) =>
    run<Exploration>(of, {
      do: "explore",
      scenario: life(a),
      masked: [],
      limit,
    });
  const none = await explore(-1);
  assert.deepEqual([none.runs, none.complete], [0, false]);
  const all = await explore(60_000);
  assert.equal(all.complete, true);
  assert.deepEqual(all.found, []);
  assert.ok(all.runs > 1);
});

test("A session takes kinds and invariants from a file of options", async () => {
  const library = (path: string) =>
    new URL(`../../../${path}`, import.meta.url);
  const options = writeText(
    temporaryFolder(),
    "op.check.mjs",
    `import { defineKind } from "${library("mod.ts")}";
import { z } from "${library("node_modules/zod/index.js")}";
const names = { group: "a.io", version: "v1", kind: "Boat" };
export default {
  kinds: [defineKind({ ...names, spec: z.object({}) })],
  invariants: { eventually: { "Nothing is": () => false } },
};
`,
  );
  const of = await session({ options });
  assert.deepEqual(of.source.kinds.map(({ kind }) => kind), ["Boat"]);
  const { violations } = await of.reference(life(a));
  assert.deepEqual(violations.map(({ oracle }) => oracle), [
    "eventually:Nothing is",
  ]);
});

test("Services get endpoints in the runs of an operator that reads them", async () => {
  const served = async (reads: boolean) => {
    const of = await CheckSession.open({
      operator(given) {
        const operator = new Operator(given);
        operator.register(ConfigMap, {
          async reconcile({ metadata: { name, namespace }, data }, ctx) {
            if (name !== "a") return;
            const key = { name, namespace };
            await ctx.apply(Service, {
              metadata: key,
              spec: { selector: { app: name }, ports: [{ port: 80 }] },
            });
            const found = reads && data?.["reads"] !== undefined &&
              await ctx.client.find(Endpoints, key);
            if (found) await ctx.apply(Secret, { metadata: key });
          },
        }, { owns: [Service] });
        return operator;
      },
      seed: 1,
      simulate: true,
    });
    const steps = [
      { apply: { ...map("a"), data: {} } },
      { apply: { ...map("a"), data: { reads: "yes" } } },
    ];
    const scenario = { name: "life", steps, known: 0 };
    const first = await of.reference(scenario);
    const kinds = first.steps.at(-1)?.objects.map(({ kind }) => kind) ?? [];
    return ["Endpoints", "EndpointSlice", "Secret"].filter((kind) =>
      kinds.includes(kind)
    );
  };
  assert.deepEqual(await served(false), []);
  assert.deepEqual(await served(true), [
    "Endpoints",
    "EndpointSlice",
    "Secret",
  ]);
});
