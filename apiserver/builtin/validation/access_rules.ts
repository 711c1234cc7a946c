import type {
  ClusterRole,
  PolicyRule,
  RoleBinding,
  RoleRef,
  Subject,
} from "../../../core/kinds/rbac_v1.ts";
import { pathSegmentProblems, subdomainProblems } from "../../names.ts";
import { shownTexts } from "./go_shown.ts";
import { check, type Place, type ValidationRules } from "./place.ts";

const RBAC_GROUP = "rbac.authorization.k8s.io";

function policyRule(isNamespaced: boolean) {
  return (rule: PolicyRule, place: Place): void => {
    const { verbs, apiGroups, resources, resourceNames, nonResourceURLs } =
      rule;
    if (!verbs?.length) {
      place.required("verbs", "verbs must contain at least one value");
    }
    if (nonResourceURLs?.length) {
      const shown = shownTexts(nonResourceURLs);
      if (isNamespaced) {
        place.invalidShown(
          "nonResourceURLs",
          shown,
          "namespaced rules cannot apply to non-resource URLs",
        );
      }
      if (apiGroups?.length || resources?.length || resourceNames?.length) {
        place.invalidShown(
          "nonResourceURLs",
          shown,
          "rules cannot apply to both regular resources and non-resource URLs",
        );
      }
      return;
    }
    if (!apiGroups?.length) {
      place.required(
        "apiGroups",
        "resource rules must supply at least one api group",
      );
    }
    if (!resources?.length) {
      place.required(
        "resources",
        "resource rules must supply at least one resource",
      );
    }
  };
}

function checkRole(isNamespaced: boolean) {
  const checkRule = policyRule(isNamespaced);
  return ({ rules }: Pick<ClusterRole, "rules">, place: Place): void => {
    for (const [index, rule] of (rules ?? []).entries()) {
      checkRule(rule, place.at(`rules[${index}]`));
    }
  };
}

function checkBinding(isNamespaced: boolean) {
  const kinds = isNamespaced ? ["Role", "ClusterRole"] : ["ClusterRole"];
  return (
    { roleRef, subjects = [] }: Pick<RoleBinding, "roleRef" | "subjects">,
    place: Place,
  ): void => {
    checkRoleRef(roleRef, kinds, place.at("roleRef"));
    for (const [index, subject] of subjects.entries()) {
      checkSubject(subject, isNamespaced, place.at(`subjects[${index}]`));
    }
  };
}

function checkRoleRef(
  { apiGroup, kind, name }: RoleRef,
  kinds: readonly string[],
  place: Place,
): void {
  if (apiGroup !== RBAC_GROUP) {
    place.notSupported("apiGroup", apiGroup, [RBAC_GROUP]);
  }
  if (!kinds.includes(kind)) place.notSupported("kind", kind, kinds);
  if (!name) place.required("name");
  else place.problems("name", name, pathSegmentProblems(name));
}

function checkSubject(
  { kind, name, apiGroup = "", namespace }: Subject,
  isNamespaced: boolean,
  place: Place,
): void {
  if (!name) place.required("name");
  if (kind === "ServiceAccount") {
    if (name) place.problems("name", name, subdomainProblems(name));
    if (apiGroup) place.notSupported("apiGroup", apiGroup, [""]);
    if (!isNamespaced && !namespace) place.required("namespace");
  } else if (kind === "User" || kind === "Group") {
    if (apiGroup !== RBAC_GROUP) {
      place.notSupported("apiGroup", apiGroup, [RBAC_GROUP]);
    }
  } else place.notSupported("kind", kind, ["ServiceAccount", "User", "Group"]);
}

/** What is checked of what says who may do what. */
export const ACCESS_RULES: ValidationRules = [
  check("api.rbac.v1.Role", checkRole(true)),
  check("api.rbac.v1.ClusterRole", checkRole(false)),
  check("api.rbac.v1.RoleBinding", checkBinding(true)),
  check("api.rbac.v1.ClusterRoleBinding", checkBinding(false)),
];
