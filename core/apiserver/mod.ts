/**
 * The embedded Kubernetes API server, for development and tests: it answers as
 * kube-apiserver does, but needs no cluster, and it can be made to fail.
 *
 * @module
 */

export * from "./server.ts";

// For tests: a cluster each, embedded or real.
export {
  TestCluster,
  type TestClusterOptions,
  type TestedOperator,
  type TestUntilOptions,
  withTestCluster,
} from "./test_cluster.ts";
export {
  type AccessRequest,
  accessOf,
  permits,
  RestrictedTransport,
} from "./restricted_transport.ts";
