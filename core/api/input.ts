/**
 * Values from outside, such as files, output of programs and records that are read
 * back, checked by schemas of zod, and the words of the errors.
 *
 * Only types are imported from zod. The files with the schemas import it, and are
 * loaded by who reads such a value.
 *
 * @module
 */
import type { core, ZodMiniType } from "zod/mini";
import { nearestName } from "./options.ts";

/** Words of the error for a value that does not match its schema. */
export interface InputErrors {
  /**
   * Creates the error from what is wrong, such as `"users[a].name" must be of type
   * string: received nothing`.
   */
  readonly refuse: (fault: string) => Error;
  /** Name of the whole value. Defaults to "the document". */
  readonly root?: string | undefined;
  /** Describes a value. Defaults to its type, as the value may be a secret. */
  readonly received?: ((value: unknown) => string) | undefined;
}

/**
 * Checks a value from outside, and drops the fields that its schema does not have.
 * A schema may say what is expected itself, by messages that begin with "must".
 *
 * @throws What `refuse` returns, if the value does not match the schema.
 */
export function checkInput<T>(
  value: unknown,
  schema: ZodMiniType<T>,
  { refuse, root = "the document", received = typeOf }: InputErrors,
): T {
  const { success, data, error } = schema.safeParse(value, {
    reportInput: true,
  });
  if (success) return data;
  const issues = error.issues as readonly core.$ZodIssue[];
  // A misspelt name is the cause of a missing one.
  const issue = issues.find(({ code }) => code === "unrecognized_keys") ??
    issues[0] as core.$ZodIssue;
  const path = pathText(issue.path, value);
  const expected = issue.message.startsWith("must ")
    ? issue.message
    : expectation(issue, schema);
  throw refuse(
    `${path === "" ? root : `"${path}"`} ${expected}: received ${
      received(issue.input)
    }`,
  );
}

/** Names of the fields of a record that do not match its schema. */
export function damagedFields(
  record: object,
  schema: ZodMiniType,
): readonly string[] {
  const issues = schema.safeParse(record).error?.issues ?? [];
  return [...new Set(issues.map(({ path: [field] }) => String(field)))];
}

function expectation(issue: core.$ZodIssue, schema: ZodMiniType): string {
  switch (issue.code) {
    case "invalid_type":
      return `must be of type ${issue.expected.replace("record", "object")}`;
    case "invalid_value":
      return issue.values.length === 1
        ? `must be "${String(issue.values[0])}"`
        : `must be one of ${issue.values.join(", ")}`;
    case "unrecognized_keys": {
      const [name = ""] = issue.keys;
      const { shape = {} } = schema._zod.def as Partial<core.$ZodObjectDef>;
      const nearest = nearestName(name, Object.keys(shape));
      return `must not have "${escaped(name)}"${
        nearest === undefined ? "" : `, did you mean "${nearest}"?`
      }`;
    }
    default:
      return "must be valid";
  }
}

/** Formats a path; an item with a name is indexed by it. */
function pathText(path: readonly PropertyKey[], root: unknown): string {
  let text = "";
  let value = root;
  for (const step of path) {
    value = (value as Record<PropertyKey, unknown> | undefined)?.[step];
    if (typeof step !== "number") text += `.${String(step)}`;
    else {
      const name = (value as { name?: unknown } | null | undefined)?.name;
      text += `[${typeof name === "string" ? name : step}]`;
    }
  }
  return escaped(text.replace(/^\./, ""));
}

/** Describes the type of a value, in the words of YAML. */
function typeOf(value: unknown): string {
  if (value === undefined || value === null) return "nothing";
  if (Array.isArray(value)) return "a list";
  return typeof value === "object" ? "a map" : `a ${typeof value}`;
}

/** Text from outside on one line, with its invisible characters escaped. */
export function escaped(text: string): string {
  return text.replaceAll(
    /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu,
    (found) => `\\u{${(found.codePointAt(0) as number).toString(16)}}`,
  );
}
