import type {
  CronJobSpec,
  Job,
  JobSpec,
  PodFailurePolicyOnExitCodesRequirement,
} from "../../../core/kinds/batch_v1.ts";
import type { PodDisruptionBudgetSpec } from "../../../core/kinds/policy_v1.ts";
import type { FieldPath } from "../../validation/field_path.ts";
import {
  labelProblems,
  qualifiedNameProblems,
  subdomainProblems,
} from "../../validation/names.ts";
import { scheduleProblem, timeZoneProblem } from "./cron_schedule.ts";
import { shownLabels } from "./go_shown.ts";
import { selects } from "./label_rules.ts";
import { check, type ValidationRules } from "./validation_rule.ts";
import { checkIntOrPercent } from "./workload_rules.ts";

function checkJob(spec: JobSpec, fieldPath: FieldPath): void {
  fieldPath.notNegative(
    spec,
    "parallelism",
    "completions",
    "activeDeadlineSeconds",
    "backoffLimit",
    "ttlSecondsAfterFinished",
    "backoffLimitPerIndex",
    "maxFailedIndexes",
  );
  checkIndexes(spec, fieldPath);
  checkManager(spec.managedBy, fieldPath);
  checkFailurePolicy(spec, fieldPath);
  checkSuccessPolicy(spec, fieldPath);
}

/** Checks that the Pods of a Job terminate. Runs after the checks of their template. */
function checkTermination(
  { template, podFailurePolicy }: JobSpec,
  fieldPath: FieldPath,
): void {
  const policy = template.spec?.restartPolicy;
  const at = "template.spec.restartPolicy";
  if (policy === "Always" || policy === undefined) {
    fieldPath.required(at, 'valid values: "OnFailure", "Never"');
  } else if (policy !== "OnFailure" && policy !== "Never") {
    fieldPath.notSupported(at, policy, ["OnFailure", "Never"]);
  } else if (podFailurePolicy && policy !== "Never") {
    fieldPath.invalid(
      at,
      policy,
      'only "Never" is supported when podFailurePolicy is specified',
    );
  }
}

/** Checks that the name of an external controller has a domain prefix. */
function checkManager(name: string | undefined, fieldPath: FieldPath): void {
  if (name === undefined) return;
  if (name === "") fieldPath.required("managedBy");
  else if (!/^[^/]+\/./.test(name)) {
    fieldPath.invalid(
      "managedBy",
      name,
      'must be a domain-prefixed path (such as "acme.io/foo")',
    );
  } else {
    const domain = name.slice(0, name.indexOf("/"));
    fieldPath.problems("managedBy", domain, subdomainProblems(domain));
  }
  if (name.length > 63) fieldPath.tooLong("managedBy", 63);
}

function quoted(values: readonly string[]): string {
  return `valid values: [${
    values.map((value) => JSON.stringify(value)).join(" ")
  }]`;
}

const ACTIONS = ["Count", "FailIndex", "FailJob", "Ignore"];
const OPERATORS = ["In", "NotIn"];

function checkFailurePolicy(spec: JobSpec, fieldPath: FieldPath): void {
  const pod = spec.template.spec;
  const names = [...pod?.containers ?? [], ...pod?.initContainers ?? []]
    .map(({ name }) => name);
  for (
    const [index, rule] of (spec.podFailurePolicy?.rules ?? []).entries()
  ) {
    const at = fieldPath.child(`podFailurePolicy.rules[${index}]`);
    const { action, onExitCodes, onPodConditions = [] } = rule;
    if (!action) at.required("action", quoted(ACTIONS));
    else if (
      action === "FailIndex" && spec.backoffLimitPerIndex === undefined
    ) {
      at.invalid(
        "action",
        action,
        "requires the backoffLimitPerIndex to be set",
      );
    }
    if (onExitCodes) {
      checkExitCodes(onExitCodes, names, at.child("onExitCodes"));
    }
    for (const [number, { type }] of onPodConditions.entries()) {
      at.problems(
        `onPodConditions[${number}].type`,
        type,
        qualifiedNameProblems(type),
      );
    }
    if (Boolean(onExitCodes) !== onPodConditions.length > 0) continue;
    at.invalidAs(
      onExitCodes
        ? "specifying both OnExitCodes and OnPodConditions is not supported"
        : "specifying one of OnExitCodes and OnPodConditions is required",
    );
  }
}

function checkExitCodes(
  codes: PodFailurePolicyOnExitCodesRequirement,
  names: readonly string[],
  fieldPath: FieldPath,
): void {
  const { operator, containerName, values } = codes;
  if (!operator) fieldPath.required("operator", quoted(OPERATORS));
  if (containerName !== undefined && !names.includes(containerName)) {
    fieldPath.invalid(
      "containerName",
      containerName,
      "must be one of the container or initContainer names in the pod template",
    );
  }
  if (!values?.length) {
    fieldPath.invalidShown(
      "values",
      values ? "[]int32{}" : "[]int32(nil)",
      "at least one value is required",
    );
    return;
  }
  for (const [index, value] of values.entries()) {
    const at = `values[${index}]`;
    if (operator === "In" && value === 0) {
      fieldPath.invalid(at, value, "must not be 0 for the In operator");
    }
    if (values.indexOf(value) < index) fieldPath.duplicate(at, value);
  }
  if (values.every((value, index) => (values[index - 1] ?? value) <= value)) {
    return;
  }
  fieldPath.invalidShown(
    "values",
    `[]int32{${values.join(", ")}}`,
    "must be ordered",
  );
}

