import type { NameRule } from "../registry.ts";

/** Properties of a resource in which the built-in kinds differ. */
export interface ResourceTraits {
  readonly nameRule: NameRule;
  readonly hasGeneration: boolean;
  readonly allowCreateOnUpdate: boolean;
  readonly allowUnconditionalUpdate: boolean;
  readonly returnsDeletedObject: boolean;
  readonly defaultDeletionPolicy: "Background" | "Orphan";
}

function resources(names: string): Set<string> {
  return new Set(names.trim().split(/\s+/));
}

const NAME_RULES: Readonly<Partial<Record<NameRule, ReadonlySet<string>>>> = {
  "dns-label": resources("namespaces services statefulsets.apps"),
  "ip-address": resources("ipaddresses.networking.k8s.io"),
  "path-segment": resources(`
    events poddisruptionbudgets.policy roles.rbac.authorization.k8s.io
    clusterroles.rbac.authorization.k8s.io
    rolebindings.rbac.authorization.k8s.io
    clusterrolebindings.rbac.authorization.k8s.io`),
};

const WITH_GENERATION: ReadonlySet<string> = resources(`
  pods deviceclasses.resource.k8s.io resourceslices.resource.k8s.io
  podtemplates replicationcontrollers daemonsets.apps deployments.apps
  replicasets.apps statefulsets.apps cronjobs.batch jobs.batch
  ingressclasses.networking.k8s.io ingresses.networking.k8s.io
  networkpolicies.networking.k8s.io poddisruptionbudgets.policy
  endpointslices.discovery.k8s.io priorityclasses.scheduling.k8s.io
  flowschemas.flowcontrol.apiserver.k8s.io
  prioritylevelconfigurations.flowcontrol.apiserver.k8s.io
  mutatingwebhookconfigurations.admissionregistration.k8s.io
  validatingwebhookconfigurations.admissionregistration.k8s.io
  validatingadmissionpolicies.admissionregistration.k8s.io
  validatingadmissionpolicybindings.admissionregistration.k8s.io
  mutatingadmissionpolicies.admissionregistration.k8s.io
  mutatingadmissionpolicybindings.admissionregistration.k8s.io
  customresourcedefinitions.apiextensions.k8s.io`);

const CREATED_BY_UPDATE: ReadonlySet<string> = resources(`
  events events.events.k8s.io endpoints limitranges services
  leases.coordination.k8s.io runtimeclasses.node.k8s.io
  roles.rbac.authorization.k8s.io clusterroles.rbac.authorization.k8s.io
  rolebindings.rbac.authorization.k8s.io
  clusterrolebindings.rbac.authorization.k8s.io`);

/** Resources whose updates must carry a resourceVersion. */
const CONDITIONAL: ReadonlySet<string> = resources(`
  runtimeclasses.node.k8s.io poddisruptionbudgets.policy
  csidrivers.storage.k8s.io csistoragecapacities.storage.k8s.io
  volumeattachments.storage.k8s.io csinodes.storage.k8s.io
  leases.coordination.k8s.io
  validatingadmissionpolicies.admissionregistration.k8s.io
  validatingadmissionpolicybindings.admissionregistration.k8s.io
  mutatingadmissionpolicies.admissionregistration.k8s.io
  mutatingadmissionpolicybindings.admissionregistration.k8s.io
  mutatingwebhookconfigurations.admissionregistration.k8s.io
  validatingwebhookconfigurations.admissionregistration.k8s.io
  customresourcedefinitions.apiextensions.k8s.io
  apiservices.apiregistration.k8s.io`);

/** Resources whose deletion returns the object instead of a Status. */
const RETURNS_DELETED: ReadonlySet<string> = resources(`
  namespaces persistentvolumeclaims persistentvolumes pods podtemplates
  resourcequotas serviceaccounts services csidrivers.storage.k8s.io
  csinodes.storage.k8s.io storageclasses.storage.k8s.io
  volumeattachments.storage.k8s.io volumeattributesclasses.storage.k8s.io
  deviceclasses.resource.k8s.io resourceclaims.resource.k8s.io
  resourceclaimtemplates.resource.k8s.io resourceslices.resource.k8s.io`);

/** Resources whose dependents are orphaned by default. */
const ORPHANING: ReadonlySet<string> = resources(`
  replicationcontrollers jobs.batch`);

/** Traits of a resource, named like `deployments.apps` or `pods`. */
export function traitsOf(resource: string): ResourceTraits {
  const [nameRule] =
    Object.entries(NAME_RULES).find(([, names]) => names.has(resource)) ?? [];
  return {
    nameRule: (nameRule ?? "dns-subdomain") as NameRule,
    hasGeneration: WITH_GENERATION.has(resource),
    allowCreateOnUpdate: CREATED_BY_UPDATE.has(resource),
    allowUnconditionalUpdate: !CONDITIONAL.has(resource),
    returnsDeletedObject: RETURNS_DELETED.has(resource),
    defaultDeletionPolicy: ORPHANING.has(resource) ? "Orphan" : "Background",
  };
}
