/**
 * Values to choose from that the schemas do not give, or give in another order
 * than messages do; by struct and field.
 */
export const CHOICES: ReadonlyMap<string, readonly string[]> = new Map([
  ["PodSpec.restartPolicy", ["Always", "OnFailure", "Never"]],
  [
    "Container.terminationMessagePolicy",
    ["File", "FallbackToLogsOnError"],
  ],
  ["PodSpec.preemptionPolicy", ["PreemptLowerPriority", "Never"]],
  ["Toleration.effect", ["NoSchedule", "PreferNoSchedule", "NoExecute"]],
  ["JobSpec.completionMode", ["NonIndexed", "Indexed"]],
  ["NetworkPolicyPort.protocol", ["TCP", "UDP", "SCTP"]],
  ["NetworkPolicySpec.policyTypes", ["Ingress", "Egress"]],
  ["ParamRef.parameterNotFoundAction", ["Deny", "Allow"]],
  ["CSIDriverSpec.fsGroupPolicy", ["File", "None", "ReadWriteOnceWithFSType"]],
  ["PriorityLevelConfigurationSpec.type", ["Exempt", "Limited"]],
  ["IngressClassParametersReference.scope", ["Cluster", "Namespace"]],
  ["ServiceSpec.trafficDistribution", ["PreferClose"]],
  ["RuleWithOperations.scope", ["*", "Cluster", "Namespaced"]],
  ["NamedRuleWithOperations.scope", ["*", "Cluster", "Namespaced"]],
  [
    "ValidatingAdmissionPolicyBindingSpec.validationActions",
    ["Audit", "Deny", "Warn"],
  ],
]);

/** Enumerations that are not checked, or by a rule that says more. */
export const TOLD_BY_RULE: ReadonlySet<string> = new Set([
  "DaemonSetUpdateStrategy.type",
  "DeploymentStrategy.type",
  "StatefulSetSpec.podManagementPolicy",
  "StatefulSetUpdateStrategy.type",
  "PersistentVolumeClaimSpec.accessModes",
  "PersistentVolumeSpec.accessModes",
  "NodeSelectorRequirement.operator",
  "ServiceSpec.ipFamilies",
  "SecurityContext.procMount",
  "ValidatingWebhook.sideEffects",
  "MutatingWebhook.sideEffects",
  "PodOS.name",
  "StorageClass.reclaimPolicy",
  "CSIDriverSpec.volumeLifecycleModes",
  "PriorityClass.preemptionPolicy",
]);

/** Fields below which nothing is checked: a StatefulSet makes what it may. */
export const UNCHECKED: ReadonlySet<string> = new Set([
  "StatefulSetSpec.template",
  "StatefulSetSpec.volumeClaimTemplates",
  "NodeSpec.taints",
  "ObjectMetricSource.metric",
  "PodsMetricSource.metric",
  "ExternalMetricSource.metric",
]);

/** Fields that messages call otherwise. */
export const SHOWN_AS: ReadonlyMap<string, string> = new Map([
  ["Volume.gcePersistentDisk", "persistentDisk"],
  ["Scheduling.tolerations", "tolerations.tolerations"],
]);
