import { immediate } from "../../core/callback.ts";
import {
  checkOption,
  checkOptions,
  type OptionRules,
} from "../../core/api/options.ts";
import { isJsonObject, jsonEquals } from "../../core/patch/json_value.ts";

/** Difference between two specs. */
export interface SpecDiff {
  /**
   * Change that is needed: the strongest one that any field needs.
   *
   * - `"none"`: no change.
   * - `"scale"`: a change in place.
   * - `"upgrade"`: a new deployment that keeps the state.
   * - `"redeploy"`: a new deployment without the old state.
   */
  readonly change: "none" | "scale" | "upgrade" | "redeploy";
  /** Fields that differ, including those that need no change. */
  readonly fields: readonly {
    /** Path of the field, such as `image.tag`. */
    readonly path: string;
    /** Value in the old spec. */
    readonly before: unknown;
    /** Value in the new spec. */
    readonly after: unknown;
    /** Change that the field needs. */
    readonly change: SpecDiff["change"];
  }[];
}

type ChangeType = SpecDiff["change"];
type ChangeRules = Parameters<typeof changeMap>[0];
type FieldChange = Exclude<ChangeRules[string], string>;
type ChangedField = SpecDiff["fields"][number];

/** Changes in ascending strength. */
const CHANGES: readonly ChangeType[] = [
  "none",
  "scale",
  "upgrade",
  "redeploy",
];

const MAX_VALUE_LENGTH = 80;

/**
 * Creates a function that compares two specs field by field. Objects are
 * compared recursively if both exist; lists and other values as a whole.
 *
 * Rules are found by the path of a field: `replicas`, `image.tag`; `backup.*`
 * stands for everything below a field, and `*` for all others. The longest
 * match counts; without one, the change is an upgrade.
 *
 * @param rules The change that each field needs. With `ignoreNull`, removing
 * the field needs no change, for tokens that trigger an action (false by
 * default). `when` restricts a rule to certain new specs; for all others the
 * field needs an upgrade.
 * @throws {TypeError | RangeError} If a rule is invalid.
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
  rules: Readonly<
    Record<
      string,
      SpecDiff["change"] | {
        readonly change: SpecDiff["change"];
        readonly ignoreNull?: boolean | undefined;
        readonly when?: ((spec: unknown) => boolean) | undefined;
      }
    >
  >,
): (before: unknown, after: unknown) => SpecDiff {
  checkRules(rules);
  return (before, after) => {
    const fields = [...changedFields(before, after, "")].map((field) => ({
      ...field,
      change: changeOf(rules, field, after),
    }));
    const strongest = CHANGES.findLast((one) =>
      fields.some(({ change }) => change === one)
    );
    return { change: strongest ?? "none", fields };
  };
}

const RULES: OptionRules<FieldChange> = {
  change: CHANGES,
  ignoreNull: "boolean?",
  when: "function?",
};

function checkRules(rules: ChangeRules): void {
  const subject = "changeMap()";
  checkOption(rules, "object", { name: "rules", subject });
  for (const [name, rule] of Object.entries(rules)) {
    if (typeof rule === "string") checkOption(rule, CHANGES, { name, subject });
    else checkOptions(rule, RULES, `${subject}, "${name}"`);
  }
}

/**
 * Formats a difference for users: `replicas: 1 -> 2, image.tag: "a" -> "b"`.
 */
export function diffText(diff: SpecDiff): string {
  return diff.fields
    .map(({ path, before, after }) =>
      `${path}: ${valueText(before)} -> ${valueText(after)}`
    )
    .join(", ");
}

function valueText(value: unknown): string {
  const text = value === undefined ? "unset" : JSON.stringify(value);
  return text.length > MAX_VALUE_LENGTH
    ? `${text.slice(0, MAX_VALUE_LENGTH)}…`
    : text;
}

function* changedFields(
  before: unknown,
  after: unknown,
  path: string,
): Generator<Omit<ChangedField, "change">> {
  if (isJsonObject(before) && isJsonObject(after)) {
    for (const name of Object.keys({ ...before, ...after })) {
      const inner = path === "" ? name : `${path}.${name}`;
      yield* changedFields(before[name], after[name], inner);
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
  if (immediate(rule.when?.(spec), "when()") === false) return "upgrade";
  return rule.ignoreNull && (field.after ?? null) === null
    ? "none"
    : rule.change;
}

function ruleOf(
  rules: ChangeRules,
  path: string,
): ChangeType | FieldChange | undefined {
  if (Object.hasOwn(rules, path)) return rules[path];
  // A field that was added or removed as a whole follows the rule below it.
  const steps = path.split(".");
  for (let length = steps.length; length > 0; length--) {
    const below = `${steps.slice(0, length).join(".")}.*`;
    if (Object.hasOwn(rules, below)) return rules[below];
  }
  return rules["*"];
}
