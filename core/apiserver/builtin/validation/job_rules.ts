import type {
  HorizontalPodAutoscalerSpec,
} from "../../../kinds/autoscaling_v2.ts";
import type { CronJobSpec, Job, JobSpec } from "../../../kinds/batch_v1.ts";
import type { PodDisruptionBudgetSpec } from "../../../kinds/policy_v1.ts";
import { scheduleProblem, timeZoneProblem } from "./cron_schedule.ts";
import { shownLabels } from "./go_shown.ts";
import { selects } from "./label_rules.ts";
import { check, type Place, type ValidationRules } from "./place.ts";
import { checkShare } from "./workload_rules.ts";

function checkJob(spec: JobSpec, place: Place): void {
  place.notNegative(
    spec,
    "parallelism",
    "completions",
    "activeDeadlineSeconds",
    "backoffLimit",
    "ttlSecondsAfterFinished",
    "backoffLimitPerIndex",
    "maxFailedIndexes",
  );
  checkIndexes(spec, place);
  const policy = spec.template.spec?.restartPolicy;
  if (policy === "Always" || policy === undefined) {
    place.required(
      "template.spec.restartPolicy",
      'valid values: "OnFailure", "Never"',
    );
  } else if (spec.podFailurePolicy && policy !== "Never") {
    place.invalid(
      "template.spec.restartPolicy",
      policy,
      'only "Never" is supported when podFailurePolicy is specified',
    );
  }
}

function checkIndexes(spec: JobSpec, place: Place): void {
  const { completionMode, backoffLimitPerIndex, maxFailedIndexes } = spec;
  if (maxFailedIndexes !== undefined && backoffLimitPerIndex === undefined) {
    place.required(
      "backoffLimitPerIndex",
      "when maxFailedIndexes is specified",
    );
  }
  if (completionMode === "Indexed") {
    if (spec.completions === undefined) {
      place.required("completions", "when completion mode is Indexed");
    }
    if ((spec.parallelism ?? 0) > 100_000) {
      place.invalid(
        "parallelism",
        spec.parallelism,
        "must be less than or equal to 100000 when completion mode is Indexed",
      );
    }
    const { completions } = spec;
    if (completions !== undefined && (maxFailedIndexes ?? 0) > completions) {
      place.invalid(
        "maxFailedIndexes",
        maxFailedIndexes,
        "must be less than or equal to completions",
      );
    }
    return;
  }
  for (const field of ["backoffLimitPerIndex", "maxFailedIndexes"] as const) {
    if (spec[field] === undefined) continue;
    place.invalid(field, spec[field], "requires indexed completion mode");
  }
}

/** A Job's own selector selects its template; those in templates have none. */
function checkWholeJob({ spec }: Job, place: Place): void {
  if (spec === undefined) return;
  const at = place.at("spec");
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

function checkCronJob(spec: CronJobSpec, place: Place): void {
  const { schedule, timeZone, jobTemplate } = spec;
  if (!schedule) place.required("schedule");
  else {
    const problem = scheduleProblem(schedule);
    if (problem !== undefined) place.invalid("schedule", schedule, problem);
    if (schedule.includes("TZ")) {
      place.invalid(
        "schedule",
        schedule,
        "cannot use TZ or CRON_TZ in schedule, use timeZone field instead",
      );
    }
  }
  if (timeZone !== undefined) {
    const problem = timeZoneProblem(timeZone);
    if (problem !== undefined) place.invalid("timeZone", timeZone, problem);
  }
  place.notNegative(
    spec,
    "startingDeadlineSeconds",
    "successfulJobsHistoryLimit",
    "failedJobsHistoryLimit",
  );
  if (jobTemplate.spec?.manualSelector) {
    place.notSupported("jobTemplate.spec.manualSelector", true, [
      "nil",
      "false",
    ]);
  }
}

function checkBudget(spec: PodDisruptionBudgetSpec, place: Place): void {
  const { minAvailable, maxUnavailable } = spec;
  if (minAvailable !== undefined && maxUnavailable !== undefined) {
    place.invalidShown(
      "",
      "policy.PodDisruptionBudgetSpec",
      "minAvailable and maxUnavailable cannot be both set",
    );
  }
  checkShare("minAvailable", minAvailable, { place, percentLimit: true });
  checkShare("maxUnavailable", maxUnavailable, { place, percentLimit: true });
}

function checkAutoscaler(
  spec: Pick<
    HorizontalPodAutoscalerSpec,
    "minReplicas" | "maxReplicas" | "scaleTargetRef"
  >,
  place: Place,
): void {
  const { minReplicas = 1, maxReplicas, scaleTargetRef } = spec;
  if (minReplicas < 1) {
    place.invalid(
      "minReplicas",
      minReplicas,
      "must be greater than or equal to 1",
    );
  }
  if (maxReplicas < 1) {
    place.invalid("maxReplicas", maxReplicas, "must be greater than 0");
  }
  if (maxReplicas < minReplicas) {
    place.invalid(
      "maxReplicas",
      maxReplicas,
      "must be greater than or equal to `minReplicas`",
    );
  }
  if (!scaleTargetRef.kind) place.required("scaleTargetRef.kind");
  if (!scaleTargetRef.name) place.required("scaleTargetRef.name");
}

/** What is checked of what runs Pods to an end, and of what scales them. */
export const JOB_RULES: ValidationRules = [
  check("api.batch.v1.JobSpec", checkJob),
  check("api.batch.v1.Job", checkWholeJob),
  check("api.batch.v1.CronJobSpec", checkCronJob),
  check("api.policy.v1.PodDisruptionBudgetSpec", checkBudget),
  check("api.autoscaling.v1.HorizontalPodAutoscalerSpec", checkAutoscaler),
  check("api.autoscaling.v2.HorizontalPodAutoscalerSpec", checkAutoscaler),
];
