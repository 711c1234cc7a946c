/**
 * Reconcilers for common patterns: dependent resources, workflows of them,
 * conditions, phased rollouts, and the status of other objects.
 *
 * - **conditions/**: reconcilers that are lists of steps, with conditions in the
 *   manner of Flux ({@linkcode summarized}). A step throws {@linkcode Stalled},
 *   {@linkcode Waiting} or {@linkcode Failed}, or returns a result;
 *   {@linkcode SharedStatus} writes conditions beside other writers.
 * - **dependents/**: resources that belong to a primary, in the cluster or
 *   outside ({@linkcode Dependent}).
 * - **graph/**: workflows that reconcile dependents in the order of their
 *   dependencies, and delete them in reverse ({@linkcode Workflow}).
 * - **phases/**: rollouts of stateful systems by the rules of Flink's operator,
 *   with the status as write-ahead log ({@linkcode phased}); tasks that run once
 *   ({@linkcode oneShotTask}) and state machines ({@linkcode states}).
 * - **kstatus/**: the status of any object ({@linkcode statusOf}), and waiting
 *   for objects by watches ({@linkcode waitFor}).
 * - **apply/**: sets of objects that are applied in stages and pruned, as a
 *   dependent ({@linkcode objectsDependent}) or at once ({@linkcode applySet}).
 *
 * @module
 */

export { applySet, diffSet, pruneSet } from "./apply/apply_set.ts";
export { type CommandOptions, fromCommand } from "./apply/command.ts";
export { fromFiles, fromYaml } from "./apply/manifests.ts";
export {
  objectsDependent,
  type ObjectsDependentOptions,
} from "./apply/objects_dependent.ts";
export { type AppliedChange, ApplySetError } from "./apply/change_set.ts";
export type { ApplySetOptions } from "./apply/apply_set.ts";
export {
  type Condition,
  type Conditioned,
  type ConditionedStatus,
  findCondition,
  isReady,
  type NewCondition,
  removeCondition,
  setCondition,
} from "./conditions/condition.ts";
export type { ConditionSummary } from "./conditions/reconcile_result.ts";
export { ConditionConflictError } from "./conditions/shared_status.ts";
export { type Notifier, WebhookNotifier } from "./conditions/notifier.ts";
export { Failed, Outcome, Stalled, Waiting } from "./conditions/outcome.ts";
export {
  intervalSchedule,
  jittered,
  type ReconcileSchedule,
} from "./conditions/reconcile_result.ts";
export {
  AccessDeniedError,
  checkAccess,
} from "./conditions/reference_access.ts";
export {
  REQUESTED_AT,
  requestsOf,
} from "./conditions/summarized_definition.ts";
export { accessByClient, SharedStatus } from "./conditions/shared_status.ts";
export { lintStatus } from "./conditions/status_lint.ts";
export { conditionedStatus, readyColumns } from "./conditions/status_schema.ts";
export { summarized } from "./conditions/summarized.ts";
export type {
  RequestNames,
  Step,
  StepContext,
  SummarizedDefinition,
} from "./conditions/summarized_definition.ts";
export type {
  Dependent,
  KubernetesDependent,
  Verdict,
} from "./dependents/dependent.ts";
export type { KubernetesDependentOptions } from "./dependents/dependent_resource.ts";
export {
  externalBulkDependent,
  externalDependent,
  type ExternalDependentOptions,
} from "./dependents/external_dependent.ts";
export {
  configMapState,
  type ExternalState,
  statusState,
} from "./dependents/external_dependent.ts";
export {
  bulkDependent,
  kubernetesDependent,
  readOnlyBulkDependent,
  readOnlyDependent,
} from "./dependents/kubernetes_dependent.ts";
export { UpdateLoopError } from "./dependents/update_loop.ts";
export { crdPresent } from "./graph/activation.ts";
export {
  isCurrent,
  isGone,
  type NodeOptions,
  type NodeResult,
  type WorkflowNode,
} from "./graph/node.ts";
export { Workflow } from "./graph/workflow.ts";
export { WorkflowError, WorkflowResult } from "./graph/workflow_result.ts";
export { celRules } from "./kstatus/cel_rules.ts";
export { requireReady } from "./kstatus/dependencies.ts";
export type { ObjectReference } from "./kstatus/wait_for.ts";
export type { ObjectStatus, StatusRule } from "./kstatus/status_rules.ts";
export { augmentStatus, statusOf } from "./kstatus/status_of.ts";
export { WaitError, waitFor } from "./kstatus/wait_for.ts";
export { Canary } from "./phases/canary.ts";
export { changeMap, type SpecDiff } from "./phases/change_map.ts";
export { LifecycleMetrics } from "./phases/lifecycle_metrics.ts";
export { newFailures } from "./phases/new_failures.ts";
export {
  oneShotTask,
  type TaskDefinition,
  type TaskObject,
} from "./phases/one_shot_task.ts";
export { phased } from "./phases/phased.ts";
export type {
  PhasedDefinition,
  PhasedRun,
  RollbackOptions,
} from "./phases/phased_definition.ts";
export {
  type PhasedObject,
  type PhasedStatus,
  phasedStatus,
} from "./phases/phased_status.ts";
export {
  states,
  type StatesObject,
  type StatesOptions,
} from "./phases/states.ts";
export { chooseUpgrade } from "./phases/upgrade_choice.ts";
