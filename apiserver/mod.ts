/**
 * The embedded Kubernetes API server, for development and tests: it answers as
 * kube-apiserver 1.32 does, but needs no cluster, and it can be made to fail.
 *
 * What a cluster has and it has not: pods do not run (what `logs` and `exec` give
 * is up to you, and `simulate` pretends that workloads become ready). Nothing is
 * admitted by webhooks, policies, LimitRanges or ResourceQuotas, and nothing is
 * converted by webhooks: a CustomResourceDefinition may name one, and a read in
 * another version than the stored one is then an error that says so. Roles are
 * stored and never asked: who has the token may do everything, others next to
 * nothing, and nobody is impersonated; what an operator may do with its roles
 * `permissions` of `TestCluster` (in `./testing`) checks. `kubectl explain` shows the
 * fields of built-in kinds without their descriptions.
 *
 * @example Objects are written, and a write fails that is told to
 * ```ts
 * import assert from "node:assert/strict";
 * import { ApiServer } from "@coracle/operator/apiserver";
 * import { ConfigMap } from "@coracle/operator/kinds";
 *
 * // Without a port it is reached by its client only; with one, by kubectl, too.
 * const server = await ApiServer.start({ port: false, seed: 1 });
 * const { client, faults } = server;
 * const metadata = { namespace: "default", name: "settings" };
 * faults.add({ verb: "create", count: 1, effect: { status: 503 } });
 * const settings = { metadata, data: { colour: "blue" } };
 * await assert.rejects(client.create(ConfigMap, settings), { status: 503 });
 * await client.create(ConfigMap, settings);
 * const { data } = await client.get(ConfigMap, metadata);
 * assert.deepEqual(data, { colour: "blue" });
 * await server.stop();
 * ```
 *
 * @example On a virtual clock its timeouts, delays and failures take no time
 * ```ts
 * import assert from "node:assert/strict";
 * import { ApiServer } from "@coracle/operator/apiserver";
 * import { VirtualClock } from "@coracle/operator/testing";
 *
 * const clock = new VirtualClock();
 * const server = await ApiServer.start({ port: false, clock });
 * let back = false;
 * const restart = server.faults.restart({ downFor: 60_000 })
 *   .then(() => back = true);
 * await clock.advance(59_000);
 * assert.equal(back, false);
 * await clock.advance(1_000);
 * await restart;
 * await server.stop();
 * ```
 *
 * @module
 */

export * from "./server.ts";
export type { FeatureGates } from "./feature_gates.ts";
export type { ApiServerOptions } from "./server_options.ts";
export type { AuditEvent } from "./request_handler.ts";
export type { HistoryLimits } from "./storage/history.ts";
export type { WatchCounts } from "./read/watcher.ts";

// How it is made to fail.
export type { Faults, RestartOptions } from "./faults/faults.ts";
export type {
  ActiveFault,
  FaultEffect,
  FaultMatch,
  FaultRule,
} from "./faults/fault_rule.ts";

// Certificates, for servers of one's own.
export * from "./certificates.ts";

// What pods without containers do.
export type {
  PodCall,
  PodHooks,
  PodLogCall,
  PodPort,
  PodProcess,
} from "./pods/pod_hooks.ts";
