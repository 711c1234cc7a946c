import { type AnyTable, checkOptions } from "../../core/api/options.ts";
import { readChoices } from "./explorer.ts";
import type {
  ObjectReference,
  Perturbation as WorldPerturbation,
} from "./perturbations.ts";

/** Disturbance of one run, such as a crash or a lost answer; plain data. */
export interface Perturbation {
  /** Kind of the perturbation, such as `crash`. */
  readonly do: string;
  /** Parameters, such as the number of the write. */
  readonly [parameter: string]: string | number;
}

/** Plan of a run: a scenario, and the perturbations that disturb it. */
export interface Plan {
  /** Name of the scenario of the workload. */
  readonly scenario: string;
  /** Perturbations; empty for the reference run. */
  readonly perturbations: readonly Perturbation[];
}

/**
 * Formats a plan for `--replay`, such as
 * `change-replicas/crash:write=3,place=before`.
 */
export function planText({ scenario, perturbations }: Plan): string {
  const parts = perturbations.map(({ do: name, ...parameters }) => {
    const listed = Object.entries(parameters).map(([key, value]) =>
      `${key}=${typeof value === "number" ? value : `${encoded(value)}`}`
    );
    return listed.length === 0 ? name : `${name}:${listed.join(",")}`;
  });
  return `${encoded(scenario)}/${
    parts.length === 0 ? "none" : parts.join("+")
  }`;
}

/**
 * Parses the text of a plan.
 *
 * @throws {RangeError} If it is not the text of a plan.
 */
export function readPlan(text: string): Plan {
  const [, scenario, rest] = /^([^/]+)\/(.+)$/.exec(text.trim()) ?? [];
  if (scenario === undefined || rest === undefined) throw wrongPlan(text);
  if (rest === "none") {
    return { scenario: decoded(scenario, text), perturbations: [] };
  }
  const perturbations = rest.split("+").map((part): Perturbation => {
    const [, name, parameters] = /^([a-z]+)(?::(.*))?$/.exec(part) ?? [];
    if (name === undefined) throw wrongPlan(text);
    const pairs = (parameters ?? "").split(",").filter((pair) => pair !== "");
    const read = pairs.map((pair) => {
      const [, key, value] = /^(\w+)=(.*)$/.exec(pair) ?? [];
      if (key === undefined || value === undefined) throw wrongPlan(text);
      const isNumber = /^-?\d+(\.\d+)?$/.test(value);
      return [key, isNumber ? Number(value) : decoded(value, text)] as const;
    });
    return { ...Object.fromEntries(read), do: name };
  });
  return { scenario: decoded(scenario, text), perturbations };
}

function encoded(text: string): string {
  const safe = encodeURIComponent(text).replace(
    /[!'()*]/g,
    (found) => `%${found.charCodeAt(0).toString(16)}`,
  );
  // A text that reads like a number stays a text.
  return /^-?\d+(\.\d+)?$/.test(text)
    ? `%${text.charCodeAt(0).toString(16)}${safe.slice(1)}`
    : safe;
}

function decoded(text: string, plan: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw wrongPlan(plan);
  }
}

function wrongPlan(text: string): RangeError {
  return new RangeError(
    `Cannot read the plan: it must read SCENARIO/KIND:PARAMETER=VALUE,…, as a finding has it: received "${text}"`,
  );
}

/** Change by another writer after a step of the workload. */
export interface ForeignChange {
  readonly step: number;
  readonly target: ObjectReference;
  /** JSON pointer without the first slash; undefined for a deletion. */
  readonly field?: string | undefined;
}

/** Maximum pause between two attempts of an operator, in milliseconds. */
export const RETRY_MS = 1_200_000;

