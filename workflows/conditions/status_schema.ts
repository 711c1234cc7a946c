import { checkSchema } from "../../core/crd/json_schema.ts";
import type {
  StandardIssue,
  StandardSchema,
} from "../../core/crd/standard_schema.ts";
import { isJsonObject } from "../../core/patch/json_value.ts";
import type { ConditionedStatus } from "./condition.ts";
import type {
  KindVersion,
  PrinterColumn,
} from "../../core/crd/kind_definition.ts";

const TEXT = { type: "string" } as const;
const GENERATION = { type: "integer", format: "int64", minimum: 0 } as const;

const STATUSES: readonly unknown[] = ["True", "False", "Unknown"];
const REQUIRED = [
  "type",
  "status",
  "reason",
  "message",
  "lastTransitionTime",
] as const;

/** Schema of a list of `metav1.Condition`, as in Kubernetes' own kinds. */
const CONDITIONS = {
  type: "array",
  "x-kubernetes-list-type": "map",
  "x-kubernetes-list-map-keys": ["type"],
  items: {
    type: "object",
    required: REQUIRED,
    properties: {
      type: { ...TEXT, maxLength: 316 },
      status: { ...TEXT, enum: STATUSES },
      reason: { ...TEXT, minLength: 1, maxLength: 1_024 },
      message: { ...TEXT, maxLength: 32_768 },
      observedGeneration: GENERATION,
      lastTransitionTime: { ...TEXT, format: "date-time" },
    },
  },
} as const;

export type StatusFields = Readonly<Record<string, unknown>>;

export const CONDITIONED_FIELDS: StatusFields = {
  observedGeneration: GENERATION,
  conditions: CONDITIONS,
};

/**
 * Creates the schema of a status with fields of the framework and of the user.
 * No field is required, because they are written one after another. Among the
 * framework's fields only the conditions are validated, because users may set
 * them as well.
 */
export function statusWith<Own extends object, Extra extends object>(
  fields: StatusFields,
  extra: StandardSchema<unknown, Extra> | undefined,
): StandardSchema<Own & Partial<Extra>> {
  if (extra !== undefined) checkSchema(extra, "the other fields of a status");
  return {
    "~standard": {
      version: 1,
      vendor: "coracle",
      async validate(value) {
        if (!isJsonObject(value)) {
          return { issues: [{ message: "Expected an object" }] };
        }
        const others = Object.fromEntries(
          Object.entries(value).filter(([name]) =>
            !Object.hasOwn(fields, name)
          ),
        );
        const result = await extra?.["~standard"].validate(others);
        const issues = [
          ...conditionIssues(value["conditions"]),
          ...(result?.issues ?? []).filter((issue) =>
            !isAbsence(issue, others)
          ),
        ];
        if (issues.length > 0) return { issues };
        const checked = result?.issues === undefined ? result?.value : others;
        const own = Object.keys(fields)
          .flatMap((name) =>
            Object.hasOwn(value, name) ? [[name, value[name]]] : []
          );
        return {
          value: { ...Object.fromEntries(own), ...checked } as
            & Own
            & Partial<Extra>,
        };
      },
      jsonSchema: {
        input(options) {
          const { required: _, properties, ...rest } =
            extra?.["~standard"].jsonSchema.input(options) ?? {};
          return {
            ...rest,
            type: "object",
            properties: { ...properties as object | undefined, ...fields },
          };
        },
      },
    },
  };
}

/** Whether a validation issue only reports an absent field. */
function isAbsence({ path = [] }: StandardIssue, value: object): boolean {
  const [step] = path;
  if (step === undefined || path.length > 1) return false;
  return !Object.hasOwn(value, typeof step === "object" ? step.key : step);
}

function conditionIssues(value: unknown): StandardIssue[] {
  if (value === undefined) return [];
  if (!Array.isArray(value)) {
    return [{ message: "Expected an array", path: ["conditions"] }];
  }
  const types = value.map((condition) => condition?.type);
  return value.flatMap((condition, index): StandardIssue[] => {
    const issue = (message: string, field?: string) => ({
      message,
      path: ["conditions", index, ...field === undefined ? [] : [field]],
    });
    if (!isJsonObject(condition)) return [issue("Expected an object")];
    const missing = REQUIRED
      .filter((field) => typeof condition[field] !== "string")
      .map((field) => issue("Expected a string", field));
    if (missing.length > 0) return missing;
    if (!STATUSES.includes(condition["status"])) {
      return [issue("Expected True, False or Unknown", "status")];
    }
    if (condition["reason"] === "") {
      return [issue("Expected a non-empty string", "reason")];
    }
    return types.indexOf(condition["type"]) === index
      ? []
      : [issue("Expected each type once", "type")];
  });
}

/**
 * Creates the schema of a status with conditions, for `defineKind({ status })`.
 * The objects of the kind then have all fields of {@linkcode
 * ConditionedStatus}, and the CustomResourceDefinition has the same schema of
 * conditions as Kubernetes' own kinds.
 *
 * @param extra The schema of the user's own status fields. All of them may be
 * absent.
 * @throws {TypeError} If it is no Standard Schema with JSON Schema output.
 *
 * @example A kind with conditions
 * ```ts
 * import { defineKind } from "@coracle/operator/crd";
 * import { conditionedStatus, readyColumns } from "@coracle/operator/workflows";
 * import { z } from "zod";
 *
 * const Bucket = defineKind({
 *   group: "example.com",
 *   version: "v1",
 *   kind: "Bucket",
 *   spec: z.object({ region: z.string() }),
 *   status: conditionedStatus(z.object({ url: z.string() })),
 *   printerColumns: readyColumns,
 * });
 * ```
 */
export function conditionedStatus<Extra extends object = object>(
  extra?: StandardSchema<unknown, Extra>,
): StandardSchema<ConditionedStatus & Partial<Extra>> {
  return statusWith(
    {
      ...CONDITIONED_FIELDS,
      lastHandledReconcileAt: TEXT,
      lastHandledForceAt: TEXT,
    },
    extra,
  );
}

function ofReady(name: string, field: string): PrinterColumn {
  const jsonPath = `.status.conditions[?(@.type=="Ready")].${field}`;
  return { name, type: "string", jsonPath };
}

/**
 * Printer columns for kinds with a Ready condition: Ready, Reason and Age, for
 * `printerColumns` of `defineKind`.
 */
export const readyColumns: NonNullable<KindVersion["printerColumns"]> = Object
  .freeze([
    ofReady("Ready", "status"),
    ofReady("Reason", "reason"),
    { name: "Age", type: "date", jsonPath: ".metadata.creationTimestamp" },
  ]);
