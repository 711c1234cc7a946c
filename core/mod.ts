/**
 * The core of Coracle: everything between the socket and a reconciler.
 *
 * @module
 */

// The object model: pure, imported by everything.
export * from "./api/object.ts";
export {
  apiVersionOf,
  collectionPath,
  isResolved,
  type Kind,
  kindText,
  type ObjectOf,
  objectPath,
  parseApiVersion,
  type ResolvedKind,
  sameKind,
  type Scope,
  untyped,
} from "./api/kind.ts";
export * from "./api/object_key.ts";
export * from "./api/timestamp.ts";
export * from "./api/api_error.ts";
export { Quantity } from "./api/quantity.ts";
export { type Duration, durationText, milliseconds } from "./api/duration.ts";
export { checkOptionNames } from "./api/options.ts";
export { compareResourceVersions } from "./api/resource_version.ts";

// What every layer may hold.
export { type Clock, systemClock, type Timer } from "./clock.ts";
export {
  jsonLogger,
  type JsonLoggerOptions,
  type LogFields,
  type Logger,
  type LogLevel,
  silentLogger,
} from "./logger.ts";
export {
  type Counter,
  type Gauge,
  type Histogram,
  type MetricLabels,
  type MetricOptions,
  type Metrics,
  noMetrics,
} from "./metrics.ts";
export type { Span, SpanAttributes, Tracer } from "./tracing.ts";

// Selectors, read, written and matched as Kubernetes does.
export * from "./api/label_selector.ts";
export * from "./api/field_selector.ts";
export {
  type ShardField,
  type ShardPart,
  shardSelector,
} from "./api/shard_selector.ts";

// From a kubeconfig or a pod's service account to a cluster.
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
export { type Environment, proxyFromEnvironment } from "./config/proxy.ts";

// The client, and what it is made of: requests as values, transports.
export { Client } from "./client/client.ts";
export type { ClientOptions } from "./client/client_options.ts";
export type { ClientTarget } from "./client/client_options.ts";
export type { DiscoveredResource, ServerVersion } from "./client/discovery.ts";
export {
  type ApiRequest,
  type ApiVerb,
  applyRequest,
  createRequest,
  deleteCollectionRequest,
  deleteRequest,
  getRequest,
  listRequest,
  type ObjectBody,
  patchRequest,
  pathRequest,
  replaceRequest,
  watchRequest,
} from "./client/request.ts";
export type { SelectionOptions } from "./api/selection.ts";
export type {
  ApplyOptions,
  CollectionOptions,
  DeleteCollectionOptions,
  DeleteOptions,
  GetOptions,
  ListOptions,
  PatchOptions,
  PatchType,
  PropagationPolicy,
  RequestOptions,
  ResourceVersionMatch,
  Subresource,
  SubresourceOption,
  WatchOptions,
  WriteOptions,
} from "./client/request_options.ts";
export type {
  Middleware,
  RateLimitOptions,
  RequestHandler,
  RetryOptions,
} from "./client/middleware.ts";
export {
  type Scale,
  ScaleClient,
  StatusClient,
  type SubresourceClientDeps,
} from "./client/subresource_clients.ts";
export type {
  HttpRequest,
  HttpResponse,
  HttpTransport,
  StreamConnection,
  StreamRequest,
  Transport,
} from "./client/transport/transport.ts";
export type {
  AttachOptions,
  ExecOptions,
  LogOptions,
  PortForwardOptions,
} from "./client/pods/pod_requests.ts";
export {
  ContainerProcess,
  type ProcessOutput,
} from "./client/pods/container_process.ts";
export {
  type ListenOptions,
  PortConnection,
  PortForward,
  type PortListener,
} from "./client/pods/port_forward.ts";
export { StreamRefusedError } from "./client/transport/transport_error.ts";
export type { TransportOptions } from "./client/transport/transport_options.ts";
export type { WatchEvent } from "./client/watch_events.ts";

// Objects as bytes.
export { type ByteRange, wholeRange } from "./json/byte_range.ts";
export * from "./json/line_splitter.ts";
export {
  type HeaderField,
  ObjectHeader,
  type StringField,
} from "./json/object_header.ts";
export { EventScanner, type WatchEventType } from "./json/event_scanner.ts";
export {
  type ListHeader,
  ListScanner,
  type ListScannerOptions,
} from "./json/list_scanner.ts";
export { FieldReader } from "./json/field_reader.ts";
export { Pruner } from "./json/prune.ts";

