/**
 * Client of the Kubernetes API: typed requests, watches and informers, with the
 * configuration of kubectl or of a pod; for programs that are no operators.
 *
 * - {@linkcode Client}: reads, writes and watches objects of any kind; logs,
 *   commands and port forwards of pods
 * - {@linkcode loadConfig}: kubeconfig or in-cluster configuration, credentials
 * - {@linkcode Informer}: a cache of the objects of a kind that follows changes
 * - {@linkcode ApiError}: the error of a request that the server has refused
 *
 * Kinds are those of `@coracle/operator/kinds`, or what {@linkcode untyped}
 * returns. Nothing here reconciles, and nothing is loaded that a program without
 * controllers does not need.
 *
 * @example Read and change a ConfigMap
 * ```ts
 * import { ApiServer } from "@coracle/dev/apiserver";
 * import { Client } from "@coracle/operator/client";
 * import { ConfigMap } from "@coracle/operator/kinds";
 *
 * // In a cluster: const client = await Client.load();
 * const server = await ApiServer.start({ port: false });
 * const client = new Client({ transport: server.transport });
 * const key = { namespace: "default", name: "settings" };
 * await client.apply(ConfigMap, { metadata: key, data: { color: "blue" } });
 * const { data } = await client.get(ConfigMap, key);
 * if (data?.["color"] !== "blue") throw new Error("Unexpected color");
 * await client.close();
 * await server.stop();
 * ```
 *
 * @module
 */

export { ApiError, type StatusDetails } from "../api/api_error.ts";
export { type Duration, durationText, milliseconds } from "../api/duration.ts";
export type { FieldRequirement } from "../api/field_selector.ts";
export {
  type Kind,
  type ObjectOf,
  type ResolvedKind,
  type Scope,
  untyped,
} from "../api/kind.ts";
export {
  type LabelRequirement,
  type LabelSelector,
  matchesLabels,
} from "../api/label_selector.ts";
export * from "../api/object.ts";
export { keyText, type ObjectKey, parseKey } from "../api/object_key.ts";
export { Quantity } from "../api/quantity.ts";
export type { SelectionOptions } from "../api/selection.ts";
export { microTimestamp, timestamp } from "../api/timestamp.ts";
export type {
  CacheEvent,
  InformerHandler,
} from "../cache/informer/cache_event.ts";
export { Informer } from "../cache/informer/informer.ts";
export type { InformerOptions } from "../cache/informer/informer_options.ts";
export {
  type KeepCallbacks,
  MultiNamespaceInformer,
} from "../cache/informer/multi_namespace_informer.ts";
export type {
  AddHandlerOptions,
  CacheReader,
  HandlerRegistration,
  InformerHealth,
  OwnWrite,
  SharedInformer,
} from "../cache/informer/shared_informer.ts";
export {
  type BudgetMember,
  MemoryBudget,
} from "../cache/store/memory_budget.ts";
export type { IndexDefinition } from "../cache/store/object_indexes.ts";
export type { StoreUsage } from "../cache/store/store_usage.ts";
export type { ReconnectOptions } from "../cache/watch/reconnect.ts";
export type { WatchHealth } from "../cache/watch/watch_record.ts";
export type {
  InformerClient,
  InformerSelection,
} from "../cache/watch/watch_requests.ts";
export { Client } from "./client.ts";
export type { ClientOptions } from "./client_options.ts";
export type { DiscoveredResource, ServerVersion } from "./discovery.ts";
export type {
  Middleware,
  RateLimitOptions,
  RetryOptions,
} from "./middleware.ts";
export { ContainerProcess } from "./pods/container_process.ts";
export type {
  ExecOptions,
  LogOptions,
  PortForwardOptions,
} from "./pods/pod_requests.ts";
export * from "./pods/port_forward.ts";
export type { ApiRequest } from "./request.ts";
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
} from "./request_options.ts";
export {
  type Scale,
  ScaleClient,
  StatusClient,
} from "./subresource_clients.ts";
export type {
  HttpRequest,
  HttpResponse,
  StreamConnection,
  StreamRequest,
  Transport,
} from "./transport/transport.ts";
export { StreamRefusedError } from "./transport/transport_error.ts";
export type { TransportOptions } from "./transport/transport_options.ts";
export type { WatchEvent } from "./watch_events.ts";
export { type Clock, systemClock, type Timer } from "../clock.ts";
export type {
  ClusterConfig,
  Credential,
  CredentialSource,
  Impersonation,
} from "../config/cluster_config.ts";
export {
  configFromText,
  loadConfig,
  type LoadConfigOptions,
} from "../config/load_config.ts";
export type { EventHeader } from "../json/object_header.ts";
export {
  jsonLogger,
  type LogFields,
  type Logger,
  type LogLevel,
  silentLogger,
} from "../logger.ts";
export {
  type Counter,
  type Gauge,
  type Histogram,
  type MetricLabels,
  type MetricOptions,
  type Metrics,
  noMetrics,
  type Observation,
} from "../metrics.ts";
export {
  applyJsonPatch,
  type JsonPatchOperation,
} from "../patch/json_patch.ts";
