import type { Kind } from "../api/kind.ts";
import {
  followReference,
  isRecord,
  type JsonSchema,
  jsonSchemaOf,
  UNREPRESENTABLE,
} from "./json_schema.ts";
import { isDefinedKind } from "./kind_definition.ts";
import type { StandardPath, StandardSchema } from "./standard_schema.ts";

/** How many problems a message names. */
const MOST_ISSUES = 5;

/**
 * Checks a status against the schema of its kind before it is written, so that
 * a slip of the operator is told where it was made and not by the server.
 * A kind that has no status schema takes any status.
 *
 * @param kind Whose status it is.
 * @param status What is about to be written, whole.
 * @throws {TypeError} If it does not fit; the message names the paths.
 *
 * @example A wrong status
 * ```ts
 * import { checkStatus, defineKind } from "@coracle/operator/crd";
 * import { z } from "zod";
 *
 * const Lamp = defineKind({
 *   group: "sample.coracle.dev",
 *   version: "v1",
 *   kind: "Lamp",
 *   spec: z.object({}),
 *   status: z.object({ lit: z.boolean() }),
 * });
 * const failure = await checkStatus(Lamp, { lit: "yes" }).catch(String);
 * if (!failure?.includes("status.lit")) throw new Error("Expected the path");
 * ```
 */
export async function checkStatus(kind: Kind, status: unknown): Promise<void> {
  const schema = isDefinedKind(kind) ? kind.statusSchema : undefined;
  if (schema === undefined) return;
  const issues = await issuesOf(schema, status);
  if (issues.length === 0) return;
  const named = issues.slice(0, MOST_ISSUES).join("; ");
  const more = issues.length - MOST_ISSUES;
  throw new TypeError(
    `Cannot write the status of a ${kind.kind}: it does not fit its schema: received ${named}${
      more > 0 ? ` and ${more} more` : ""
    }`,
  );
}

async function issuesOf(
  schema: StandardSchema,
  value: unknown,
): Promise<readonly string[]> {
  const root = jsonSchemaOf(schema, "status");
  const result = await schema["~standard"].validate(
    withDates(value, root, root),
  );
  return (result.issues ?? []).map(({ path = [], message }) =>
    `status${pathText(path)}: ${message}`
  );
}

/** The value with a `Date` where the schema wants one and JSON has its text. */
function withDates(
  value: unknown,
  node: JsonSchema,
  root: JsonSchema,
): unknown {
  if (typeof node.$ref === "string") {
    return withDates(value, followReference(root, node.$ref) ?? {}, root);
  }
  if (typeof value === "string") {
    return node[UNREPRESENTABLE] === "date" ? new Date(value) : value;
  }
  if (Array.isArray(value)) {
    const items = isRecord(node.items) ? node.items : {};
    return value.map((item) => withDates(item, items, root));
  }
  if (!isRecord(value)) return value;
  const { properties, additionalProperties } = node;
  const others = isRecord(additionalProperties) ? additionalProperties : {};
  return Object.fromEntries(
    Object.entries(value).map(([name, field]) => {
      const named = isRecord(properties) && Object.hasOwn(properties, name)
        ? properties[name]
        : undefined;
      return [name, withDates(field, isRecord(named) ? named : others, root)];
    }),
  );
}

function pathText(path: StandardPath): string {
  return path.map((step) => {
    const key = typeof step === "object" ? step.key : step;
    return typeof key === "number" ? `[${key}]` : `.${String(key)}`;
  }).join("");
}
