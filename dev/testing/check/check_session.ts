/**
 * Session of runs of one operator, in this process or in a worker: it keeps
 * reference runs, and judges the runs of plans against them.
 *
 * @module
 */
import { runScenario, type RunSetup } from "./check_run.ts";
import type { JsonObject } from "@coracle/operator/internal";
import type { CheckOptions } from "../check_options.ts";
import { judge, judgePaths, judgeReference } from "./oracles.ts";
import { type OperatorSource, operatorSource } from "./operator_source.ts";
import { callDifferences } from "./calls.ts";
import { readOptions } from "./options_file.ts";
import { Explorer, ScheduleGraph } from "./explorer.ts";
import { type Perturbation, SHIFTS } from "./plan.ts";
import {
  eventsOf,
  isAtRest,
  notesOf,
  type RunRecord,
  writesOf,
  writeText,
} from "./run_record.ts";
import { continued } from "./resting_state.ts";
import type { Recording } from "./resumption.ts";
import { sequenceDiagram, sequenceText } from "./sequence.ts";
import { clusterState, differenceName, stateDifferences } from "./state.ts";
import type { Violation } from "./violation.ts";
import type { Scenario } from "./workload.ts";

/** Options of a session: the operator, and the settings that its runs share. */
export interface SessionOptions extends
  Pick<
    CheckOptions,
    "operator" | "kinds" | "from" | "invariants" | "externals"
  > {
  /** CustomResourceDefinitions not defined by the operator; plain data. */
  readonly definitions?: readonly JsonObject[] | undefined;
  /** Name of the export that is the operator. */
  readonly export?: string | undefined;
  /** File with defaults for the options that are not given. */
  readonly options?: string | undefined;
  readonly seed: number;
  readonly simulate: boolean;
}

/** Job that a session performs; plain data. */
export type Job =
  /** Reference run. */
  | {
    readonly do: "reference";
    readonly scenario: Scenario;
    /** Seed of the run. Defaults to that of the session. */
    readonly seed?: number;
  }
  /** Oracles for the reference run alone. */
  | {
    readonly do: "clean";
    readonly scenario: Scenario;
    /** Other scenario, which must lead to the same state. */
    readonly other?: Scenario | undefined;
    /** Undefined if random fields are not known, so that states are not compared. */
    readonly masked: readonly string[] | undefined;
    /** Those of the masked names that the user has given. */
    readonly ignored?: readonly string[] | undefined;
  }
  /** Run of a plan. */
  | {
    readonly do: "plan";
    readonly scenario: Scenario;
    readonly perturbations: readonly Perturbation[];
    readonly masked: readonly string[];
    /** Those of the masked names that the user has given. */
    readonly ignored?: readonly string[] | undefined;
  }
  /** Runs of all schedules. */
  | {
    readonly do: "explore";
    readonly scenario: Scenario;
    readonly masked: readonly string[];
    /** Time limit in milliseconds. */
    readonly limit: number;
  };

/** Result of running all schedules of a scenario; plain data. */
export interface Exploration {
  readonly schedules: number;
  /** Number of runs; equal states are searched only once. */
  readonly runs: number;
  /** Number of states with more than one possible continuation. */
  readonly states: number;
  /** Whether all schedules ran within the time limit. */
  readonly complete: boolean;
  /** Runs with violations, with the choices of their schedules. */
  readonly found: readonly {
    readonly choices: string;
    readonly judgement: Judgement;
  }[];
  readonly cpu: number;
}

export type JobResult = RunRecord | Judgement | Exploration;

/** Judgement of a run by the oracles. */
export interface Judgement {
  readonly violations: readonly Violation[];
  /** Sequence of writes and events, if there are violations. */
  readonly sequence: string;
  readonly mermaid: string;
  /** Writes at which the plan intervened. */
  readonly disturbed: readonly string[];
  /** CPU time in milliseconds. */
  readonly cpu: number;
}

