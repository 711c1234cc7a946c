import {
  checkOption,
  checkOptions,
  type OptionRules,
} from "../../core/api/options.ts";
import { isJsonObject, jsonEquals } from "../../core/patch/json_value.ts";

/**
 * What a changed field asks for, the weakest first: nothing, a change in place,
 * an upgrade, or an upgrade that does not savepoint state over.
 */
export type ChangeType = "none" | "scale" | "upgrade" | "redeploy";

const STRENGTH: readonly ChangeType[] = [
  "none",
  "scale",
  "upgrade",
  "redeploy",
];

/** What a changed field asks for, in detail. */
export interface FieldChange {
  /** What it asks for. */
  readonly change: ChangeType;
  /**
   * Whether a field that was taken away asks for nothing, as with tokens that
   * trigger something when they are set.
   *
   * @default {false}
   */
  readonly ignoreNull?: boolean | undefined;
  /**
   * Which specs the rule is for, by the one that is asked for; in all others the
   * field asks for an upgrade.
   *
   * @default {all}
   */
  readonly when?: ((spec: unknown) => boolean) | undefined;
}

/**
 * What changed fields ask for, by their path: `replicas`, `image.tag`; `backup.*`
 * is everything below a field, and `*` everything else. The longest match counts;
 * without one, it is an upgrade.
 */
export type ChangeRules = Readonly<Record<string, ChangeType | FieldChange>>;

/** A field that differs between two specs. */
export interface ChangedField {
  /** The path, such as `image.tag`. */
  readonly path: string;
  /** What it was. */
  readonly before: unknown;
  /** What it is. */
  readonly after: unknown;
  /** What that asks for. */
  readonly change: ChangeType;
}

/** The difference between two specs. */
export interface SpecDiff {
  /** The strongest of what the fields ask for. */
  readonly change: ChangeType;
  /** The fields, those that ask for nothing too. */
  readonly fields: readonly ChangedField[];
}

/** The longest text of a value in a description, in UTF-16 code units. */
const LONGEST_VALUE = 80;

/**
 * Compares two specs field by field. Objects are compared inside where both are
 * there; lists and all else as a whole.
 *
 * @param rules What changed fields ask for.
 * @throws {TypeError | RangeError} If a rule is none.
 *
 * @example Replicas are scaled in place
 * ```ts
 * import { changeMap } from "@coracle/operator/workflows";
 *
 * const diff = changeMap({ replicas: "scale", "backup.*": "none" });
 * const { change } = diff({ replicas: 1, image: "a" }, { replicas: 2, image: "a" });
 * if (change !== "scale") throw new Error("Unexpected change");
 * ```
 */
export function changeMap(
  rules: ChangeRules,
): (before: unknown, after: unknown) => SpecDiff {
  checkRules(rules);
  return (before, after) => {
    const fields = [...changedFields(before, after, "")].map((field) => ({
      ...field,
      change: changeOf(rules, field, after),
    }));
    const strongest = Math.max(
      0,
      ...fields.map(({ change }) => STRENGTH.indexOf(change)),
    );
    return { change: STRENGTH[strongest]!, fields };
  };
}

const RULES: OptionRules<FieldChange> = {
  change: STRENGTH,
  ignoreNull: "boolean?",
  when: "function?",
};

function checkRules(rules: ChangeRules): void {
  const subject = "changeMap()";
  checkOption(rules, "object", { name: "rules", subject });
  for (const [name, rule] of Object.entries(rules)) {
    if (typeof rule === "string") {
      checkOption(rule, STRENGTH, { name, subject });
      continue;
    }
    checkOptions(rule, RULES, `${subject}, "${name}"`);
  }
}

/** A difference for people: `replicas: 1 -> 2, image.tag: "a" -> "b"`. */
export function diffText(diff: SpecDiff): string {
  return diff.fields
    .map(({ path, before, after }) =>
      `${path}: ${valueText(before)} -> ${valueText(after)}`
    )
    .join(", ");
}

function valueText(value: unknown): string {
  const text = value === undefined ? "unset" : JSON.stringify(value);
  return text.length > LONGEST_VALUE
    ? `${text.slice(0, LONGEST_VALUE)}…`
    : text;
}

function* changedFields(
  before: unknown,
  after: unknown,
  path: string,
): Generator<Omit<ChangedField, "change">> {
  if (isJsonObject(before) && isJsonObject(after)) {
    const names = new Set([...Object.keys(before), ...Object.keys(after)]);
    for (const name of names) {
      yield* changedFields(
        before[name],
        after[name],
        path === "" ? name : `${path}.${name}`,
      );
    }
  } else if (!jsonEquals(before ?? null, after ?? null)) {
    yield { path, before, after };
  }
}

function changeOf(
  rules: ChangeRules,
  field: Omit<ChangedField, "change">,
  spec: unknown,
): ChangeType {
  const rule = ruleOf(rules, field.path) ?? "upgrade";
  if (typeof rule === "string") return rule;
  if (rule.when?.(spec) === false) return "upgrade";
  return rule.ignoreNull && (field.after ?? null) === null
    ? "none"
    : rule.change;
}

function ruleOf(
  rules: ChangeRules,
  path: string,
): ChangeType | FieldChange | undefined {
  if (Object.hasOwn(rules, path)) return rules[path];
  // A field that came or went as a whole asks for what is below it.
  for (let above = path; above !== ""; above = parentOf(above)) {
    if (Object.hasOwn(rules, `${above}.*`)) return rules[`${above}.*`];
  }
  return rules["*"];
}

function parentOf(path: string): string {
  const dot = path.lastIndexOf(".");
  return dot < 0 ? "" : path.slice(0, dot);
}
