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

const NAME_RULES: ReadonlyMap<string, NameRule> = new Map([
  ["namespaces", "dns-label"],
  ["services", "dns-1035-label"],
  ["statefulsets.apps", "dns-label"],
  ["events", "path-segment"],
  ["poddisruptionbudgets.policy", "path-segment"],
  ["roles.rbac.authorization.k8s.io", "path-segment"],
  ["clusterroles.rbac.authorization.k8s.io", "path-segment"],
  ["rolebindings.rbac.authorization.k8s.io", "path-segment"],
  ["clusterrolebindings.rbac.authorization.k8s.io", "path-segment"],
]);

const WITH_GENERATION: ReadonlySet<string> = new Set([
  "podtemplates",
  "replicationcontrollers",
  "daemonsets.apps",
  "deployments.apps",
  "replicasets.apps",
  "statefulsets.apps",
  "cronjobs.batch",
  "jobs.batch",
  "ingressclasses.networking.k8s.io",
  "ingresses.networking.k8s.io",
  "networkpolicies.networking.k8s.io",
  "poddisruptionbudgets.policy",
  "endpointslices.discovery.k8s.io",
  "priorityclasses.scheduling.k8s.io",
  "flowschemas.flowcontrol.apiserver.k8s.io",
  "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io",
  "mutatingwebhookconfigurations.admissionregistration.k8s.io",
  "validatingwebhookconfigurations.admissionregistration.k8s.io",
  "validatingadmissionpolicies.admissionregistration.k8s.io",
  "validatingadmissionpolicybindings.admissionregistration.k8s.io",
  "customresourcedefinitions.apiextensions.k8s.io",
]);

const CREATED_BY_UPDATE: ReadonlySet<string> = new Set([
  "events",
  "events.events.k8s.io",
  "endpoints",
  "limitranges",
  "services",
  "leases.coordination.k8s.io",
  "runtimeclasses.node.k8s.io",
  "roles.rbac.authorization.k8s.io",
  "clusterroles.rbac.authorization.k8s.io",
  "rolebindings.rbac.authorization.k8s.io",
  "clusterrolebindings.rbac.authorization.k8s.io",
]);

/** Resources whose updates must carry a resourceVersion. */
const CONDITIONAL: ReadonlySet<string> = new Set([
  "runtimeclasses.node.k8s.io",
  "poddisruptionbudgets.policy",
  "csidrivers.storage.k8s.io",
  "csistoragecapacities.storage.k8s.io",
  "volumeattachments.storage.k8s.io",
  "csinodes.storage.k8s.io",
  "leases.coordination.k8s.io",
  "validatingadmissionpolicies.admissionregistration.k8s.io",
  "validatingadmissionpolicybindings.admissionregistration.k8s.io",
  "mutatingwebhookconfigurations.admissionregistration.k8s.io",
  "validatingwebhookconfigurations.admissionregistration.k8s.io",
  "customresourcedefinitions.apiextensions.k8s.io",
  "apiservices.apiregistration.k8s.io",
]);

/** Resources whose DELETE returns the object instead of a Status. */
const RETURNS_DELETED: ReadonlySet<string> = new Set([
  "namespaces",
  "persistentvolumeclaims",
  "persistentvolumes",
  "pods",
  "podtemplates",
  "resourcequotas",
  "serviceaccounts",
  "services",
  "csidrivers.storage.k8s.io",
  "csinodes.storage.k8s.io",
  "storageclasses.storage.k8s.io",
  "volumeattachments.storage.k8s.io",
]);

/** Resources whose dependents are orphaned by default. */
const ORPHANING: ReadonlySet<string> = new Set([
  "replicationcontrollers",
  "jobs.batch",
]);

/** Traits of a resource, named like `deployments.apps` or `pods`. */
export function traitsOf(resource: string): ResourceTraits {
  return {
    nameRule: NAME_RULES.get(resource) ?? "dns-subdomain",
    hasGeneration: WITH_GENERATION.has(resource),
    allowCreateOnUpdate: CREATED_BY_UPDATE.has(resource),
    allowUnconditionalUpdate: !CONDITIONAL.has(resource),
    returnsDeletedObject: RETURNS_DELETED.has(resource),
    defaultDeletionPolicy: ORPHANING.has(resource) ? "Orphan" : "Background",
  };
}
