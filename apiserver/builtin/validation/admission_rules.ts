import type {
  MatchCondition,
  MatchResources,
  MutatingWebhook,
  MutatingWebhookConfiguration,
  NamedRuleWithOperations,
  ParamKind,
  ParamRef,
  RuleWithOperations,
  ServiceReference,
  ValidatingAdmissionPolicyBindingSpec,
  ValidatingAdmissionPolicySpec,
  ValidatingWebhook,
  Validation,
} from "../../../core/kinds/admissionregistration_v1.ts";
import { parseApiVersion } from "../../../core/api/kind.ts";
import type { FieldPath } from "../../validation/field_path.ts";
import {
  label1035Problems,
  qualifiedNameProblems,
  subdomainProblems,
} from "../../validation/names.ts";
import {
  checkFields,
  type FieldCheck,
  required,
  requiredText,
} from "./field_checks.ts";
import { shownTexts } from "./go_shown.ts";
import { check, type ValidationRules } from "./validation_rule.ts";

const REVIEW_VERSIONS: readonly string[] = ["v1", "v1beta1"];
const SIDE_EFFECTS: readonly string[] = ["None", "NoneOnDryRun"];

function checkWebhook(
  webhook: ValidatingWebhook | MutatingWebhook,
  fieldPath: FieldPath,
): void {
  const { name, sideEffects, clientConfig, timeoutSeconds = 10 } = webhook;
  checkFullName(name, fieldPath);
  if (sideEffects === undefined || sideEffects === null) {
    fieldPath.required(
      "sideEffects",
      `must specify one of ${SIDE_EFFECTS.join(", ")}`,
    );
  } else if (!SIDE_EFFECTS.includes(sideEffects)) {
    fieldPath.notSupported("sideEffects", sideEffects, SIDE_EFFECTS);
  }
  if (timeoutSeconds < 1 || timeoutSeconds > 30) {
    fieldPath.invalid(
      "timeoutSeconds",
      timeoutSeconds,
      "the timeout value must be between 1 and 30 seconds",
    );
  }
  const { url, service } = clientConfig;
  if ((url === undefined) === (service === undefined)) {
    fieldPath.required(
      "clientConfig",
      "exactly one of url or service is required",
    );
  }
  checkConditions(webhook.matchConditions ?? [], fieldPath);
  checkReviewVersions(webhook.admissionReviewVersions ?? [], fieldPath);
}

function checkFullName(name: string, fieldPath: FieldPath): void {
  if (!name) {
    fieldPath.required("name");
    return;
  }
  const problems = subdomainProblems(name);
  fieldPath.problems("name", name, problems);
  if (problems.length > 0 || name.split(".").length >= 3) return;
  fieldPath.invalid(
    "name",
    name,
    "should be a domain with at least three segments separated by dots",
  );
}

function checkReviewVersions(
  versions: readonly string[],
  fieldPath: FieldPath,
): void {
  const accepted = REVIEW_VERSIONS.join(", ");
  if (versions.length === 0) {
    fieldPath.required(
      "admissionReviewVersions",
      `must specify one of ${accepted}`,
    );
    return;
  }
  const seen = new Set<string>();
  for (const [index, version] of versions.entries()) {
    const at = `admissionReviewVersions[${index}]`;
    if (seen.has(version)) fieldPath.invalid(at, version, "duplicate version");
    else fieldPath.problems(at, version, label1035Problems(version));
    seen.add(version);
  }
  if (versions.some((version) => REVIEW_VERSIONS.includes(version))) return;
  fieldPath.invalidShown(
    "admissionReviewVersions",
    shownTexts(versions),
    `must include at least one of ${accepted}`,
  );
}

/** Checks that the webhooks of a configuration have unique names. */
function checkConfiguration(
  { webhooks = [] }: MutatingWebhookConfiguration,
  fieldPath: FieldPath,
): void {
  checkNames(webhooks, "webhooks", fieldPath);
}

