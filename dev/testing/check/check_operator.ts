/**
 * Check of an operator: a workload, a reference run, plans derived from it, and
 * oracles that judge the runs of the plans.
 *
 * @module
 */
import { milliseconds, type UntypedObject } from "@coracle/operator/client";
import { crdManifest } from "@coracle/operator/crd";
import {
  checkOptions,
  type JsonObject,
  kindText,
  type OptionRules,
  typeText,
} from "@coracle/operator/internal";
import type { CheckOptions, CheckReport } from "../check_options.ts";
import {
  CheckSession,
  differingPlaces,
  type Exploration,
  type Job,
  type JobResult,
  type Judgement,
  type SessionOptions,
} from "./check_session.ts";
import { derivePlans, PLAN_KINDS, type PlanKind } from "./derive_plans.ts";
import { examplesBeside } from "./example_files.ts";
import { exampleObjects, requireAccepted, scratchServer } from "./examples.ts";
import { optionsBeside, readOptions } from "./options_file.ts";
import { shellText } from "../shell_text.ts";
import { CALL_FAULTS, type CallFault } from "./perturbations.ts";
import {
  isDefinitionOf,
  type OperatorSource,
  pathOf,
  shownPath,
} from "./operator_source.ts";
import { type Plan, planText, readPlan } from "./plan.ts";
import { inTurns, kindOf, newestFirst } from "./plan_order.ts";
import { isAtRest, isRefused, type RunRecord, writesOf } from "./run_record.ts";
import { unusableScenarios, usableObjects } from "./unusable_values.ts";
import type { Violation } from "./violation.ts";
import {
  appliedKeys,
  type CheckStep,
  type Scenario,
  scenarios,
} from "./workload.ts";

type Finding = CheckReport["findings"][number];

/** Options of a check, including those that only the command line sets. */
export interface EngineOptions extends CheckOptions {
  /** Whether a finding ends the check. */
  readonly enough?: ((finding: Finding) => boolean | undefined) | undefined;
  /** Called after each plan. */
  readonly onProgress?: ((progress: Progress) => void) | undefined;
  /** Creates the runner of the jobs. By default jobs run in this process. */
  readonly runner?: ((settings: RunnerSettings) => Promise<Runner>) | undefined;
}

/** Progress of a check. */
export interface Progress {
  readonly phase: "reference" | "plans" | "schedules";
  readonly done: number;
  readonly total: number;
  readonly findings: number;
}

/** Settings of worker processes. */
export type RunnerSettings = Pick<
  SessionOptions,
  "definitions" | "options" | "seed" | "simulate"
>;

/** Runner of jobs, perhaps of several at the same time. */
export interface Runner {
  /** Maximum number of jobs that run at the same time. */
  readonly size: number;
  run(job: Job): Promise<JobResult>;
  close(): Promise<void>;
}

type Invariants = NonNullable<CheckOptions["invariants"]>;

const INVARIANT_RULES: OptionRules<Invariants> = {
  always: { type: "object?", check: checkInvariants },
  eventually: { type: "object?", check: checkInvariants },
};

function checkInvariants(
  invariants: NonNullable<Invariants["always"]>,
  subject: string,
): void {
  for (const [name, invariant] of Object.entries(invariants)) {
    if (typeof invariant === "function") continue;
    throw new TypeError(
      `Cannot read the options of ${subject}: the invariant "${name}" must be a function: received ${
        typeText(invariant)
      }`,
    );
  }
}

/** Checks that each step of a workload does one thing. */
function checkSteps(
  steps: NonNullable<CheckOptions["workload"]>,
  subject: string,
): void {
  for (const [at, step] of steps.entries()) {
    const fail = (why: string) => {
      throw new TypeError(
        `Cannot read the options of ${subject}: workload[${at}] ${why}`,
      );
    };
    const { settle: _settle, ...work } = Object(step) as Partial<typeof step>;
    const [[name, value] = [], another] = Object.entries(work);
    if (another || !/^(apply|patch|delete|wait)$/.test(String(name))) {
      fail(
        `must have one of apply, patch, delete and wait: received ${
          Object.keys(work).join(", ") || typeText(step)
        }`,
      );
    }
    const { apiVersion, kind } = Object(value) as Partial<UntypedObject>;
    if (name !== "wait" && !(apiVersion && kind)) {
      fail(`must have an apiVersion and a kind: received ${typeText(value)}`);
    }
  }
}

