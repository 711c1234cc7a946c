import type { Duration } from "../core/api/duration.ts";
import type { UntypedObject } from "../core/api/object.ts";
import type { OptionRules } from "../core/api/option_rules.ts";
import type { Clock } from "../core/clock.ts";
import type { DefinedKind } from "../core/crd/kind_definition.ts";
import type { PolicyRule } from "../core/crd/rbac.ts";
import type { ApiServerOptions } from "../apiserver/server_options.ts";
import type { TestCluster } from "./test_cluster.ts";

/** What a test starts and stops: an `Operator`, or anything alike. */
export interface TestedOperator {
  /** Starts it; fulfilled when it works. */
  start(): Promise<void>;
  /** Stops it; fulfilled when nothing of it is left. */
  stop(): Promise<void>;
}

/** Options of {@linkcode TestCluster.start} and {@linkcode withTestCluster}. */
export interface TestClusterOptions {
  /**
   * Which cluster: an embedded API server that only this test uses, or the one
   * that the kubeconfig names.
   *
   * @default {the environment variable CORACLE_TEST_CLUSTER, else "embedded"}
   */
  readonly cluster?: "embedded" | "kubeconfig" | undefined;
  /**
   * A namespace that is there already, for the test to work in; what the test
   * leaves there stays.
   *
   * @default {a new one, which is deleted on a real cluster}
   */
  readonly namespace?: string | undefined;
  /**
   * Kinds whose definitions are installed first.
   *
   * @default {none}
   */
  readonly kinds?: readonly DefinedKind[] | undefined;
  /**
   * Objects that are there before the operator starts, with `apiVersion` and
   * `kind`; those without a namespace go into that of the test.
   *
   * @default {none}
   */
  readonly objects?: readonly UntypedObject[] | undefined;
  /**
   * Makes the operator, which is started when all this is there. It should take
   * `cluster.operatorClient`, `cluster.logger`, `cluster.clock`, and work in
   * `cluster.namespace`.
   *
   * @default {none is started}
   */
  readonly operator?: ((cluster: TestCluster) => TestedOperator) | undefined;
  /**
   * What `operatorClient` may do; anything else is refused as if by RBAC.
   *
   * @default {everything}
   */
  readonly permissions?: readonly PolicyRule[] | undefined;
  /**
   * The time of server, client and operator; with a `VirtualClock` hours pass in
   * milliseconds. A real cluster keeps its own time: there the clock is that of
   * the operator alone, and moves on when the cluster has nothing to say.
   *
   * @default {the machine's clock}
   */
  readonly clock?: Clock | undefined;
  /**
   * Further options of the embedded server.
   *
   * @default {no socket}
   */
  readonly server?: Omit<ApiServerOptions, "clock"> | undefined;
}

/** What the options of a test cluster must be. */
export const TEST_CLUSTER_RULES: OptionRules<TestClusterOptions> = {
  cluster: ["embedded", "kubeconfig", undefined],
  namespace: "name?",
  kinds: "array?",
  objects: "array?",
  operator: "function?",
  permissions: "array?",
  clock: "clock?",
  server: "object?",
};

/** Options of {@linkcode TestCluster.until}. */
export interface TestUntilOptions {
  /**
   * How long it may take, on the clock of the cluster.
   *
   * @default {"30s", or "1h" on a virtual clock}
   */
  readonly within?: Duration | undefined;
}
