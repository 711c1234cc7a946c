/**
 * Embedded Kubernetes API server for development and tests. It answers as
 * kube-apiserver 1.37 does, without a cluster, and supports fault injection.
 *
 * Differences from a cluster: containers do not run. Pods stay pending, or run
 * on simulated nodes (`simulate`), where hooks determine how they end and
 * provide `logs` and `exec`. Requests are never queued by priority and
 * fairness, and `kubectl explain` shows the fields of built-in kinds without
 * descriptions. On Bun client certificates are ignored, because its servers do
 * not expose them.
 *
 * Imports `client`, `crd`, `kinds` and `internal` of `@coracle/operator`, and
 * nothing of controllers or operators. A request passes `http/` (listener or in-process transport),
 * `request_handler.ts`, `access/` (authentication, roles), `router.ts`, `read/`
 * or `write/` (with `admission/`), and `storage/`; `registry.ts` defines how a
 * resource is described. `controllers/` reconcile what was stored.
 *
 * @example Write objects, and inject a failure
 * ```ts
 * import assert from "node:assert/strict";
 * import { ApiServer } from "@coracle/dev/apiserver";
 * import { ConfigMap } from "@coracle/operator/kinds";
 *
 * // Without a port the server is reached only by its client.
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
 * @example On a virtual clock, timeouts, delays and downtime take no real time
 * ```ts
 * import assert from "node:assert/strict";
 * import { ApiServer } from "@coracle/dev/apiserver";
 * import { VirtualClock } from "@coracle/dev";
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

export type { KeyPair } from "@coracle/operator/internal";
export type {
  ActiveFault,
  FaultEffect,
  FaultMatch,
  FaultRule,
} from "./faults/fault_rule.ts";
export type { Faults } from "./faults/faults.ts";
export type { FeatureGates } from "./feature_gates.ts";
export type { KubernetesVersion } from "./kubernetes_release.ts";
export type { PodCall, PodHooks, PodProcess } from "./pods/pod_hooks.ts";
export type { AuditEvent } from "./request_handler.ts";
export { ApiServer } from "./server.ts";
export type { ApiServerOptions } from "./server_options.ts";
