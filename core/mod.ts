/**
 * Core of Coracle: client, informers, controllers and operator, each usable
 * alone. The root entry point exports the part that operators need.
 *
 * @example Follow the ConfigMaps of a namespace
 * ```ts
 * import { Informer } from "@coracle/operator/core";
 * import { ApiServer } from "@coracle/operator/apiserver";
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

// The object model: pure, imported by everything.
export { ApiError, type StatusDetails } from "./api/api_error.ts";
export { type Duration, durationText, milliseconds } from "./api/duration.ts";
export type { FieldRequirement } from "./api/field_selector.ts";
export {
  type Kind,
  type ObjectOf,
  type ResolvedKind,
  type Scope,
  untyped,
} from "./api/kind.ts";
export {
  type LabelRequirement,
  type LabelSelector,
  matchesLabels,
} from "./api/label_selector.ts";
export * from "./api/object.ts";
export { keyText, type ObjectKey, parseKey } from "./api/object_key.ts";
export { Quantity } from "./api/quantity.ts";
export type { SelectionOptions } from "./api/selection.ts";
export { timestamp } from "./api/timestamp.ts";
export type {
  CacheEvent,
  InformerHandler,
} from "./cache/informer/cache_event.ts";
export { Informer } from "./cache/informer/informer.ts";
export type { InformerOptions } from "./cache/informer/informer_options.ts";
export {
  type InformerLease,
  InformerPool,
} from "./cache/informer/informer_pool.ts";
export { MultiNamespaceInformer } from "./cache/informer/multi_namespace_informer.ts";
export type {
  AddHandlerOptions,
  CacheReader,
  HandlerRegistration,
  InformerHealth,
  OwnWrite,
  SharedInformer,
} from "./cache/informer/shared_informer.ts";
export {
  type BudgetMember,
  MemoryBudget,
} from "./cache/store/memory_budget.ts";
export type { IndexDefinition } from "./cache/store/object_indexes.ts";
export type { StoreUsage } from "./cache/store/store_usage.ts";
export type { ReconnectOptions } from "./cache/watch/reconnect.ts";
export type { WatchHealth } from "./cache/watch/watch_record.ts";
export type {
  InformerClient,
  InformerSelection,
} from "./cache/watch/watch_requests.ts";
export { Client } from "./client/client.ts";
export type { ClientOptions } from "./client/client_options.ts";
export type { DiscoveredResource, ServerVersion } from "./client/discovery.ts";
export type {
  Middleware,
  RateLimitOptions,
  RetryOptions,
} from "./client/middleware.ts";
export { ContainerProcess } from "./client/pods/container_process.ts";
export type {
  ExecOptions,
  LogOptions,
  PortForwardOptions,
} from "./client/pods/pod_requests.ts";
export * from "./client/pods/port_forward.ts";
export type { ApiRequest } from "./client/request.ts";
export type {
  ApplyOptions,
  CollectionOptions,
  DeleteCollectionOptions,
  DeleteOptions,
  GetOptions,
  ListOptions,
  PatchOptions,
  RequestOptions,
  WatchOptions,
  WriteOptions,
} from "./client/request_options.ts";
export {
  type Scale,
  ScaleClient,
  StatusClient,
} from "./client/subresource_clients.ts";
export type {
  HttpRequest,
  HttpResponse,
  StreamConnection,
  StreamRequest,
  Transport,
} from "./client/transport/transport.ts";
export { StreamRefusedError } from "./client/transport/transport_error.ts";
export type { TransportOptions } from "./client/transport/transport_options.ts";
export type { WatchEvent } from "./client/watch_events.ts";
export { type Clock, systemClock, type Timer } from "./clock.ts";
export type {
  ClusterConfig,
  Credential,
  CredentialSource,
  Impersonation,
} from "./config/cluster_config.ts";
export {
  configFromText,
  loadConfig,
  type LoadConfigOptions,
} from "./config/load_config.ts";
export type { RunCause } from "./controller/cause.ts";
export * from "./controller/context.ts";
export type {
  ControllerHealth,
  ObjectHistory,
} from "./controller/controller.ts";
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
export type { EventHeader } from "./json/object_header.ts";
export {
  jsonLogger,
  type LogFields,
  type Logger,
  type LogLevel,
  silentLogger,
} from "./logger.ts";
export {
  type Counter,
  type Gauge,
  type Histogram,
  type MetricOptions,
  type Metrics,
  noMetrics,
} from "./metrics.ts";
export type { OperatorHandle } from "./operator/development.ts";
export type { LeaderElectionOptions } from "./operator/leader_election.ts";
export { MetricsRegistry } from "./operator/metrics_registry.ts";
export * from "./operator/operator.ts";
export {
  loadOperatorConfig,
  type LoadOperatorConfigOptions,
} from "./operator/operator_config.ts";
export type {
  OperatorCacheOptions,
  OperatorConfig,
  OperatorOptions,
} from "./operator/operator_options.ts";
export type { ProbeOptions } from "./operator/probe_server.ts";
export { limitHeapGrowth } from "./operator/process_memory.ts";
export { applyJsonPatch, type JsonPatchOperation } from "./patch/json_patch.ts";
export type { OpenApiSchema } from "./patch/schema.ts";
export {
  exponentialBackoff,
  noRetry,
  type RetryPolicy,
  type RetryPolicyOptions,
} from "./queue/retry_policy.ts";
export type { TokenBucketOptions } from "./queue/token_bucket.ts";
export type { Limiter, RateLimitWindow } from "./queue/window_limiter.ts";
export type { Span, Tracer } from "./tracing.ts";
