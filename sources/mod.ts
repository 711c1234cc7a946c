/**
 * Event sources: triggers of runs besides changes of the primaries.
 *
 * Give the sources to `operator.register(Kind, reconciler, { sources: [...] })`.
 * They are started, and have synced, before the first run. Their state of a
 * primary is read by `ctx.secondary` and `ctx.secondaries`.
 *
 * | source | events from |
 * | --- | --- |
 * | {@linkcode watch} | objects in this or another cluster |
 * | {@linkcode pollingSource} | an external system that is polled as a whole |
 * | {@linkcode perResourcePollingSource} | an external system that is polled for each primary |
 * | {@linkcode inboundSource} | the program itself |
 * | {@linkcode cachingInboundSource} | external states that are pushed to the program |
 * | {@linkcode timerSource} | the clock |
 * | {@linkcode Expectations} | the timeout of a state that a reconciler waits for |
 * | {@linkcode webhookSource} | external systems that call over HTTP |
 * | {@linkcode websocketSource} | external systems that send messages |
 *
 * {@linkcode kubeconfigFiles} and {@linkcode kubeconfigSecrets} are sources of
 * clusters, for the option `clusters`.
 *
 * @example Run when an owned Deployment changes
 * ```ts
 * import { Deployment } from "@coracle/operator/kinds";
 * import { byLabel, watch } from "@coracle/operator/sources";
 *
 * const owned = watch(Deployment);
 * const labelled = watch(Deployment, {
 *   name: "labelled",
 *   mapper: byLabel("example.com/page"),
 * });
 * ```
 *
 * @module
 */

export type {
  Cluster,
  ClusterSet,
  ClusterSetContext,
} from "../core/controller/clusters/cluster_set.ts";
export { type Expectation, Expectations } from "./expectations.ts";
export type { ExternalCacheOptions } from "./external_cache.ts";
export * from "./inbound_source.ts";
export {
  byAnnotation,
  byFunction,
  byLabel,
  byOwner,
  type Mapper,
  PRIMARY_NAME_ANNOTATION,
  PRIMARY_NAMESPACE_ANNOTATION,
} from "../core/controller/watch/mappers.ts";
export { kubeconfigFiles } from "./kubeconfig_files.ts";
export { kubeconfigSecrets } from "./kubeconfig_secrets.ts";
export * from "./polling_source.ts";
export { type TimerSource, timerSource } from "./timer_source.ts";
export {
  watch,
  type WatchSource,
  type WatchSourceOptions,
} from "../core/controller/watch/watch_source.ts";
export { type WebhookOptions, webhookSource } from "./webhook_source.ts";
export { type WebsocketOptions, websocketSource } from "./websocket_source.ts";