/** Idle time at the end of reference runs, in milliseconds. */
const IDLE_MS = 24 * 3_600_000;
const HOUR_MS = 3_600_000;
/** Number of reference runs that are kept. */
const MAX_KEPT = 32;

export class CheckSession {
  readonly source: OperatorSource;
  readonly #options: SessionOptions;
  readonly #references: Map<string, Recording> = new Map();
  /** States at rest that lead to no finding, by scenario. */
  readonly #known: Map<string, Set<string>> = new Map();
  /** Names of the scenarios in which the operator reads endpoints. */
  readonly #withEndpoints: Set<string> = new Set();

  private constructor(source: OperatorSource, options: SessionOptions) {
    this.source = source;
    this.#options = options;
  }

  /**
   * Opens a session.
   *
   * @throws {TypeError} If a file creates no operator.
   */
  static async open(options: SessionOptions): Promise<CheckSession> {
    const file = await readOptions(options.options);
    const { kinds = file.kinds, externals = file.externals } = options;
    const source = await operatorSource(options.operator, {
      ...options,
      kinds,
      externals,
    });
    return new CheckSession(source, options);
  }

  /** Performs a job. */
  async run(job: Job): Promise<JobResult> {
    switch (job.do) {
      case "reference":
        return await this.reference(job.scenario, job.seed);
      case "clean":
        return await this.#clean(job);
      case "plan":
        return await this.#plan(job);
      case "explore":
        return await this.#explore(job);
    }
  }

