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
import {
  label1035Problems,
  qualifiedNameProblems,
  subdomainProblems,
} from "../../names.ts";
import {
  checkFields,
  type FieldCheck,
  required,
  requiredText,
} from "./field_checks.ts";
import { shownTexts } from "./go_shown.ts";
import { check, type Place, type ValidationRules } from "./place.ts";

const REVIEW_VERSIONS: readonly string[] = ["v1", "v1beta1"];
const SIDE_EFFECTS: readonly string[] = ["None", "NoneOnDryRun"];

function checkWebhook(
  webhook: ValidatingWebhook | MutatingWebhook,
  place: Place,
): void {
  const { name, sideEffects, clientConfig, timeoutSeconds = 10 } = webhook;
  checkFullName(name, place);
  if (sideEffects === undefined || sideEffects === null) {
    place.required(
      "sideEffects",
      `must specify one of ${SIDE_EFFECTS.join(", ")}`,
    );
  } else if (!SIDE_EFFECTS.includes(sideEffects)) {
    place.notSupported("sideEffects", sideEffects, SIDE_EFFECTS);
  }
  if (timeoutSeconds < 1 || timeoutSeconds > 30) {
    place.invalid(
      "timeoutSeconds",
      timeoutSeconds,
      "the timeout value must be between 1 and 30 seconds",
    );
  }
  const { url, service } = clientConfig;
  if ((url === undefined) === (service === undefined)) {
    place.required("clientConfig", "exactly one of url or service is required");
  }
  checkConditions(webhook.matchConditions ?? [], place);
  checkReviewVersions(webhook.admissionReviewVersions ?? [], place);
}

function checkFullName(name: string, place: Place): void {
  if (!name) {
    place.required("name");
    return;
  }
  const problems = subdomainProblems(name);
  place.problems("name", name, problems);
  if (problems.length > 0 || name.split(".").length >= 3) return;
  place.invalid(
    "name",
    name,
    "should be a domain with at least three segments separated by dots",
  );
}

function checkReviewVersions(
  versions: readonly string[],
  place: Place,
): void {
  const accepted = REVIEW_VERSIONS.join(", ");
  if (versions.length === 0) {
    place.required(
      "admissionReviewVersions",
      `must specify one of ${accepted}`,
    );
    return;
  }
  const seen = new Set<string>();
  for (const [index, version] of versions.entries()) {
    const at = `admissionReviewVersions[${index}]`;
    if (seen.has(version)) place.invalid(at, version, "duplicate version");
    else place.problems(at, version, label1035Problems(version));
    seen.add(version);
  }
  if (versions.some((version) => REVIEW_VERSIONS.includes(version))) return;
  place.invalidShown(
    "admissionReviewVersions",
    shownTexts(versions),
    `must include at least one of ${accepted}`,
  );
}

/** No two webhooks of a configuration have one name. */
function checkConfiguration(
  { webhooks = [] }: MutatingWebhookConfiguration,
  place: Place,
): void {
  checkNames(webhooks, "webhooks", place);
}

function checkNames(
  list: readonly { readonly name?: string | undefined }[],
  field: string,
  place: Place,
): void {
  const names = new Set<string>();
  for (const [index, { name }] of list.entries()) {
    if (!name) continue;
    if (names.has(name)) place.duplicate(`${field}[${index}].name`, name);
    names.add(name);
  }
}

function checkConditions(
  conditions: readonly MatchCondition[],
  place: Place,
): void {
  for (const [index, { name, expression }] of conditions.entries()) {
    const at = place.at(`matchConditions[${index}]`);
    if (!expression?.trim()) at.required("expression");
    if (!name) at.required("name");
    else at.problems("name", name, qualifiedNameProblems(name));
  }
  checkNames(conditions, "matchConditions", place);
}

/** A list that is one star, or anything else. */
function starAlone(what: string): FieldCheck {
  return (value, field, place) => {
    const texts = (value ?? []) as readonly string[];
    if (texts.length === 0) place.required(field);
    if (texts.length < 2 || !texts.includes("*")) return;
    place.invalidShown(
      field,
      shownTexts(texts),
      `if '*' is present, must not specify other ${what}`,
    );
  };
}

