import type {
  StandardResult,
  StandardSchema,
} from "../../core/crd/standard_schema.ts";
import { isJsonObject } from "../../core/patch/json_value.ts";
import type { PhasedStatus } from "./rollout.ts";

const TEXT = { type: "string" } as const;
const NUMBER = { type: "integer", format: "int64" } as const;
/** The fields of what is stored as it is: specs, and what went wrong. */
const ANYTHING = {
  type: "object",
  "x-kubernetes-preserve-unknown-fields": true,
} as const;

/** `metav1.Condition` as Kubernetes' own kinds declare it. */
const CONDITIONS = {
  type: "array",
  "x-kubernetes-list-type": "map",
  "x-kubernetes-list-map-keys": ["type"],
  items: {
    type: "object",
    required: ["type", "status", "reason", "message", "lastTransitionTime"],
    properties: {
      type: { ...TEXT, maxLength: 316 },
      status: { ...TEXT, enum: ["True", "False", "Unknown"] },
      reason: { ...TEXT, minLength: 1, maxLength: 1_024 },
      message: { ...TEXT, maxLength: 32_768 },
      observedGeneration: { ...NUMBER, minimum: 0 },
      lastTransitionTime: { ...TEXT, format: "date-time" },
    },
  },
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
  return {
    "~standard": {
      version: 1,
      vendor: "coracle",
      validate: (value) => validated(value, extra),
      jsonSchema: {
        input(options) {
          const own = extra?.["~standard"].jsonSchema.input(options) ?? {};
          const { properties } = own as { properties?: object };
          return {
            type: "object",
            properties: {
              ...properties,
              rollout: ANYTHING,
              lifecycle: TEXT,
              observedGeneration: NUMBER,
              error: ANYTHING,
              conditions: CONDITIONS,
            },
          };
        },
      },
    },
  };
}

/** Checks the user's own fields; the others are the framework's own. */
async function validated<Extra extends object>(
  value: unknown,
  extra: StandardSchema<unknown, Extra> | undefined,
): Promise<StandardResult<PhasedStatus & Partial<Extra>>> {
  if (!isJsonObject(value)) {
    return { issues: [{ message: "Expected an object" }] };
  }
  const result = await extra?.["~standard"].validate(value);
  if (result?.issues !== undefined) return { issues: result.issues };
  return {
    value: { ...value, ...result?.value } as PhasedStatus & Partial<Extra>,
  };
}
