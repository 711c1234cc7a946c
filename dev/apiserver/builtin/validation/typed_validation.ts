import {
  isJsonObject,
  type JsonObject,
  type StatusCause,
} from "@coracle/operator/internal";
import { FieldPath } from "../../validation/field_path.ts";
import { type GoType, structIn } from "../go_types.ts";
import { RuleText, type Statement } from "../../validation/rules/rule_text.ts";
import { Scope } from "../../validation/rules/scope.ts";
import { FIELD_CHECKS } from "../data/field_checks.ts";
import { VALIDATION_TEXT } from "../../validation/rules/rule_data.ts";
import { FUNCTIONS } from "./rule_functions.ts";
import { validationLine } from "../../validation/rules/rule_words.ts";

/** Rules of a definition, which run before or after the checks of its fields. */
interface RuleSet {
  readonly before?: Statement | undefined;
  readonly after?: Statement | undefined;
}

/** Validation rules of all definitions, and rules of updates by resource. */
export const VALIDATION_RULES: RuleText = new RuleText({
  text: VALIDATION_TEXT,
  compileLine: validationLine,
  functions: FUNCTIONS,
});

function rulesOf(definition: string): RuleSet {
  const name = definition.replace(/^io\.k8s\.(?:api\.)?/, "");
  return {
    before: VALIDATION_RULES.get(name),
    after: VALIDATION_RULES.get(`after ${name}`),
  };
}

/** Checks of a field. */
interface FieldChecks {
  readonly name: string;
  /** Name of the field in messages. */
  readonly shown: string;
  /** Whether the empty text is checked like other values. */
  readonly hasEmpty: boolean;
  readonly choices: readonly string[] | undefined;
  readonly isList: boolean;
  readonly structs: TypeChecks | undefined;
}

/** Checks of a struct. */
interface TypeChecks {
  readonly rules: Readonly<RuleSet>;
  fields: readonly FieldChecks[];
}

const NO_RULES: RuleSet = {};

const CHECKS: Map<string, TypeChecks | undefined> = new Map();

/** Checks of a struct and the structs in it; undefined if absent. */
function checksOf(type: GoType): TypeChecks | undefined {
  if (CHECKS.has(type.definition)) return CHECKS.get(type.definition);
  CHECKS.set(type.definition, undefined);
  const fields: FieldChecks[] = [];
  for (const { name, schema, presence } of type.fields.values()) {
    const key = `${type.name}.${name}`;
    const struct = FIELD_CHECKS.unchecked.includes(key)
      ? undefined
      : structIn(schema);
    const structs = struct && checksOf(struct);
    const isList = schema.items !== undefined;
    const found = (schema.source.enum ?? schema.items?.source.enum) as
      | readonly string[]
      | undefined;
    const choices = FIELD_CHECKS.checkedByRule.includes(key)
      ? undefined
      : FIELD_CHECKS.choices[key] ?? found;
    if (!structs && !choices) continue;
    const shown = FIELD_CHECKS.shownAs[key] ?? name;
    const hasEmpty = isList || presence === "pointer";
    fields.push({ name, shown, choices, isList, hasEmpty, structs });
  }
  const rules = rulesOf(type.definition);
  const checks = rules.before || rules.after || fields.length > 0
    ? { rules, fields }
    : undefined;
  CHECKS.set(type.definition, checks);
  return checks;
}

/**
 * Validates a decoded and defaulted object by the rules of its structs and the
 * enumerations of their schemas. Metadata is not checked; the status is checked
 * only as the part `status`, the rest only as the part `main`.
 *
 * @returns Violations in the order in which upstream reports them.
 */
export function typedCauses(
  type: GoType,
  object: JsonObject,
  { part, isDeclarative = false, declared }: {
    readonly part: "main" | "status";
    /** Whether validation is declarative, as from 1.37. */
    readonly isDeclarative?: boolean | undefined;
    /** List to which violations of declared rules are appended, from 1.37 on. */
    readonly declared: StatusCause[];
  },
): StatusCause[] {
  const causes: StatusCause[] = [];
  const checks = checksOf(type);
  if (checks === undefined) return causes;
  const fields = checks.fields.filter(({ name }) =>
    name !== "metadata" && (name === "status") === (part === "status")
  );
  const rules = part === "main" ? checks.rules : NO_RULES;
  const path = new FieldPath("", causes, isDeclarative ? declared : causes);
  checkStruct({ rules, fields }, object, { fieldPath: path, isDeclarative });
  return causes;
}

function checkStruct(
  checks: TypeChecks,
  value: unknown,
  { fieldPath, isDeclarative }: {
    readonly fieldPath: FieldPath;
    readonly isDeclarative: boolean;
  },
): void {
  const below = (name: string) => ({
    fieldPath: fieldPath.child(name),
    isDeclarative,
  });
  if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) {
      checkStruct(checks, item, below(`[${index}]`));
    }
    return;
  }
  if (!isJsonObject(value)) return;
  const { before, after } = checks.rules;
  const scope = () =>
    new Scope(value, fieldPath).set("$isDeclarative", isDeclarative);
  before?.(scope());
  for (const field of checks.fields) {
    const given = value[field.name];
    if (given === undefined || given === null) continue;
    checkChoice(field, given, fieldPath);
    if (field.structs) {
      checkStruct(field.structs, given, below(field.shown));
    }
  }
  after?.(scope());
}

function checkChoice(
  { shown, choices, isList, hasEmpty }: FieldChecks,
  given: unknown,
  fieldPath: FieldPath,
): void {
  if (choices === undefined) return;
  const values = isList && Array.isArray(given) ? given : [given];
  for (const [index, value] of values.entries()) {
    if (choices.includes(value as string) || value === "" && !hasEmpty) {
      continue;
    }
    fieldPath.child(isList ? `${shown}[${index}]` : shown)
      .add("notSupported", value, choices);
  }
}

/** Validates a new object by the rules of its resource; returns the violations. */
export function newCauses(
  resource: string,
  object: JsonObject,
  { isDeclarative }: { readonly isDeclarative?: boolean | undefined } = {},
): StatusCause[] {
  return VALIDATION_RULES.causes(`${resource}/create`, object, {
    $isDeclarative: isDeclarative,
  });
}

/**
 * Validates an update of an object by the rules of its resource; returns the
 * violations.
 */
export function changeCauses(
  resource: string,
  object: JsonObject,
  live: JsonObject,
  { now, isDeclarative }: {
    /** Time of the request, in milliseconds since the Unix epoch. */
    readonly now?: number;
    /** Whether validation is declarative, as from 1.37. */
    readonly isDeclarative?: boolean | undefined;
  } = {},
): StatusCause[] {
  return VALIDATION_RULES.causes(resource, object, {
    $live: live,
    $now: now,
    $isDeclarative: isDeclarative,
  });
}
