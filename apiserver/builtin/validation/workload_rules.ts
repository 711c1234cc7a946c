/** Rules of workloads, Jobs and autoscalers; `rules/rule_text.ts` documents the statements. */
export const WORKLOAD_RULES: string = String.raw`
rule mismatch
  invalid template.metadata.labels = template.metadata.labels: \`selector\` does not match template \`labels\`

# The selector is set, not empty and matches the template.
rule selection
  if !selector
    missing selector
    use mismatch
  elif isEmptySelector(selector): invalid selector shown goSelector(selector): empty selector is invalid for %($kind)
  elif !has(selects(selector, template.metadata.labels)): invalid selector shown goSelector(selector): invalid label selector
  elif !selects(selector, template.metadata.labels): use mismatch

rule restart policy
  if template.spec.restartPolicy != 'Always': unsupported template.spec.restartPolicy: Always
  if has(template.spec.activeDeadlineSeconds): forbidden template.spec.activeDeadlineSeconds: activeDeadlineSeconds in %($owner) is not Supported

apps.v1.DeploymentSpec
  notNegative replicas minReadySeconds revisionHistoryLimit progressDeadlineSeconds
  let $kind = 'deployment'
  let $owner = 'ReplicaSet'
  use selection
  use restart policy
  at strategy
    if type == 'Recreate'
      if rollingUpdate: forbidden rollingUpdate: may not be specified when strategy \`type\` is 'Recreate'
    elif type == 'RollingUpdate'
      at rollingUpdate
        maxUnavailable percent
        maxSurge intOrPercent
        if percent(maxUnavailable) == 0 && percent(maxSurge) == 0: invalid maxUnavailable = maxUnavailable ?? 0: may not be 0 when \`maxSurge\` is 0
    else: unsupported . = type: Recreate, RollingUpdate
  if progressDeadlineSeconds <= (minReadySeconds ?? 0): invalid progressDeadlineSeconds: must be greater than minReadySeconds

apps.v1.ReplicaSetSpec
  notNegative replicas minReadySeconds
  let $kind = 'deployment'
  let $owner = 'ReplicaSet'
  use selection
  use restart policy

apps.v1.ControllerRevision
  if !has(data): missing data: data is mandatory
  if revision < 0: invalid revision: must be greater than or equal to 0

apps.v1.DaemonSetSpec
  notNegative minReadySeconds revisionHistoryLimit
  let $kind = 'daemonset'
  let $owner = 'DaemonSet'
  if selector: use selection
  else: use mismatch
  use restart policy
  at updateStrategy
    if type == 'RollingUpdate'
      at rollingUpdate
        maxUnavailable percent
        maxSurge percent
        if percent(maxUnavailable) == 0 && percent(maxSurge) == 0: missing maxUnavailable: cannot be 0 when maxSurge is 0
        elif percent(maxUnavailable) != 0 && percent(maxSurge) != 0: invalid maxSurge = maxSurge: may not be set when maxUnavailable is non-zero
    elif type != 'OnDelete': unsupported . shown '{"Type":' + json(type) + ',"RollingUpdate":' + (rollingUpdate ? '{"MaxUnavailable":' + json(rollingUpdate.maxUnavailable ?? 0) + ',"MaxSurge":' + json(rollingUpdate.maxSurge ?? 0) + '}' : 'null') + '}': supported values: "RollingUpdate", "OnDelete"

# The rest of the template is validated only when Pods are created from it.
apps.v1.StatefulSetSpec
  notNegative replicas minReadySeconds
  if !(podManagementPolicy in ['OrderedReady', 'Parallel']): invalid podManagementPolicy: must be 'OrderedReady' or 'Parallel'
  at updateStrategy
    if type == 'OnDelete'
      if rollingUpdate: invalid rollingUpdate shown '{"Partition":' + (rollingUpdate.partition ?? 0) + ',"MaxUnavailable":' + json(rollingUpdate.maxUnavailable) + '}': only allowed for updateStrategy 'RollingUpdate'
    elif type == 'RollingUpdate'
      at rollingUpdate
        notNegative partition
    else: invalid . shown '{"Type":' + json(type) + ',"RollingUpdate":null}': must be 'RollingUpdate' or 'OnDelete'
  if ordinals.start < 0: invalid ordinals.start: must be greater than or equal to 0
  let $kind = 'statefulset'
  let $owner = 'StatefulSet'
  use selection
  use restart policy
  at persistentVolumeClaimRetentionPolicy
    if has(whenDeleted): whenDeleted of: Retain, Delete
    if has(whenScaled): whenScaled of: Retain, Delete
  labels template.metadata.labels template.labels
  annotations template.metadata.annotations template.annotations

core.v1.ReplicationControllerSpec
  notNegative replicas minReadySeconds
  if !keysBut(selector, []): missing selector
  if !template: missing template
  elif !selectsAll(selector, template.metadata.labels): use mismatch
  let $owner = 'ReplicationController'
  if template: use restart policy

batch.v1.JobSpec
  notNegative parallelism completions activeDeadlineSeconds backoffLimit ttlSecondsAfterFinished backoffLimitPerIndex maxFailedIndexes
  if has(maxFailedIndexes) && !has(backoffLimitPerIndex): missing backoffLimitPerIndex: when maxFailedIndexes is specified
  if completionMode == 'Indexed'
    if !has(completions): missing completions: when completion mode is Indexed
    if parallelism > 100_000: invalid parallelism: must be less than or equal to 100000 when completion mode is Indexed
    if maxFailedIndexes > completions: invalid maxFailedIndexes: must be less than or equal to completions
  elif completionMode == 'NonIndexed'
    if has(backoffLimitPerIndex): invalid backoffLimitPerIndex: requires indexed completion mode
    if has(maxFailedIndexes): invalid maxFailedIndexes: requires indexed completion mode
  if managedBy == '': missing managedBy
  elif has(managedBy) && !(managedBy ~ /^[^/]+\/./): invalid managedBy: must be a domain-prefixed path (such as "acme.io/foo")
  elif has(managedBy): managedBy = split(managedBy, '/')[0] is subdomain
  if len(managedBy) > 63: tooLong managedBy: 63
  let $names = pluck(concat(template.spec.containers, template.spec.initContainers), 'name')
  each podFailurePolicy.rules
    if !action: missing action: valid values: ["Count" "FailIndex" "FailJob" "Ignore"]
    elif action == 'FailIndex' && !has(^backoffLimitPerIndex): invalid action: requires the backoffLimitPerIndex to be set
    if onExitCodes
      at onExitCodes
        operator required: valid values: ["In" "NotIn"]
        if has(containerName) && !(containerName in $names): invalid containerName: must be one of the container or initContainer names in the pod template
        if !values: invalid values: at least one value is required
        let $operator = operator
        each values
          if $operator == 'In' && . == 0: invalid .: must not be 0 for the In operator
          distinct .
        if values && !isAscending(values): invalid values: must be ordered
    each onPodConditions
      type is qualifiedName
    if onExitCodes && onPodConditions: invalidAs .: specifying both OnExitCodes and OnPodConditions is not supported
    elif !onExitCodes && !onPodConditions: invalidAs .: specifying one of OnExitCodes and OnPodConditions is required
  if successPolicy && completionMode != 'Indexed': invalid successPolicy shown '{"Rules":' + goRules(successPolicy.rules) + '}': requires indexed completion mode
  elif successPolicy && !successPolicy.rules: missing successPolicy.rules: at least one rules must be specified when the successPolicy is specified
  if successPolicy && completionMode == 'Indexed'
    each successPolicy.rules
      if !has(succeededCount) && !has(succeededIndexes): missing .: at least one of succeededCount or succeededIndexes must be specified

after batch.v1.JobSpec
  at template.spec
    if restartPolicy == 'Always' || !has(restartPolicy): missing restartPolicy: valid values: "OnFailure", "Never"
    elif !(restartPolicy in ['OnFailure', 'Never']): unsupported restartPolicy: OnFailure, Never
    elif ^podFailurePolicy && restartPolicy != 'Never': invalid restartPolicy: only "Never" is supported when podFailurePolicy is specified

# Does not apply to templates of Jobs.
batch.v1.Job
  let $name = metadata.name ?? ''
  let $pod = $name + '-' + ((spec.completions ?? 0) - 1)
  if spec.completionMode == 'Indexed' && spec.completions >= 1 && !isLabel($pod): invalid metadata.name = $name: will not able to create pod with invalid DNS label: %($pod)
  if spec
    at spec
      selector required
      if !selector || selects(selector, template.metadata.labels) == false: use mismatch

batch.v1.CronJobSpec
  schedule required
  if schedule && has(scheduleProblem(schedule)): invalid schedule: %(scheduleProblem(schedule))
  if schedule ~ /TZ/: invalid schedule: cannot use TZ or CRON_TZ in schedule, use timeZone field instead
  if has(timeZone) && has(timeZoneProblem(timeZone)): invalid timeZone: %(timeZoneProblem(timeZone))
  notNegative startingDeadlineSeconds successfulJobsHistoryLimit failedJobsHistoryLimit
  if jobTemplate.spec.manualSelector: unsupported jobTemplate.spec.manualSelector: nil, false

policy.v1.PodDisruptionBudgetSpec
  if has(minAvailable) && has(maxUnavailable): invalid . shown '{"MinAvailable":' + json(minAvailable) + ',"Selector":' + json(selector) + ',"MaxUnavailable":' + json(maxUnavailable) + ',"UnhealthyPodEvictionPolicy":' + json(unhealthyPodEvictionPolicy) + '}': minAvailable and maxUnavailable cannot be both set
  minAvailable percent
  maxUnavailable percent

rule reference
  kind is pathSegment!
  name is pathSegment!

autoscaling.v1.HorizontalPodAutoscalerSpec autoscaling.v2.HorizontalPodAutoscalerSpec
  if minReplicas < 1: invalid minReplicas: must be greater than or equal to 1
  if !maxReplicas: missing maxReplicas: must be set and greater than 0
  elif maxReplicas < 0: invalid maxReplicas: must be greater than or equal to 1
  if maxReplicas < (minReplicas ?? 1): invalid maxReplicas: must be greater than or equal to \`minReplicas\`
  at scaleTargetRef
    use reference
    if !groupOf(apiVersion ?? ''): invalid apiVersion = apiVersion ?? '': apiVersion must specify API group

# An unknown type is reported twice, as upstream does: for itself and for its source.
autoscaling.v2.MetricSpec
  let $sources = given(., ['containerResource', 'external', 'object', 'pods', 'resource'])
  let $expected = lowerFirst(type)
  type required: must specify a metric source type
  if !(type in ['ContainerResource', 'External', 'Object', 'Pods', 'Resource'])
    unsupported type: ContainerResource, External, Object, Pods, Resource
    unsupported type: ContainerResource, External, Object, Pods, Resource
  elif !($expected in $sources): missing %($expected): must populate information for the given metric source
  if len($sources) > 1
    every $sources
      if . != $expected: forbidden %(.): must populate the given metric source only

autoscaling.v2.MetricTarget
  type required: must specify a metric target type
  if !(type in ['Utilization', 'Value', 'AverageValue']): invalid type: must be either Utilization, Value, or AverageValue
  if has(value) && quantity(value) <= 0: invalid value: must be positive
  if has(averageValue) && quantity(averageValue) <= 0: invalid averageValue: must be positive
  if averageUtilization < 1: invalid averageUtilization: must be greater than 0

rule metric name
  at metric
    if !name: missing name: must specify a metric name
    else: name is pathSegment

autoscaling.v2.ObjectMetricSource
  at describedObject
    use reference
  use metric name
  if !has(target.value) && !has(target.averageValue): missing target.averageValue: must set either a target value or averageValue

autoscaling.v2.ExternalMetricSource
  use metric name
  if !has(target.value) && !has(target.averageValue): missing target.averageValue: must set either a target value for metric or a per-pod target
  if has(target.value) && has(target.averageValue): forbidden target.value: may not set both a target value for metric and a per-pod target

autoscaling.v2.PodsMetricSource
  use metric name
  if !has(target.averageValue): missing target.averageValue: must specify a positive target averageValue

autoscaling.v2.ResourceMetricSource autoscaling.v2.ContainerResourceMetricSource
  name required: must specify a resource name
  if !has(target.averageUtilization) && !has(target.averageValue): missing target.averageUtilization: must set either a target raw value or a target utilization
  if has(target.averageUtilization) && has(target.averageValue): forbidden target.averageValue: may not set both a target raw value and a target utilization

autoscaling.v2.ContainerResourceMetricSource
  container required: must specify a container
  container is label?

autoscaling.v2.HPAScalingRules
  if stabilizationWindowSeconds < 0: invalid stabilizationWindowSeconds: must be greater than or equal to zero
  if stabilizationWindowSeconds > 3_600: invalid stabilizationWindowSeconds: must be less than or equal to 3600
  if has(selectPolicy): selectPolicy of: Disabled, Max, Min
  policies required: must specify at least one Policy

autoscaling.v2.HPAScalingPolicy
  if !(type in ['Percent', 'Pods']): unsupported type: Percent, Pods
  if value <= 0: invalid value: must be greater than zero
  if periodSeconds <= 0: invalid periodSeconds: must be greater than zero
  if periodSeconds > 1_800: invalid periodSeconds: must be less than or equal to 1800
`;