/** Plan in the form that a simulation executes. */
export interface WorldPlan {
  /** Perturbations that the simulation applies. */
  readonly perturbations: readonly WorldPerturbation[];
  /** Changes by other writers, which are part of the workload. */
  readonly foreign: readonly ForeignChange[];
  /** Jumps of the clock before a step of the workload, in milliseconds. */
  readonly jumps: readonly { readonly step: number; readonly ms: number }[];
  /** Steps of the workload after which the time of a throttling passes at rest. */
  readonly waits: ReadonlySet<number>;
  /** Time after which the plan has no further effect, in milliseconds. */
  readonly aftermath: number;
  /** Step after which a newer build replaces the older one. */
  readonly upgradeAfter: number | undefined;
  /** Choices of the order of actions; undefined for the normal order. */
  readonly choices: readonly number[] | undefined;
}

const OBJECT = {
  step: "number",
  apiVersion: "string",
  kind: "string",
  name: "string",
  namespace: "string?",
} as const;

/** Parameters by perturbation. */
const PARAMETERS: Readonly<Record<string, AnyTable>> = {
  crash: { write: "number", place: ["before", "unanswered", "after"] },
  stale: {
    write: "number",
    revision: "number",
    ms: "number",
    resource: "string?",
  },
  missed: {
    resource: "string",
    group: "string?",
    from: "number",
    to: "number",
  },
  order: { event: "number", after: "number" },
  cut: { event: "number" },
  expire: { event: "number" },
  conflict: { write: "number", times: "number" },
  lost: { write: "number" },
  call: {
    call: "number",
    how: ["refused", "lost", "killed", "slow", "twice"],
  },
  refuse: { write: "number", times: "number" },
  throttle: { write: "number", ms: "number" },
  leader: { write: "number" },
  clock: { write: "number", ms: "number" },
  late: {},
  flap: {},
  delete: OBJECT,
  edit: { ...OBJECT, field: "string" },
  upgrade: { step: "number" },
  schedule: { choices: "string" },
};

/** Perturbations that let the time of their parameter `ms` pass at a write. */
export const SHIFTS: ReadonlySet<string> = new Set(["clock", "throttle"]);

/** Parameters of a jump of the clock before a step, or of a wait after it. */
const JUMP: AnyTable = { step: "number", ms: "number" };

/**
 * Divides the perturbations of a plan by what carries them out.
 *
 * @throws {RangeError} If a perturbation is unknown.
 * @throws {TypeError | RangeError} If a parameter is unknown, missing or wrong.
 */
export function worldPlan(all: readonly Perturbation[]): WorldPlan {
  const perturbations: WorldPerturbation[] = [];
  const foreign: ForeignChange[] = [];
  const jumps: { step: number; ms: number }[] = [];
  const waits = new Set<number>();
  let upgradeAfter: number | undefined;
  let choices: readonly number[] | undefined;
  let aftermath = RETRY_MS;
  for (const one of all) {
    const { do: kind, ...parameters } = one;
    if (!Object.hasOwn(PARAMETERS, kind)) {
      throw new RangeError(
        `Cannot run the plan: there is no such perturbation: received "${kind}"`,
      );
    }
    const isJump = SHIFTS.has(kind) && "step" in parameters;
    const table = isJump ? JUMP : PARAMETERS[kind] as AnyTable;
    checkOptions(parameters, table, `the perturbation "${kind}" of the plan`);
    if (kind === "throttle") aftermath += Number(parameters["ms"]);
    if (isJump && kind === "throttle") waits.add(Number(parameters["step"]));
    else if (isJump) {
      jumps.push(parameters as object as typeof jumps[number]);
    } else if (kind === "delete" || kind === "edit") {
      const { step, field, ...target } = parameters as
        & object
        & ObjectReference
        & Omit<ForeignChange, "target">;
      foreign.push({ step, field, target });
    } else if (kind === "upgrade") {
      upgradeAfter = Number(parameters["step"]);
    } else if (kind === "schedule") {
      choices = readChoices(String(parameters["choices"]));
    } else {
      perturbations.push(one as object as WorldPerturbation);
    }
  }
  return {
    perturbations,
    foreign,
    jumps,
    waits,
    aftermath,
    upgradeAfter,
    choices,
  };
}
