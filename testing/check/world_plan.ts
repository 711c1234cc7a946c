import { readChoices } from "./explorer.ts";
import type { Perturbation } from "./plan.ts";
import type {
  ObjectReference,
  Perturbation as WorldPerturbation,
} from "./perturbation.ts";

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
/** Names and preset parameters of perturbations in a simulation. */
const IN_WORLD: Readonly<Record<string, object>> = {
  missed: { do: "withhold", group: "" },
  order: { do: "delay" },
  lost: { do: "lose" },
  refuse: { code: 403 },
  leader: { do: "depose" },
  late: { do: "dependents", mode: "late" },
  flap: { do: "dependents", mode: "flap" },
};

/**
 * Converts the perturbations of a plan to those of a simulation.
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
      const { ms, ...others } = read(...PARAMETERS[kind] ?? []);
      if (kind === "throttle") aftermath += Number(ms);
      const time = kind === "clock" ? { jumpMs: ms } : { forMs: ms };
      perturbations.push({
        do: kind,
        ...IN_WORLD[kind],
        ...others,
        ...(ms !== undefined && time),
      } as WorldPerturbation);
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
    throw wrongParameter(one.do, name, value);
  }));
}

function wrongParameter(
  name: string,
  parameter: string,
  value: unknown,
): RangeError {
  return new RangeError(
    `Cannot run the plan: "${parameter}" of "${name}" is missing or wrong: received ${
      value === undefined ? "nothing" : JSON.stringify(value)
    }`,
  );
}
