/**
 * Test kit for operators: a cluster for each test, embedded or real, and a
 * virtual clock on which hours pass in milliseconds.
 *
 * Imports `apiserver` and the parts of `core` below controllers; nothing but
 * `cli` and tests imports it.
 *
 * @example A test with a cluster of its own
 * ```ts
 * import { ConfigMap } from "@coracle/operator/kinds";
 * import { withTestCluster } from "@coracle/operator/testing";
 *
 * const test = withTestCluster({}, async (cluster) => {
 *   const { client, namespace } = cluster;
 *   await client.create(ConfigMap, { metadata: { namespace, name: "a" } });
 *   await cluster.until(() => client.find(ConfigMap, { namespace, name: "a" }));
 * });
 * await test();
 * ```
 *
 * @module
 */

export * from "./check_options.ts";
export { kindFromCrd } from "./kind_from_crd.ts";
export type { PolicyRule } from "../core/kinds/rbac_v1.ts";
export * from "./operator_check.ts";
export * from "./test_cluster.ts";
export { VirtualClock } from "./virtual_clock.ts";