  /** Returns the reference run of a scenario; the last ones are kept. */
  async reference(
    scenario: Scenario,
    seed: number = this.#options.seed,
  ): Promise<RunRecord> {
    return (await this.#recording(scenario, seed)).run;
  }

  async #recording(
    scenario: Scenario,
    seed: number = this.#options.seed,
  ): Promise<Recording> {
    const key = `${seed} ${JSON.stringify(scenario)}`;
    const known = this.#references.get(key);
    if (known !== undefined) return known;
    // One idle day is enough.
    const isFirst = scenario.name === "life" || scenario.name === "workload";
    const idle = isFirst ? IDLE_MS : HOUR_MS;
    const recorded = (recording: Recording) =>
      void this.#references.set(key, recording);
    await this.#runScenario(scenario, [], {
      seed,
      idle,
      restarts: isFirst,
      recorded,
    });
    const made = this.#references.get(key) as Recording;
    const [oldest] = this.#references.keys();
    if (this.#references.size > MAX_KEPT && oldest !== undefined) {
      this.#references.delete(oldest);
    }
    return made;
  }

  /** Runs a scenario, with endpoints once the operator has asked for some. */
  async #runScenario(
    scenario: Scenario,
    perturbations: readonly Perturbation[],
    given: Partial<RunSetup> = {},
  ): Promise<RunRecord> {
    const { name } = scenario;
    const setup = { ...await this.#setup(scenario), ...given };
    const run = await runScenario(scenario, perturbations, setup);
    if (setup.endpoints || !run.readsEndpoints) return run;
    this.#withEndpoints.add(name);
    for (const key of this.#references.keys()) {
      if (key.endsWith(JSON.stringify(scenario))) this.#references.delete(key);
    }
    const { from: _, ...whole } = given;
    return await this.#runScenario(scenario, perturbations, whole);
  }

  /** Creates the settings of a run, with the fakes of a new options file. */
  async #setup({ name }: Scenario): Promise<RunSetup> {
    const { seed, simulate, options } = this.#options;
    const file = await readOptions(options);
    const {
      invariants = file.invariants,
      externals = file.externals,
    } = this.#options;
    const { source } = this;
    const endpoints = this.#withEndpoints.has(name);
    return { source, seed, simulate, endpoints, invariants, externals };
  }

  get #primaryKinds(): ReadonlySet<string> {
    return new Set(this.source.primaries.map(({ kind }) => kind));
  }

  async #clean(job: Extract<Job, { do: "clean" }>): Promise<Judgement> {
    const { other, masked: names } = job;
    const masked = new Set(names ?? job.ignored);
    const ignored = new Set(job.ignored);
    const reference = await this.reference(job.scenario);
    const scenario = names
      ? job.scenario
      : { ...job.scenario, backTo: undefined };
    const violations = other === undefined
      ? judgeReference({
        scenario,
        reference,
        masked,
        ignored,
        primaryKinds: this.#primaryKinds,
      })
      : judgePaths(reference, await this.reference(other), {
        scenario,
        masked,
      });
    return judgement(violations, reference);
  }

  async #plan(job: Extract<Job, { do: "plan" }>): Promise<Judgement> {
    const { scenario, perturbations } = job;
    const from = await this.#recording(scenario);
    const { run: reference } = from;
    const known = this.#known.get(scenario.name) ?? statesOf(reference);
    this.#known.set(scenario.name, known);
    const run = await this.#runScenario(scenario, perturbations, {
      isKnown: (step, state) => known.has(`${step} ${state}`),
      from,
    });
    const { length } = scenario.steps;
    const isCut = run.steps.length < length && isAtRest(run);
    const whole = isCut ? continued(run, reference) : run;
    const judged = await this.#judged(job, perturbations, whole);
    if (judged.violations.length === 0) {
      for (const state of statesOf(run)) known.add(state);
      return judged;
    }
    if (!isCut && !run.isPart) return judged;
    const all = await this.#runScenario(scenario, perturbations);
    return await this.#judged(job, perturbations, all);
  }

  async #judged(
    { scenario, masked, ignored }: Pick<Job, "scenario"> & {
      readonly masked: readonly string[];
      readonly ignored?: readonly string[] | undefined;
    },
    perturbations: readonly Perturbation[],
    run: RunRecord,
  ): Promise<Judgement> {
    const reference = await this.reference(scenario);
    const played = unsettledAt(scenario, perturbations);
    const judgedBy = (reference: RunRecord, ...others: readonly string[]) =>
      judge({
        scenario: played,
        plan: { scenario: scenario.name, perturbations },
        reference,
        run,
        masked: new Set([...masked, ...others]),
        ignored: new Set(ignored),
        primaryKinds: this.#primaryKinds,
      });
    let violations = judgedBy(reference);
    if (violations.length === 0) return judgement(violations, run);
    // A difference that a later time explains, such as a renewal, is no finding.
    const places: string[] = [];
    for (const jump of jumpsAtRest(perturbations, reference)) {
      if (violations.length === 0) break;
      const moved = await this.#runScenario(scenario, [jump]);
      places.push(...differingPlaces(reference, moved));
      violations = judgedBy(moved, ...places);
    }
    const disturbed = perturbations.some((one) => one.do === "schedule")
      ? killedAt(run)
      : disturbedBy(perturbations, reference);
    return judgement(violations, run, disturbed);
  }

  async #explore(job: Extract<Job, { do: "explore" }>): Promise<Exploration> {
    const { scenario, limit } = job;
    // It shows whether the operator reads endpoints.
    await this.reference(scenario);
    const graph = new ScheduleGraph();
    const found = new Map<string, Exploration["found"][number]>();
    const end = performance.now() + limit;
    let [runs, cpu] = [0, 0];
    // The shortest first, so that a finding has the fewest unusual choices.
    for (const forced of graph.waiting) {
      if (performance.now() > end) break;
      const explorer = new Explorer(forced, graph);
      runs++;
      try {
        const run = await runScenario(scenario, [], {
          ...await this.#setup(scenario),
          explorer,
        });
        cpu += run.cpu;
        const { choices } = explorer;
        const one = { do: "schedule", choices };
        const judged = await this.#judged(job, [one], run);
        const [first] = judged.violations;
        if (first === undefined || found.has(first.signature)) continue;
        found.set(first.signature, { choices, judgement: judged });
      } catch (error) {
        if (!explorer.isKnown) throw error;
      }
    }
    const complete = runs === graph.waiting.length;
    return {
      schedules: graph.count(),
      runs,
      states: graph.states,
      complete,
      found: [...found.values()],
      cpu,
    };
  }
}

