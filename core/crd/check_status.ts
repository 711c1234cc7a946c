import { checkKind, type Kind } from "../api/kind.ts";
import { nearestName } from "../api/options.ts";
import { applyMergePatch } from "../patch/merge_patch.ts";
import { isJsonObject } from "../patch/json_value.ts";
import type { OpenApiSchema } from "../patch/schema.ts";
import { isDefinedKind } from "./kind_definition.ts";
import type { StandardIssue } from "./standard_schema.ts";

/** Maximum number of issues in an error message. */
const MOST_ISSUES = 5;

/**
 * Validates a status against the schema of its kind before it is written, so that
 * a mistake of the operator is reported where it was made and not by the server.
 * Kinds without a status schema allow any status.
 *
 * @param kind The kind of the object.
 * @param status The complete status to write.
 * @throws {TypeError} If the status does not match the schema; the error names the
 * paths.
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
  checkKind(kind, "checkStatus()");
  refuse(kind, await issuesOf(kind, status));
}

/**
 * Validates a merge patch of a status before it is sent: checks the given
 * fields, and that no required field is missing afterwards. Other fields of the
 * current status are not validated.
 *
 * @param patch The patch; null removes a field.
 * @param current The current status; undefined if it is not known.
 * @throws {TypeError} If the status does not match the schema; the error names
 * the paths.
 */
export function checkStatusPatch(
  kind: Kind,
  patch: object,
  current: object | undefined,
): void | Promise<void> {
  if (!isDefinedKind(kind) || kind.statusSchema === undefined) return;
  const check = (issues: Issue[]) =>
    refuse(
      kind,
      issues.filter(({ path: [field = ""] }) =>
        Object.hasOwn(patch, field) ||
        (current !== undefined && !Object.hasOwn(current, field))
      ),
    );
  const issues = issuesOf(kind, applyMergePatch(current ?? {}, patch));
  return issues instanceof Promise ? issues.then(check) : check(issues);
}

/** A mismatch between a status and its schema. */
interface Issue {
  readonly path: readonly (string | number)[];
  readonly message: string;
}

function refuse(kind: Kind, issues: readonly Issue[]): void {
  if (issues.length === 0) return;
  const named = issues.slice(0, MOST_ISSUES).map(({ path, message }) =>
    `status${pathText(path)}: ${message}`
  );
  const more = issues.length - MOST_ISSUES;
  throw new TypeError(
    `Cannot write the status of ${kind.kind}: it does not match its schema, so change the status or the schema: received ${
      named.join("; ")
    }${more > 0 ? ` and ${more} more` : ""}`,
  );
}

/** Issues of a status; a promise if its schema validates asynchronously. */
function issuesOf(kind: Kind, value: unknown): Issue[] | Promise<Issue[]> {
  const schema = isDefinedKind(kind) ? kind.statusSchema : undefined;
  if (schema === undefined) return [];
  const issues = (
    result: { issues?: readonly StandardIssue[] | undefined },
  ) => {
    const known = statusSchemaOf(kind);
    const unknown = known === undefined ? [] : unknownFields(value, known, []);
    if (result.issues === undefined) return unknown;
    const named = result.issues.map(({ path = [], message }) => ({
      path: path.map(stepOf),
      message,
    }));
    return [...named, ...unknown];
  };
  const result = schema["~standard"].validate(value);
  return result instanceof Promise ? result.then(issues) : issues(result);
}

/** Schema of the objects in the CustomResourceDefinition of a kind. */
export function objectSchemaOf(kind: Kind): OpenApiSchema | undefined {
  if (!isDefinedKind(kind)) return undefined;
  const version = kind.versions.find(({ name }) => name === kind.version);
  return version?.schema.openAPIV3Schema;
}

/** Schema of the status in the CustomResourceDefinition of a kind. */
export function statusSchemaOf(kind: Kind): OpenApiSchema | undefined {
  return objectSchemaOf(kind)?.properties?.["status"];
}

/** Fields without a schema, which the server would drop. */
function unknownFields(
  value: unknown,
  schema: OpenApiSchema,
  path: Issue["path"],
): Issue[] {
  const { properties = {}, additionalProperties, items } = schema;
  const keeps = schema["x-kubernetes-preserve-unknown-fields"] === true;
  if (Array.isArray(value)) {
    return items === undefined || keeps
      ? []
      : value.flatMap((item, index) =>
        unknownFields(item, items, [...path, index])
      );
  }
  const issues: Issue[] = [];
  if (!isJsonObject(value)) return issues;
  const others = isJsonObject(additionalProperties)
    ? additionalProperties as OpenApiSchema
    : undefined;
  const isObject = schema["x-kubernetes-embedded-resource"] === true;
  for (const name of Object.keys(value)) {
    if (isObject && ["apiVersion", "kind", "metadata"].includes(name)) continue;
    const field = value[name];
    const known = Object.hasOwn(properties, name) ? properties[name] : others;
    if (known !== undefined) {
      if (typeof field !== "object") continue;
      issues.push(...unknownFields(field, known, [...path, name]));
    } else if (schema.type === "object" && !additionalProperties && !keeps) {
      const nearest = nearestName(name, Object.keys(properties));
      const hint = nearest === undefined ? "" : `, did you mean "${nearest}"?`;
      const message = `there is no such field${hint}`;
      issues.push({ path: [...path, name], message });
    }
  }
  return issues;
}

function stepOf(
  step: NonNullable<StandardIssue["path"]>[number],
): string | number {
  const key = typeof step === "object" ? step.key : step;
  return typeof key === "number" ? key : String(key);
}

function pathText(path: readonly (string | number)[]): string {
  return path.map((step) => typeof step === "number" ? `[${step}]` : `.${step}`)
    .join("");
}
