/**
 * Values from outside, such as files, output of programs and annotations, checked
 * by schemas of zod: the words of their errors.
 *
 * Only types are imported from zod. The files with the schemas import it, and are
 * loaded by who reads such a value.
 *
 * @module
 */
import type { core, ZodMiniType } from "zod/mini";

/**
 * Checks a value from outside, and drops what its schema does not have.
 *
 * @param refuse Creates the error from what is wrong, such as `"users[a].name"
 * must be of type string: received nothing`. It quotes no value, since that may be
 * a secret; lists with names are indexed by these.
 * @throws What `refuse` returns, if the value does not match the schema.
 */
export function checkInput<T>(
  value: unknown,
  schema: ZodMiniType<T>,
  refuse: (fault: string) => Error,
): T {
  const { success, data, error } = schema.safeParse(value, {
    reportInput: true,
  });
  if (success) return data;
  const [issue] = error.issues;
  throw refuse(faultText(issue as core.$ZodIssue, value));
}

/** Names of the fields of a record that do not match its schema. */
export function damagedFields(
  value: object,
  schema: ZodMiniType,
): readonly string[] {
  const issues = schema.safeParse(value).error?.issues ?? [];
  return [...new Set(issues.map(({ path: [field] }) => String(field)))];
}

function faultText(issue: core.$ZodIssue, root: unknown): string {
  const path = pathText(issue.path, root);
  return `${path === "" ? "the document" : `"${path}"`} must ${
    expectation(issue)
  }: received ${typeOf(issue.input)}`;
}

function expectation(issue: core.$ZodIssue): string {
  switch (issue.code) {
    case "invalid_type":
      return `be of type ${issue.expected.replace("record", "object")}`;
    case "invalid_value":
      return `be ${
        issue.values.map((value) => `"${String(value)}"`).join(" or ")
      }`;
    default:
      return issue.message;
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

/** Describes the type of a value; the value itself may be secret. */
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
