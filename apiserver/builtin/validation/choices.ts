/**
 * Supported values of enumerated fields, by struct and field, where the schema
 * does not list them or lists them in another order than messages do.
 */
export const CHOICES: ReadonlyMap<string, readonly string[]> = new Map([
  ["PodSpec.restartPolicy", ["Always", "OnFailure", "Never"]],
  ["Container.terminationMessagePolicy", ["File", "FallbackToLogsOnError"]],
  ["PodSpec.preemptionPolicy", ["PreemptLowerPriority", "Never"]],
  ["Toleration.effect", ["NoSchedule", "PreferNoSchedule", "NoExecute"]],
  ["JobSpec.completionMode", ["NonIndexed", "Indexed"]],
  ["NetworkPolicyPort.protocol", ["TCP", "UDP", "SCTP"]],
  ["NetworkPolicySpec.policyTypes", ["Ingress", "Egress"]],
  ["ParamRef.parameterNotFoundAction", ["Deny", "Allow"]],
  ["CSIDriverSpec.fsGroupPolicy", ["File", "None", "ReadWriteOnceWithFSType"]],
  ["PriorityLevelConfigurationSpec.type", ["Exempt", "Limited"]],
  ["IngressClassParametersReference.scope", ["Cluster", "Namespace"]],
  ["ServiceSpec.trafficDistribution", [
    "PreferClose",
    "PreferSameZone",
    "PreferSameNode",
  ]],
  ["RuleWithOperations.scope", ["*", "Cluster", "Namespaced"]],
  ["NamedRuleWithOperations.scope", ["*", "Cluster", "Namespaced"]],
  [
    "ValidatingAdmissionPolicyBindingSpec.validationActions",
    ["Audit", "Deny", "Warn"],
  ],
]);

/** Enumerated fields that are not checked, or that a separate rule checks. */
export const CHECKED_BY_RULE: ReadonlySet<string> = new Set(
  `DaemonSetUpdateStrategy.type DeploymentStrategy.type
  StatefulSetSpec.podManagementPolicy StatefulSetUpdateStrategy.type
  PersistentVolumeClaimSpec.accessModes PersistentVolumeSpec.accessModes
  NodeSelectorRequirement.operator ServiceSpec.ipFamilies
  SecurityContext.procMount ValidatingWebhook.sideEffects
  MutatingWebhook.sideEffects PodOS.name StorageClass.reclaimPolicy
  CSIDriverSpec.volumeLifecycleModes Toleration.operator PriorityClass.preemptionPolicy`
    .split(/\s+/),
);

/** Fields whose content is not checked; upstream validates it when it is used. */
export const UNCHECKED: ReadonlySet<string> = new Set(
  `StatefulSetSpec.volumeClaimTemplates
  NodeSpec.taints ObjectMetricSource.metric PodsMetricSource.metric
  ExternalMetricSource.metric`.split(/\s+/),
);

/** Names of fields in messages, where they differ from the JSON names. */
export const SHOWN_AS: ReadonlyMap<string, string> = new Map([
  ["Volume.gcePersistentDisk", "persistentDisk"],
]);