function checkNames(
  list: readonly { readonly name?: string | undefined }[],
  field: string,
  fieldPath: FieldPath,
): void {
  const names = new Set<string>();
  for (const [index, { name }] of list.entries()) {
    if (!name) continue;
    if (names.has(name)) fieldPath.duplicate(`${field}[${index}].name`, name);
    names.add(name);
  }
}

function checkConditions(
  conditions: readonly MatchCondition[],
  fieldPath: FieldPath,
): void {
  for (const [index, { name, expression }] of conditions.entries()) {
    const at = fieldPath.child(`matchConditions[${index}]`);
    if (!expression?.trim()) at.required("expression");
    if (!name) at.required("name");
    else at.problems("name", name, qualifiedNameProblems(name));
  }
  checkNames(conditions, "matchConditions", fieldPath);
}

/** Check of a required list in which `*` must be the only item. */
function wildcardAlone(what: string): FieldCheck {
  return (value, field, fieldPath) => {
    const texts = (value ?? []) as readonly string[];
    if (texts.length === 0) fieldPath.required(field);
    if (texts.length < 2 || !texts.includes("*")) return;
    fieldPath.invalidShown(
      field,
      shownTexts(texts),
      `if '*' is present, must not specify other ${what}`,
    );
  };
}

const OPERATIONS: FieldCheck = (value, field, fieldPath) => {
  const operations = (value ?? []) as readonly string[];
  if (operations.length === 0) fieldPath.required(field);
  if (operations.length < 2 || !operations.includes("*")) return;
  fieldPath.invalidShown(
    field,
    shownTexts(operations).replace(
      "[]string",
      "[]admissionregistration.OperationType",
    ),
    "if '*' is present, must not specify other operations",
  );
};

/** Check of a list whose items must not be empty. */
const NO_EMPTY_ITEMS: FieldCheck = (value, field, fieldPath) => {
  for (const [index, text] of ((value ?? []) as string[]).entries()) {
    if (text === "") fieldPath.required(`${field}[${index}]`);
  }
};

function checkRule(rule: RuleWithOperations, fieldPath: FieldPath): void {
  const { operations, apiGroups, apiVersions, resources } = rule;
  OPERATIONS(operations, "operations", fieldPath);
  wildcardAlone("API groups")(apiGroups, "apiGroups", fieldPath);
  wildcardAlone("API versions")(apiVersions, "apiVersions", fieldPath);
  NO_EMPTY_ITEMS(apiVersions, "apiVersions", fieldPath);
  required()(resources, "resources", fieldPath);
  NO_EMPTY_ITEMS(resources, "resources", fieldPath);
}

function checkPolicy(
  spec: ValidatingAdmissionPolicySpec,
  fieldPath: FieldPath,
): void {
  const { matchConstraints, validations = [], auditAnnotations = [] } = spec;
  if (!matchConstraints) fieldPath.required("matchConstraints");
  else if (!matchConstraints.resourceRules?.length) {
    fieldPath.required("matchConstraints.resourceRules");
  }
  checkConditions(spec.matchConditions ?? [], fieldPath);
  if (validations.length > 0 || auditAnnotations.length > 0) return;
  for (const field of ["validations", "auditAnnotations"]) {
    fieldPath.required(
      field,
      "validations or auditAnnotations must contain at least one item",
    );
  }
}

function checkMatchResources(
  match: MatchResources,
  fieldPath: FieldPath,
): void {
  const { resourceRules = [], excludeResourceRules = [] } = match;
  for (
    const [field, rules] of [
      ["resourceRules", resourceRules],
      ["excludeResourceRules", excludeResourceRules],
    ] as const
  ) {
    for (const [index, { resourceNames = [] }] of rules.entries()) {
      const names = new Set<string>();
      for (const [number, name] of resourceNames.entries()) {
        const at = `${field}[${index}].resourceNames[${number}]`;
        if (names.has(name)) fieldPath.duplicate(at, name);
        names.add(name);
      }
    }
  }
}

