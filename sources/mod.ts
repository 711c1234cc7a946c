/**
 * What triggers runs beside the primary kind itself.
 *
 * Every source is an {@linkcode EventSource}: give it to
 * `operator.register(Kind, reconciler, { sources: [...] })`, and it is started
 * and has synced before the first run. What it knows of a primary is read by
 * `ctx.secondary` and `ctx.secondaries`.
 *
 * | source | for |
 * | --- | --- |
 * | {@linkcode watch} | objects in this or another cluster |
 * | {@linkcode pollingSource} | an outside system, asked for everything at once |
 * | {@linkcode perResourcePollingSource} | an outside system, asked for each primary |
 * | {@linkcode inboundSource} | triggers by your own code |
 * | {@linkcode cachingInboundSource} | states that are pushed to your code |
 * | {@linkcode timerSource} | the clock |
 * | {@linkcode webhookSource} | outside systems that call over HTTP |
 * | {@linkcode websocketSource} | outside systems that send messages |
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
 * if (owned.name === labelled.name) throw new Error("Unexpected names");
 * ```
 *
 * @module
 */

export type { EventSource } from "../core/controller/event_source.ts";
export {
  type ExternalCacheOptions,
  type ExternalFilters,
} from "./external_cache.ts";
export * from "./inbound_source.ts";
export * from "./watch_source.ts";
export type {
  WatchSource,
  WatchSourceOptions,
} from "./watch_source_options.ts";
export {
  byAnnotation,
  byFunction,
  byLabel,
  type ByMetadataOptions,
  byOwner,
  type ByOwnerOptions,
  type MappedObject,
  type Mapper,
  PRIMARY_NAME_ANNOTATION,
  PRIMARY_NAMESPACE_ANNOTATION,
} from "./mappers.ts";
export * from "./per_resource_polling_source.ts";
export * from "./polling_source.ts";
export * from "./timer_source.ts";
export * from "./webhook_source.ts";
export type {
  BearerCheck,
  HmacCheck,
  WebhookCheck,
} from "./webhook_verification.ts";
export * from "./websocket_source.ts";
