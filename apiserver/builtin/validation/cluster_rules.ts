/**
 * Validation rules of the kinds without a file of their own;
 * `rules/rule_text.ts` documents the statements.
 */
export const CLUSTER_RULES: string = String.raw`
core.v1.ConfigMap
  let $binary = binaryData
  every data
    data[%($key)] = $key is configKey
    if has($binary[$key]): invalid data[%($key)] = $key: duplicate of key present in binaryData
  every binaryData
    binaryData[%($key)] = $key is configKey
  if textSize(data) + decodedSize(binaryData) > 1_048_576: tooLong .: 1048576

core.v1.Secret
  every data
    data[%($key)] = $key is configKey
  if decodedSize(data) > 1_048_576: tooLong data: 1048576
  let $keys = secretKeys(type)
  let $data = data
  every $keys
    if !has($data[.]): missing data[%(.)]
  if type == 'kubernetes.io/basic-auth' && !has(data['username']) && !has(data['password'])
    missing data[username]
    missing data[password]
  if type == 'kubernetes.io/service-account-token' && !metadata.annotations['kubernetes.io/service-account.name']: missing metadata.annotations[kubernetes.io/service-account.name]

rule new event
  if !$controller: missing %($field)
  %($field) = $controller ?? '' is qualifiedName
  reportingInstance required
  if len(reportingInstance) > 128: invalid reportingInstance = '': can have at most 128 characters
  action required
  if len(action) > 128: invalid action = '': can have at most 128 characters
  reason required
  if len(reason) > 128: invalid reason = '': can have at most 128 characters

core.v1.Event
  let $own = metadata.namespace ?? ''
  let $other = involvedObject.namespace ?? ''
  if $other ? !eventTime && $own != $other : !($own in ['', 'default'] || eventTime && $own == 'kube-system'): invalid involvedObject.namespace = $other: does not match event.namespace
  let $controller = reportingComponent
  let $field = 'reportingComponent'
  if eventTime: use new event

events.v1.Event
  eventTime required
  let $controller = reportingController
  let $field = 'reportingController'
  use new event

core.v1.ResourceQuotaSpec
  each hard
    if quantity(.) < 0: invalid .: must be greater than or equal to 0

core.v1.LimitRangeItem
  type is qualifiedName
  let $max = max
  each min
    if has($max[$key]) && quantity(.) > quantity($max[$key]): invalid .: min value %(.) is greater than max value %($max[$key])
  each default
    if has($max[$key]) && quantity(.) > quantity($max[$key]): invalid .: default value %(.) is greater than max value %($max[$key])

coordination.v1.LeaseSpec
  if leaseDurationSeconds <= 0: invalid leaseDurationSeconds: must be greater than 0
  notNegative leaseTransitions

scheduling.v1.PriorityClass
  if preemptionPolicy == '': missing preemptionPolicy
  elif has(preemptionPolicy): preemptionPolicy of: PreemptLowerPriority, Never
  if metadata.name ~ /^system-/: forbidden metadata.name: priority class names with 'system-' prefix are reserved for system use only. error: %(metadata.name) is not a known system priority class
  elif value > 1_000_000_000: forbidden value: maximum allowed value of a user defined priority is 1000000000

node.v1.RuntimeClass
  if !handler: missing handler
  else: handler is label

rule policy rules
  each rules
    verbs required: verbs must contain at least one value
    if nonResourceURLs
      if $isNamespaced: invalid nonResourceURLs = nonResourceURLs: namespaced rules cannot apply to non-resource URLs
      if apiGroups || resources || resourceNames: invalid nonResourceURLs = nonResourceURLs: rules cannot apply to both regular resources and non-resource URLs
    else
      apiGroups required: resource rules must supply at least one api group
      resources required: resource rules must supply at least one resource

rbac.v1.Role
  let $isNamespaced = true
  use policy rules

rbac.v1.ClusterRole
  use policy rules
  if aggregationRule && !aggregationRule.clusterRoleSelectors: missing aggregationRule.clusterRoleSelectors: at least one clusterRoleSelector required if aggregationRule is non-nil

rule binding
  at roleRef
    if apiGroup != 'rbac.authorization.k8s.io': unsupported apiGroup: rbac.authorization.k8s.io
    if !(kind in $kinds): unsupported kind: %(join($kinds))
    name is pathSegment!
  each subjects
    name required
    if kind == 'ServiceAccount'
      name is subdomain?
      if apiGroup: unsupported apiGroup:
      if !$isNamespaced && !namespace: missing namespace
    elif kind in ['User', 'Group']
      if apiGroup != 'rbac.authorization.k8s.io': unsupported apiGroup = apiGroup ?? '': rbac.authorization.k8s.io
    else: unsupported kind: ServiceAccount, User, Group

rbac.v1.RoleBinding
  let $isNamespaced = true
  let $kinds = ['Role', 'ClusterRole']
  use binding

rbac.v1.ClusterRoleBinding
  let $kinds = ['ClusterRole']
  use binding

rule match conditions
  each matchConditions
    if !trim(expression): missing expression
    name is qualifiedName!
  each matchConditions
    unique name

admissionregistration.v1.ValidatingWebhook admissionregistration.v1.MutatingWebhook
  name is subdomain!
  if isSubdomain(name) && len(split(name, '.')) < 3: invalid name: should be a domain with at least three segments separated by dots
  if !has(sideEffects): missing sideEffects: must specify one of None, NoneOnDryRun
  else: sideEffects of: None, NoneOnDryRun
  if timeoutSeconds < 1 || timeoutSeconds > 30: invalid timeoutSeconds: the timeout value must be between 1 and 30 seconds
  if has(clientConfig.url) == has(clientConfig.service): missing clientConfig: exactly one of url or service is required
  use match conditions
  admissionReviewVersions required: must specify one of v1, v1beta1
  each admissionReviewVersions
    if seen(.): invalid .: duplicate version
    else: . is label1035
  if admissionReviewVersions && !('v1' in admissionReviewVersions || 'v1beta1' in admissionReviewVersions): invalid admissionReviewVersions = admissionReviewVersions: must include at least one of v1, v1beta1

admissionregistration.v1.ValidatingWebhookConfiguration admissionregistration.v1.MutatingWebhookConfiguration
  each webhooks
    unique name

admissionregistration.v1.ServiceReference
  name required
  namespace required

admissionregistration.v1.RuleWithOperations admissionregistration.v1.NamedRuleWithOperations
  operations required
  if len(operations) > 1 && '*' in operations: invalid operations = operations: if '*' is present, must not specify other operations
  apiGroups required
  if len(apiGroups) > 1 && '*' in apiGroups: invalid apiGroups = apiGroups: if '*' is present, must not specify other API groups
  apiVersions required
  if len(apiVersions) > 1 && '*' in apiVersions: invalid apiVersions = apiVersions: if '*' is present, must not specify other API versions
  each apiVersions
    . required
  resources required
  each resources
    . required

admissionregistration.v1.ValidatingAdmissionPolicySpec
  if !matchConstraints: missing matchConstraints
  elif !matchConstraints.resourceRules: missing matchConstraints.resourceRules
  use match conditions
  if !validations && !auditAnnotations
    missing validations: validations or auditAnnotations must contain at least one item
    missing auditAnnotations: validations or auditAnnotations must contain at least one item

admissionregistration.v1.MutatingAdmissionPolicySpec
  if !matchConstraints: missing matchConstraints
  elif !matchConstraints.resourceRules: missing matchConstraints.resourceRules
  use match conditions
  mutations required: mutations must contain at least one item

admissionregistration.v1.Mutation
  if !patchType: missing patchType
  elif patchType == 'JSONPatch'
    if !has(jsonPatch): missing jsonPatch: must be specified when patchType is JSONPatch
    if has(applyConfiguration): invalid applyConfiguration = '{applyConfiguration}': must not be specified when patchType is JSONPatch
  elif patchType == 'ApplyConfiguration'
    if !has(applyConfiguration): missing applyConfiguration: must be specified when patchType is ApplyConfiguration
    if has(jsonPatch): invalid jsonPatch = '{jsonPatch}': must not be specified when patchType is ApplyConfiguration

admissionregistration.v1.MutatingAdmissionPolicyBindingSpec
  policyName is subdomain!

admissionregistration.v1.MatchResources
  each resourceRules excludeResourceRules
    each resourceNames
      distinct .

admissionregistration.v1.ParamKind
  if !apiVersion: missing apiVersion
  else
    let $group = groupOf(apiVersion)
    let $version = versionOf(apiVersion)
    if $group && !isSubdomain($group): invalid apiVersion = $group: %(problems('subdomain', $group))
    if problems('label1035', $version): invalid apiVersion = $version: %(problems('label1035', $version))
  if !kind: missing kind
  elif problems('label1035', lower(kind)): invalid kind: may have mixed case, but should otherwise match: %(problems('label1035', lower(kind)))

admissionregistration.v1.Validation
  if !trim(expression): missing expression: expression is not specified

admissionregistration.v1.ValidatingAdmissionPolicyBindingSpec
  policyName is subdomain!
  each validationActions
    distinct .
  validationActions required: at least one validation action is required
  if 'Deny' in validationActions && 'Warn' in validationActions: invalid validationActions = validationActions: must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)

admissionregistration.v1.ParamRef
  if !name && !has(selector): missing .: one of name or selector must be specified
  if name && has(selector): forbidden name: name and selector are mutually exclusive
  if !has(parameterNotFoundAction): missing parameterNotFoundAction

flowcontrol.v1.FlowSchemaSpec
  let $precedence = matchingPrecedence ?? 0
  if $precedence <= 0: invalid matchingPrecedence = $precedence: must be a positive value
  if $precedence > 10_000: invalid matchingPrecedence: must not be greater than 10000
  if $precedence == 1: invalid matchingPrecedence: only the schema named 'exempt' may have matchingPrecedence 1
  priorityLevelConfiguration.name required: must reference a priority level
  priorityLevelConfiguration.name is subdomain?

flowcontrol.v1.PolicyRulesWithSubjects
  subjects required: subjects must contain at least one value
  if !resourceRules && !nonResourceRules: missing .: at least one of resourceRules and nonResourceRules has to be non-empty

flowcontrol.v1.Subject
  let $own = lowerFirst(kind)
  if !(kind in ['Group', 'ServiceAccount', 'User'])
    unsupported kind: Group, ServiceAccount, User
    stop
  if !has(.[$own]): missing %($own): %($own) is required when subject kind is '%(kind)'
  elif !.[$own].name: missing %($own).name
  if serviceAccount && $own == 'serviceAccount' && !serviceAccount.namespace: missing serviceAccount.namespace: must specify namespace for service account
  if $own != 'group' && has(group): forbidden group: group is forbidden when subject kind is not 'Group'
  if $own != 'serviceAccount' && has(serviceAccount): forbidden serviceAccount: serviceAccount is forbidden when subject kind is not 'ServiceAccount'
  if $own != 'user' && has(user): forbidden user: user is forbidden when subject kind is not 'User'

flowcontrol.v1.ResourcePolicyRule
  verbs required: verbs must contain at least one value
  apiGroups required: resource rules must supply at least one api group
  resources required: resource rules must supply at least one resource
  if !clusterScope && !namespaces: missing namespaces: resource rules that are not cluster scoped must supply at least one namespace

flowcontrol.v1.NonResourcePolicyRule
  verbs required: verbs must contain at least one value
  nonResourceURLs required: nonResourceURLs must contain at least one value

flowcontrol.v1.PriorityLevelConfiguration
  at spec
    type required

flowcontrol.v1.PriorityLevelConfigurationSpec
  if type == 'Limited' && !limited: missing limited: must not be empty when type is Limited
  if limited
    if limited.nominalConcurrencyShares < 0: invalid limited.nominalConcurrencyShares: must be a non-negative integer
    at limited.limitResponse
      if type == 'Queue'
        if !queuing: missing queuing: must not be empty if limited.limitResponse.type is Limited
      elif type == 'Reject'
        if queuing: forbidden queuing: must be nil if limited.limitResponse.type is not Limited
      elif !type: missing type
      else: type of: Queue, Reject

kube-aggregator.pkg.apis.apiregistration.v1.APIService
  let $name = (spec.version ?? '') + '.' + (spec.group ?? '')
  if metadata.name != $name: invalid metadata.name: must be \`spec.version+"."+spec.group\`: %(json($name))
  at spec
    group is subdomain?
    if !group && version != 'v1': missing group: only v1 may have an empty group and it better be legacy kube
    version = version ?? '' is label1035
    let $priority = groupPriorityMinimum ?? 0
    if !($priority > 0 && $priority <= 20_000): invalid groupPriorityMinimum = $priority: must be positive and less than 20000
    let $priority = versionPriority ?? 0
    if !($priority > 0 && $priority <= 1_000): invalid versionPriority = $priority: must be positive and less than 1000
    if !service && insecureSkipTLSVerify: invalid insecureSkipTLSVerify: local APIServices may not have insecureSkipTLSVerify
    if service
      service.namespace required
      service.name required

resource.v1.ResourceSlice
  at spec
    driver required
    at pool
      name required
      let $count = resourceSliceCount ?? 0
      if $count <= 0: invalid resourceSliceCount = $count: must be greater than zero
    if !nodeName && !nodeSelector && !allNodes && !perDeviceNodeSelection: missing .: exactly one of \`nodeName\`, \`nodeSelector\`, \`allNodes\`, \`perDeviceNodeSelection\` is required

certificates.v1.CertificateSigningRequestSpec
  usages required
  each usages
    distinct .
  let $domain = split(signerName, '/')[0]
  if !signerName: missing signerName
  elif len(split(signerName, '/')) != 2: invalid signerName: must be a fully qualified domain and path of the form 'example.com/signer-name'
  else
    signerName = $domain is subdomain
    if len(split($domain, '.')) < 2: invalid signerName = $domain: should be a domain with at least two segments separated by dots
  if expirationSeconds < 600: invalid expirationSeconds: may not specify a duration less than 600 seconds (10 minutes)

# As upstream, messages locate taints in metadata.taints.
core.v1.Node
  every spec.taints
    let $at = 'metadata.taints[' + $index + ']'
    %($at).key = key is qualifiedName
    %($at).value = value is labelValue?
    if !effect: missing %($at).effect
    else: %($at).effect = effect of: NoSchedule, PreferNoSchedule, NoExecute
    if effect && seen(key + ' ' + effect): duplicate %($at) shown '{"Key":' + json(key) + ',"Value":' + json(value ?? '') + ',"Effect":' + json(effect) + ',"TimeAdded":' + json(timeAdded) + '}': taints must be unique by key and effect pair
  each spec.podCIDRs
    . is network
  if twoOfAFamily(spec.podCIDRs): invalid spec.podCIDRs = spec.podCIDRs: may specify no more than one CIDR for each IP family
`;
