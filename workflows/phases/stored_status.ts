/**
 * Statuses of the state machines, as they are read back: a user may have edited them
 * while no replica was running. What does not match its schema is removed. The file
 * is loaded with the first run, as it needs zod.
 *
 * @module
 */
import * as z from "zod/mini";
import { damagedFields } from "../../core/api/input.ts";
import { isJsonObject } from "../../core/patch/json_value.ts";
import { conditionsIn } from "../conditions/condition.ts";
import {
  LIFECYCLES,
  type PhasedStatus,
  type RolloutStatus,
  sameChoice,
} from "./phased_status.ts";

/** Removes the fields that do not match a schema; returns their names. */
function removeDamaged(record: object, schema: z.ZodMiniType): string[] {
  const damaged = damagedFields(record, schema);
  for (const name of damaged) Reflect.deleteProperty(record, name);
  return [...damaged];
}

const COUNT = z.int().check(z.nonnegative());
const TEXT = z.string();

const STATUS = z.looseObject({
  error: z.optional(z.looseObject({ reason: TEXT, message: TEXT })),
  lifecycle: z.optional(z.enum(LIFECYCLES)),
});

/** Reads a status without its damaged fields; the log is read separately. */
export function readStatus(stored: unknown): PhasedStatus {
  if (!isJsonObject(stored)) return {};
  const status: PhasedStatus = { ...stored, conditions: conditionsIn(stored) };
  removeDamaged(status, STATUS);
  return status;
}

/** Schema of the write-ahead log of an object that has this spec. */
function rolloutSchema(spec: unknown): z.ZodMiniType {
  const choice = z.optional(z.looseObject({
    spec: z.unknown().check(
      z.refine((chosen) =>
        chosen !== undefined && isJsonObject(chosen) === isJsonObject(spec)
      ),
    ),
    generation: COUNT,
    first: z.optional(z.boolean()),
    version: z.optional(TEXT),
  }));
  return z.looseObject({
    phase: z.optional(
      z.enum(["Upgrading", "Deployed", "RollingBack", "RolledBack"]),
    ),
    running: z.optional(z.boolean()),
    healthy: z.optional(z.boolean()),
    target: choice,
    stable: choice,
    attempt: z.optional(TEXT.check(z.regex(/^\d{1,15}\.\d{1,15}$/))),
    since: z.optional(z.number()),
    revision: z.optional(COUNT),
  });
}

/**
 * Reads a write-ahead log field by field: a user may have edited it while no
 * replica was running, and acting on an invalid one could lose state.
 *
 * @returns The fields that can be read, and the names of those that are damaged
 * or missing. A log without damage is complete.
 */
export function readRollout(
  stored: unknown,
  spec: unknown,
): { readonly log: Partial<RolloutStatus>; readonly damaged: string[] } {
  if (stored === undefined) {
    return { log: { phase: "Upgrading", running: false }, damaged: [] };
  }
  const log: Partial<RolloutStatus> = isJsonObject(stored) ? { ...stored } : {};
  const damaged = removeDamaged(log, rolloutSchema(spec));
  const { running, target, stable, attempt } = log;
  let { phase } = log;
  if (phase?.startsWith("Roll") && sameChoice(target, stable)) {
    // Nothing is rolled back to itself.
    phase = undefined;
    delete log.phase;
  }
  const isRolledBack = phase === "RollingBack" || phase === "RolledBack";
  const isInFlight = target !== undefined && running === false &&
    (phase === "Upgrading" || isRolledBack);
  const missing = {
    phase: phase === undefined,
    running: running === undefined,
    target: target === undefined && (running || phase !== "Upgrading"),
    stable: stable === undefined && isRolledBack,
    attempt: attempt === undefined && isInFlight,
  };
  for (const [name, isMissing] of Object.entries(missing)) {
    if (isMissing && !damaged.includes(name)) damaged.push(name);
  }
  return { log, damaged };
}

const TASK = z.looseObject({
  state: z.optional(
    z.enum(["Pending", "InProgress", "Completed", "Failed", "Abandoned"]),
  ),
  attempt: z.optional(TEXT),
  failures: z.optional(COUNT),
  retryAt: z.optional(z.number()),
  error: z.optional(TEXT),
  observedGeneration: z.optional(COUNT),
});

/** Removes the damaged fields of the status of a task; returns their names. */
export function repairTask(status: object): string[] {
  return removeDamaged(status, TASK);
}
