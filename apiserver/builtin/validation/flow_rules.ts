import type {
  FlowcontrolSubject,
  FlowSchemaSpec,
  LimitResponse,
  NonResourcePolicyRule,
  PolicyRulesWithSubjects,
  PriorityLevelConfigurationSpec,
  ResourcePolicyRule,
} from "../../../core/kinds/flowcontrol_v1.ts";
import type { FieldPath } from "../../validation/field_path.ts";
import { subdomainProblems } from "../../validation/names.ts";
import { oneOf, required } from "./field_checks.ts";
import { check, type ValidationRules } from "./validation_rule.ts";

const HIGHEST_PRECEDENCE = 10_000;

function checkFlowSchema(spec: FlowSchemaSpec, fieldPath: FieldPath): void {
  const { matchingPrecedence: precedence = 0 } = spec;
  const wrong = (why: string) =>
    fieldPath.invalid("matchingPrecedence", precedence, why);
  if (precedence <= 0) wrong("must be a positive value");
  if (precedence > HIGHEST_PRECEDENCE) {
    wrong(`must not be greater than ${HIGHEST_PRECEDENCE}`);
  }
  if (precedence === 1) {
    wrong("only the schema named 'exempt' may have matchingPrecedence 1");
  }
  const { name } = spec.priorityLevelConfiguration;
  const at = fieldPath.child("priorityLevelConfiguration");
  if (name) at.problems("name", name, subdomainProblems(name));
  else at.required("name", "must reference a priority level");
}

function checkFlowRule(
  rule: PolicyRulesWithSubjects,
  fieldPath: FieldPath,
): void {
  const { subjects, resourceRules, nonResourceRules } = rule;
  if (!subjects?.length) {
    fieldPath.required("subjects", "subjects must contain at least one value");
  }
  if (resourceRules?.length || nonResourceRules?.length) return;
  fieldPath.required(
    "",
    "at least one of resourceRules and nonResourceRules has to be non-empty",
  );
}

const SUBJECTS = {
  Group: "group",
  ServiceAccount: "serviceAccount",
  User: "user",
} as const;

function checkFlowSubject(
  subject: FlowcontrolSubject,
  fieldPath: FieldPath,
): void {
  const { kind } = subject;
  if (!Object.hasOwn(SUBJECTS, kind)) {
    fieldPath.notSupported("kind", kind, Object.keys(SUBJECTS));
    return;
  }
  const own = SUBJECTS[kind as keyof typeof SUBJECTS];
  const given = subject[own];
  if (given === undefined) {
    fieldPath.required(
      own,
      `${own} is required when subject kind is '${kind}'`,
    );
  } else if (!given.name) fieldPath.required(`${own}.name`);
  if (own === "serviceAccount" && given && !subject.serviceAccount?.namespace) {
    fieldPath.required(
      "serviceAccount.namespace",
      "must specify namespace for service account",
    );
  }
  for (const [other, field] of Object.entries(SUBJECTS)) {
    if (field === own || subject[field] === undefined) continue;
    fieldPath.forbidden(
      field,
      `${field} is forbidden when subject kind is not '${other}'`,
    );
  }
}

function checkResourceRule(
  rule: ResourcePolicyRule,
  fieldPath: FieldPath,
): void {
  const { clusterScope, namespaces } = rule;
  checkVerbs(rule.verbs, fieldPath);
  required("resource rules must supply at least one api group")(
    rule.apiGroups,
    "apiGroups",
    fieldPath,
  );
  required("resource rules must supply at least one resource")(
    rule.resources,
    "resources",
    fieldPath,
  );
  if (clusterScope || namespaces?.length) return;
  fieldPath.required(
    "namespaces",
    "resource rules that are not cluster scoped must supply at least one namespace",
  );
}

function checkVerbs(
  verbs: readonly string[] | undefined,
  fieldPath: FieldPath,
): void {
  required("verbs must contain at least one value")(verbs, "verbs", fieldPath);
}

function checkPriorityLevel(
  { type, limited }: PriorityLevelConfigurationSpec,
  fieldPath: FieldPath,
): void {
  if (type === "Limited" && !limited) {
    fieldPath.required("limited", "must not be empty when type is Limited");
  }
  if (!limited) return;
  const { nominalConcurrencyShares: shares = 0, limitResponse } = limited;
  if (shares < 0) {
    fieldPath.invalid(
      "limited.nominalConcurrencyShares",
      shares,
      "must be a non-negative integer",
    );
  }
  checkLimitResponse(
    limitResponse ?? {},
    fieldPath.child("limited.limitResponse"),
  );
}

function checkLimitResponse(
  { type, queuing }: Partial<LimitResponse>,
  fieldPath: FieldPath,
): void {
  if (type === "Queue") {
    if (queuing) return;
    fieldPath.required(
      "queuing",
      "must not be empty if limited.limitResponse.type is Limited",
    );
  } else if (type === "Reject") {
    if (!queuing) return;
    fieldPath.forbidden(
      "queuing",
      "must be nil if limited.limitResponse.type is not Limited",
    );
  } else oneOf(["Queue", "Reject"])(type, "type", fieldPath);
}

/** Validation rules of FlowSchemas and PriorityLevelConfigurations. */
export const FLOW_RULES: ValidationRules = [
  check("api.flowcontrol.v1.FlowSchemaSpec", checkFlowSchema),
  check("api.flowcontrol.v1.PolicyRulesWithSubjects", checkFlowRule),
  check("api.flowcontrol.v1.Subject", checkFlowSubject),
  check("api.flowcontrol.v1.ResourcePolicyRule", checkResourceRule),
  check(
    "api.flowcontrol.v1.NonResourcePolicyRule",
    ({ verbs, nonResourceURLs }: NonResourcePolicyRule, fieldPath) => {
      checkVerbs(verbs, fieldPath);
      required("nonResourceURLs must contain at least one value")(
        nonResourceURLs,
        "nonResourceURLs",
        fieldPath,
      );
    },
  ),
  check(
    "api.flowcontrol.v1.PriorityLevelConfigurationSpec",
    checkPriorityLevel,
  ),
];
