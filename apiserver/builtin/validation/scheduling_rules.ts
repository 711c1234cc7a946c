import type {
  Affinity,
  NodeSelectorRequirement,
  NodeSelectorTerm,
  PodAffinityTerm,
  PodSpec,
  Toleration,
  TopologySpreadConstraint,
} from "../../../core/kinds/core_v1.ts";
import type { FieldPath } from "../../validation/field_path.ts";
import {
  qualifiedNameProblems,
  subdomainProblems,
} from "../../validation/names.ts";
import { checkValueCount } from "./label_rules.ts";
import { check, type ValidationRules } from "./validation_rule.ts";

function checkToleration(toleration: Toleration, fieldPath: FieldPath): void {
  const { key, operator, value, effect, tolerationSeconds } = toleration;
  if (key) fieldPath.problems("key", key, qualifiedNameProblems(key));
  else if (operator !== "Exists") {
    fieldPath.invalid(
      "operator",
      operator ?? "",
      'operator must be Exists when `key` is empty, which means "match all values and all keys"',
    );
  }
  if (tolerationSeconds !== undefined && effect !== "NoExecute") {
    fieldPath.invalid(
      "effect",
      effect ?? "",
      "effect must be 'NoExecute' when `tolerationSeconds` is set",
    );
  }
  if (operator === "Exists" && value) {
    fieldPath.invalid(
      "operator",
      value,
      "value must be empty when `operator` is 'Exists'",
    );
  }
}

/** Checks that topology spread constraints are unique. */
function checkSpreads(spec: PodSpec, fieldPath: FieldPath): void {
  const seen = new Set<string>();
  for (
    const [index, { topologyKey, whenUnsatisfiable }]
      of (spec.topologySpreadConstraints ?? []).entries()
  ) {
    const pair = `{${topologyKey}, ${whenUnsatisfiable}}`;
    if (seen.has(pair)) {
      const first = index - 1;
      fieldPath.duplicate(
        `topologySpreadConstraints[${first}].{topologyKey, whenUnsatisfiable}`,
        pair,
      );
    }
    seen.add(pair);
  }
}

function checkSpread(
  constraint: TopologySpreadConstraint,
  fieldPath: FieldPath,
): void {
  const { maxSkew, topologyKey, whenUnsatisfiable } = constraint;
  if (maxSkew <= 0) {
    fieldPath.invalid("maxSkew", maxSkew, "must be greater than zero");
  }
  if (!topologyKey) fieldPath.required("topologyKey", "can not be empty");
  if (!whenUnsatisfiable) {
    fieldPath.notSupported("whenUnsatisfiable", whenUnsatisfiable, [
      "DoNotSchedule",
      "ScheduleAnyway",
    ]);
  }
}

function checkAffinityTerm(
  { topologyKey }: PodAffinityTerm,
  fieldPath: FieldPath,
): void {
  if (!topologyKey) fieldPath.required("topologyKey", "can not be empty");
  fieldPath.problems(
    "topologyKey",
    topologyKey,
    qualifiedNameProblems(topologyKey),
  );
}

function checkAffinity(affinity: Affinity, fieldPath: FieldPath): void {
  for (
    const part of ["nodeAffinity", "podAffinity", "podAntiAffinity"] as const
  ) {
    const field = "preferredDuringSchedulingIgnoredDuringExecution";
    const preferred: readonly { weight: number }[] = affinity[part]?.[field] ??
      [];
    for (const [index, { weight }] of preferred.entries()) {
      if (weight > 0 && weight <= 100) continue;
      fieldPath.invalid(
        `${part}.${field}[${index}].weight`,
        weight,
        "must be in the range 1-100",
      );
    }
  }
  const required = affinity.nodeAffinity
    ?.requiredDuringSchedulingIgnoredDuringExecution;
  if (required && !required.nodeSelectorTerms?.length) {
    fieldPath.required(
      "nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms",
      "must have at least one node selector term",
    );
  }
}

const WITH_VALUES = ["In", "NotIn"];

function checkRequirement(
  { key, operator, values = [] }: NodeSelectorRequirement,
  fieldPath: FieldPath,
): void {
  if (operator === "Gt" || operator === "Lt") {
    if (values.length !== 1) {
      fieldPath.required(
        "values",
        "must be specified single value when `operator` is 'Lt' or 'Gt'",
      );
    }
  } else if (!checkValueCount(operator, values, fieldPath)) {
    fieldPath.invalid("operator", operator, "not a valid selector operator");
  }
  fieldPath.problems("key", key, qualifiedNameProblems(key));
}

/** Checks a field requirement of a node selector, which supports `metadata.name` only. */
function checkFieldRequirement(
  { key, operator, values = [] }: NodeSelectorRequirement,
  fieldPath: FieldPath,
): void {
  if (!WITH_VALUES.includes(operator)) {
    fieldPath.invalid("operator", operator, "not a valid selector operator");
  } else if (values.length !== 1) {
    fieldPath.required(
      "values",
      "must be only one value when `operator` is 'In' or 'NotIn' for node field selector",
    );
  }
  if (key !== "metadata.name") {
    fieldPath.invalid("key", key, "not a valid field selector key");
    return;
  }
  for (const [index, value] of values.entries()) {
    fieldPath.problems(`values[${index}]`, value, subdomainProblems(value));
  }
}

/** Validation rules of tolerations, affinity and topology spread. */
export const SCHEDULING_RULES: ValidationRules = [
  check("api.core.v1.Toleration", checkToleration),
  check("api.core.v1.TopologySpreadConstraint", checkSpread),
  check("api.core.v1.PodAffinityTerm", checkAffinityTerm),
  check("api.core.v1.Affinity", checkAffinity),
  check("api.core.v1.NodeSelectorTerm", (term: NodeSelectorTerm, fieldPath) => {
    for (
      const [index, requirement] of (term.matchExpressions ?? []).entries()
    ) {
      checkRequirement(
        requirement,
        fieldPath.child(`matchExpressions[${index}]`),
      );
    }
    for (const [index, requirement] of (term.matchFields ?? []).entries()) {
      checkFieldRequirement(
        requirement,
        fieldPath.child(`matchFields[${index}]`),
      );
    }
  }),
  check("api.core.v1.PodSpec", checkSpreads, "after"),
];
