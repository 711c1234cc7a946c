import process from "node:process";

/** A cluster that a scenario runs against, from outside. */
export interface ScenarioCluster {
  /** The path of a kubeconfig of an administrator. */
  readonly kubeconfig: string;
  stop(): Promise<void>;
}

/** Options of {@linkcode startScenarioCluster}. */
export interface ScenarioClusterOptions {
  readonly simulate?: boolean | undefined;
}

/** Whether scenarios run against a real cluster. */
export const ON_REAL_CLUSTER: boolean =
  process.env["CORACLE_TEST_CLUSTER"] === "kubeconfig";

/**
 * The real cluster of the run, or an embedded API server of its own.
 *
 * @returns Undefined where the real one cannot do what is asked.
 */
export function startScenarioCluster(
  options: ScenarioClusterOptions = {},
): Promise<ScenarioCluster | undefined> {
  if (ON_REAL_CLUSTER && options.simulate) return Promise.resolve(undefined);
  return Promise.resolve({
    kubeconfig: process.env["KUBECONFIG"] ?? "",
    stop: () => Promise.resolve(),
  });
}
