/**
 * A field selector: values by the path of the field. Servers support
 * `metadata.name` and `metadata.namespace` for all kinds, and a few other
 * fields for some kinds.
 */
export type FieldSelector = Readonly<Record<string, string>>;

/** Term of a selector: the text up to a comma that is not escaped. */
const TERM_REGEXP = /(?:\\[^]?|[^\\,])+/g;

/** A requirement on one field. */
export interface FieldRequirement {
  /** Path of the field, such as `spec.nodeName`. */
  readonly field: string;
  /** Operator: equal or not equal. */
  readonly operator: "=" | "!=";
  /** Value to compare with; empty for a field that is not set. */
  readonly value: string;
}

/**
 * Parses the text form of a field selector, such as
 * `spec.nodeName=n1,status.phase!=Failed`. A backslash escapes a comma, an equals
 * sign or a backslash in a value. The empty text selects everything.
 *
 * @throws {SyntaxError} If the text is not a selector.
 */
export function parseFieldSelector(text: string): FieldRequirement[] {
  return (text.match(TERM_REGEXP) ?? []).map((term) => {
    const match = /^((?:[^=!]|!(?!=))*)(!=|==|=)([^]*)$/.exec(term);
    const [, field = "", operator = "=", value = ""] = match ?? [];
    if (match === null) {
      return fail(
        text,
        'each part must be "field=value" or "field!=value"',
        term,
      );
    }
    return {
      field,
      operator: operator === "!=" ? "!=" : "=",
      value: unescapeValue(value, text),
    };
  });
}

function unescapeValue(value: string, text: string): string {
  if (/(?:^|[^\\])(?:\\\\)*=/.test(value)) {
    fail(text, 'an "=" in a value needs a backslash before it', value);
  }
  if (/\\(?![\\,=])/.test(value.replaceAll("\\\\", ""))) {
    fail(text, 'a backslash stands only before "\\", "," or "="', value);
  }
  return value.replaceAll(/\\([\\,=])/g, "$1");
}

function fail(text: string, why: string, received: string): never {
  throw new SyntaxError(
    `Cannot read field selector "${text}": ${why}: received "${received}"`,
  );
}

/**
 * Converts any form of a field selector into its requirements.
 *
 * @throws {SyntaxError} If a text is not a selector.
 * @throws {TypeError} If a requirement is not valid.
 */
export function fieldRequirements(
  selector: string | FieldSelector | readonly FieldRequirement[],
): readonly FieldRequirement[] {
  if (typeof selector === "string") return parseFieldSelector(selector);
  if (isRequirements(selector)) return selector.map(checked);
  return Object.entries(selector).map(([field, value]) =>
    checked({ field, operator: "=", value })
  );
}

function checked(requirement: FieldRequirement): FieldRequirement {
  const { field, operator, value } = requirement ?? {};
  if (
    typeof field === "string" && field !== "" && typeof value === "string" &&
    (operator === "=" || operator === "!=")
  ) return requirement;
  throw new TypeError(
    `Cannot select by a field: a requirement needs a path, "=" or "!=", and a text: received ${
      JSON.stringify(requirement)
    }`,
  );
}

function isRequirements(
  selector: FieldSelector | readonly FieldRequirement[],
): selector is readonly FieldRequirement[] {
  return Array.isArray(selector);
}

/**
 * Text form of a field selector, for a query. {@linkcode parseFieldSelector}
 * parses it into the same requirements.
 */
export function fieldSelectorText(
  selector: string | FieldSelector | readonly FieldRequirement[],
): string {
  return fieldRequirements(selector).map(({ field, operator, value }) =>
    field + operator + value.replaceAll(/[\\,=]/g, "\\$&")
  ).join(",");
}

/**
 * Whether an object matches all requirements.
 *
 * @param read Returns the value of a field as text; empty if it is not set.
 */
export function matchesFields(
  requirements: readonly FieldRequirement[],
  read: (field: string) => string,
): boolean {
  return requirements.every(({ field, operator, value }) =>
    (read(field) === value) === (operator === "=")
  );
}
