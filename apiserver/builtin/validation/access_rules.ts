import type {
  ClusterRole,
  PolicyRule,
  RoleBinding,
  RoleRef,
  Subject,
} from "../../../core/kinds/rbac_v1.ts";
import type { FieldPath } from "../../validation/field_path.ts";
import {
  pathSegmentProblems,
  subdomainProblems,
} from "../../validation/names.ts";
import { shownTexts } from "./go_shown.ts";
import { check, type ValidationRules } from "./validation_rule.ts";

const RBAC_GROUP = "rbac.authorization.k8s.io";

function policyRule(isNamespaced: boolean) {
  return (rule: PolicyRule, fieldPath: FieldPath): void => {
    const { verbs, apiGroups, resources, resourceNames, nonResourceURLs } =
      rule;
    if (!verbs?.length) {
      fieldPath.required("verbs", "verbs must contain at least one value");
    }
    if (nonResourceURLs?.length) {
      const shown = shownTexts(nonResourceURLs);
      if (isNamespaced) {
        fieldPath.invalidShown(
          "nonResourceURLs",
          shown,
          "namespaced rules cannot apply to non-resource URLs",
        );
      }
      if (apiGroups?.length || resources?.length || resourceNames?.length) {
        fieldPath.invalidShown(
          "nonResourceURLs",
          shown,
          "rules cannot apply to both regular resources and non-resource URLs",
        );
      }
      return;
    }
    if (!apiGroups?.length) {
      fieldPath.required(
        "apiGroups",
        "resource rules must supply at least one api group",
      );
    }
    if (!resources?.length) {
      fieldPath.required(
        "resources",
        "resource rules must supply at least one resource",
      );
    }
  };
}

function checkRole(isNamespaced: boolean) {
  const checkRule = policyRule(isNamespaced);
  return (
    { rules }: Pick<ClusterRole, "rules">,
    fieldPath: FieldPath,
  ): void => {
    for (const [index, rule] of (rules ?? []).entries()) {
      checkRule(rule, fieldPath.child(`rules[${index}]`));
    }
  };
}

function checkBinding(isNamespaced: boolean) {
  const kinds = isNamespaced ? ["Role", "ClusterRole"] : ["ClusterRole"];
  return (
    { roleRef, subjects = [] }: Pick<RoleBinding, "roleRef" | "subjects">,
    fieldPath: FieldPath,
  ): void => {
    checkRoleRef(roleRef, kinds, fieldPath.child("roleRef"));
    for (const [index, subject] of subjects.entries()) {
      checkSubject(
        subject,
        isNamespaced,
        fieldPath.child(`subjects[${index}]`),
      );
    }
  };
}

function checkRoleRef(
  { apiGroup, kind, name }: RoleRef,
  kinds: readonly string[],
  fieldPath: FieldPath,
): void {
  if (apiGroup !== RBAC_GROUP) {
    fieldPath.notSupported("apiGroup", apiGroup, [RBAC_GROUP]);
  }
  if (!kinds.includes(kind)) fieldPath.notSupported("kind", kind, kinds);
  if (!name) fieldPath.required("name");
  else fieldPath.problems("name", name, pathSegmentProblems(name));
}

function checkSubject(
  { kind, name, apiGroup = "", namespace }: Subject,
  isNamespaced: boolean,
  fieldPath: FieldPath,
): void {
  if (!name) fieldPath.required("name");
  if (kind === "ServiceAccount") {
    if (name) fieldPath.problems("name", name, subdomainProblems(name));
    if (apiGroup) fieldPath.notSupported("apiGroup", apiGroup, [""]);
    if (!isNamespaced && !namespace) fieldPath.required("namespace");
  } else if (kind === "User" || kind === "Group") {
    if (apiGroup !== RBAC_GROUP) {
      fieldPath.notSupported("apiGroup", apiGroup, [RBAC_GROUP]);
    }
  } else {fieldPath.notSupported("kind", kind, [
      "ServiceAccount",
      "User",
      "Group",
    ]);}
}

/** Validation rules of RBAC kinds. */
export const ACCESS_RULES: ValidationRules = [
  check("api.rbac.v1.Role", checkRole(true)),
  check("api.rbac.v1.ClusterRole", checkRole(false)),
  check("api.rbac.v1.RoleBinding", checkBinding(true)),
  check("api.rbac.v1.ClusterRoleBinding", checkBinding(false)),
];
