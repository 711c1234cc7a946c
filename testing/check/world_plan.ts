import { readChoices } from "./explorer.ts";
import type { Perturbation } from "./plan.ts";
import type {
  ObjectReference,
  Perturbation as WorldPerturbation,
} from "./perturbation.ts";

/** Someone else's change after a step of the workload. */
export interface ForeignChange {
  readonly step: number;
  readonly target: ObjectReference;
  /** JSON pointer without the first slash; undefined for a deletion. */
  readonly field?: string | undefined;
}

/** Longest pause between two tries of an operator, in milliseconds. */
const RETRY_MS = 1_200_000;

/** A plan in the terms of the world. */
export interface WorldPlan {
  /** Perturbations that the world makes. */
  readonly perturbations: readonly WorldPerturbation[];
  /** Changes of others, which are part of the workload. */
  readonly foreign: readonly ForeignChange[];
  /** Jumps of the clock before a step of the workload, in milliseconds. */
  readonly jumps: readonly { readonly step: number; readonly ms: number }[];
  /** Time after which nothing of the plan is left, in milliseconds. */
  readonly aftermath: number;
  /** Step after which a newer build replaces the older one. */
  readonly upgradeAfter: number | undefined;
  /** Choices of the order of deliveries and writes; undefined if as usual. */
  readonly choices: readonly number[] | undefined;
}

/**
 * Translates the perturbations of a plan for the world.
 *
 * @throws {RangeError} If one is unknown or lacks a parameter.
 */
export function worldPlan(all: readonly Perturbation[]): WorldPlan {
  const perturbations: WorldPerturbation[] = [];
  const foreign: ForeignChange[] = [];
  const jumps: { step: number; ms: number }[] = [];
  let upgradeAfter: number | undefined;
  let choices: readonly number[] | undefined;
  let aftermath = RETRY_MS;
  for (const one of all) {
    const number = (name: string): number => {
      const value = one[name];
      if (typeof value === "number") return value;
      throw wrongParameter(one.do, name, value);
    };
    const text = (name: string): string => {
      const value = one[name];
      if (typeof value === "string") return value;
      throw wrongParameter(one.do, name, value);
    };
    const write = () => number("write");
    switch (one.do) {
      case "crash": {
        const place = text("place");
        if (place !== "before" && place !== "unanswered" && place !== "after") {
          throw wrongParameter(one.do, "place", place);
        }
        perturbations.push({ do: "crash", write: write(), place });
        break;
      }
      case "stale":
        perturbations.push({
          do: "stale",
          write: write(),
          revision: number("revision"),
          forMs: number("ms"),
          ...(one["resource"] !== undefined && { resource: text("resource") }),
        });
        break;
      case "missed":
        perturbations.push({
          do: "withhold",
          resource: text("resource"),
          group: String(one["group"] ?? ""),
          from: number("from"),
          to: number("to"),
        });
        break;
      case "order":
        perturbations.push({
          do: "delay",
          event: number("event"),
          after: number("after"),
        });
        break;
      case "cut":
      case "expire":
        perturbations.push({ do: one.do, event: number("event") });
        break;
      case "conflict":
        perturbations.push({
          do: "conflict",
          write: write(),
          times: number("times"),
        });
        break;
      case "lost":
        perturbations.push({ do: "lose", write: write() });
        break;
      case "refuse":
        perturbations.push({
          do: "refuse",
          write: write(),
          times: number("times"),
          code: 403,
        });
        break;
      case "throttle":
        aftermath += number("ms");
        perturbations.push({
          do: "throttle",
          write: write(),
          forMs: number("ms"),
        });
        break;
      case "leader":
        perturbations.push({ do: "depose", write: write() });
        break;
      case "clock":
        if (one["step"] !== undefined) {
          jumps.push({ step: number("step"), ms: number("ms") });
          break;
        }
        perturbations.push({
          do: "clock",
          write: write(),
          jumpMs: number("ms"),
        });
        break;
      case "late":
      case "flap":
        perturbations.push({ do: "dependents", mode: one.do });
        break;
      case "delete":
      case "edit":
        foreign.push({
          step: number("step"),
          target: {
            apiVersion: text("apiVersion"),
            kind: text("kind"),
            name: text("name"),
            ...(one["namespace"] !== undefined &&
              { namespace: text("namespace") }),
          },
          field: one.do === "edit" ? text("field") : undefined,
        });
        break;
      case "upgrade":
        upgradeAfter = number("step");
        break;
      case "schedule":
        choices = readChoices(text("choices"));
        break;
      default:
        throw new RangeError(
          `Cannot run the plan: there is no such perturbation: received "${one.do}"`,
        );
    }
  }
  return { perturbations, foreign, jumps, aftermath, upgradeAfter, choices };
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
