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
const RETRY_MS = 1_200_000;

/** Plan in the form that a simulation executes. */
export interface WorldPlan {
  /** Perturbations that the simulation applies. */
  readonly perturbations: readonly WorldPerturbation[];
  /** Changes by other writers, which are part of the workload. */
  readonly foreign: readonly ForeignChange[];
  /** Jumps of the clock before a step of the workload, in milliseconds. */
  readonly jumps: readonly { readonly step: number; readonly ms: number }[];
  /** Time after which the plan has no further effect, in milliseconds. */
  readonly aftermath: number;
  /** Step after which a newer build replaces the older one. */
  readonly upgradeAfter: number | undefined;
  /** Choices of the order of actions; undefined for the normal order. */
  readonly choices: readonly number[] | undefined;
}

/** Parameters of perturbations in a simulation; optional ones end in `?`. */
const PARAMETERS: Readonly<Record<string, readonly string[]>> = {
  crash: ["write", "place"],
  stale: ["write", "revision", "ms", "resource?"],
  missed: ["resource", "group?", "from", "to"],
  order: ["event", "after"],
  cut: ["event"],
  expire: ["event"],
  conflict: ["write", "times"],
  lost: ["write"],
  refuse: ["write", "times"],
  throttle: ["write", "ms"],
  leader: ["write"],
  clock: ["write", "ms"],
  late: [],
  flap: [],
};
const TEXTS: ReadonlySet<string> = new Set(
  "place resource group apiVersion kind name namespace field choices".split(
    " ",
  ),
);
const PLACES: readonly unknown[] = ["before", "unanswered", "after"];
/**
 * Divides the perturbations of a plan by what carries them out.
 *
 * @throws {RangeError} If a perturbation is unknown or lacks a parameter.
 */
export function worldPlan(all: readonly Perturbation[]): WorldPlan {
  const perturbations: WorldPerturbation[] = [];
  const foreign: ForeignChange[] = [];
  const jumps: { step: number; ms: number }[] = [];
  let upgradeAfter: number | undefined;
  let choices: readonly number[] | undefined;
  let aftermath = RETRY_MS;
  for (const one of all) {
    const { do: kind } = one;
    const read = (...names: readonly string[]) => checked(one, names);
    if (kind === "clock" && one["step"] !== undefined) {
      jumps.push(read("step", "ms") as typeof jumps[number]);
    } else if (Object.hasOwn(PARAMETERS, kind)) {
      const parameters = read(...PARAMETERS[kind] ?? []);
      if (kind === "throttle") aftermath += Number(parameters["ms"]);
      perturbations.push({ do: kind, ...parameters } as WorldPerturbation);
    } else if (kind === "delete" || kind === "edit") {
      const target = read("apiVersion", "kind", "name", "namespace?");
      foreign.push({
        ...read("step", ...(kind === "edit" ? ["field"] : [])),
        target,
      } as object as ForeignChange);
    } else if (kind === "upgrade") {
      upgradeAfter = Number(read("step")["step"]);
    } else if (kind === "schedule") {
      choices = readChoices(String(read("choices")["choices"]));
    } else {
      throw new RangeError(
        `Cannot run the plan: there is no such perturbation: received "${kind}"`,
      );
    }
  }
  return { perturbations, foreign, jumps, aftermath, upgradeAfter, choices };
}

/** Checks the parameters of a perturbation, and returns them. */
function checked(
  one: Perturbation,
  names: readonly string[],
): Record<string, string | number> {
  return Object.fromEntries(names.flatMap((given) => {
    const name = given.replace("?", "");
    const value = one[name];
    if (value === undefined && name !== given) return [];
    const isRight = name === "place"
      ? PLACES.includes(value)
      : TEXTS.has(name)
      ? typeof value === "string"
      : typeof value === "number";
    if (isRight) return [[name, value as string | number]];
    throw new RangeError(
      `Cannot run the plan: "${name}" of "${one.do}" is missing or wrong: received ${
        value === undefined ? "nothing" : JSON.stringify(value)
      }`,
    );
  }));
}
