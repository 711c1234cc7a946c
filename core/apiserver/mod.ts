/**
 * The embedded Kubernetes API server, for development and tests: it answers as
 * kube-apiserver does, but needs no cluster, and it can be made to fail.
 *
 * @module
 */

export * from "./server.ts";
export type { ApiServerOptions } from "./server_options.ts";
export type { AuditEvent } from "./request_handler.ts";
export type { HistoryLimits } from "./storage/history.ts";
export type { WatchCounts } from "./read/watch_hub.ts";

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

// For tests: a cluster each, embedded or real.
export {
  TestCluster,
  type TestClusterOptions,
  type TestedOperator,
  type TestUntilOptions,
  withTestCluster,
} from "./test_cluster.ts";
export {
  accessOf,
  type AccessRequest,
  permits,
  RestrictedTransport,
} from "./restricted_transport.ts";
