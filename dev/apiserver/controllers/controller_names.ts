/** Names of the controllers of pods, and of objects whose status depends on pods. */
const WORKLOAD_CONTROLLERS = [
  "cronjob-controller",
  "daemonset-controller",
  "deployment-controller",
  "disruption-controller",
  "endpoints-controller",
  "endpointslice-controller",
  "endpointslice-mirroring-controller",
  "job-controller",
  "replicaset-controller",
  "replicationcontroller-controller",
  "statefulset-controller",
] as const;

/** Names of the controllers that also run without simulated nodes. */
const CLUSTER_CONTROLLERS = [
  "certificatesigningrequest-signing-controller",
  "clusterrole-aggregation-controller",
  "garbage-collector-controller",
  "namespace-controller",
  "persistentvolume-binder-controller",
  "persistentvolume-protection-controller",
  "persistentvolumeclaim-protection-controller",
  "resourcequota-controller",
  "root-ca-certificate-publisher-controller",
  "serviceaccount-controller",
  "storage-version-migrator-controller",
  "ttl-after-finished-controller",
  "validatingadmissionpolicy-status-controller",
] as const;

/** Name of a controller of the server, as in kube-controller-manager. */
export type ControllerName =
  | typeof WORKLOAD_CONTROLLERS[number]
  | typeof CLUSTER_CONTROLLERS[number];

const NAMES: readonly ControllerName[] = [
  ...WORKLOAD_CONTROLLERS,
  ...CLUSTER_CONTROLLERS,
];

/**
 * Names of the controllers that run by default. Without simulated nodes pods never
 * run, and tests write the status of their workloads themselves.
 */
export function defaultControllers(simulate: boolean): readonly string[] {
  return [
    "*",
    ...simulate ? [] : WORKLOAD_CONTROLLERS.map((name) => `-${name}`),
  ];
}

/**
 * Creates a function that checks whether a controller runs. As in the flag
 * `--controllers` of kube-controller-manager, `*` stands for all, and `-`
 * before a name switches it off.
 *
 * @throws {RangeError} If a name is unknown.
 */
export function controllerSwitch(
  selected: readonly string[],
): (name: ControllerName) => boolean {
  const known: ReadonlySet<string> = new Set(["*", ...NAMES]);
  for (const name of selected) {
    if (known.has(String(name).replace(/^-(?!\*)/, ""))) continue;
    throw new RangeError(
      `Cannot select controllers: they are "*" and ${
        NAMES.join(", ")
      }, each with "-" to switch it off: received ${JSON.stringify(name)}`,
    );
  }
  const all = selected.includes("*");
  return (name) =>
    selected.includes(name) || (all && !selected.includes(`-${name}`));
}