const RULES: OptionRules<EngineOptions> = {
  operator: "any",
  kinds: "array?",
  examples: "array?",
  workload: { type: "array?", check: checkSteps },
  plans: "count?",
  budget: "duration?",
  exhaustive: "boolean?",
  seed: "any?",
  only: "array?",
  ignore: "array?",
  replay: "name?",
  from: "name?",
  export: "name?",
  externals: "function?",
  invariants: { type: "object?", options: INVARIANT_RULES },
  enough: "function?",
  onProgress: "function?",
  runner: "function?",
};

/** Maximum numbers of writes and objects in an exhaustive search. */
const EXHAUSTIVE = { writes: 8, objects: 2 };
/** Number of scenarios whose reference runs are repeated with another seed. */
const MASKING_RUNS = 6;
/** Kinds whose pods are simulated. */
const SIMULATED =
  /^(Deployment|StatefulSet|DaemonSet|ReplicaSet|Job|CronJob|Pod)$/;

/**
 * Runs a check.
 *
 * @throws {TypeError | RangeError} If an option is unknown or invalid, or the file
 * creates no operator.
 * @throws {Error} If the operator does not run at all.
 */
export async function checkOperator(
  options: EngineOptions,
): Promise<CheckReport> {
  checkOptions(options, RULES, "a check");
  const { operator } = options;
  const file = typeof operator === "function"
    ? undefined
    : await optionsBeside(pathOf(operator));
  const beside = await readOptions(file);
  checkOptions({ operator, ...beside }, RULES, file ?? "a check");
  const given = Object.entries(options).filter(([, value]) =>
    value !== undefined
  );
  const all: EngineOptions = {
    ...beside,
    // Sessions import those for each run.
    externals: undefined,
    invariants: undefined,
    ...Object.fromEntries(given),
    operator,
  };
  for (const kind of options.only ?? []) {
    if (Object.hasOwn(PLAN_KINDS, kind) || kind === "none") continue;
    throw new RangeError(
      `Cannot check: "only" must name kinds of plans, ${
        Object.keys(PLAN_KINDS).join(", ")
      } or none: received "${kind}"`,
    );
  }
  return await new Check(all, file).run();
}

class Check {
  readonly #options: EngineOptions;
  /** File with some of the options, which every run imports for itself. */
  readonly #file: string | undefined;
  readonly #seed: number;
  #end: number;
  /** Time at which the reference runs end: half of the budget. */
  readonly #half: number;
  readonly #findings: Map<string, Finding> = new Map();
  readonly #byKind: Record<string, number> = {};
  readonly #unanswered: Set<string> = new Set();
  /** Durations of the reference runs in milliseconds, by scenario. */
  readonly #durations: Map<string, number> = new Map();
  /** Reference run of the first scenario, if no controllers are simulated. */
  #first: RunRecord | undefined;
  #masked: readonly string[] = [];
  /** Names of the scenarios whose random fields are not known, for lack of time. */
  readonly #uncompared: Set<string> = new Set();
  #runner: Runner | undefined;
  #done = 0;
  #unstable = 0;
  #cpu = 0;

  constructor(options: EngineOptions, file: string | undefined) {
    this.#options = options;
    this.#file = file;
    this.#seed = options.seed ?? 1;
    const budget = milliseconds(options.budget ?? "10m", "budget");
    this.#half = performance.now() + budget / 2;
    this.#end = this.#half + budget / 2;
  }

  async run(): Promise<CheckReport> {
    const { operator, kinds, from, export: name } = this.#options;
    const { invariants, externals } = this.#options;
    const objects = await this.#examples();
    // Those of a workload would come after the start of the operator.
    const applied = (this.#options.workload as readonly CheckStep[] ?? [])
      .flatMap((step) => "apply" in step ? [step.apply] : []);
    const definitions = [...objects ?? [], ...applied]
      .filter(({ kind }) => kind === "CustomResourceDefinition");
    const given = {
      operator,
      kinds,
      definitions,
      from,
      export: name,
      options: this.#file,
      seed: this.#seed,
    };
    const first = await CheckSession.open({
      ...given,
      simulate: false,
      invariants,
      externals,
    });
    const [unserved] = first.source.unserved;
    if (unserved !== undefined && this.#options.workload === undefined) {
      throw new Error(
        `Cannot check the operator: others define its kind ${
          kindText(unserved)
        }, so give the CustomResourceDefinition among the examples`,
      );
    }
    const all = await this.#scenarios(
      first,
      objects?.filter((one) =>
        !first.source.kinds.some((kind) => isDefinitionOf(one, kind))
      ),
    );
    const simulate = await this.#isSimulated(first, all);
    const settings = {
      definitions,
      options: this.#file,
      seed: this.#seed,
      simulate,
    };
    this.#runner = await this.#options.runner?.(settings) ??
      oneByOne(
        await CheckSession.open({ ...given, simulate, invariants, externals }),
      );
    try {
      return await this.#check(all, first.source);
    } finally {
      await this.#runner.close();
    }
  }