// Patches, field ownership and the schemas that both walk.
export * from "./patch/schema.ts";
export * from "./patch/json_patch.ts";
export * from "./patch/merge_patch.ts";
export * from "./patch/strategic_merge_patch.ts";
export * from "./patch/path_element.ts";
export * from "./patch/field_set.ts";
export * from "./patch/managed_fields.ts";
export { ApplyError, type ApplyRefusal } from "./patch/apply_error.ts";
export type { TypedObject, VersionedKind } from "./patch/structured_merge.ts";
export type { JsonObject } from "./patch/json_value.ts";

// Kinds of your own.
export { defineKind } from "./crd/define_kind.ts";
export * from "./crd/kind_definition.ts";
export type { CrdVersion } from "./crd/crd_object.ts";
export type * from "./crd/standard_schema.ts";

// Which key runs when.
export {
  type AddOptions,
  Priority,
  type QueueItem,
  SchedulingQueue,
  type SchedulingQueueOptions,
} from "./queue/scheduling_queue.ts";
export {
  exponentialBackoff,
  noRetry,
  type RetryPolicy,
  type RetryPolicyOptions,
} from "./queue/retry_policy.ts";
export { TokenBucket, type TokenBucketOptions } from "./queue/token_bucket.ts";
export {
  type Limiter,
  type RateLimitWindow,
  WindowLimiter,
} from "./queue/window_limiter.ts";

// From an event to a run, and from a run's result to a write.
export type { RunCause } from "./controller/cause.ts";
export type {
  ControllerHealth,
  ObjectHistory,
} from "./controller/controller.ts";
export type {
  ControllerOptions,
  PrimaryCacheOptions,
} from "./controller/controller_options.ts";
export type { Namespaces } from "./controller/namespaces.ts";
export type { StaticShard } from "./controller/shard.ts";
export * from "./controller/event_source.ts";
export type { EventOptions } from "./controller/event_recorder.ts";
export * from "./controller/expectations.ts";
export { allOf, anyOf, type Filters, noneOf } from "./controller/filters.ts";
export * from "./controller/managed_workflow.ts";
export type * from "./controller/context.ts";
export * from "./controller/reconciler.ts";
export * from "./controller/result.ts";
export type { RecordedRun } from "./controller/run/run_observers.ts";
export { RunAbortedError, RunInterruptedError } from "./controller/run/run.ts";

// Controllers together.
export type { LeaderElectionOptions } from "./operator/leader_election.ts";
export type { OperatorHandle } from "./operator/development.ts";
export { MetricsRegistry } from "./operator/metrics_registry.ts";
export type { ControllerHandle } from "./operator/operator.ts";
export { Operator } from "./operator/operator.ts";
export type { OperatorHealth } from "./operator/operator.ts";
export {
  loadOperatorConfig,
  type LoadOperatorConfigOptions,
} from "./operator/operator_config.ts";
export type {
  ConfiguredOptions,
  OperatorCacheOptions,
  OperatorConfig,
  OperatorOptions,
  StartErrorPolicy,
} from "./operator/operator_options.ts";
export type { ProbeOptions } from "./operator/probe_server.ts";
export { limitHeapGrowth } from "./operator/process_memory.ts";

// A cache that follows the server.
export type {
  CacheEvent,
  CacheEventType,
  InformerHandler,
} from "./cache/informer/cache_event.ts";
export { Informer } from "./cache/informer/informer.ts";
export type { InformerOptions } from "./cache/informer/informer_options.ts";
export type { MultiNamespaceInformer } from "./cache/informer/multi_namespace_informer.ts";
export type { ReconnectOptions } from "./cache/watch/reconnect.ts";
export { RelistQueue } from "./cache/watch/relist_queue.ts";
export type { WatchHealth, WatchState } from "./cache/watch/watch_record.ts";
export type {
  InformerClient,
  InformerSelection,
} from "./cache/watch/watch_requests.ts";
export {
  type AcquireOptions,
  type InformerLease,
  InformerPool,
  type InformerPoolOptions,
} from "./cache/informer/informer_pool.ts";
export type * from "./cache/informer/shared_informer.ts";

// Objects in memory, under a byte budget.
export * from "./cache/store/object_store.ts";
export type { OnIndexError } from "./cache/store/object_indexes.ts";
export {
  type BudgetMember,
  MemoryBudget,
  type MemoryBudgetOptions,
} from "./cache/store/memory_budget.ts";
export {
  MemoryPressure,
  type MemoryPressureOptions,
} from "./cache/store/memory_pressure.ts";
export {
  cgroupMemoryLimit,
  defaultCacheBudget,
  type ReadFile,
} from "./cache/store/cgroup_limit.ts";
export { LruCache, type LruCacheOptions } from "./cache/store/lru_cache.ts";