function checkSuccessPolicy(
  { successPolicy, completionMode }: JobSpec,
  fieldPath: FieldPath,
): void {
  if (!successPolicy || completionMode !== "Indexed") return;
  const { rules } = successPolicy;
  if (!rules?.length) {
    fieldPath.required(
      "successPolicy.rules",
      "at least one rules must be specified when the successPolicy is specified",
    );
    return;
  }
  for (const [index, { succeededCount, succeededIndexes }] of rules.entries()) {
    if (succeededCount !== undefined || succeededIndexes !== undefined) {
      continue;
    }
    fieldPath.required(
      `successPolicy.rules[${index}]`,
      "at least one of succeededCount or succeededIndexes must be specified",
    );
  }
}

function checkIndexes(spec: JobSpec, fieldPath: FieldPath): void {
  const { completionMode, backoffLimitPerIndex, maxFailedIndexes } = spec;
  if (maxFailedIndexes !== undefined && backoffLimitPerIndex === undefined) {
    fieldPath.required(
      "backoffLimitPerIndex",
      "when maxFailedIndexes is specified",
    );
  }
  if (completionMode === "Indexed") {
    if (spec.completions === undefined) {
      fieldPath.required("completions", "when completion mode is Indexed");
    }
    if ((spec.parallelism ?? 0) > 100_000) {
      fieldPath.invalid(
        "parallelism",
        spec.parallelism,
        "must be less than or equal to 100000 when completion mode is Indexed",
      );
    }
    const { completions } = spec;
    if (completions !== undefined && (maxFailedIndexes ?? 0) > completions) {
      fieldPath.invalid(
        "maxFailedIndexes",
        maxFailedIndexes,
        "must be less than or equal to completions",
      );
    }
    return;
  }
  if (completionMode !== "NonIndexed") return;
  for (const field of ["backoffLimitPerIndex", "maxFailedIndexes"] as const) {
    if (spec[field] === undefined) continue;
    fieldPath.invalid(field, spec[field], "requires indexed completion mode");
  }
}

/** Checks that the names of the Pods of an indexed Job, which end with an index, are valid. */
function checkIndexedName(
  name: string,
  { completionMode, completions = 0 }: JobSpec,
  fieldPath: FieldPath,
): void {
  if (completionMode !== "Indexed" || completions < 1) return;
  const pod = `${name}-${completions - 1}`;
  if (labelProblems(pod).length === 0) return;
  fieldPath.invalid(
    "metadata.name",
    name,
    `will not able to create pod with invalid DNS label: ${pod}`,
  );
}

/** Checks that the selector of a Job matches its template; does not apply to Job templates. */
function checkWholeJob({ metadata, spec }: Job, fieldPath: FieldPath): void {
  if (spec === undefined) return;
  const at = fieldPath.child("spec");
  checkIndexedName(metadata.name ?? "", spec, fieldPath);
  const labels = spec.template.metadata?.labels;
  const { selector } = spec;
  if (!selector) at.required("selector");
  if (!selector || selects(selector, labels ?? {}) === false) {
    at.invalidShown(
      "template.metadata.labels",
      shownLabels(labels),
      "`selector` does not match template `labels`",
    );
  }
}

function checkCronJob(spec: CronJobSpec, fieldPath: FieldPath): void {
  const { schedule, timeZone, jobTemplate } = spec;
  if (!schedule) fieldPath.required("schedule");
  else {
    const problem = scheduleProblem(schedule);
    if (problem !== undefined) fieldPath.invalid("schedule", schedule, problem);
    if (schedule.includes("TZ")) {
      fieldPath.invalid(
        "schedule",
        schedule,
        "cannot use TZ or CRON_TZ in schedule, use timeZone field instead",
      );
    }
  }
  if (timeZone !== undefined) {
    const problem = timeZoneProblem(timeZone);
    if (problem !== undefined) fieldPath.invalid("timeZone", timeZone, problem);
  }
  fieldPath.notNegative(
    spec,
    "startingDeadlineSeconds",
    "successfulJobsHistoryLimit",
    "failedJobsHistoryLimit",
  );
  if (jobTemplate.spec?.manualSelector) {
    fieldPath.notSupported("jobTemplate.spec.manualSelector", true, [
      "nil",
      "false",
    ]);
  }
}

function checkBudget(
  spec: PodDisruptionBudgetSpec,
  fieldPath: FieldPath,
): void {
  const { minAvailable, maxUnavailable } = spec;
  if (minAvailable !== undefined && maxUnavailable !== undefined) {
    fieldPath.invalidShown(
      "",
      "policy.PodDisruptionBudgetSpec",
      "minAvailable and maxUnavailable cannot be both set",
    );
  }
  checkIntOrPercent("minAvailable", minAvailable, {
    fieldPath,
    percentLimit: true,
  });
  checkIntOrPercent("maxUnavailable", maxUnavailable, {
    fieldPath,
    percentLimit: true,
  });
}

/** Validation rules of Jobs, CronJobs and PodDisruptionBudgets. */
export const JOB_RULES: ValidationRules = [
  check("api.batch.v1.JobSpec", checkJob),
  check("api.batch.v1.JobSpec", checkTermination, "after"),
  check("api.batch.v1.Job", checkWholeJob),
  check("api.batch.v1.CronJobSpec", checkCronJob),
  check("api.policy.v1.PodDisruptionBudgetSpec", checkBudget),
];
