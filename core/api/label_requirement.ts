/** How a {@linkcode LabelRequirement} compares. */
export type LabelOperator =
  | "In"
  | "NotIn"
  | "Exists"
  | "DoesNotExist"
  | "Gt"
  | "Lt";

/** One valid condition on one label. */
export interface LabelRequirement {
  /** The name of the label. */
  readonly key: string;
  /** How it compares. */
  readonly operator: LabelOperator;
  /** At least one for `In` and `NotIn`, one integer for `Gt` and `Lt`. */
  readonly values: readonly string[];
}

const NAME_REGEXP = /^[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/;
const PREFIX_REGEXP =
  /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*$/;
const LARGEST_INTEGER = 2n ** 63n - 1n;

/** Whether a text may be the name of a label or an annotation. */
export function isQualifiedName(name: string): boolean {
  const slash = name.indexOf("/");
  if (slash < 0) return NAME_REGEXP.test(name);
  const prefix = name.slice(0, slash);
  return prefix.length <= 253 && PREFIX_REGEXP.test(prefix) &&
    NAME_REGEXP.test(name.slice(slash + 1));
}

/** Whether a text may be the value of a label. */
export function isLabelValue(value: string): boolean {
  return value === "" || NAME_REGEXP.test(value);
}

/** The number that `Gt` and `Lt` compare, if the value is one of 64 bits. */
export function labelInteger(value: string): bigint | undefined {
  if (!/^\d{1,63}$/.test(value)) return undefined;
  const number = BigInt(value);
  return number <= LARGEST_INTEGER ? number : undefined;
}

/**
 * Makes a condition after checking it.
 *
 * @throws {TypeError} If the label name, a value or their number is not valid.
 */
export function labelRequirement(
  key: string,
  operator: string,
  values: readonly string[],
): LabelRequirement {
  const fail = (expected: string, received: unknown): never => {
    throw new TypeError(
      `Cannot select by label "${key}": ${expected}: received ${
        JSON.stringify(received)
      }`,
    );
  };
  if (typeof key !== "string" || !isQualifiedName(key)) {
    fail(
      "a label name is up to 63 letters, digits, -, _ and . with an optional DNS prefix and slash",
      key,
    );
  }
  if (!Array.isArray(values)) fail("values must be an array", values);
  for (const value of values) {
    if (typeof value !== "string" || !isLabelValue(value)) {
      fail(
        "a label value is text of up to 63 letters, digits, -, _ and .",
        value,
      );
    }
  }
  switch (operator) {
    case "In":
    case "NotIn":
      if (values.length === 0) fail(`"${operator}" needs a value`, values);
      break;
    case "Exists":
    case "DoesNotExist":
      if (values.length > 0) fail(`"${operator}" takes no value`, values);
      break;
    case "Gt":
    case "Lt":
      if (values.length !== 1 || labelInteger(values[0] ?? "") === undefined) {
        fail(`"${operator}" needs one integer`, values);
      }
      break;
    default:
      fail("the operator is unknown", operator);
  }
  return { key, operator: operator as LabelOperator, values };
}
