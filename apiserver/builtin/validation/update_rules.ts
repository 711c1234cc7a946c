/**
 * Rules of updates and of reviews by resource; `$live` is the stored object;
 * `rules/rule_text.ts` documents the statements.
 */
export const UPDATE_RULES: string = String.raw`
rule selector
  if !same(spec.selector, $live.spec.selector): invalid spec.selector shown goSelector(spec.selector): field is immutable

rule roleRef
  if !same(roleRef, $live.roleRef): invalid roleRef shown '{"APIGroup":' + json(roleRef.apiGroup) + ',"Kind":' + json(roleRef.kind) + ',"Name":' + json(roleRef.name) + '}': cannot change roleRef

rule access
  if resourceAttributes && nonResourceAttributes: invalid nonResourceAttributes shown $path: cannot be specified in combination with resourceAttributes
  if !resourceAttributes && !nonResourceAttributes: invalid resourceAttributes: exactly one of nonResourceAttributes or resourceAttributes must be specified
rule access of a subject
  if !user && !groups: invalid user = '': at least one of user or group must be specified
  if $isLocal && nonResourceAttributes: invalid nonResourceAttributes shown $path: disallowed on this kind of request
  let $namespace = resourceAttributes.namespace ?? ''
  if $isLocal && resourceAttributes && $namespace != $live.namespace: invalid resourceAttributes.namespace = $namespace: must match metadata.namespace
  use access
rule path
  let $path = 'authorization.NonResourceAttributes{Path:' + json(nonResourceAttributes.path ?? '') + ', Verb:' + json(nonResourceAttributes.verb ?? '') + '}'
selfsubjectaccessreviews.authorization.k8s.io
  at spec
    use path
    use access
subjectaccessreviews.authorization.k8s.io
  at spec
    use path
    use access of a subject
localsubjectaccessreviews.authorization.k8s.io
  let $isLocal = true
  at spec
    use path
    use access of a subject
configmaps
  if $live.immutable
    if !immutable: forbidden immutable: field is immutable when \`immutable\` is set
    unchanged data: field is immutable when \`immutable\` is set
    unchanged binaryData: field is immutable when \`immutable\` is set

secrets
  immutable type
  if $live.immutable
    if !immutable: forbidden immutable: field is immutable when \`immutable\` is set
    unchanged data: field is immutable when \`immutable\` is set

pods
  let $deadline = spec.activeDeadlineSeconds
  let $before = $live.spec.activeDeadlineSeconds
  let $gates = pluck($live.spec.schedulingGates, 'name')
  if len(spec.containers) != len($live.spec.containers)
    forbidden spec.containers: pod updates may not add or remove containers
    stop
  if len(spec.initContainers) != len($live.spec.initContainers)
    forbidden spec.initContainers: pod updates may not add or remove containers
    stop
  if !has($deadline) && has($before): invalid spec.activeDeadlineSeconds: must not update from a positive integer to nil value
  elif $deadline > $before: invalid spec.activeDeadlineSeconds: must be less than or equal to previous value
  if !keepsTolerations(spec.tolerations, $live.spec.tolerations): forbidden spec.tolerations: existing toleration can not be modified except its tolerationSeconds
  each spec.schedulingGates
    if !(name in $gates): forbidden name: only deletion is allowed, but found new scheduling gate '%(name)'
  if !same(fixedPod(spec), fixedPod($live.spec)): forbidden spec: pod updates may not change fields other than \`spec.containers[*].image\`,\`spec.initContainers[*].image\`,\`spec.activeDeadlineSeconds\`,\`spec.tolerations\` (only additions to existing tolerations),\`spec.terminationGracePeriodSeconds\` (allow it to be set to 1 if it was previously negative)\n

rule removed resources
  if lacks(requests, $old.requests): forbidden requests: %($what) requests cannot be removed
  if lacks(limits, $old.limits): forbidden limits: %($what) limits cannot be removed
pods/resize
  if $live.metadata.annotations['kubernetes.io/config.mirror']
    forbidden .: static pods cannot be resized
    stop
  if $live.spec.os.name == 'windows'
    forbidden .: windows pods cannot be resized
    stop
  at spec
    let $before = $live.spec
    let $quality = $live.status.qosClass ?? qosClass($live)
    if $quality != qosClass(^.): invalid . = $quality: Pod QOS Class may not change as a result of resizing
    if runsWithoutResources($live.status.containerStatuses): forbidden .: Pod running on node without support for resize
    if has($before.resources) && !has(resources): forbidden resources: pod-level resources cannot be removed
    else
      let $what = 'pod-level resource'
      let $old = $before.resources
      at resources
        use removed resources
      if !same(fixedResources(resources), fixedResources($before.resources)): forbidden .: only cpu and memory resources are mutable at pod-level
    if len(containers) != len($before.containers): forbidden containers: containers may not be added or removed on resize
    else
      each containers
        if name != $before.containers[$index].name: forbidden name: containers may not be renamed or reordered on resize
    if len(initContainers) != len($before.initContainers): forbidden initContainers: initContainers may not be added or removed on resize
    else
      each initContainers
        if name != $before.initContainers[$index].name: forbidden name: initContainers may not be renamed or reordered on resize
    if !same(pluck(containers, 'name'), pluck($before.containers, 'name')) || !same(pluck(initContainers, 'name'), pluck($before.initContainers, 'name')): stop
    let $what = 'resource'
    each initContainers containers
      let $old = $before[$list][$index].resources
      at resources
        use removed resources
    each containers
      if !same(fixedContainer(.), fixedContainer($before.containers[$index])): forbidden ^.: only cpu and memory resources are mutable
    each initContainers
      if !same(fixedContainer(.), fixedContainer($before.initContainers[$index])): forbidden .: only cpu and memory resources for init or sidecar containers are mutable
services
  let $before = $live.spec.clusterIPs[0]
  if $live.spec.type != 'ExternalName' && spec.type != 'ExternalName' && has($before) && spec.clusterIPs[0] != $before: invalid spec.clusterIPs[0] = spec.clusterIPs: may not change once set
  if spec.type == 'LoadBalancer' && $live.spec.type == 'LoadBalancer'
    if spec.loadBalancerClass != $live.spec.loadBalancerClass: invalid spec.loadBalancerClass: may not change once set
    if spec.externalTrafficPolicy == 'Local' && $live.spec.externalTrafficPolicy == 'Local': unchanged spec.healthCheckNodePort: field is immutable

persistentvolumeclaims
  let $isBound = status.phase == 'Bound'
  let $keepsVolume = $live.spec.volumeName != '' && has($live.spec.volumeName)
  if !same(fixedClaim(spec, $isBound, $keepsVolume), fixedClaim($live.spec, $isBound, $keepsVolume)): forbidden spec: spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims\n
  if has($live.status.currentVolumeAttributesClassName) && !spec.volumeAttributesClassName && has($live.spec.volumeAttributesClassName): forbidden spec.volumeAttributesClassName: update to %(has(spec.volumeAttributesClassName) ? 'empty string' : 'nil') is forbidden when status.currentVolumeAttributesClassName is not nil

persistentvolumes
  let $others = ['accessModes', 'capacity', 'claimRef', 'mountOptions', 'nodeAffinity', 'persistentVolumeReclaimPolicy', 'storageClassName', 'volumeAttributesClassName', 'volumeMode']
  if !same(without(spec, $others), without($live.spec, $others)): forbidden spec.persistentvolumesource: spec.persistentvolumesource is immutable after creation\n
  if spec.volumeMode != $live.spec.volumeMode: invalid volumeMode = spec.volumeMode: field is immutable
  if !same(spec.nodeAffinity, $live.spec.nodeAffinity): invalid nodeAffinity = spec.nodeAffinity: field is immutable, except for updating from beta label to GA

deployments.apps replicasets.apps daemonsets.apps
  use selector

statefulsets.apps
  let $others = ['replicas', 'template', 'updateStrategy', 'minReadySeconds', 'ordinals', 'persistentVolumeClaimRetentionPolicy', 'revisionHistoryLimit']
  if !same(without(spec, $others), without($live.spec, $others)): forbidden spec: updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden

controllerrevisions.apps
  immutable data

jobs.batch
  use selector
  immutable spec.completionMode spec.podFailurePolicy spec.backoffLimitPerIndex spec.managedBy spec.successPolicy
  if $live.spec.completionMode != 'Indexed' && spec.completions != $live.spec.completions: invalid spec.completions: field is immutable
  elif spec.completions != $live.spec.completions && spec.completions != spec.parallelism: invalid spec.completions: can only be modified in tandem with spec.parallelism
  if !same(spec.template, $live.spec.template): invalid spec.template = spec.template: field is immutable

rolebindings.rbac.authorization.k8s.io clusterrolebindings.rbac.authorization.k8s.io
  use roleRef

ingressclasses.networking.k8s.io
  immutable spec.controller

ipaddresses.networking.k8s.io
  let $to = spec.parentRef
  if !same($to, $live.spec.parentRef): invalid spec.parentRef shown '{"Group":' + json($to.group ?? '') + ',"Resource":' + json($to.resource ?? '') + ',"Namespace":' + json($to.namespace ?? '') + ',"Name":' + json($to.name ?? '') + '}': field is immutable

servicecidrs.networking.k8s.io
  let $before = $live.spec.cidrs
  if len($before) != len(spec.cidrs) && !(len($before) == 1 && len(spec.cidrs) == 2): invalid spec.cidrs = spec.cidrs: field is immutable
  else
    each spec.cidrs
      if $index < len($before) && . != $before[$index]: invalid .: field is immutable

runtimeclasses.node.k8s.io
  immutable handler

priorityclasses.scheduling.k8s.io
  unchanged value: may not be changed in an update.
  immutable preemptionPolicy

storageclasses.storage.k8s.io
  immutable parameters provisioner reclaimPolicy volumeBindingMode

csidrivers.storage.k8s.io
  if spec.attachRequired != $live.spec.attachRequired: invalid spec.attachedRequired = spec.attachRequired: field is immutable
  immutable spec.volumeLifecycleModes

csistoragecapacities.storage.k8s.io
  immutable nodeTopology storageClassName

volumeattachments.storage.k8s.io
  immutable spec

volumeattributesclasses.storage.k8s.io
  if driverName != $live.driverName: forbidden driverName: updates to driverName are forbidden.
  if !same(parameters, $live.parameters): forbidden parameters: updates to parameters are forbidden.

endpointslices.discovery.k8s.io
  immutable addressType
`;
