import type { StatusCause } from "../../../api/api_error.ts";
import { isJsonObject, type JsonObject } from "../../../patch/json_value.ts";
import type { Schema } from "../../../patch/schema.ts";
import { type GoType, goType, specialForm } from "../go_types.ts";
import { ACCESS_RULES } from "./access_rules.ts";
import { CLUSTER_RULES } from "./cluster_rules.ts";
import { CONTAINER_RULES } from "./container_rules.ts";
import { JOB_RULES } from "./job_rules.ts";
import { LABEL_RULES } from "./label_rules.ts";
import { NETWORK_RULES } from "./network_rules.ts";
import { Place, type ValidationRule } from "./place.ts";
import { POD_RULES } from "./pod_rules.ts";
import { STORAGE_RULES } from "./storage_rules.ts";
import { VOLUME_RULES } from "./volume_rules.ts";
import { WORKLOAD_RULES } from "./workload_rules.ts";

const RULES: ReadonlyMap<string, ValidationRule> = new Map(
  [
    ...LABEL_RULES,
    ...POD_RULES,
    ...CONTAINER_RULES,
    ...VOLUME_RULES,
    ...WORKLOAD_RULES,
    ...JOB_RULES,
    ...NETWORK_RULES,
    ...STORAGE_RULES,
    ...CLUSTER_RULES,
    ...ACCESS_RULES,
  ].map(([definition, rule]) => [`io.k8s.${definition}`, rule]),
);

/** Enumerations whose rule says more than that a value is none of them. */
const TOLD_BY_RULE: ReadonlySet<string> = new Set([
  "DaemonSetUpdateStrategy.type",
  "DeploymentStrategy.type",
  "StatefulSetSpec.podManagementPolicy",
  "StatefulSetUpdateStrategy.type",
  "PersistentVolumeClaimSpec.accessModes",
  "PersistentVolumeSpec.accessModes",
  "NodeSelectorRequirement.operator",
  "ServiceSpec.ipFamilies",
]);

interface FieldPlan {
  readonly name: string;
  readonly choices: readonly string[] | undefined;
  readonly isList: boolean;
  readonly structs: TypePlan | undefined;
}

interface TypePlan {
  readonly rule: ValidationRule | undefined;
  fields: readonly FieldPlan[];
}

const PLANS: Map<string, TypePlan | undefined> = new Map();

/** What is to be checked at a struct and below; undefined if there is nothing. */
function planOf(type: GoType): TypePlan | undefined {
  if (PLANS.has(type.definition)) return PLANS.get(type.definition);
  PLANS.set(type.definition, undefined);
  const fields: FieldPlan[] = [];
  for (const { name, schema } of type.fields.values()) {
    const struct = structIn(schema);
    const structs = struct && planOf(struct);
    const told = TOLD_BY_RULE.has(`${type.name}.${name}`);
    const found = (schema.source.enum ?? schema.items?.source.enum) as
      | readonly string[]
      | undefined;
    const choices = told ? undefined : found;
    if (!structs && !choices) continue;
    fields.push({ name, choices, isList: schema.items !== undefined, structs });
  }
  const rule = RULES.get(type.definition);
  const plan = rule || fields.length > 0 ? { rule, fields } : undefined;
  PLANS.set(type.definition, plan);
  return plan;
}

function structIn(schema: Schema): GoType | undefined {
  if (specialForm(schema) !== undefined) return undefined;
  if (schema.items) return structIn(schema.items);
  return schema.definition !== undefined && schema.properties.size > 0
    ? goType(schema.definition)
    : undefined;
}

/**
 * What is wrong with a decoded and defaulted object, its metadata and, unless
 * asked for, its status apart: by the rules of the structs in it, and by the
 * choices that their schemas give.
 */
export function typedCauses(
  type: GoType,
  object: JsonObject,
  { part }: { readonly part: "main" | "status" },
): StatusCause[] {
  const causes: StatusCause[] = [];
  const plan = planOf(type);
  if (plan === undefined) return causes;
  const fields = plan.fields.filter(({ name }) =>
    name !== "metadata" && (name === "status") === (part === "status")
  );
  const rule = part === "main" ? plan.rule : undefined;
  follow({ rule, fields }, object, new Place("", causes));
  return causes;
}

function follow(plan: TypePlan, value: unknown, place: Place): void {
  if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) {
      follow(plan, item, place.at(`[${index}]`));
    }
    return;
  }
  if (!isJsonObject(value)) return;
  plan.rule?.(value as never, place);
  for (const { name, choices, isList, structs } of plan.fields) {
    const field = value[name];
    if (field === undefined || field === null) continue;
    if (choices) {
      const given = isList && Array.isArray(field) ? field : [field];
      for (const [index, one] of given.entries()) {
        if (one === "" || choices.includes(one as string)) continue;
        place.notSupported(isList ? `${name}[${index}]` : name, one, choices);
      }
    }
    if (structs) follow(structs, field, place.at(name));
  }
}
