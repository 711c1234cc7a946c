/**
 * Coracle: Kubernetes operators in TypeScript, for Node, Deno and Bun.
 *
 * This entry point exports the API for authors of operators. Parts for library
 * authors are in other entry points:
 *
 * - `./client`: client, configuration and informers, without controllers
 * - `./core`: the same, with controllers, queue and the operator
 * - `./sources`: event sources besides the primary kind
 * - `./workflows`: dependents, workflows, apply sets, conditions, phases
 * - `./kinds`: typed descriptors of the built-in kinds
 * - `./crd`: custom kinds and CustomResourceDefinitions
 *
 * `@coracle/dev` has the test kit, the embedded API server and the command line.
 *
 * ## One reconciliation, step by step
 *
 * 1. The API server sends a watch event. The event scanner finds its type, key,
 *    version, generation, finalizers, labels and owners in one pass over the
 *    metadata. Nothing is decoded.
 * 2. The store compares the resource version with that of the stored object and
 *    keeps the bytes: the cache is up to date from now on.
 * 3. Filters decide on the scanned metadata: a change that no reconciler acts on,
 *    and the event of a write by the operator, end here.
 * 4. For the primary kind the key of the object is added to the queue; for other
 *    kinds a mapper determines the primaries.
 * 5. The queue holds keys: a waiting key is not added twice, and a running key
 *    is taken again only after its run.
 * 6. A worker takes the key, reads the newest state from the cache and decodes
 *    it. With a `cleanup` function the finalizer is added before the first run;
 *    an object that is being deleted is cleaned up instead of reconciled.
 * 7. The reconciler runs, and returns what to write and when to run again. The
 *    next run sees its writes, even before their watch events arrive.
 * 8. The result is written: as a JSON merge patch for `patchStatus` and
 *    `patchResource`, by server-side apply for `setStatus`. An error is passed to
 *    `onError` and retried with exponential back-off; a success resets the
 *    retries.
 *
 * @example An operator
 * ```ts
 * import { defineKind, Operator, patchStatus } from "@coracle/operator";
 * import { z } from "zod";
 *
 * const Boat = defineKind({
 *   group: "sample.coracle.dev",
 *   version: "v1",
 *   kind: "Boat",
 *   spec: z.object({ seats: z.int().min(1) }),
 *   status: z.object({ ready: z.boolean() }).partial(),
 * });
 *
 * const operator = new Operator();
 * operator.register(Boat, {
 *   reconcile: (boat) => patchStatus({ ready: boat.spec.seats > 0 }),
 * });
 * if (operator.controllers.length !== 1) throw new Error("Unexpected count");
 * // await operator.run(); // until SIGTERM
 * ```
 *
 * @module
 */