function checkParamKind(
  { apiVersion, kind }: ParamKind,
  fieldPath: FieldPath,
): void {
  if (!apiVersion) fieldPath.required("apiVersion");
  else {
    const { group, version } = parseApiVersion(apiVersion);
    const wrong = (value: string, problems: readonly string[]) => {
      if (problems.length === 0) return;
      fieldPath.invalid("apiVersion", value, problems.join(","));
    };
    if (group !== "") wrong(group, subdomainProblems(group));
    wrong(version, label1035Problems(version));
  }
  if (!kind) {
    fieldPath.required("kind");
    return;
  }
  const problems = label1035Problems(kind.toLowerCase());
  if (problems.length === 0) return;
  fieldPath.invalid(
    "kind",
    kind,
    `may have mixed case, but should otherwise match: ${problems.join(",")}`,
  );
}

function checkValidation(
  { expression }: Validation,
  fieldPath: FieldPath,
): void {
  if (!expression?.trim()) {
    fieldPath.required("expression", "expression is not specified");
  }
}

function checkPolicyBinding(
  { policyName, validationActions = [] }: ValidatingAdmissionPolicyBindingSpec,
  fieldPath: FieldPath,
): void {
  requiredText(subdomainProblems)(policyName, "policyName", fieldPath);
  const actions = new Set<string>();
  for (const [index, action] of validationActions.entries()) {
    if (actions.has(action)) {
      fieldPath.duplicate(`validationActions[${index}]`, action);
    }
    actions.add(action);
  }
  if (actions.size === 0) {
    fieldPath.required(
      "validationActions",
      "at least one validation action is required",
    );
  }
  if (!actions.has("Deny") || !actions.has("Warn")) return;
  fieldPath.invalidShown(
    "validationActions",
    shownTexts(validationActions).replace(
      "[]string",
      "[]admissionregistration.ValidationAction",
    ),
    "must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)",
  );
}

function checkParamRef(reference: ParamRef, fieldPath: FieldPath): void {
  const { name, selector, parameterNotFoundAction } = reference;
  if (!name && selector === undefined) {
    fieldPath.required("", "one of name or selector must be specified");
  }
  if (name && selector !== undefined) {
    fieldPath.forbidden("name", "name and selector are mutually exclusive");
  }
  if (parameterNotFoundAction === undefined) {
    fieldPath.required("parameterNotFoundAction");
  }
}

/** Validation rules of webhooks and admission policies. */
export const ADMISSION_RULES: ValidationRules = [
  check("api.admissionregistration.v1.ValidatingWebhook", checkWebhook),
  check("api.admissionregistration.v1.MutatingWebhook", checkWebhook),
  check(
    "api.admissionregistration.v1.ValidatingWebhookConfiguration",
    checkConfiguration,
  ),
  check(
    "api.admissionregistration.v1.MutatingWebhookConfiguration",
    checkConfiguration,
  ),
  checkFields<ServiceReference>(
    "api.admissionregistration.v1.ServiceReference",
    {
      name: required("service name is required"),
      namespace: required("service namespace is required"),
    },
  ),
  check("api.admissionregistration.v1.RuleWithOperations", checkRule),
  check(
    "api.admissionregistration.v1.NamedRuleWithOperations",
    (rule: NamedRuleWithOperations, fieldPath) => checkRule(rule, fieldPath),
  ),
  check(
    "api.admissionregistration.v1.ValidatingAdmissionPolicySpec",
    checkPolicy,
  ),
  check("api.admissionregistration.v1.MatchResources", checkMatchResources),
  check("api.admissionregistration.v1.ParamKind", checkParamKind),
  check("api.admissionregistration.v1.Validation", checkValidation),
  check(
    "api.admissionregistration.v1.ValidatingAdmissionPolicyBindingSpec",
    checkPolicyBinding,
  ),
  check("api.admissionregistration.v1.ParamRef", checkParamRef),
];