const OPERATIONS: FieldCheck = (value, field, place) => {
  const operations = (value ?? []) as readonly string[];
  if (operations.length === 0) place.required(field);
  if (operations.length < 2 || !operations.includes("*")) return;
  place.invalidShown(
    field,
    shownTexts(operations).replace(
      "[]string",
      "[]admissionregistration.OperationType",
    ),
    "if '*' is present, must not specify other operations",
  );
};

/** A list in which no text is empty. */
const FILLED: FieldCheck = (value, field, place) => {
  for (const [index, text] of ((value ?? []) as string[]).entries()) {
    if (text === "") place.required(`${field}[${index}]`);
  }
};

function checkRule(rule: RuleWithOperations, place: Place): void {
  const { operations, apiGroups, apiVersions, resources } = rule;
  OPERATIONS(operations, "operations", place);
  starAlone("API groups")(apiGroups, "apiGroups", place);
  starAlone("API versions")(apiVersions, "apiVersions", place);
  FILLED(apiVersions, "apiVersions", place);
  required()(resources, "resources", place);
  FILLED(resources, "resources", place);
}

function checkPolicy(spec: ValidatingAdmissionPolicySpec, place: Place): void {
  const { matchConstraints, validations = [], auditAnnotations = [] } = spec;
  if (!matchConstraints) place.required("matchConstraints");
  else if (!matchConstraints.resourceRules?.length) {
    place.required("matchConstraints.resourceRules");
  }
  checkConditions(spec.matchConditions ?? [], place);
  if (validations.length > 0 || auditAnnotations.length > 0) return;
  for (const field of ["validations", "auditAnnotations"]) {
    place.required(
      field,
      "validations or auditAnnotations must contain at least one item",
    );
  }
}

function checkMatchResources(match: MatchResources, place: Place): void {
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
        if (names.has(name)) place.duplicate(at, name);
        names.add(name);
      }
    }
  }
}

function checkParamKind({ apiVersion, kind }: ParamKind, place: Place): void {
  if (!apiVersion) place.required("apiVersion");
  else {
    const { group, version } = parseApiVersion(apiVersion);
    const wrong = (value: string, problems: readonly string[]) => {
      if (problems.length === 0) return;
      place.invalid("apiVersion", value, problems.join(","));
    };
    if (group !== "") wrong(group, subdomainProblems(group));
    wrong(version, label1035Problems(version));
  }
  if (!kind) {
    place.required("kind");
    return;
  }
  const problems = label1035Problems(kind.toLowerCase());
  if (problems.length === 0) return;
  place.invalid(
    "kind",
    kind,
    `may have mixed case, but should otherwise match: ${problems.join(",")}`,
  );
}

function checkValidation(
  { expression }: Validation,
  place: Place,
): void {
  if (!expression?.trim()) {
    place.required("expression", "expression is not specified");
  }
}

function checkPolicyBinding(
  { policyName, validationActions = [] }: ValidatingAdmissionPolicyBindingSpec,
  place: Place,
): void {
  requiredText(subdomainProblems)(policyName, "policyName", place);
  const actions = new Set<string>();
  for (const [index, action] of validationActions.entries()) {
    if (actions.has(action)) {
      place.duplicate(`validationActions[${index}]`, action);
    }
    actions.add(action);
  }
  if (actions.size === 0) {
    place.required(
      "validationActions",
      "at least one validation action is required",
    );
  }
  if (!actions.has("Deny") || !actions.has("Warn")) return;
  place.invalidShown(
    "validationActions",
    shownTexts(validationActions).replace(
      "[]string",
      "[]admissionregistration.ValidationAction",
    ),
    "must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)",
  );
}

function checkParamRef(reference: ParamRef, place: Place): void {
  const { name, selector, parameterNotFoundAction } = reference;
  if (!name && selector === undefined) {
    place.required("", "one of name or selector must be specified");
  }
  if (name && selector !== undefined) {
    place.forbidden("name", "name and selector are mutually exclusive");
  }
  if (parameterNotFoundAction === undefined) {
    place.required("parameterNotFoundAction");
  }
}

/** What is checked of what decides about requests. */
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
    (rule: NamedRuleWithOperations, place) => checkRule(rule, place),
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
