/**
 * Defaults of the built-in kinds that their schemas do not contain, by struct;
 * `rules/rule_text.ts` documents the statements. `FIELD ?= VALUE` sets an
 * absent field, `FIELD |= VALUE` an absent or empty one, `FIELD = VALUE` any
 * field, and `delete FIELD` removes it. Fields of an absent struct are not set.
 */
export const DEFAULT_RULES: string = String.raw`
core.v1.Pod
  each spec.containers spec.initContainers
    if has(resources.limits): resources.requests = merged(resources.limits, resources.requests)
  spec.enableServiceLinks ?= true
  if spec.hostNetwork
    each spec.containers.ports spec.initContainers.ports
      if containerPort: hostPort |= containerPort

# serviceAccount is the deprecated alias of serviceAccountName.
core.v1.PodSpec
  dnsPolicy ?= 'ClusterFirst'
  restartPolicy ?= 'Always'
  securityContext ?= empty()
  terminationGracePeriodSeconds ?= 30
  schedulerName ?= 'default-scheduler'
  let $account = serviceAccountName ?? serviceAccount
  if has($account)
    serviceAccountName = $account
    serviceAccount = $account

core.v1.Container core.v1.EphemeralContainer
  imagePullPolicy ?= pullPolicy(image)
  terminationMessagePath ?= '/dev/termination-log'
  terminationMessagePolicy ?= 'File'

core.v1.Volume
  if hasOnlyName(.): emptyDir = empty()
  image.pullPolicy ?= pullPolicy(image.reference)

core.v1.Probe
  timeoutSeconds ?= 1
  periodSeconds ?= 10
  successThreshold ?= 1
  failureThreshold ?= 3

core.v1.HTTPGetAction
  path ?= '/'
  scheme ?= 'HTTP'

core.v1.ObjectFieldSelector
  apiVersion ?= 'v1'

core.v1.SecretVolumeSource core.v1.ConfigMapVolumeSource core.v1.DownwardAPIVolumeSource core.v1.ProjectedVolumeSource
  defaultMode ?= 420

core.v1.HostPathVolumeSource
  type ?= ''

core.v1.ServiceAccountTokenProjection
  expirationSeconds ?= 3600

core.v1.Service
  spec.sessionAffinity ?= 'None'
  if spec.sessionAffinity == 'None': delete spec.sessionAffinityConfig
  if spec.sessionAffinity == 'ClientIP' && !has(spec.sessionAffinityConfig.clientIP.timeoutSeconds): spec.sessionAffinityConfig = clientTimeout(10_800)
  spec.type ?= 'ClusterIP'
  each spec.ports
    protocol ?= 'TCP'
    targetPort |= port
  if spec.type in ['LoadBalancer', 'NodePort'] || spec.type == 'ClusterIP' && has(spec.externalIPs): spec.externalTrafficPolicy ?= 'Cluster'
  if spec.type != 'ExternalName': spec.internalTrafficPolicy ?= 'Cluster'
  if spec.type == 'LoadBalancer'
    spec.allocateLoadBalancerNodePorts ?= true
    each status.loadBalancer.ingress
      if ip: ipMode ?= 'VIP'

core.v1.Secret
  type ?= 'Opaque'
  if has(stringData)
    data = merged(data, encoded(stringData))
    delete stringData

core.v1.LimitRangeItem
  if type == 'Container'
    let $limits = merged(max, default)
    let $requests = merged(merged(min, $limits), defaultRequest)
    if isFilled($limits): default = $limits
    if isFilled($requests): defaultRequest = $requests

core.v1.ReplicationController
  let $labels = spec.template.metadata.labels
  if $labels
    spec.selector ?= merged($labels)
    metadata.labels ?= merged($labels)
  spec.replicas ?= 1

core.v1.Endpoints
  each subsets.ports
    protocol ?= 'TCP'

core.v1.Namespace
  if metadata.name: metadata.labels = merged(metadata.labels, pair('kubernetes.io/metadata.name', metadata.name))

core.v1.NamespaceStatus
  phase ?= 'Active'

core.v1.NodeStatus
  if capacity: allocatable ?= merged(capacity)

core.v1.PersistentVolume
  status.phase ?= 'Pending'
  spec.persistentVolumeReclaimPolicy ?= 'Retain'
  spec.volumeMode ?= 'Filesystem'

core.v1.PersistentVolumeClaim
  status ?= empty()
  status.phase ?= 'Pending'

core.v1.PersistentVolumeClaimSpec
  volumeMode ?= 'Filesystem'

apps.v1.Deployment
  spec.replicas ?= 1
  spec.strategy ?= empty()
  at spec.strategy
    type ?= 'RollingUpdate'
    if type == 'RollingUpdate': rollingUpdate ?= empty()
    if type == 'RollingUpdate': rollingUpdate.maxUnavailable ?= '25%'
    if type == 'RollingUpdate': rollingUpdate.maxSurge ?= '25%'
  spec.revisionHistoryLimit ?= 10
  spec.progressDeadlineSeconds ?= 600

# The generation of the template was a field of the removed version extensions/v1beta1.
apps.v1.DaemonSet
  metadata.annotations = merged(pair('deprecated.daemonset.template.generation', '0'), metadata.annotations)
  spec.updateStrategy ?= empty()
  at spec.updateStrategy
    type ?= 'RollingUpdate'
    if type == 'RollingUpdate': rollingUpdate ?= empty()
    if type == 'RollingUpdate': rollingUpdate.maxUnavailable ?= 1
    if type == 'RollingUpdate': rollingUpdate.maxSurge ?= 0
  spec.revisionHistoryLimit ?= 10

# Claim templates are stored as whole objects, with apiVersion and kind.
apps.v1.StatefulSet
  spec.podManagementPolicy ?= 'OrderedReady'
  spec.updateStrategy ?= empty()
  at spec.updateStrategy
    let $isUnset = !has(type)
    type ?= 'RollingUpdate'
    if $isUnset: rollingUpdate ?= empty()
    if type == 'RollingUpdate': rollingUpdate.partition ?= 0
  spec.persistentVolumeClaimRetentionPolicy ?= empty()
  spec.persistentVolumeClaimRetentionPolicy.whenDeleted ?= 'Retain'
  spec.persistentVolumeClaimRetentionPolicy.whenScaled ?= 'Retain'
  spec.replicas ?= 1
  spec.revisionHistoryLimit ?= 10
  each spec.volumeClaimTemplates
    apiVersion = 'v1'
    kind = 'PersistentVolumeClaim'

apps.v1.ReplicaSet
  spec.replicas ?= 1

# The labels are the same map on purpose: those added to the template are added to the Job, too.
batch.v1.Job
  if !has(spec.completions) && !has(spec.parallelism): spec.completions = 1
  spec.parallelism ?= 1
  spec.backoffLimit ?= has(spec.backoffLimitPerIndex) ? 2147483647 : 6
  if spec.template.metadata.labels: metadata.labels ?= spec.template.metadata.labels
  spec.completionMode ?= 'NonIndexed'
  spec.suspend ?= false
  each spec.podFailurePolicy.rules.onPodConditions
    status |= 'True'
  spec.podReplacementPolicy ?= spec.podFailurePolicy ? 'Failed' : 'TerminatingOrFailed'
  spec.manualSelector ?= false

batch.v1.CronJob
  spec.concurrencyPolicy ?= 'Allow'
  spec.suspend ?= false
  spec.successfulJobsHistoryLimit ?= 3
  spec.failedJobsHistoryLimit ?= 1

autoscaling.v2.HorizontalPodAutoscaler
  spec.minReplicas ?= 1
  spec.metrics ?= json('[{"type":"Resource","resource":{"name":"cpu","target":{"type":"Utilization","averageUtilization":80}}}]')
  if has(spec.behavior)
    spec.behavior.scaleUp = merged(json('{"stabilizationWindowSeconds":0,"selectPolicy":"Max","policies":[{"type":"Pods","value":4,"periodSeconds":15},{"type":"Percent","value":100,"periodSeconds":15}]}'), spec.behavior.scaleUp)
    spec.behavior.scaleDown = merged(json('{"selectPolicy":"Max","policies":[{"type":"Percent","value":100,"periodSeconds":15}]}'), spec.behavior.scaleDown)

# An annotation holds the metrics for which v1 has no field.
autoscaling.v1.HorizontalPodAutoscaler
  spec.minReplicas ?= 1
  if !metadata.annotations['autoscaling.alpha.kubernetes.io/metrics']: spec.targetCPUUtilizationPercentage ?= 80

networking.v1.NetworkPolicy
  spec.policyTypes ?= has(spec.egress) ? ['Ingress', 'Egress'] : ['Ingress']

networking.v1.NetworkPolicyPort
  protocol ?= 'TCP'

resource.v1.ExactDeviceRequest resource.v1.DeviceSubRequest
  allocationMode ?= 'ExactCount'
  if allocationMode == 'ExactCount': count |= 1

networking.v1.IngressClass
  spec.parameters.scope ?= 'Cluster'

storage.v1.StorageClass
  reclaimPolicy ?= 'Delete'
  volumeBindingMode ?= 'Immediate'

storage.v1.CSIDriver
  spec.attachRequired ?= true
  spec.podInfoOnMount ?= false
  spec.storageCapacity ?= false
  spec.fsGroupPolicy ?= 'ReadWriteOnceWithFSType'
  spec.volumeLifecycleModes ?= ['Persistent']
  spec.requiresRepublish ?= false
  spec.seLinuxMount ?= false

rbac.v1.RoleRef
  apiGroup |= 'rbac.authorization.k8s.io'

rbac.v1.Subject
  if kind in ['User', 'Group']: apiGroup ?= 'rbac.authorization.k8s.io'

scheduling.v1.PriorityClass
  preemptionPolicy ?= 'PreemptLowerPriority'

discovery.v1.EndpointPort
  name ?= ''
  protocol ?= 'TCP'

admissionregistration.v1.ValidatingWebhook admissionregistration.v1.MutatingWebhook
  failurePolicy ?= 'Fail'
  matchPolicy ?= 'Equivalent'
  namespaceSelector ?= empty()
  objectSelector ?= empty()
  timeoutSeconds ?= 10

admissionregistration.v1.MutatingWebhook
  reinvocationPolicy ?= 'Never'

admissionregistration.v1.RuleWithOperations admissionregistration.v1.NamedRuleWithOperations
  scope ?= '*'

admissionregistration.v1.ServiceReference kube-aggregator.pkg.apis.apiregistration.v1.ServiceReference
  port ?= 443

admissionregistration.v1.ValidatingAdmissionPolicySpec admissionregistration.v1.MutatingAdmissionPolicySpec
  failurePolicy ?= 'Fail'

admissionregistration.v1.MatchResources
  matchPolicy ?= 'Equivalent'
  namespaceSelector ?= empty()
  objectSelector ?= empty()

resource.v1.ExactDeviceRequest resource.v1.DeviceSubRequest
  allocationMode |= 'ExactCount'
  if allocationMode == 'ExactCount': count |= 1

flowcontrol.v1.FlowSchemaSpec
  matchingPrecedence |= 1000

flowcontrol.v1.ExemptPriorityLevelConfiguration
  nominalConcurrencyShares ?= 0
  lendablePercent ?= 0

flowcontrol.v1.LimitedPriorityLevelConfiguration
  nominalConcurrencyShares ?= 30
  lendablePercent ?= 0

flowcontrol.v1.QueuingConfiguration
  handSize |= 8
  queues |= 64
  queueLengthLimit |= 50
`;
