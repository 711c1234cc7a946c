/** Rules of Pods and their parts; `rules/rule_text.ts` documents the statements. */
export const POD_RULES: string = String.raw`
rule requirement values
  if operator in ['In', 'NotIn'] && !values: missing values: must be specified when \`operator\` is 'In' or 'NotIn'
  elif operator in ['Exists', 'DoesNotExist'] && values: forbidden values: may not be specified when \`operator\` is 'Exists' or 'DoesNotExist'
  elif !(operator in ['In', 'NotIn', 'Exists', 'DoesNotExist']): invalid operator: not a valid selector operator

apimachinery.pkg.apis.meta.v1.LabelSelector
  labels matchLabels
  each matchExpressions
    use requirement values
    key is qualifiedName
    each values
      . is labelValue

core.v1.PodSpec
  each volumes
    name is label!
    unique name
  containers required
  each containers initContainers
    distinct name
    if !has(restartPolicy) && restartPolicyRules: missing restartPolicy: must specify restartPolicy when restart rules are used
    elif has(restartPolicy): restartPolicy of: Always, Never, OnFailure
    each restartPolicyRules
      action of: Restart, RestartAllContainers
      if !exitCodes: missing exitCodes: must be specified
      else: exitCodes.operator of: In, NotIn
  serviceAccountName is subdomain?
  nodeName is subdomain?
  priorityClassName is subdomain?
  hostname is label?
  if has(hostnameOverride)
    if setHostnameAsFQDN: forbidden hostnameOverride: may not be specified when setHostnameAsFQDN is true
    if hostNetwork: forbidden hostnameOverride: may not be specified when hostNetwork is true
    if len(hostnameOverride) > 64: tooLong hostnameOverride: 64
    hostnameOverride is subdomain
  subdomain is label?
  labels nodeSelector
  activeDeadlineSeconds between 1 2147483647
  each schedulingGates
    . = name is qualifiedName
    distinct . = name
  each readinessGates
    conditionType is qualifiedName
  if hostPID && shareProcessNamespace: invalid shareProcessNamespace: ShareProcessNamespace and HostPID cannot both be enabled
  each containers.ports initContainers.ports
    if ^hostNetwork && hostPort && hostPort != containerPort: invalid hostPort: must match \`containerPort\` when \`hostNetwork\` is true
  each containers.ports
    if hostPort: unique hostPort = protocol + '/' + (hostIP ?? '') + '/' + hostPort
  each hostAliases
    ip = ip ?? '' is address
    each hostnames
      . is subdomain
  if dnsPolicy == 'None' && !dnsConfig: missing dnsConfig: must provide \`dnsConfig\` when \`dnsPolicy\` is None
  elif dnsPolicy == 'None' && !dnsConfig.nameservers: missing dnsConfig.nameservers: must provide at least one DNS nameserver when \`dnsPolicy\` is None
  each dnsConfig.nameservers
    . is address
  each dnsConfig.searches
    if . != '.': . = withoutEnd(., '.') is underscoredSubdomain
  each dnsConfig.options
    if !name: missing .: must not be empty

# Invalid volumes count as missing.
after core.v1.PodSpec
  let $volumes = pluck(sound('volumes'), 'name')
  each containers initContainers
    each volumeMounts
      name required
      if !(name in $volumes): notFound name
      ^volumeMounts.subPath = subPath is relativePath
      if has(recursiveReadOnly) && recursiveReadOnly != 'Disabled' && !readOnly: forbidden ^volumeMounts.recursiveReadOnly: may only be specified when readOnly is true
  each topologySpreadConstraints
    let $fields = '{topologyKey, whenUnsatisfiable}'
    let $pair = '{' + topologyKey + ', ' + whenUnsatisfiable + '}'
    unique ^topologySpreadConstraints[%($index-1)].%($fields) = $pair

core.v1.PodTemplateSpec
  labels metadata.labels labels
  annotations metadata.annotations annotations

core.v1.PodOS
  name required
  if name && !(name in ['linux', 'windows']): unsupported . = name: linux, windows

core.v1.PodSecurityContext
  fsGroup between 0 2147483647
  runAsUser between 0 2147483647
  runAsGroup between 0 2147483647
  each supplementalGroups
    . between 0 2147483647
  each sysctls
    if !name: missing name
    elif len(name) > 253 || !(name ~ /^(?:[a-z0-9](?:[-_a-z0-9]*[a-z0-9])?[./])*[a-z0-9](?:[-_a-z0-9]*[a-z0-9])?$/): invalid name: must have at most 253 characters and match regex ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$
    else: unique name

core.v1.SeccompProfile
  type required: type is required when seccompProfile is set
  if type == 'Localhost' && !has(localhostProfile): missing localhostProfile: must be set when seccomp type is Localhost
  if type != 'Localhost' && has(localhostProfile): invalid localhostProfile: can only be set when seccomp type is Localhost

core.v1.Toleration
  if key: key is qualifiedName
  elif operator != 'Exists': invalid operator = operator ?? '': operator must be Exists when \`key\` is empty, which means "match all values and all keys"
  if has(tolerationSeconds) && effect != 'NoExecute': invalid effect = effect ?? '': effect must be 'NoExecute' when \`tolerationSeconds\` is set
  if operator in ['Gt', 'Lt']: unsupported operator: Equal, Exists, Lt, Gt
  elif operator: operator of: Equal, Exists
  if operator == 'Exists' && value: invalid operator = value: value must be empty when \`operator\` is 'Exists'

core.v1.TopologySpreadConstraint
  if maxSkew <= 0: invalid maxSkew: must be greater than zero
  topologyKey required: can not be empty
  if !whenUnsatisfiable: unsupported whenUnsatisfiable: DoNotSchedule, ScheduleAnyway

core.v1.PodAffinityTerm
  topologyKey required: can not be empty
  topologyKey is qualifiedName

core.v1.Affinity
  each nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution podAffinity.preferredDuringSchedulingIgnoredDuringExecution podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution
    if !(weight > 0 && weight <= 100): invalid weight: must be in the range 1-100
  if nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution && !nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms: missing nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms: must have at least one node selector term

# Field requirements of a node selector support metadata.name only.
core.v1.NodeSelectorTerm
  each matchExpressions
    if !(operator in ['Gt', 'Lt']): use requirement values
    elif len(values) != 1: missing values: must be specified single value when \`operator\` is 'Lt' or 'Gt'
    key is qualifiedName
  each matchFields
    if !(operator in ['In', 'NotIn']): invalid operator: not a valid selector operator
    elif len(values) != 1: missing values: must be only one value when \`operator\` is 'In' or 'NotIn' for node field selector
    if key != 'metadata.name': invalid key: not a valid field selector key
    else
      each values
        . is subdomain

core.v1.Container
  name is label!
  image required
  each ports
    if isPort(name): unique name
  each volumeMounts
    if !mountPath: missing mountPath
    elif seen(mountPath): invalid mountPath: must be unique
  if (livenessProbe.successThreshold ?? 1) != 1: invalid livenessProbe.successThreshold: must be 1
  if (startupProbe.successThreshold ?? 1) != 1: invalid startupProbe.successThreshold: must be 1
  if has(readinessProbe.terminationGracePeriodSeconds): invalid readinessProbe.terminationGracePeriodSeconds: must not be set for readinessProbes
  every envFrom
    if !configMapRef && !secretRef: invalid envFrom = '': must specify one of: \`configMapRef\` or \`secretRef\`
    elif configMapRef && secretRef: invalid envFrom = '': may not have more than one field specified at a time

core.v1.ContainerPort
  name is port?
  containerPort is port!
  hostPort is port?

# Any printable ASCII text without an equals sign is a valid name.
core.v1.EnvVar
  if !name: missing name
  elif !(name ~ /^[ -<>-~]+$/): invalid name: a valid environment variable name must consist only of printable ASCII characters other than '='
  let $sources = given(valueFrom, ['fieldRef', 'resourceFieldRef', 'configMapKeyRef', 'secretKeyRef', 'fileKeyRef'])
  if has(valueFrom) && !$sources: invalid valueFrom = '': must specify one of: \`fieldRef\`, \`resourceFieldRef\`, \`configMapKeyRef\`, \`secretKeyRef\` or \`fileKeyRef\`
  elif has(valueFrom) && value: invalid valueFrom = '': may not be specified when \`value\` is not empty
  elif len($sources) > 1: invalid valueFrom = '': may not have more than one field specified at a time

core.v1.Probe
  one given(., ['exec', 'httpGet', 'tcpSocket', 'grpc']): must specify a handler type | may not specify more than 1 handler type
  notNegative initialDelaySeconds timeoutSeconds periodSeconds successThreshold failureThreshold
  if terminationGracePeriodSeconds <= 0: invalid terminationGracePeriodSeconds: must be greater than 0

core.v1.LifecycleHandler
  one given(., ['exec', 'httpGet', 'tcpSocket', 'sleep']): must specify a handler type | may not specify more than 1 handler type

core.v1.HTTPGetAction
  path required
  port is port
  every httpHeaders
    if !(name ~ /^[-A-Za-z0-9]+$/): invalid httpHeaders = name: a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')

core.v1.TCPSocketAction core.v1.GRPCAction
  port is port

core.v1.ExecAction
  command required

core.v1.ResourceRequirements
  each limits requests
    . = $key is qualifiedName
    if !($key ~ /^(?:cpu|memory|ephemeral-storage|hugepages-.*|.*\/.*)$/s)
      if !isQuotaName($key): invalid . = $key: must be a standard resource type or fully qualified
      invalid . = $key: must be a standard resource for containers
    if quantity(.) < 0: invalid .: must be greater than or equal to 0
    if $key ~ /^(?:hugepages-|[^/]*\/)/ && !isWhole(.): invalid .: must be an integer
  each requests
    let $limit = ^limits[$key]
    let $isFixed = $key ~ /^hugepages-|^(?!kubernetes\.io\/)[^/]+\//
    if $isFixed && !has($limit): missing ^limits: Limit must be set for non overcommitable resources
    elif $isFixed && quantity(.) != quantity($limit): invalid ^requests = .: must be equal to %($key) limit of %($limit)
    elif has($limit) && quantity(.) > quantity($limit): invalid ^requests = .: must be less than or equal to %($key) limit of %($limit)

core.v1.SecurityContext
  runAsUser between 0 2147483647
  runAsGroup between 0 2147483647
  if allowPrivilegeEscalation == false && privileged: invalid . = $at: cannot set \`allowPrivilegeEscalation\` to false and \`privileged\` to true

# Pod fields that the downward API may select; $fields are those for this use.
rule field reference
  let $known = split('metadata.annotations metadata.labels metadata.name metadata.namespace metadata.uid spec.nodeName spec.restartPolicy spec.serviceAccountName spec.schedulerName status.phase status.hostIP status.hostIPs status.podIP status.podIPs', ' ')
  let $parts = subscripted(fieldPath)
  let $path = $parts[0]
  let $key = $parts[1]
  if !fieldPath: missing fieldPath
  elif !($path in $known): invalid fieldPath: error converting fieldPath: field label not supported: %($path)
  elif has($key) && !($path in ['metadata.labels', 'metadata.annotations']): invalid fieldPath: error converting fieldPath: field label does not support subscript: %(fieldPath)
  elif !has($key)
    if !($path in $fields): unsupported fieldPath = $path: %(join($fields))
  elif $path == 'metadata.labels': . = $key is qualifiedName
  else: . = lower($key) is qualifiedName

rule resource reference
  let $sizes = ['1', '1k', '1M', '1G', '1T', '1P', '1E', '1Ki', '1Mi', '1Gi', '1Ti', '1Pi', '1Ei']
  if $needsContainer && !containerName: missing containerName
  elif !resource: missing resource
  elif !(resource ~ /^(?:limits|requests)\.(?:cpu$|ephemeral-storage$|memory$|hugepages-)/): unsupported resource: limits.cpu, limits.ephemeral-storage, limits.memory, requests.cpu, requests.ephemeral-storage, requests.memory
  if !quantity(divisor ?? '0'): stop
  if resource ~ /^(?:limits|requests)\.cpu$/
    if !(divisor in ['1', '1m']): invalid divisor = resource: only divisor's values 1m and 1 are supported with the cpu resource
  elif resource ~ /\.(?:memory|ephemeral-storage|hugepages-.*)$/ && !(divisor in $sizes)
    invalid divisor = resource: only divisor's values %(join($sizes)) are supported with the %(resource ~ /\.hugepages-/ ? 'hugepages' : resource ~ /memory$/ ? 'memory' : 'local ephemeral storage') resource

core.v1.EnvVarSource
  let $fields = split('metadata.name metadata.namespace metadata.uid spec.nodeName spec.serviceAccountName status.hostIP status.hostIPs status.podIP status.podIPs', ' ')
  if fieldRef
    at fieldRef
      use field reference
  if resourceFieldRef
    at resourceFieldRef
      use resource reference

# As upstream, messages do not contain the index of a file.
core.v1.DownwardAPIProjection core.v1.DownwardAPIVolumeSource
  defaultMode is fileMode
  let $fields = split('metadata.annotations metadata.labels metadata.name metadata.namespace metadata.uid', ' ')
  let $needsContainer = true
  every items
    path is relativePath!
    if fieldRef
      at fieldRef
        use field reference
      if resourceFieldRef: invalid . = 'resource': fieldRef and resourceFieldRef can not be specified simultaneously
    elif resourceFieldRef
      at resourceFieldRef
        use resource reference
    else: missing .: one of fieldRef and resourceFieldRef is required
    mode is fileMode

core.v1.ConfigMapEnvSource core.v1.SecretEnvSource
  name is subdomain!

core.v1.ConfigMapKeySelector core.v1.SecretKeySelector
  name = name ?? '' is subdomain
  key is configKey!
`;
