import * as z from "zod/mini";
import { checkInput, shown } from "@coracle/operator/internal";
import { readChoices } from "./explorer.ts";
import type { ObjectReference } from "./object_reference.ts";
import {
  type Perturbation as WorldPerturbation,
  WEBHOOK_FAULTS,
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
  /** What is done: a deletion, or a change of metadata or of one field. */
  readonly change: "delete" | "annotate" | {
    /** JSON pointer without the first slash. */
    readonly field: string;
  };
}

/** Maximum pause between two attempts of an operator, in milliseconds. */
export const RETRY_MS = 1_200_000;

/** Time for which an operator is down that misses a step, in milliseconds. */
const DOWN_MS = 600_000;

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
  /** Steps after which the operator is down, and which end at once. */
  readonly away: ReadonlySet<number>;
  /** Steps that delete an object after its parts. */
  readonly cascades: ReadonlySet<number>;
  /** Step after which a newer build replaces the older one. */
  readonly upgradeAfter: number | undefined;
  /** Choices of the order of actions; undefined for the normal order. */
  readonly choices: readonly number[] | undefined;
}

const NUMBER = z.number("must be a number");
const TEXT = z.string("must be a string");

const OBJECT = {
  step: NUMBER,
  apiVersion: TEXT,
  kind: TEXT,
  name: TEXT,
  namespace: z.optional(TEXT),
};

/** Schemas of the perturbations that a simulation applies as they are, by kind. */
const APPLIED = {
  crash: z.strictObject({
    write: NUMBER,
    place: z.enum(["before", "unanswered", "after"]),
  }),
  stale: z.strictObject({
    write: NUMBER,
    revision: NUMBER,
    ms: NUMBER,
    resource: z.optional(TEXT),
  }),
  missed: z.strictObject({
    resource: TEXT,
    group: z.optional(TEXT),
    from: NUMBER,
    to: NUMBER,
  }),
  order: z.strictObject({ event: NUMBER, after: NUMBER }),
  cut: z.strictObject({ event: NUMBER }),
  expire: z.strictObject({ event: NUMBER }),
  conflict: z.strictObject({ write: NUMBER, times: NUMBER }),
  lost: z.strictObject({ write: NUMBER }),
  call: z.strictObject({
    call: NUMBER,
    how: z.enum(["refused", "lost", "killed", "slow", "twice"]),
  }),
  refuse: z.strictObject({ write: NUMBER, times: NUMBER }),
  throttle: z.strictObject({ write: NUMBER, ms: NUMBER }),
  webhook: z.strictObject({
    write: NUMBER,
    how: z.enum(WEBHOOK_FAULTS),
    ms: NUMBER,
  }),
  leader: z.strictObject({ write: NUMBER }),
  clock: z.strictObject({ write: NUMBER, ms: NUMBER }),
  late: z.strictObject({}),
  flap: z.strictObject({}),
} satisfies {
  readonly [Do in WorldPerturbation["do"]]?: z.ZodMiniType<
    Omit<Extract<WorldPerturbation, { readonly do: Do }>, "do">
  >;
};

/** Schemas of the changes between the steps of the workload, by kind. */
const OWNED = z.strictObject(OBJECT);
const EDIT = z.strictObject({ ...OBJECT, field: TEXT });
const UPGRADE = z.strictObject({ step: NUMBER });
const CASCADE = UPGRADE;
/** A kill at a write of a step; the operator is down while the next one happens. */
const DOWN = z.strictObject({ write: NUMBER, step: NUMBER });
const SCHEDULE = z.strictObject({ choices: TEXT });
/** A jump of the clock before a step, or a wait after it. */
const JUMP = z.strictObject({ step: NUMBER, ms: NUMBER });

/** Perturbations that let the time of their parameter `ms` pass at a write. */
export const SHIFTS: ReadonlySet<string> = new Set(["clock", "throttle"]);

/**
 * Divides the perturbations of a plan by what carries them out.
 *
 * @throws {RangeError} If a perturbation is unknown.
 * @throws {TypeError} If a parameter is unknown, missing or wrong.
 */
export function worldPlan(all: readonly Perturbation[]): WorldPlan {
  const perturbations: WorldPerturbation[] = [];
  const foreign: ForeignChange[] = [];
  const jumps: { step: number; ms: number }[] = [];
  const waits = new Set<number>();
  const away = new Set<number>();
  const cascades = new Set<number>();
  let upgradeAfter: number | undefined;
  let choices: readonly number[] | undefined;
  let aftermath = RETRY_MS;
  for (const { do: kind, ...parameters } of all) {
    const read = <T>(schema: z.ZodMiniType<T>): T =>
      checkInput(parameters, schema, {
        root: "it",
        received: shown,
        refuse: (fault) =>
          new TypeError(
            `Cannot read the perturbation "${kind}" of the plan: ${fault}`,
          ),
      });
    if (SHIFTS.has(kind) && "step" in parameters) {
      const jump = read(JUMP);
      if (kind === "clock") jumps.push(jump);
      else {
        waits.add(jump.step);
        aftermath += jump.ms;
      }
    } else if (kind === "edit") {
      const { step, field, ...target } = read(EDIT);
      foreign.push({ step, target, change: { field } });
    } else if (kind === "delete" || kind === "annotate") {
      const { step, ...target } = read(OWNED);
      foreign.push({ step, target, change: kind });
    } else if (kind === "cascade") cascades.add(read(CASCADE).step);
    else if (kind === "down") {
      const { write, step } = read(DOWN);
      away.add(step);
      perturbations.push({
        do: "crash",
        write,
        place: "after",
        downMs: DOWN_MS,
      });
    } else if (kind === "upgrade") upgradeAfter = read(UPGRADE).step;
    else if (kind === "schedule") choices = readChoices(read(SCHEDULE).choices);
    else if (isApplied(kind)) {
      const applied = {
        do: kind,
        ...read<object>(APPLIED[kind]),
      } as WorldPerturbation;
      perturbations.push(applied);
      if (applied.do === "throttle") aftermath += applied.ms;
    } else {
      throw new RangeError(
        `Cannot run the plan: there is no such perturbation: received "${kind}"`,
      );
    }
  }
  return {
    perturbations,
    foreign,
    jumps,
    waits,
    away,
    cascades,
    aftermath,
    upgradeAfter,
    choices,
  };
}

function isApplied(kind: string): kind is keyof typeof APPLIED {
  return Object.hasOwn(APPLIED, kind);
}
