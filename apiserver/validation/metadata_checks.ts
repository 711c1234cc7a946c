/**
 * Number of times kube-apiserver validates the metadata of an updated object.
 */
export interface MetadataChecks {
  /**
   * Number of validations as an update of the kind, in addition to the generic
   * update validation.
   */
  readonly changes: number;
  /** Number of validations as a whole object of the kind. */
  readonly whole: number;
  /** Whether these validations accept finalizers without a domain. */
  readonly finalizers: boolean;
}

/** Metadata checks of most kinds: only those of an update. */
const USUAL: MetadataChecks = { changes: 1, whole: 0, finalizers: true };

/**
 * Metadata checks of all other kinds, one combination per line: changes, whole
 * and resources; a dash marks finalizers that are not accepted. Clients see
 * each cause once per check, because duplicate causes are not removed.
 */
const OTHERS: ReadonlyMap<string, MetadataChecks> = new Map(
  `1 1 configmaps endpoints namespaces nodes pods replicationcontrollers secrets serviceaccounts services controllerrevisions.apps daemonsets.apps replicasets.apps jobs.batch ingressclasses.networking.k8s.io ingresses.networking.k8s.io networkpolicies.networking.k8s.io storageclasses.storage.k8s.io
1 2 persistentvolumeclaims roles.rbac.authorization.k8s.io clusterroles.rbac.authorization.k8s.io rolebindings.rbac.authorization.k8s.io clusterrolebindings.rbac.authorization.k8s.io
0 1 limitranges endpointslices.discovery.k8s.io flowschemas.flowcontrol.apiserver.k8s.io prioritylevelconfigurations.flowcontrol.apiserver.k8s.io
0 2 persistentvolumes
1 0- leases.coordination.k8s.io
1 1- runtimeclasses.node.k8s.io
0 1- mutatingwebhookconfigurations.admissionregistration.k8s.io validatingwebhookconfigurations.admissionregistration.k8s.io
0 0- poddisruptionbudgets.policy`.split("\n").flatMap((line) => {
    const [changes, whole = "", ...resources] = line.split(" ");
    const checks = {
      changes: Number(changes),
      whole: Number.parseInt(whole),
      finalizers: !whole.endsWith("-"),
    };
    return resources.map((resource) => [resource, checks] as const);
  }),
);

/** Metadata checks of a resource such as `pods` or `jobs.batch`. */
export function metadataChecksOf(
  resource: { readonly plural: string; readonly group: string },
): MetadataChecks {
  const { plural, group } = resource;
  return OTHERS.get(group === "" ? plural : `${plural}.${group}`) ?? USUAL;
}
