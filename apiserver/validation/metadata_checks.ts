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

/** Checks of most kinds: the update alone. */
const USUAL: MetadataChecks = { changes: 1, whole: 0, finalizers: true };

/**
 * Checks of other kinds. Clients see each cause once per check, since duplicate
 * causes are not removed.
 */
const OTHERS: ReadonlyMap<string, MetadataChecks> = new Map([
  ...group(
    { ...USUAL, whole: 1 },
    `
    configmaps endpoints namespaces nodes pods replicationcontrollers secrets
    serviceaccounts services controllerrevisions.apps daemonsets.apps
    replicasets.apps jobs.batch ingressclasses.networking.k8s.io
    ingresses.networking.k8s.io networkpolicies.networking.k8s.io
    storageclasses.storage.k8s.io`,
  ),
  ...group(
    { ...USUAL, whole: 2 },
    `
    persistentvolumeclaims roles.rbac.authorization.k8s.io
    clusterroles.rbac.authorization.k8s.io
    rolebindings.rbac.authorization.k8s.io
    clusterrolebindings.rbac.authorization.k8s.io`,
  ),
  ...group(
    { changes: 0, whole: 1, finalizers: true },
    `
    limitranges endpointslices.discovery.k8s.io
    flowschemas.flowcontrol.apiserver.k8s.io
    prioritylevelconfigurations.flowcontrol.apiserver.k8s.io`,
  ),
  ...group(
    { changes: 0, whole: 2, finalizers: true },
    `
    persistentvolumes`,
  ),
  ...group(
    { ...USUAL, finalizers: false },
    `
    leases.coordination.k8s.io`,
  ),
  ...group(
    { changes: 1, whole: 1, finalizers: false },
    `
    runtimeclasses.node.k8s.io`,
  ),
  ...group(
    { changes: 0, whole: 1, finalizers: false },
    `
    mutatingwebhookconfigurations.admissionregistration.k8s.io
    validatingwebhookconfigurations.admissionregistration.k8s.io`,
  ),
  ...group(
    { changes: 0, whole: 0, finalizers: false },
    `
    poddisruptionbudgets.policy`,
  ),
]);

function group(
  checks: MetadataChecks,
  resources: string,
): [string, MetadataChecks][] {
  return resources.trim().split(/\s+/).map((resource) => [resource, checks]);
}

/** Checks of a resource such as `pods` or `jobs.batch`. */
export function metadataChecksOf(
  resource: { readonly plural: string; readonly group: string },
): MetadataChecks {
  const { plural, group } = resource;
  return OTHERS.get(group === "" ? plural : `${plural}.${group}`) ?? USUAL;
}
