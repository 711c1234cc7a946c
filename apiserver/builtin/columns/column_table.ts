/**
 * Cells of the resources as expressions (`rules/expression.ts`) between bars, in
 * the order of their columns, whose names and types are in
 * `data/resource_table.ts`; an absent value is an empty cell.
 */
export const CELLS: string = String.raw`
replicationcontrollers
  $name | spec.replicas ?? 0 | status.replicas ?? 0 | status.readyReplicas ?? 0 | $age
  | each(spec.template.spec.containers, 'name') | each(spec.template.spec.containers, 'image') | labels(spec.selector)
replicasets.apps
  $name | spec.replicas ?? 0 | status.replicas ?? 0 | status.readyReplicas ?? 0 | $age
  | each(spec.template.spec.containers, 'name') | each(spec.template.spec.containers, 'image') | selector(spec.selector)
deployments.apps
  $name | path(status.readyReplicas ?? 0, spec.replicas ?? 0) | status.updatedReplicas ?? 0 | status.availableReplicas ?? 0 | $age
  | each(spec.template.spec.containers, 'name') | each(spec.template.spec.containers, 'image') | selectorText(spec.selector)
statefulsets.apps
  $name | path(status.readyReplicas ?? 0, spec.replicas ?? 0) | $age
  | each(spec.template.spec.containers, 'name') | each(spec.template.spec.containers, 'image')
daemonsets.apps
  $name | status.desiredNumberScheduled ?? 0 | status.currentNumberScheduled ?? 0 | status.numberReady ?? 0
  | status.updatedNumberScheduled ?? 0 | status.numberAvailable ?? 0 | labels(spec.template.spec.nodeSelector) | $age
  | each(spec.template.spec.containers, 'name') | each(spec.template.spec.containers, 'image') | selector(spec.selector)
controllerrevisions.apps
  $name | controller(metadata.ownerReferences) | revision | $age
jobs.batch
  $name | jobStatus(.) | completions(.) | status.startTime ? duration(status.startTime, status.completionTime, $now) : '' | $age
  | each(spec.template.spec.containers, 'name') | each(spec.template.spec.containers, 'image') | selector(spec.selector)
cronjobs.batch
  $name | spec.schedule | spec.timeZone ?? '<none>' | has(spec.suspend) ? spec.suspend ? 'True' : 'False' : '<unset>'
  | len(status.active) | status.lastScheduleTime ? age(status.lastScheduleTime, $now) : '<none>' | $age
  | each(spec.jobTemplate.spec.template.spec.containers, 'name') | each(spec.jobTemplate.spec.template.spec.containers, 'image')
  | selector(spec.jobTemplate.spec.selector)
podtemplates
  $name | each(template.spec.containers, 'name') | each(template.spec.containers, 'image') | labels(template.metadata.labels)
poddisruptionbudgets.policy
  $name | text(spec.minAvailable ?? 'N/A') | text(spec.maxUnavailable ?? 'N/A') | status.disruptionsAllowed ?? 0 | $age
horizontalpodautoscalers.autoscaling
  $name | path(spec.scaleTargetRef.kind, spec.scaleTargetRef.name) | metrics(.) | text(spec.minReplicas ?? '<unset>')
  | spec.maxReplicas ?? 0 | status.currentReplicas ?? 0 | $age

services
  $name | spec.type | spec.clusterIPs[0] ?? '<none>' | externalAddress(.) | ports(spec.ports) || '<none>' | $age | labels(spec.selector)
endpoints
  $name | endpoints(subsets) | $age
endpointslices.discovery.k8s.io
  $name | addressType | firstThree(slicePorts(ports)) || '<unset>' | firstThree(flat(endpoints, 'addresses')) || '<unset>' | $age
ingresses.networking.k8s.io
  $name | spec.ingressClassName ?? '<none>' | hosts(spec.rules) | join(addresses(status.loadBalancer), ',')
  | spec.tls ? '80, 443' : '80' | $age
ingressclasses.networking.k8s.io
  $name | spec.controller | spec.parameters ? path(spec.parameters.kind + (has(spec.parameters.apiGroup) ? '.' + spec.parameters.apiGroup : ''), spec.parameters.name) : '<none>' | $age
networkpolicies.networking.k8s.io
  $name | selector(spec.podSelector) | $age

namespaces
  $name | status.phase | $age
configmaps
  $name | count(data) + count(binaryData) | $age
secrets
  $name | type | count(data) | $age
serviceaccounts
  $name | $age
resourcequotas
  $name | quota(status, false) | quota(status, true) | $age
nodes
  $name | state(status.conditions, 'Ready', 'NotReady') + (spec.unschedulable ? ',SchedulingDisabled' : '')
  | roles(metadata.labels) || '<none>' | $age | status.nodeInfo.kubeletVersion
  | find(status.addresses, 'InternalIP').address ?? '<none>' | find(status.addresses, 'ExternalIP').address ?? '<none>'
  | status.nodeInfo.osImage || '<unknown>' | status.nodeInfo.kernelVersion || '<unknown>' | status.nodeInfo.containerRuntimeVersion || '<unknown>'
persistentvolumes
  $name | spec.capacity['storage'] ?? '0' | accessModes(spec.accessModes) | spec.persistentVolumeReclaimPolicy
  | metadata.deletionTimestamp ? 'Terminating' : status.phase | spec.claimRef ? path(spec.claimRef.namespace, spec.claimRef.name) : ''
  | metadata.annotations['volume.beta.kubernetes.io/storage-class'] ?? spec.storageClassName | spec.volumeAttributesClassName ?? '<unset>'
  | status.reason | $age | spec.volumeMode ?? '<unset>'
persistentvolumeclaims
  $name | metadata.deletionTimestamp ? 'Terminating' : status.phase | spec.volumeName
  | spec.volumeName ? status.capacity['storage'] ?? '0' : '' | spec.volumeName ? accessModes(status.accessModes) : ''
  | metadata.annotations['volume.beta.kubernetes.io/storage-class'] ?? spec.storageClassName | spec.volumeAttributesClassName ?? '<unset>'
  | $age | spec.volumeMode ?? '<unset>'
componentstatuses
  $name | state(conditions, 'Healthy', 'Unhealthy') | find(conditions, 'Healthy').message | find(conditions, 'Healthy').error
events events.events.k8s.io
  series ? age(series.lastObservedTime, $now) : age(lastTimestamp || firstTimestamp || eventTime, $now) | type | reason
  | lower(involvedObject.kind) + (involvedObject.name ? '/' + involvedObject.name : '') | involvedObject.fieldPath
  | (source.component || reportingComponent || '') + ((source.host || reportingInstance) ? ', ' + (source.host || reportingInstance) : '')
  | trim(message) | age(firstTimestamp || eventTime, $now) | series ? series.count ?? 0 : count || 1 | $name

mutatingwebhookconfigurations.admissionregistration.k8s.io validatingwebhookconfigurations.admissionregistration.k8s.io
  $name | len(webhooks) | $age
validatingadmissionpolicies.admissionregistration.k8s.io
  $name | len(spec.validations) | spec.paramKind ? path(spec.paramKind.apiVersion, spec.paramKind.kind) : '<unset>' | $age
mutatingadmissionpolicies.admissionregistration.k8s.io
  $name | len(spec.mutations) | spec.paramKind ? path(spec.paramKind.apiVersion, spec.paramKind.kind) : '<unset>' | $age
validatingadmissionpolicybindings.admissionregistration.k8s.io mutatingadmissionpolicybindings.admissionregistration.k8s.io
  $name | spec.policyName | spec.paramRef.name ? path(spec.paramRef.namespace || '*', spec.paramRef.name) : has(spec.paramRef.selector) ? goSelector(spec.paramRef.selector) : '<unset>' | $age
apiservices.apiregistration.k8s.io
  $name | spec.service ? path(spec.service.namespace, spec.service.name) : 'Local' | availability(status.conditions) | $age
certificatesigningrequests.certificates.k8s.io
  $name | $age | spec.signerName || '<none>' | spec.username
  | has(spec.expirationSeconds) ? seconds(spec.expirationSeconds) : '<none>'
  | (find(status.conditions, 'Denied') ? 'Denied' : find(status.conditions, 'Approved') ? 'Approved' : 'Pending') + (find(status.conditions, 'Failed') ? ',Failed' : '') + (status.certificate ? ',Issued' : '')
leases.coordination.k8s.io
  $name | spec.holderIdentity | $age
flowschemas.flowcontrol.apiserver.k8s.io
  $name | spec.priorityLevelConfiguration.name | spec.matchingPrecedence ?? 0 | spec.distinguisherMethod.type ?? '<none>' | $age
  | find(status.conditions, 'Dangling') ? find(status.conditions, 'Dangling').status : '?'
prioritylevelconfigurations.flowcontrol.apiserver.k8s.io
  $name | spec.type | spec.limited ? spec.limited.nominalConcurrencyShares ?? 0 : '<none>'
  | spec.limited.limitResponse.queuing ? spec.limited.limitResponse.queuing.queues ?? 0 : '<none>'
  | spec.limited.limitResponse.queuing ? spec.limited.limitResponse.queuing.handSize ?? 0 : '<none>'
  | spec.limited.limitResponse.queuing ? spec.limited.limitResponse.queuing.queueLengthLimit ?? 0 : '<none>' | $age
runtimeclasses.node.k8s.io
  $name | handler | $age
priorityclasses.scheduling.k8s.io
  $name | value | globalDefault ?? false | $age | preemptionPolicy
rolebindings.rbac.authorization.k8s.io clusterrolebindings.rbac.authorization.k8s.io
  $name | path(roleRef.kind, roleRef.name) | $age
  | subjects(subjects, 'User') | subjects(subjects, 'Group') | subjects(subjects, 'ServiceAccount')

storageclasses.storage.k8s.io
  isDefaultClass(metadata.annotations) ? $name + ' (default)' : $name | provisioner | reclaimPolicy ?? 'Delete'
  | volumeBindingMode ?? 'Immediate' | allowVolumeExpansion ?? false | $age
csidrivers.storage.k8s.io
  $name | spec.attachRequired ?? true | spec.podInfoOnMount ?? false | spec.storageCapacity ?? false
  | has(spec.tokenRequests) ? each(spec.tokenRequests, 'audience') : '<unset>' | spec.requiresRepublish ?? false
  | join(spec.volumeLifecycleModes, ',') || '<none>' | $age
csinodes.storage.k8s.io
  $name | len(spec.drivers) | $age
volumeattachments.storage.k8s.io
  $name | spec.attacher | spec.source.persistentVolumeName | spec.nodeName | status.attached ?? false | $age
volumeattributesclasses.storage.k8s.io
  $name | driverName | $age
deviceclasses.resource.k8s.io resourceclaimtemplates.resource.k8s.io
  $name | $age
resourceclaims.resource.k8s.io
  $name | (metadata.deletionTimestamp ? status.allocation ? 'deleted,' : 'deleted' : '')
    + (status.allocation ? 'allocated' : metadata.deletionTimestamp ? '' : 'pending')
    + (status.allocation && status.reservedFor ? ',reserved' : '') | $age
resourceslices.resource.k8s.io
  $name | spec.nodeName | spec.driver | spec.pool.name | $age
ipaddresses.networking.k8s.io
  $name | spec.parentRef ? lower(spec.parentRef.resource + (spec.parentRef.group ? '.' + spec.parentRef.group : ''))
    + (spec.parentRef.namespace ? '/' + spec.parentRef.namespace : '') + '/' + spec.parentRef.name : '<none>' | $age
servicecidrs.networking.k8s.io
  $name | join(spec.cidrs, ',') | $age
`;
