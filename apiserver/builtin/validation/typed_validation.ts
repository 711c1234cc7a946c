import type { StatusCause } from "../../../core/api/api_error.ts";
import {
  isJsonObject,
  type JsonObject,
} from "../../../core/patch/json_value.ts";
import { FieldPath } from "../../validation/field_path.ts";
import { type GoType, structIn } from "../go_types.ts";
import { ACCESS_RULES } from "./access_rules.ts";
import { ADMISSION_RULES } from "./admission_rules.ts";
import { AUTOSCALER_RULES } from "./autoscaler_rules.ts";
import { CHECKED_BY_RULE, CHOICES, SHOWN_AS, UNCHECKED } from "./choices.ts";
import { CLUSTER_RULES } from "./cluster_rules.ts";
import { CONTAINER_RULES } from "./container_rules.ts";
import { ENDPOINT_RULES } from "./endpoint_rules.ts";
import { FLOW_RULES } from "./flow_rules.ts";
import { INGRESS_RULES } from "./ingress_rules.ts";
import { JOB_RULES } from "./job_rules.ts";
import { LABEL_RULES } from "./label_rules.ts";
import { NETWORK_RULES } from "./network_rules.ts";
import type { ValidationRule } from "./validation_rule.ts";
import { POD_RULES } from "./pod_rules.ts";
import { REFERENCE_RULES } from "./reference_rules.ts";
import { REGISTRATION_RULES } from "./registration_rules.ts";
import { SCHEDULING_RULES } from "./scheduling_rules.ts";
import { STORAGE_RULES } from "./storage_rules.ts";
import { VOLUME_RULES } from "./volume_rules.ts";
import { VOLUME_SOURCE_RULES } from "./volume_source_rules.ts";
import { WORKLOAD_RULES } from "./workload_rules.ts";

/** Rules of a definition, which run before or after the checks of its fields. */
interface RuleSet {
  readonly before: ValidationRule[];
  readonly after: ValidationRule[];
}

const RULES: ReadonlyMap<string, RuleSet> = groupRules();

function groupRules(): Map<string, RuleSet> {
  const sets = new Map<string, RuleSet>();
  for (
    const [definition, rule, when = "before"] of [
      ...LABEL_RULES,
      ...POD_RULES,
      ...SCHEDULING_RULES,
      ...CONTAINER_RULES,
      ...REFERENCE_RULES,
      ...VOLUME_RULES,
      ...VOLUME_SOURCE_RULES,
      ...WORKLOAD_RULES,
      ...JOB_RULES,
      ...AUTOSCALER_RULES,
      ...NETWORK_RULES,
      ...INGRESS_RULES,
      ...STORAGE_RULES,
      ...CLUSTER_RULES,
      ...ACCESS_RULES,
      ...ADMISSION_RULES,
      ...FLOW_RULES,
      ...ENDPOINT_RULES,
      ...REGISTRATION_RULES,
    ]
  ) {
    const name = `io.k8s.${definition}`;
    const set = sets.get(name) ?? { before: [], after: [] };
    set[when].push(rule);
    sets.set(name, set);
  }
  return sets;
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

const NO_RULES: RuleSet = { before: [], after: [] };

const CHECKS: Map<string, TypeChecks | undefined> = new Map();

/** Checks of a struct and the structs in it; undefined if absent. */
function checksOf(type: GoType): TypeChecks | undefined {
  if (CHECKS.has(type.definition)) return CHECKS.get(type.definition);
  CHECKS.set(type.definition, undefined);
  const fields: FieldChecks[] = [];
  for (const { name, schema, presence } of type.fields.values()) {
    const key = `${type.name}.${name}`;
    const struct = UNCHECKED.has(key) ? undefined : structIn(schema);
    const structs = struct && checksOf(struct);
    const isList = schema.items !== undefined;
    const found = (schema.source.enum ?? schema.items?.source.enum) as
      | readonly string[]
      | undefined;
    const choices = CHECKED_BY_RULE.has(key)
      ? undefined
      : CHOICES.get(key) ?? found;
    if (!structs && !choices) continue;
    const shown = SHOWN_AS.get(key) ?? name;
    const hasEmpty = isList || presence === "pointer";
    fields.push({ name, shown, choices, isList, hasEmpty, structs });
  }
  const rules = RULES.get(type.definition);
  const checks = rules || fields.length > 0
    ? { rules: rules ?? NO_RULES, fields }
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
  { part }: { readonly part: "main" | "status" },
): StatusCause[] {
  const causes: StatusCause[] = [];
  const checks = checksOf(type);
  if (checks === undefined) return causes;
  const fields = checks.fields.filter(({ name }) =>
    name !== "metadata" && (name === "status") === (part === "status")
  );
  const rules = part === "main" ? checks.rules : NO_RULES;
  checkStruct({ rules, fields }, object, new FieldPath("", causes));
  return causes;
}

function checkStruct(
  checks: TypeChecks,
  value: unknown,
  fieldPath: FieldPath,
): void {
  if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) {
      checkStruct(checks, item, fieldPath.child(`[${index}]`));
    }
    return;
  }
  if (!isJsonObject(value)) return;
  for (const rule of checks.rules.before) rule(value as never, fieldPath);
  for (const field of checks.fields) {
    const given = value[field.name];
    if (given === undefined || given === null) continue;
    checkChoice(field, given, fieldPath);
    if (field.structs) {
      checkStruct(field.structs, given, fieldPath.child(field.shown));
    }
  }
  for (const rule of checks.rules.after) rule(value as never, fieldPath);
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
    fieldPath.notSupported(
      isList ? `${shown}[${index}]` : shown,
      value,
      choices,
    );
  }
}
