/**
 * Test kit for operators: a cluster for each test, embedded or real, and a
 * virtual clock on which hours pass in milliseconds.
 *
 * `./apiserver` is the embedded API server alone, `./cli` the command `coracle`.
 *
 * @example A test with a cluster of its own
 * ```ts
 * import { ConfigMap } from "@coracle/operator/kinds";
 * import { withTestCluster } from "@coracle/dev";
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

export * from "./testing/check_options.ts";
export { checkConversion } from "./testing/conversion_check.ts";
export type { ConversionReport } from "./testing/conversion_check.ts";
export { kindFromCrd } from "./testing/kind_from_crd.ts";
export type { PolicyRule } from "@coracle/operator/kinds";
export { checkObject } from "./testing/object_check.ts";
export * from "./testing/operator_check.ts";
export { checkRules } from "./testing/rule_check.ts";
export type { CheckedRule } from "./testing/rule_check.ts";
export * from "./testing/test_cluster.ts";
export { VirtualClock } from "./testing/virtual_clock.ts";