export { allow, deny } from "./core/admission/admission_result.ts";
export { ApiError } from "./core/api/api_error.ts";
export { type Duration, milliseconds } from "./core/api/duration.ts";
export { type Kind, type ObjectOf, untyped } from "./core/api/kind.ts";
export type {
  ApplyObject,
  KubernetesObject,
  NewObject,
  ObjectList,
  ObjectMeta,
  OwnerReference,
  UntypedObject,
} from "./core/api/object.ts";
export type { ObjectKey } from "./core/api/object_key.ts";
export { Quantity } from "./core/api/quantity.ts";
export { timestamp } from "./core/api/timestamp.ts";
export { Informer } from "./core/cache/informer/informer.ts";
export type { InformerOptions } from "./core/cache/informer/informer_options.ts";
export type { IndexDefinition } from "./core/cache/store/object_indexes.ts";
export { Client } from "./core/client/client.ts";
export type { ClientOptions } from "./core/client/client_options.ts";
export type {
  ApplyOptions,
  DeleteOptions,
  GetOptions,
  ListOptions,
  PatchOptions,
  WatchOptions,
} from "./core/client/request_options.ts";
export type { WatchEvent } from "./core/client/watch_events.ts";
export type { Clock } from "./core/clock.ts";
export type { ClusterConfig } from "./core/config/cluster_config.ts";
export { loadConfig } from "./core/config/load_config.ts";
export type { RunCause } from "./core/controller/cause.ts";
export type { Context, RetryInfo } from "./core/controller/context.ts";
export type { ControllerHealth } from "./core/controller/controller_health.ts";
export type {
  ControllerOptions,
  PrimaryCacheOptions,
} from "./core/controller/controller_options.ts";
export type {
  EventSource,
  SourceContext,
} from "./core/controller/event_source.ts";
export type { Filters } from "./core/controller/filters.ts";
export type { Reconciler } from "./core/controller/reconciler.ts";
export {
  CleanupResult,
  keepFinalizer,
  noUpdate,
  patchResource,
  patchResourceAndStatus,
  patchStatus,
  ReconcileResult,
  removeFinalizer,
  setStatus,
} from "./core/controller/result.ts";
export { defineKind } from "./core/crd/define_kind.ts";
export type {
  DefinedKind,
  KindDefinition,
} from "./core/crd/kind_definition.ts";
export {
  jsonLogger,
  type LogFields,
  type Logger,
  type LogLevel,
  silentLogger,
} from "./core/logger.ts";
export type { Metrics } from "./core/metrics.ts";
export type { LeaderElectionOptions } from "./core/operator/leader_election.ts";
export { MetricsRegistry } from "./core/operator/metrics_registry.ts";
export type { ControllerHandle } from "./core/operator/controller_handle.ts";
export { Operator } from "./core/operator/operator.ts";
export type { OperatorHealth } from "./core/operator/operator_health.ts";
export { loadOperatorConfig } from "./core/operator/operator_config.ts";
export type {
  OperatorCacheOptions,
  OperatorOptions,
} from "./core/operator/operator_options.ts";
export type { ProbeOptions } from "./core/operator/probe_options.ts";
export { limitHeapGrowth } from "./core/operator/process_memory.ts";
export type {
  RetryPolicy,
  RetryPolicyOptions,
} from "./core/queue/retry_policy.ts";
export type { RateLimitWindow } from "./core/queue/limits.ts";
export type { Tracer } from "./core/tracing.ts";
export {
  cachingInboundSource,
  type InboundSource,
  inboundSource,
} from "./sources/inbound_source.ts";
export {
  byAnnotation,
  byFunction,
  byLabel,
  byOwner,
  type Mapper,
} from "./core/controller/watch/mappers.ts";
export {
  type PerResourcePollingOptions,
  perResourcePollingSource,
  type PollingOptions,
  pollingSource,
} from "./sources/polling_source.ts";
export { timerSource } from "./sources/timer_source.ts";
export {
  watch,
  type WatchSourceOptions,
} from "./core/controller/watch/watch_source.ts";
export {
  type WebhookOptions,
  webhookSource,
} from "./sources/webhook_source.ts";
export {
  type WebsocketOptions,
  websocketSource,
} from "./sources/websocket_source.ts";
export type { Dependent } from "./workflows/dependents/dependent.ts";
export type { KubernetesDependentOptions } from "./workflows/dependents/dependent_resource.ts";
export {
  externalBulkDependent,
  externalDependent,
  type ExternalDependentOptions,
} from "./workflows/dependents/external_dependent.ts";
export {
  bulkDependent,
  kubernetesDependent,
  readOnlyBulkDependent,
  readOnlyDependent,
} from "./workflows/dependents/kubernetes_dependent.ts";
export { UpdateLoopError } from "./workflows/dependents/update_loop.ts";
export { crdPresent } from "./workflows/graph/activation.ts";
export type { NodeOptions, NodeResult } from "./workflows/graph/node.ts";
export { Workflow } from "./workflows/graph/workflow.ts";
export {
  WorkflowError,
  WorkflowResult,
} from "./workflows/graph/workflow_result.ts";
