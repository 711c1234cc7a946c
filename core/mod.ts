/**
 * Core of Coracle: client, informers, controllers and operator, each usable
 * alone. The root entry point exports the part that operators need.
 *
 * @example Follow the ConfigMaps of a namespace
 * ```ts
 * import { Informer } from "@coracle/operator/core";
 * import { ApiServer } from "@coracle/dev/apiserver";
 * import { ConfigMap } from "@coracle/operator/kinds";
 *
 * const server = await ApiServer.start({ port: false });
 * const informer = new Informer(server.client, ConfigMap, {
 *   namespaces: ["default"],
 * });
 * await informer.start().synced;
 * await informer.stop();
 * await server.stop();
 * ```
 *
 * @module
 */

// Client, informers and the object model.
export * from "./client/mod.ts";
export {
  type InformerLease,
  InformerPool,
} from "./cache/informer/informer_pool.ts";
export type { RunCause } from "./controller/cause.ts";
export type {
  AdmissionContext,
  AdmissionHandlers,
  AdmissionOptions,
  ControllerAdmission,
} from "./admission/admission_options.ts";
export {
  AdmissionDecision,
  allow,
  type AllowOptions,
  deny,
  type DenyOptions,
} from "./admission/admission_result.ts";
export type { AdmissionRule } from "./api/admission_rule.ts";
export type { StatusCause } from "./api/api_error.ts";
export type { WebhookServerOptions } from "./admission/webhook_options.ts";
export type { WebhookHealth } from "./admission/webhooks.ts";
export type {
  WebhookCall,
  WebhookClientConfig,
  WebhookHost,
  WebhookRoute,
  WebhookRoutes,
} from "./client/webhook_host.ts";
export * from "./controller/context.ts";
export type { KindSelector } from "./controller/kinds/kind_selector.ts";
export type {
  FollowedKind,
  KindsHandle,
  KindsHandler,
  KindsOptions,
} from "./controller/kinds/kinds_options.ts";
export type { SyncProgress } from "./cache/informer/shared_informer.ts";
export type { ControllerHealth } from "./controller/controller_health.ts";
export type { ObjectHistory } from "./controller/object_history.ts";
export type { JobRun } from "./controller/job/job_controller.ts";
export type { JobContext, JobOptions } from "./controller/job/job_options.ts";
export type {
  TaskOptions,
  TaskRun,
} from "./controller/task/task_controller.ts";
export type {
  ControllerOptions,
  PrimaryCacheOptions,
} from "./controller/controller_options.ts";
export type { EventOptions } from "./controller/event_recorder.ts";
export * from "./controller/event_source.ts";
export { allOf, anyOf, type Filters, noneOf } from "./controller/filters.ts";
export type { ManagedWorkflow } from "./controller/managed_workflow.ts";
export type { Namespaces } from "./controller/namespaces.ts";
export * from "./controller/reconciler.ts";
export * from "./controller/result.ts";
export { RunAbortedError, RunInterruptedError } from "./controller/run/run.ts";
export type { RecordedRun } from "./controller/run/run_observers.ts";
export { defineKind } from "./crd/define_kind.ts";
export type { DefinedKind, KindDefinition } from "./crd/kind_definition.ts";
export type { OperatorHandle } from "./client/host.ts";
export type { LeaseHealth } from "./operator/coordination.ts";
export type { LeaderElectionOptions } from "./operator/leader_election.ts";
export { MetricsRegistry } from "./operator/metrics_registry.ts";
export type {
  ControllerHandle,
  JobHandle,
} from "./operator/controller_handle.ts";
export { Operator } from "./operator/operator.ts";
export type { OperatorHealth } from "./operator/operator_health.ts";
export {
  loadOperatorConfig,
  type LoadOperatorConfigOptions,
} from "./operator/operator_config.ts";
export type { SnapshotOptions } from "./cache/snapshot/snapshot_options.ts";
export type { RecordOptions } from "./controller/record/record_options.ts";
export type {
  OperatorCacheOptions,
  OperatorConfig,
  OperatorOptions,
} from "./operator/operator_options.ts";
export type { ProbeOptions } from "./operator/probe_options.ts";
export { limitHeapGrowth } from "./operator/process_memory.ts";
export type { OpenApiSchema } from "./patch/schema.ts";
export {
  exponentialBackoff,
  noRetry,
  type RetryPolicy,
  type RetryPolicyOptions,
} from "./queue/retry_policy.ts";
export type {
  Limiter,
  RateLimitWindow,
  TokenBucketOptions,
} from "./queue/limits.ts";
export type { Span, Tracer } from "./tracing.ts";
