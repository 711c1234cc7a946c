import type {
  ControllerRevision,
  DaemonSet,
  Deployment,
  ReplicaSet,
  StatefulSet,
} from "../../../core/kinds/apps_v1.ts";
import type {
  CronJob,
  Job,
  JobCondition,
} from "../../../core/kinds/batch_v1.ts";
import type {
  PodTemplate,
  ReplicationController,
} from "../../../core/kinds/core_v1.ts";
import type { PodDisruptionBudget } from "../../../core/kinds/policy_v1.ts";
import { parseApiVersion } from "../../../core/api/kind.ts";
import { humanAge, humanDuration } from "../../human_duration.ts";
import {
  ageOf,
  containerCells,
  labelsText,
  nameOf,
  type Printer,
  selectorCell,
  selectorText,
} from "./cell_text.ts";

/** Printers of the workload kinds and PodDisruptionBudgets. */
export const WORKLOAD_COLUMNS: Readonly<Record<string, Printer>> = {
  replicationcontrollers: (object: ReplicationController, now) => [
    ...replicaCells(object, now),
    ...containerCells(object.spec?.template?.spec?.containers),
    labelsText(object.spec?.selector),
  ],
  "replicasets.apps": (object: ReplicaSet, now) => [
    ...replicaCells(object, now),
    ...containerCells(object.spec?.template?.spec?.containers),
    selectorCell(object.spec?.selector),
  ],
  "deployments.apps": deploymentCells,
  "statefulsets.apps": (object: StatefulSet, now) => [
    nameOf(object),
    `${object.status?.readyReplicas ?? 0}/${object.spec?.replicas ?? 0}`,
    ageOf(object, now),
    ...containerCells(object.spec?.template.spec?.containers),
  ],
  "daemonsets.apps": daemonSetCells,
  "controllerrevisions.apps": (object: ControllerRevision, now) => [
    nameOf(object),
    controllerOf(object),
    object.revision,
    ageOf(object, now),
  ],
  "jobs.batch": (object: Job, now) => [
    nameOf(object),
    jobStatus(object),
    completions(object),
    jobDuration(object, now),
    ageOf(object, now),
    ...containerCells(object.spec?.template.spec?.containers),
    selectorCell(object.spec?.selector),
  ],
  "cronjobs.batch": cronJobCells,
  podtemplates: (object: PodTemplate) => [
    nameOf(object),
    ...containerCells(object.template?.spec?.containers),
    labelsText(object.template?.metadata?.labels),
  ],
  "poddisruptionbudgets.policy": (object: PodDisruptionBudget, now) => [
    nameOf(object),
    String(object.spec?.minAvailable ?? "N/A"),
    String(object.spec?.maxUnavailable ?? "N/A"),
    object.status?.disruptionsAllowed ?? 0,
    ageOf(object, now),
  ],
};

function replicaCells(
  object: ReplicationController | ReplicaSet,
  now: number,
): readonly unknown[] {
  return [
    nameOf(object),
    object.spec?.replicas ?? 0,
    object.status?.replicas ?? 0,
    object.status?.readyReplicas ?? 0,
    ageOf(object, now),
  ];
}

function deploymentCells(object: Deployment, now: number): readonly unknown[] {
  const { spec, status = {} } = object;
  return [
    nameOf(object),
    `${status.readyReplicas ?? 0}/${spec?.replicas ?? 0}`,
    status.updatedReplicas ?? 0,
    status.availableReplicas ?? 0,
    ageOf(object, now),
    ...containerCells(spec?.template.spec?.containers),
    selectorText(spec?.selector),
  ];
}

function daemonSetCells(object: DaemonSet, now: number): readonly unknown[] {
  const { spec, status } = object;
  return [
    nameOf(object),
    status?.desiredNumberScheduled ?? 0,
    status?.currentNumberScheduled ?? 0,
    status?.numberReady ?? 0,
    status?.updatedNumberScheduled ?? 0,
    status?.numberAvailable ?? 0,
    labelsText(spec?.template.spec?.nodeSelector),
    ageOf(object, now),
    ...containerCells(spec?.template.spec?.containers),
    selectorCell(spec?.selector),
  ];
}

function cronJobCells(object: CronJob, now: number): readonly unknown[] {
  const { spec, status = {} } = object;
  const job = spec?.jobTemplate.spec;
  const last = status.lastScheduleTime;
  return [
    nameOf(object),
    spec?.schedule ?? "",
    spec?.timeZone ?? "<none>",
    spec?.suspend === undefined ? "<unset>" : shownBoolean(spec.suspend),
    status.active?.length ?? 0,
    last ? humanAge(last, now) : "<none>",
    ageOf(object, now),
    ...containerCells(job?.template.spec?.containers),
    selectorCell(job?.selector),
  ];
}

function shownBoolean(value: boolean): string {
  return value ? "True" : "False";
}

function controllerOf({ metadata }: ControllerRevision): string {
  const owner = metadata.ownerReferences?.find(({ controller }) => controller);
  if (owner === undefined) return "<none>";
  const { group } = parseApiVersion(owner.apiVersion);
  const kind = group === "" ? owner.kind : `${owner.kind}.${group}`;
  return `${kind.toLowerCase()}/${owner.name}`;
}

/** Status of a Job by its conditions, in order of precedence. */
function jobStatus({ metadata, status = {} }: Job): string {
  const has = (type: JobCondition["type"]) =>
    status.conditions?.find((condition) => condition.type === type)?.status ===
      "True";
  if (has("Complete")) return "Complete";
  if (has("Failed")) return "Failed";
  if (metadata.deletionTimestamp) return "Terminating";
  if (has("Suspended")) return "Suspended";
  return has("FailureTarget") ? "FailureTarget" : "Running";
}

function completions({ spec, status = {} }: Job): string {
  const succeeded = status.succeeded ?? 0;
  if (spec?.completions !== undefined) {
    return `${succeeded}/${spec.completions}`;
  }
  const parallelism = spec?.parallelism ?? 0;
  return parallelism > 1
    ? `${succeeded}/1 of ${parallelism}`
    : `${succeeded}/1`;
}

function jobDuration({ status = {} }: Job, now: number): string {
  const { startTime, completionTime } = status;
  if (!startTime) return "";
  const end = completionTime ? Date.parse(completionTime) : now;
  return humanDuration(end - Date.parse(startTime));
}