/** Scenario in which nobody waits for the operator while it is down. */
function unsettledAt(
  scenario: Scenario,
  perturbations: readonly Perturbation[],
): Scenario {
  const away = perturbations.flatMap((one) =>
    one.do === "down" ? [one["step"]] : []
  );
  const steps = scenario.steps.map((step, at) =>
    away.includes(at) ? { ...step, settle: false } : step
  );
  return { ...scenario, steps };
}

/** States at rest of a run, with their steps. */
function statesOf({ resting }: RunRecord): Set<string> {
  return new Set(
    resting.flatMap((state, step) => state === "" ? [] : [`${step} ${state}`]),
  );
}

/** Names of the fields in which two undisturbed runs differ. */
export function differingPlaces(
  a: RunRecord,
  b: RunRecord,
): ReadonlySet<string> {
  const [ignored, others] = [new Set(a.before), new Set(b.before)];
  const fields = a.steps.flatMap(({ objects }, at) => {
    const other = b.steps[at];
    return other === undefined ? [] : stateDifferences(
      clusterState(objects, ignored),
      clusterState(other.objects, others),
    );
  });
  return new Set([...fields, ...callDifferences(a, b)].map(differenceName));
}

/**
 * Jumps of the clock by the time that passes at writes, but while the operator
 * is at rest: before the step of the write and, if time is skipped, also after
 * it, because something may then be due. Throttled time does not jump, and after
 * the last step nothing would follow a jump, so that it passes there.
 */
function jumpsAtRest(
  perturbations: readonly Perturbation[],
  reference: RunRecord,
): readonly Perturbation[] {
  return perturbations.flatMap(({ do: what, write, ms = 0 }) => {
    const at = writesOf(reference).find(({ number }) => number === write);
    if (!SHIFTS.has(what) || at === undefined) return [];
    const { step } = at;
    const isLast = step === reference.steps.length - 1;
    const passes = Number(ms) > 0 && (what === "throttle" || isLast);
    return [
      ...passes ? [{ do: "throttle", step, ms }] : [],
      { do: "clock", step, ms },
      ...Number(ms) > 0 && !isLast ? [{ do: "clock", step: step + 1, ms }] : [],
    ];
  });
}

/** Write at which the operator was killed, as a list; empty without a kill. */
function killedAt(run: RunRecord): readonly string[] {
  const at = writesOf(run).find(({ disturbed }) => disturbed);
  return at === undefined ? [] : [writeText(at)];
}

/** Writes and events of the reference run at which a plan intervenes. */
function disturbedBy(
  perturbations: readonly Perturbation[],
  reference: RunRecord,
): readonly string[] {
  return perturbations.flatMap((one) => {
    const { write, event, kind, namespace, name } = one;
    if (one.do === "cascade") {
      return reference.steps[Number(one["step"])]?.text ?? [];
    }
    const call = notesOf(reference, "external").find((note) =>
      note.call !== undefined && note.call === one["call"]
    );
    if (call !== undefined) return [call.text.split(" ", 2).join(" ")];
    const at = writesOf(reference).find(({ number }) => number === write);
    if (at !== undefined) return [writeText(at)];
    const delivery = eventsOf(reference).find(({ number }) => number === event);
    if (delivery !== undefined) {
      return [`event ${delivery.event} ${delivery.kind} ${delivery.name}`];
    }
    if (kind === undefined) return [];
    const object = namespace === undefined ? name : `${namespace}/${name}`;
    return [`${one.do} ${kind} ${object}`];
  });
}

function judgement(
  violations: readonly Violation[],
  run: RunRecord,
  disturbed: readonly string[] = [],
): Judgement {
  const isClean = violations.length === 0;
  return {
    violations,
    sequence: isClean ? "" : sequenceText(run),
    mermaid: isClean ? "" : sequenceDiagram(run),
    disturbed,
    cpu: run.cpu,
  };
}