  /** Returns the given examples, or those beside the operator file. */
  async #examples(): Promise<readonly JsonObject[] | undefined> {
    const { operator, examples } = this.#options;
    const found = examples ??
      (typeof operator === "function"
        ? undefined
        : await examplesBeside(pathOf(operator)));
    return found as readonly object[] as readonly JsonObject[] | undefined;
  }

  async #scenarios(
    session: CheckSession,
    given: readonly JsonObject[] | undefined,
  ): Promise<readonly Scenario[]> {
    const { workload } = this.#options;
    const { source } = session;
    if (workload !== undefined) {
      const steps = workload as readonly CheckStep[];
      return [{ name: "workload", steps, known: 0 }];
    }
    const definitions = source.kinds.map((kind) => crdManifest(kind));
    const isGenerated = given === undefined || given.length === 0;
    const server = await scratchServer(source.kinds);
    try {
      const made = await exampleObjects({ given, source, server });
      const { accepts } = server;
      const found = isGenerated
        ? await usableObjects(made, {
          accepts,
          run: (steps) =>
            session.reference({ name: "examples", steps, known: 0 }),
        })
        : made;
      if (given !== undefined) await requireAccepted(found, source.kinds);
      if (found.length === 0) {
        throw new Error(
          "Cannot check the operator: no object for its kinds could be made from their schemas: give examples, such as in a YAML file beside it of the same name",
        );
      }
      const primaries = definitions.filter(({ spec }) =>
        source.primaries.some((kind) =>
          kind.group === spec.group && kind.kind === spec.names.kind
        )
      );
      return await scenarios(found, {
        definitions: primaries,
        accepts,
      });
    } finally {
      await server.close();
    }
  }

  /** Whether the operator writes objects with pods. */
  async #isSimulated(
    session: CheckSession,
    [first]: readonly Scenario[],
  ): Promise<boolean> {
    if (first === undefined) return false;
    const begin = performance.now();
    const run = await session.reference(first);
    this.#durations.set(first.name, performance.now() - begin);
    const isSimulated = run.trace.some((entry) =>
      entry.type === "write" && SIMULATED.test(entry.kind)
    );
    if (!isSimulated) this.#first = run;
    return isSimulated;
  }

  async #check(
    all: readonly Scenario[],
    source: OperatorSource,
  ): Promise<CheckReport> {
    const { replay, only, from } = this.#options;
    if (replay !== undefined) return await this.#replay(readPlan(replay), all);
    const references = await this.#references(all);
    const unusable = unusableScenarios(references, references.get(all[0]!));
    const isUsable = ({ name, sameAs }: Scenario) =>
      !unusable.has(sameAs?.scenario ?? name);
    if (this.#options.exhaustive) return await this.#exhaust(references);
    let pruned = 0;
    const seen = new Set<string>();
    const planned: Plan[] = [];
    const abouts = new Map<Plan, string>();
    for (const [scenario, run] of references) {
      // There is nothing to compare with where the reference never rests.
      if (scenario.sameAs !== undefined || !isAtRest(run)) continue;
      if (!isUsable(scenario)) continue;
      const derived = derivePlans(scenario, run, {
        seen,
        upgrades: from !== undefined,
        elects: source.elects,
        admits: source.admits,
      });
      pruned += derived.pruned;
      planned.push(...derived.plans);
      derived.plans.forEach((plan, at) => {
        abouts.set(plan, derived.abouts[at] ?? "");
      });
    }
    const wanted = planned.filter((plan) =>
      only === undefined || only.includes(kindOf(plan))
    );
    const chosen = inTurns(newestFirst(wanted, abouts))
      .slice(0, this.#options.plans);
    await this.#judgeClean([...references.keys()].filter(isUsable), all);
    const names = new Map(all.map((one) => [one.name, one]));
    await this.#inParallel(chosen, async (plan) => {
      if (!this.#fits(plan.scenario) || this.#uncompared.has(plan.scenario)) {
        return;
      }
      await this.#runPlan(plan, names.get(plan.scenario)!);
      this.#done++;
      this.#byKind[kindOf(plan)] = (this.#byKind[kindOf(plan)] ?? 0) + 1;
      this.#progress("plans", this.#done, chosen.length);
    });
    return this.#report({
      ...counted([...references.values()]),
      scenarios: all.length,
      notRun: all.length - references.size,
      unsettled: [...references.values()].filter((run) => !isAtRest(run))
        .length,
      uncompared: this.#uncompared.size,
      refused: [...references].filter(([one, { steps }]) =>
        isRefused(steps) || !isUsable(one)
      ).length,
      planned: wanted.length,
      pruned,
    });
  }

  /** Runs every schedule of each scenario that is small enough. */
  async #exhaust(
    references: ReadonlyMap<Scenario, RunRecord>,
  ): Promise<CheckReport> {
    const small = [...references].filter(([scenario, run]) =>
      scenario.sameAs === undefined && isSmall(scenario, run)
    ).map(([scenario]) => scenario);
    if (small.length === 0) {
      throw new Error(
        `Cannot run all schedules: each scenario has more than ${EXHAUSTIVE.writes} writes or ${EXHAUSTIVE.objects} objects: give a smaller workload`,
      );
    }
    const all = [...references.keys()];
    await this.#judgeClean(all, all);
    const sum = { schedules: 0, runs: 0, states: 0 };
    let complete = true;
    let waiting = small.length;
    await this.#inParallel(small, async (scenario) => {
      if (this.#uncompared.has(scenario.name)) {
        waiting--;
        complete = false;
        return;
      }
      const left = Math.max(this.#end - performance.now(), 0);
      // Each scenario leaves a share of the time to those after it.
      const limit = Math.min(left, left * this.#runner!.size / waiting--);
      const masked = this.#masked;
      const job = { do: "explore", scenario, masked, limit } as const;
      const explored = await this.#runner!.run(job) as Exploration;
      sum.schedules += explored.schedules;
      sum.runs += explored.runs;
      sum.states += explored.states;
      this.#cpu += explored.cpu;
      complete &&= explored.complete;
      for (const { choices, judgement } of explored.found) {
        const plan = {
          scenario: scenario.name,
          perturbations: [{ do: "schedule", choices }],
        };
        this.#add(plan, judgement, judgement.violations.slice(0, 1));
      }
      this.#progress("schedules", small.length - waiting, small.length);
    });
    this.#done = sum.runs;
    const left = all.filter((one) => one.sameAs === undefined).length;
    return this.#report({
      ...counted([...references.values()]),
      scenarios: all.length,
      uncompared: this.#uncompared.size,
      planned: sum.runs,
      pruned: 0,
      exhaustive: {
        ...sum,
        scenarios: small.length,
        leftOut: left - small.length,
        complete,
      },
    });
  }

  #report(
    coverage: Omit<
      CheckReport["coverage"],
      "byKind" | "unstable" | "unanswered" | "cpu"
    >,
  ): CheckReport {
    return {
      plans: this.#done,
      findings: [...this.#findings.values()].sort((a, b) =>
        rankOf(a) - rankOf(b)
      ),
      coverage: {
        ...coverage,
        byKind: Object.fromEntries(
          Object.keys(PLAN_KINDS).flatMap((kind) =>
            this.#byKind[kind] === undefined ? [] : [[kind, this.#byKind[kind]]]
          ),
        ),
        unstable: this.#unstable,
        unanswered: [...this.#unanswered],
        cpu: Math.round(this.#cpu),
      },
    };
  }

  /** Executes the reference runs, and masks fields that depend on the seed. */
  async #references(
    all: readonly Scenario[],
  ): Promise<ReadonlyMap<Scenario, RunRecord>> {
    const runs = new Map<Scenario, RunRecord>();
    const masked = new Set<string>();
    let done = 0;
    await this.#inParallel(all, async (scenario) => {
      const begin = performance.now();
      const isLate = begin > this.#half;
      if (runs.size > 0 && isLate) return;
      const job = { do: "reference", scenario } as const;
      const known = isLate && scenario === all[0] ? this.#first : undefined;
      const run = known ?? await this.#runner!.run(job) as RunRecord;
      runs.set(scenario, run);
      if (known === undefined) {
        this.#durations.set(scenario.name, performance.now() - begin);
      }
      this.#cpu += run.cpu;
      for (const text of run.unanswered) this.#unanswered.add(text);
      if (all.indexOf(scenario) < MASKING_RUNS) {
        if (this.#fits(scenario.name)) {
          const seed = this.#seed + 1;
          const other = await this.#runner!.run({ ...job, seed });
          for (const name of differingPlaces(run, other as RunRecord)) {
            masked.add(name);
          }
        } else this.#uncompared.add(scenario.name);
      }
      this.#progress("reference", ++done, all.length);
    });
    this.#masked = [...masked, ...this.#options.ignore ?? []];
    // The later scenarios rely on what the first ones show.
    if (this.#uncompared.size > 0) {
      for (const scenario of all.slice(MASKING_RUNS)) {
        if (runs.has(scenario)) this.#uncompared.add(scenario.name);
      }
    }
    return new Map(all.flatMap((scenario) => {
      const run = runs.get(scenario);
      return run === undefined ? [] : [[scenario, run]];
    }));
  }

  /** Whether the budget has the time for another run of a scenario. */
  #fits(scenario: string): boolean {
    const duration = this.#durations.get(scenario) ?? 0;
    return performance.now() + duration <= this.#end;
  }

  /** Judges and compares the reference runs. */
  async #judgeClean(
    judged: readonly Scenario[],
    all: readonly Scenario[],
  ): Promise<void> {
    const names = new Map(all.map((one) => [one.name, one]));
    await this.#inParallel(judged, async (scenario) => {
      if (performance.now() > this.#end) return;
      const other = scenario.sameAs && names.get(scenario.sameAs.scenario);
      const plan = { scenario: scenario.name, perturbations: [] };
      const isUncompared = [scenario, other].some((one) =>
        one && this.#uncompared.has(one.name)
      );
      if (isUncompared && other) return;
      const masked = isUncompared ? undefined : this.#masked;
      const { ignore: ignored } = this.#options;
      const job: Job = { do: "clean", scenario, other, masked, ignored };
      const judgement = await this.#runner!.run(job) as Judgement;
      this.#add(plan, judgement, judgement.violations);
    });
  }

  /** Runs a plan, and a second time to confirm a new finding. */
  async #runPlan(plan: Plan, scenario: Scenario): Promise<void> {
    const { perturbations } = plan;
    const job: Job = {
      do: "plan",
      scenario,
      perturbations,
      masked: this.#masked,
      ignored: this.#options.ignore,
    };
    const judged = await this.#runner!.run(job) as Judgement;
    this.#cpu += judged.cpu;
    const [first] = judged.violations;
    if (first === undefined) return;
    if (!this.#findings.has(first.signature)) {
      const again = await this.#runner!.run(job) as Judgement;
      const isStable = again.violations.some(({ signature }) =>
        signature === first.signature
      );
      if (!isStable) {
        this.#unstable++;
        return;
      }
    }
    // The others follow from the first.
    this.#add(plan, judged, [first]);
  }

  async #replay(
    plan: Plan,
    all: readonly Scenario[],
  ): Promise<CheckReport> {
    const scenario = all.find(({ name }) => name === plan.scenario);
    if (scenario === undefined) {
      throw new RangeError(
        `Cannot replay the plan: its scenario must be one of ${
          all.map(({ name }) => name).join(", ")
        }: received "${plan.scenario}"`,
      );
    }
    // One plan takes the time that it needs.
    this.#end = Infinity;
    const references = await this.#references([scenario]);
    if (plan.perturbations.length > 0) await this.#runPlan(plan, scenario);
    else await this.#judgeClean([scenario], all);
    this.#done = 1;
    return this.#report({
      ...counted([...references.values()]),
      scenarios: 1,
      planned: 1,
      pruned: 0,
    });
  }

  #add(
    plan: Plan,
    judged: Judgement,
    violations: readonly Violation[],
  ): void {
    for (const violation of violations) {
      const { signature } = violation;
      const text = planText(plan);
      const finding: Finding = {
        oracle: violation.oracle,
        title: violation.text,
        plan: text,
        disturbance: disturbanceText(plan, judged.disturbed),
        writes: [...new Set([...judged.disturbed, ...violation.writes])],
        diff: violation.diff,
        sequence: judged.sequence,
        mermaid: judged.mermaid,
        replay: this.#replayCommand(text),
        plans: 1,
        also: [],
      };
      const known = this.#findings.get(signature);
      this.#findings.set(
        signature,
        known === undefined ? finding : merged(known, finding),
      );
      if (this.#options.enough?.(finding)) this.#end = -Infinity;
    }
  }

  #replayCommand(plan: string): string {
    const { operator } = this.#options;
    const seed = this.#seed === 1 ? "" : ` --seed ${this.#seed}`;
    return typeof operator === "function"
      ? `checkOperator({ …, seed: ${this.#seed}, replay: ${
        JSON.stringify(plan)
      } })`
      : `npx coracle check ${shownPath(operator)}${seed} --replay ${
        shellText(plan)
      }`;
  }

  #progress(phase: Progress["phase"], done: number, total: number): void {
    const findings = this.#findings.size;
    this.#options.onProgress?.({ phase, done, total, findings });
  }

  async #inParallel<T>(
    all: readonly T[],
    work: (one: T) => Promise<void>,
  ): Promise<void> {
    const waiting = all.values();
    const lane = async () => {
      for (const one of waiting) await work(one);
    };
    await Promise.all(Array.from({ length: this.#runner!.size }, lane));
  }
}

function oneByOne(session: CheckSession): Runner {
  return {
    size: 1,
    run: (job) => session.run(job),
    close: () => Promise.resolve(),
  };
}

/** Merges equal findings: the more direct plan, and one of each other kind. */
function merged(a: Finding, b: Finding): Finding {
  const [best, other] = rankOf(b) < rankOf(a) ? [b, a] : [a, b];
  const plans = new Map(
    [...b.also, b.plan, ...a.also, a.plan, best.plan].map((plan) => [
      kindOf(readPlan(plan)),
      plan,
    ]),
  );
  plans.delete(kindOf(readPlan(best.plan)));
  return {
    ...best,
    plans: best.plans + other.plans,
    also: [...plans.values()],
  };
}

/** Counts the writes and events of runs. */
function counted(
  runs: readonly RunRecord[],
): { readonly writes: number; readonly events: number } {
  const all = runs.flatMap(({ trace }) => trace);
  const count = (type: string) => all.filter((one) => one.type === type).length;
  return { writes: count("write"), events: count("event") };
}

function isSmall(scenario: Scenario, run: RunRecord): boolean {
  const writes = writesOf(run).filter(({ step }) => step >= scenario.known);
  const objects = new Set(appliedKeys(scenario));
  return writes.length <= EXHAUSTIVE.writes &&
    objects.size <= EXHAUSTIVE.objects;
}

/** Oracles that compare the end states of two runs without faults. */
const COMPARED_PATHS = new Set(["path", "orphan"]);

/**
 * Rank of a finding in a report: first findings without a disturbance, then
 * those by a disturbance of one write, and last those that only compare states.
 */
function rankOf({ plan, oracle }: Finding): number {
  const [one] = readPlan(plan).perturbations;
  const kinds = Object.keys(PLAN_KINDS);
  if (one === undefined) {
    return COMPARED_PATHS.has(oracle) ? 2 * kinds.length : -1;
  }
  const at = kinds.indexOf(one.do);
  const isAtOne = one["write"] !== undefined || one["call"] !== undefined;
  return isAtOne ? at : kinds.length + at;
}

/** Describes the disturbances of a plan in one sentence. */
function disturbanceText(
  { perturbations }: Plan,
  disturbed: readonly string[],
): string {
  if (perturbations.length === 0) return "nothing is disturbed";
  return perturbations.map((one, at) => {
    if (one.do === "schedule") {
      const killed = disturbed.length === 0
        ? ""
        : `, and the operator is killed at "${disturbed[0]}"`;
      return `deliveries and writes have another order${killed}`;
    }
    const what = PLAN_KINDS[one.do as PlanKind] ?? one.do;
    const where = disturbed[at];
    const how = CALL_FAULTS[one["how"] as CallFault];
    const place = how !== undefined
      ? `, ${how}`
      : typeof one["place"] === "string"
      ? {
        before: ", before the server has it",
        unanswered: ", after the server has done it, without an answer",
        after: ", after its answer",
      }[one["place"]] ?? ""
      : "";
    return `${what}${where === undefined ? "" : `: ${where}`}${place}`;
  }).join("; then ");
}
