import type { StandardSchema } from "../../core/crd/standard_schema.ts";
import { CONDITIONED_FIELDS, statusWith } from "../conditions/status_schema.ts";
import type { PhasedStatus } from "./rollout.ts";

/** The fields of what is stored as it is: specs, and what went wrong. */
const ANYTHING = {
  type: "object",
  "x-kubernetes-preserve-unknown-fields": true,
} as const;

/**
 * The schema of the status of phased objects, for `defineKind({ status })`; with
 * it the type of the kind's objects has all of {@linkcode PhasedStatus}.
 *
 * @param extra The fields of the status that are the user's own: `observe` may
 * keep in them what it learns. All of them may be absent.
 *
 * @example A kind of phased objects
 * ```ts
 * import { defineKind } from "@coracle/operator/crd";
 * import { phasedStatus, readyColumns } from "@coracle/operator/workflows";
 * import { z } from "zod";
 *
 * const Database = defineKind({
 *   group: "example.com",
 *   version: "v1",
 *   kind: "Database",
 *   spec: z.object({ engine: z.string(), replicas: z.int() }),
 *   status: phasedStatus(z.object({ primary: z.string() }).partial()),
 *   printerColumns: readyColumns,
 * });
 * if (Database.plural !== "databases") throw new Error("Unexpected plural");
 * ```
 */
export function phasedStatus<Extra extends object = object>(
  extra?: StandardSchema<unknown, Extra>,
): StandardSchema<PhasedStatus & Partial<Extra>> {
  return statusWith(
    {
      ...CONDITIONED_FIELDS,
      rollout: ANYTHING,
      lifecycle: { type: "string" },
      error: ANYTHING,
    },
    extra,
  );
}
