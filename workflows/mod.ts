/**
 * Ways of writing reconcilers whose objects have a life: conditions that tell
 * the truth, and the state of other objects.
 *
 * - **conditions/** is Flux's way: a reconciler is a list of steps, which throw
 *   `Stalled`, `Waiting` or `Failed` or return a result ({@linkcode summarized}).
 *   Pure rules turn that into conditions, the next run and an error
 *   ({@linkcode finish}), and {@linkcode SharedStatus} writes them beside others.
 * - **apply/** applies many objects as one set, in stages, and deletes what left
 *   it: {@linkcode applySet}.
 * - **graph/** brings the resources of a primary in line in their order, and
 *   deletes them in reverse: {@linkcode Workflow}.
 * - **dependents/** are what a graph works on: {@linkcode Dependent}.
 * - **phases/** rolls out what has state, by the rules of Flink's operator and
 *   with the status as write-ahead log: {@linkcode phased}. Beside it,
 *   {@linkcode oneShotTask} for what is done once, and {@linkcode states} for
 *   objects that go from state to state.
 * - **kstatus/** says in which state any object is ({@linkcode statusOf}), and
 *   waits for many by watching them ({@linkcode waitFor}).
 *
 * @module
 */

export * from "./apply/apply_order.ts";
export * from "./apply/apply_set.ts";
export * from "./apply/change_set.ts";
export { type FieldDifference, objectChanges } from "./apply/change_set.ts";
export * from "./apply/apply_set.ts";
export type {
  ApplySetOptions,
  SetOptions,
  SetOwner,
} from "./apply/set_options.ts";
export * from "./conditions/reconcile_result.ts";
export * from "./conditions/condition.ts";
export {
  aggregateConditions,
  type ConditionSource,
  type MergeOptions,
  mirrorCondition,
  summarize,
} from "./conditions/condition_merge.ts";
export {
  ConditionConflictError,
  rebaseConditions,
  type RebaseOptions,
} from "./conditions/condition_rebase.ts";
export * from "./kstatus/dependencies.ts";
export * from "./kstatus/dependencies.ts";
export * from "./conditions/leader_id.ts";
export * from "./conditions/notifier.ts";
export * from "./conditions/outcome.ts";
export {
  type News,
  newsOf,
  type NewsOptions,
} from "./conditions/summarized.ts";
export type {
  ProgressOptions,
  Step,
  StepContext,
  StepsEnd,
} from "./conditions/summarized_definition.ts";
export * from "./conditions/status_schema.ts";
export * from "./conditions/reference_access.ts";
export {
  FORCE_AT,
  type HandledRequests,
  requestChanged,
  REQUESTED_AT,
  type RequestNames,
  type Requests,
  requestsOf,
} from "./conditions/requests.ts";
export * from "./conditions/reconcile_result.ts";
export * from "./conditions/summarized_definition.ts";
export {
  finish,
  type FinishOptions,
  type PassEnd,
  PROGRESSING_WITH_RETRY,
  recovered,
  type Roll,
  settle,
  type Settled,
} from "./conditions/reconcile_result.ts";
export * from "./conditions/shared_status.ts";
export * from "./conditions/shared_status.ts";
export * from "./conditions/status_lint.ts";
export { conditionedStatus } from "./conditions/status_schema.ts";
export * from "./conditions/summarized.ts";
export type { SummarizedDefinition } from "./conditions/summarized_definition.ts";
export * from "./dependents/kubernetes_dependent.ts";
export {
  type Dependent,
  type DependentResult,
  type KeptDependent,
  type Operation,
  type ReconciledDependent,
} from "./dependents/dependent.ts";
export * from "./dependents/external_dependent.ts";
export * from "./dependents/external_dependent.ts";
export type {
  ExternalOperations,
  ExternalSource,
} from "./dependents/external_dependent.ts";
export {
  configMapState,
  type ExternalIds,
  type ExternalState,
  statusState,
  type StatusStateOptions,
} from "./dependents/external_state.ts";
export {
  type DependentSourceOptions,
  kubernetesDependent,
  type KubernetesDependentOptions,
  readOnlyDependent,
} from "./dependents/kubernetes_dependent.ts";
export type {
  CompareOptions,
  KeepOptions,
} from "./dependents/dependent_resource.ts";
export { UpdateLoopError } from "./dependents/update_loop.ts";
export * from "./graph/concurrency_limit.ts";
export { GraphError, type GraphNode } from "./graph/graph.ts";
export { type CrdPresent, crdPresent } from "./graph/crd_presence.ts";
export type {
  NodeOptions,
  NodeResult,
  NodeState,
  NodeVerdicts,
  WorkflowNode,
} from "./graph/node.ts";
export {
  type ActiveContext,
  type ActiveWhen,
  type ConditionName,
  isCurrent,
  isGone,
  type NodeContext,
  type Verdict,
  type When,
} from "./graph/node.ts";
export * from "./graph/workflow.ts";
export * from "./graph/workflow_result.ts";
export * from "./kstatus/status_of.ts";
export * from "./kstatus/cel_rules.ts";
export {
  type ObjectReference,
  referenceOf,
  referenceText,
} from "./kstatus/object_reference.ts";
export * from "./kstatus/object_status.ts";
export * from "./kstatus/status_of.ts";
export * from "./kstatus/wait_for.ts";
export { jobCompletionStatus } from "./kstatus/status_rules.ts";
export * from "./phases/canary.ts";
export * from "./phases/change_map.ts";
export {
  type ErrorCause,
  type ErrorReport,
  errorReport,
  type ErrorReportOptions,
} from "./phases/error_report.ts";
export * from "./phases/exclusive_status.ts";
export * from "./phases/lifecycle_conditions.ts";
export * from "./phases/lifecycle_metrics.ts";
export * from "./phases/lifecycle_metrics.ts";
export * from "./phases/new_failures.ts";
export * from "./phases/one_shot_task.ts";
export * from "./phases/phased.ts";
export type {
  PhasedDefinition,
  PhasedEvent,
  PhasedRun,
  Recovery,
  RollbackOptions,
  RolloutDeployment,
  RunningState,
  SpecOf,
  Suspension,
  SuspensionRequest,
} from "./phases/phased_definition.ts";
export * from "./phases/phased_status.ts";
export {
  type ChosenSpec,
  type Lifecycle,
  lifecycleOf,
  type PhasedObject,
  type PhasedStatus,
  type RolloutError,
  type RolloutPhase,
  type RolloutStatus,
} from "./phases/phased_status.ts";
export * from "./phases/states.ts";
export * from "./phases/upgrade_choice.ts";
