/** Rules of CustomResourceDefinitions; `validation/rules/rule_text.ts` documents the statements. */
export const DEFINITION_RULES: string = String.raw`
create
  let $name = (spec.names.plural ?? '') + '.' + (spec.group ?? '')
  if metadata.name && metadata.name != $name: invalid metadata.name: must be spec.names.plural+"."+spec.group
  use definition
update
  use definition
rule definition
  at spec
    if !group: missing group
    elif problems('subdomain', group): invalid group: %(problems('subdomain', group))
    elif !includes(group, '.'): invalid group: should be a domain with at least one dot
    if !scope: missing scope
    else: scope of: Cluster, Namespaced
    let $shared = sharedParts(versions)
    let $first = $shared.first
    use versions
    at names
      use names
    every $first
      if $shared.schema: schema validation hasStatus(^versions)
      if $shared.subresources: use scale
      if $shared.columns: use columns
      if $shared.selectableFields: use selectable fields
    if conversion
      at conversion
        use conversion
  if isEstablished($live.status.conditions): immutable spec.scope spec.names.kind
  if $live: immutable spec.group spec.names.plural
  use stored versions
  use approval
  if spec.preserveUnknownFields && !$live.spec.preserveUnknownFields: invalid spec.preserveUnknownFields = true: cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead
rule names
  plural required
  singular required
  kind required
  listKind required
  plural is joinedLabel?
  singular is joinedLabel?
  kind is kind?
  listKind is kind?
  each shortNames categories
    . is joinedLabel
  if kind && kind == listKind: invalid listKind: kind and listKind may not be the same
# The first version is reported again, under the deprecated field.
rule versions
  if !($shared.schema && has(versions[0].schema.openAPIV3Schema))
    each versions
      if !has(schema.openAPIV3Schema): missing schema.openAPIV3Schema
  each versions
    name = name ?? '' is joinedLabel
    if has(deprecationWarning): use deprecation
    if !$shared.schema: schema schema hasStatus([.])
    if !$shared.subresources: use scale
    if !$shared.columns: use columns
    if !$shared.selectableFields: use selectable fields
  if !isDistinct(pluck(versions, 'name')): invalid versions shown goVersions(versions): must contain unique version names
  if len(stored(versions)) != 1: invalid versions shown goVersions(versions): must have exactly one version marked as storage version
  version = versions[0].name is joinedLabel
rule deprecation
  let $odd = oddCharacter(deprecationWarning)
  if !deprecated: invalid deprecationWarning: can only be set for deprecated versions
  else
    if len(deprecationWarning) > 256: invalid deprecationWarning: must be <= 256 characters long
    if deprecationWarning == '': invalid deprecationWarning: must not be an empty string
    if $odd >= 0: invalid deprecationWarning: must only contain printable UTF-8 characters; non-printable character found at index %($odd)
rule scale
  if has(subresources.scale)
    at subresources.scale
      if !specReplicasPath: missing specReplicasPath
      else: specReplicasPath is simplePath
      if specReplicasPath ~ /^\.(?!spec\.)/: invalid specReplicasPath: should be a json path under .spec
      if !statusReplicasPath: missing statusReplicasPath
      else: statusReplicasPath is simplePath
      if statusReplicasPath ~ /^\.(?!status\.)/: invalid statusReplicasPath: should be a json path under .status
      labelSelectorPath is simplePath?
      if labelSelectorPath ~ /^\.(?!spec\.|status\.)/: invalid labelSelectorPath: should be a json path under either .spec or .status
rule columns
  each additionalPrinterColumns
    let $types = ['boolean', 'date', 'integer', 'number', 'string']
    let $formats = ['byte', 'date', 'date-time', 'double', 'float', 'int32', 'int64', 'password']
    name required
    if !type: missing type: must be one of %($types)
    elif !(type in $types): invalid type: must be one of %($types)
    if format && !(format in $formats): invalid format: must be one of %($formats)
    JSONPath = jsonPath is simplePath!
rule selectable fields
  let $schema = schema.openAPIV3Schema ?? emptyMap()
  let $paths = newSet()
  each selectableFields
    let $field = selectableField(jsonPath ?? '', $schema)
    if !jsonPath: missing jsonPath
    elif !has($field.schema): invalid jsonPath: is an invalid path: %($field)
    else
      if $field.path ~ /^metadata(?:\.|$)/: invalid jsonPath: must not point to fields in metadata
      if !($field.schema.type in ['string', 'boolean', 'integer']): invalid jsonPath: must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.
      if again($paths, $field.path): duplicate jsonPath
  if size($paths) > 8: tooMany selectableFields = size($paths): 8
rule conversion
  let $config = webhook.clientConfig
  let $reviews = webhook.conversionReviewVersions ?? []
  if !strategy: missing strategy
  else: strategy of: None, Webhook
  if strategy != 'Webhook'
    if has($config): forbidden webhookClientConfig: should not be set when strategy is not set to Webhook
    if $reviews: forbidden conversionReviewVersions: should not be set when strategy is not set to Webhook
    stop
  if !has($config): missing webhookClientConfig: required when strategy is set to Webhook
  elif has($config.url) == has($config.service): missing webhookClientConfig: exactly one of url or service is required
  if !$reviews
    missing conversionReviewVersions
    stop
  every $reviews
    if seen(.): invalid conversionReviewVersions[%($index)] = .: duplicate version
    else: conversionReviewVersions[%($index)] = . is label1035
  if !('v1' in $reviews || 'v1beta1' in $reviews): invalid conversionReviewVersions = $reviews: must include at least one of v1, v1beta1
rule stored versions
  let $stored = status.storedVersions ?? []
  let $names = pluck(spec.versions, 'name')
  if !$stored: invalid status.storedVersions shown 'null': must have at least one stored version
  else
    every spec.versions
      if storage && !(name in $stored): invalid status.storedVersions = $stored: must have the storage version %(name)
    each status.storedVersions
      if !(. in $names): invalid .: missing from spec.versions; %(.) was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in %(.) and removes %(.) from status.storedVersions
rule approval
  let $note = 'api-approved.kubernetes.io'
  let $value = metadata.annotations[$note] ?? ''
  let $state = approval($value)
  if spec.group ~ /(?:^|\.)(?:k8s|kubernetes)\.io$/ && !($live && approval($live.metadata.annotations[$note] ?? '') == $state)
    if $state == 'missing': missing metadata.annotations[%($note)]: protected groups must have approval annotation "%($note)", see https://github.com/kubernetes/enhancements/pull/1111
    elif $state == 'invalid': invalid metadata.annotations[%($note)] = $value: protected groups must have approval annotation "%($note)" with either a URL or a reason starting with "unapproved", see https://github.com/kubernetes/enhancements/pull/1111
root
  if $status && type != 'object': invalid type = type ?? '': only "object" is allowed as the type at the root of the schema if the status subresource is enabled
  elif $status && keysBut(., $rootKeywords): invalid . = .: only [%(goFieldNames($rootKeywords))] fields are allowed at the root of the schema if the status subresource is enabled
  if nullable: forbidden nullable: nullable cannot be true at the root
# Every value has one type. $level says where the schema is.
structural
  let $level = 'at the root'
  use structural
rule structural
  let $embedded = .['x-kubernetes-embedded-resource'] == true
  let $keeps = .['x-kubernetes-preserve-unknown-fields'] == true
  let $whole = $level == 'at the root' || $embedded
  if type == 'array' && !has(items): missing items: must be specified
  if items
    at items
      let $level = 'for specified array items'
      use structural
  each properties
    let $level = 'for specified object fields'
    use structural
  if has(additionalProperties) && $level == 'at the root': forbidden additionalProperties: must not be used at the root
  if isObject(additionalProperties)
    at additionalProperties
      let $level = 'for specified object fields'
      use structural
  if .['x-kubernetes-int-or-string']
    if $keeps: invalid x-kubernetes-preserve-unknown-fields = true: must be false if x-kubernetes-int-or-string is true
    if $embedded: invalid x-kubernetes-embedded-resource = true: must be false if x-kubernetes-int-or-string is true
  let $isUnion = isIntOrString(anyOf)
  let $firstIsUnion = isIntOrString(allOf[0].anyOf)
  use combinations
  if $embedded && type && type != 'object': invalid type: must be object if x-kubernetes-embedded-resource is true
  elif $embedded && !type: missing type: must be object if x-kubernetes-embedded-resource is true
  elif !type && !.['x-kubernetes-int-or-string'] && !$keeps: missing type: must not be empty %($level)
  if $embedded && has(additionalProperties): forbidden additionalProperties: must not be used if x-kubernetes-embedded-resource is set
  if $level == 'at the root' && type && type != 'object': invalid type: must be object at the root
  if $embedded && !$keeps && !keysBut(properties, []): missing properties: must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields
  if $whole && properties.kind && properties.kind.type != 'string': invalid properties[kind].type = properties.kind.type ?? '': must be string
  if $whole && properties.apiVersion && properties.apiVersion.type != 'string': invalid properties[apiVersion].type = properties.apiVersion.type ?? '': must be string
  let $metadata = properties.metadata
  if $whole && $metadata && $metadata.type != 'object': invalid properties[metadata].type = $metadata.type ?? '': must be object
  if $level == 'at the root' && $metadata && (keysBut($metadata, ['type', 'default', 'properties']) || keysBut($metadata.properties, ['name', 'generateName'])): forbidden properties[metadata]: must not specify anything other than name and generateName, but metadata is implicitly specified
# Schemas in which a union stands for x-kubernetes-int-or-string have types.
rule combinations
  if !$isUnion
    each anyOf
      let $isUnion = false
      let $firstIsUnion = false
      use nested
  each oneOf allOf
    let $isUnion = $firstIsUnion && $list == 'allOf' && $index == 0
    let $firstIsUnion = false
    use nested
  if not
    at not
      let $isUnion = false
      let $firstIsUnion = false
      use nested
  if pattern && patternProblem(pattern): invalid pattern: must be a valid regular expression, but isn't: %(patternProblem(pattern))
rule nested
  let $empty = ['type', 'title', 'description', 'x-kubernetes-list-map-keys', 'x-kubernetes-validations']
  let $undefined = ['additionalProperties', 'default', 'x-kubernetes-list-type', 'x-kubernetes-map-type']
  let $false = ['nullable', 'x-kubernetes-preserve-unknown-fields', 'x-kubernetes-embedded-resource', 'x-kubernetes-int-or-string']
  use combinations
  if items
    at items
      let $isUnion = false
      use nested
  each properties
    let $isUnion = false
    use nested
  every $empty
    if ^.[.]: forbidden %(.): must be empty to be structural
  every $undefined
    if ^.[.] || isList(^.[.]): forbidden %(.): must be undefined to be structural
  every $false
    if ^.[.]: forbidden %(.): must be false to be structural
  if properties.metadata: forbidden properties[metadata]: must not be specified in a nested context
# $noDefault is the reason why defaults are forbidden.
keywords
  let $isRoot = true
  use schema
rule schema
  let $type = type ?? ''
  let $listType = .['x-kubernetes-list-type']
  let $mapType = .['x-kubernetes-map-type']
  let $keys = .['x-kubernetes-list-map-keys'] ?? []
  let $types = ['array', 'boolean', 'integer', 'number', 'object', 'string']
  let $whole = $isRoot || .['x-kubernetes-embedded-resource'] == true
  if type && !(type in $types): unsupported type: %(join($types))
  if owns(., 'default') && $noDefault: forbidden default: must not be set %($noDefault)
  let $odd = given(., $unsupported)
  every $odd
    forbidden %(.): %(.) is not supported
  if type == 'null': forbidden type: type cannot be set to null, use nullable as an alternative
  if isList(items): forbidden items: items must be a schema object and not an array
  if $insideMetadata && .['x-kubernetes-embedded-resource']: forbidden x-kubernetes-embedded-resource: must not be used inside of resource meta
  if uniqueItems == true: forbidden uniqueItems: uniqueItems cannot be set to true since the runtime complexity becomes quadratic
  if has(additionalProperties) && additionalProperties != true && keysBut(properties, []): forbidden additionalProperties: additionalProperties and properties are mutual exclusive
  if .['x-kubernetes-preserve-unknown-fields'] == false: invalid x-kubernetes-preserve-unknown-fields = false: must be true or undefined
  if isObject(additionalProperties)
    at additionalProperties
      if $insideMetadata: let $noDefault = 'inside additionalProperties applying to object metadata'
      let $isRoot = false
      use schema
  each properties
    let $isMeta = $whole && $key in ['apiVersion', 'kind', 'metadata']
    let $noDefault = $isMeta && $isRoot ? 'in top-level ' + $key : $noDefault
    let $insideMetadata = $isMeta || $insideMetadata
    let $isRoot = false
    use schema
  if not
    at not
      let $isRoot = false
      use schema
  each allOf oneOf anyOf
    let $isRoot = false
    use schema
  if isObject(items)
    at items
      let $isRoot = false
      use schema
  if has($mapType) && $type != 'object': use type of map
  if has($mapType) && !($mapType in ['atomic', 'granular']): unsupported x-kubernetes-map-type = $mapType: atomic, granular
  if has($listType) && $type != 'array': use type of list
  elif $listType == 'set' && items
    let $itemType = items['x-kubernetes-list-type'] ?? 'atomic'
    let $itemMapType = items['x-kubernetes-map-type']
    if items.type == 'array' && $itemType != 'atomic': invalid items.x-kubernetes-list-type = $itemType: must be atomic as item of a list with x-kubernetes-list-type=set
    elif items.type == 'object' && $itemMapType != 'atomic': invalid items.x-kubernetes-map-type = $itemMapType: must be atomic as item of a list with x-kubernetes-list-type=set
  if has($listType) && !($listType in ['atomic', 'set', 'map']): unsupported x-kubernetes-list-type = $listType: atomic, set, map
  if $keys && !has($listType): missing x-kubernetes-list-type: must be map if x-kubernetes-list-map-keys is non-empty
  elif $keys && $listType != 'map': invalid x-kubernetes-list-type = $listType: must be map if x-kubernetes-list-map-keys is non-empty
  if $listType == 'map': use map keys
  if items && $listType in ['set', 'map']: use list items
  each x-kubernetes-validations
    use expression
rule type of map
  if !type: missing type: must be object if x-kubernetes-map-type is specified
  else: invalid type: must be object if x-kubernetes-map-type is specified
rule type of list
  if !type: missing type: must be array if x-kubernetes-list-type is specified
  else: invalid type: must be array if x-kubernetes-list-type is specified
rule map keys
  let $properties = items.properties
  let $isObject = items.type == 'object'
  if !$keys: missing x-kubernetes-list-map-keys: must not be empty if x-kubernetes-list-type is map
  if !has(items): missing items: must have a schema if x-kubernetes-list-type is map
  elif !$isObject: invalid items.type = items.type ?? '': must be object if parent array's x-kubernetes-list-type is map
  every $keys
    let $property = $properties[.]
    if !$isObject: stop
    if !has($property): invalid x-kubernetes-list-map-keys = $keys: entries must all be names of item properties
    elif $property.type in ['array', 'object']: invalid items.properties[%(.)].type = 'object': must be a scalar type if parent array's x-kubernetes-list-type is map
    if seen(.): invalid x-kubernetes-list-map-keys = $keys: must not contain duplicate entries
rule list items
  let $properties = items.properties
  let $required = items.required ?? []
  if items.nullable: forbidden items.nullable: cannot be nullable when x-kubernetes-list-type is %($listType)
  every $keys
    let $property = $properties[.]
    if $listType != 'map' || !has($property): stop
    if !(. in $required) && !owns($property, 'default'): missing items.properties[%(.)].default: this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property
    if $property.nullable: forbidden items.properties[%(.)].nullable: this property is in x-kubernetes-list-map-keys, so it cannot be nullable
rule expression
  let $rule = trim(rule ?? '')
  let $message = trim(message ?? '')
  let $reasons = ['FieldValueDuplicate', 'FieldValueForbidden', 'FieldValueInvalid', 'FieldValueRequired']
  if !$rule: missing rule: rule is not specified
  elif message && !$message: invalid message: must be non-empty if specified
  elif $message ~ /[\n\r]/: invalid message: must not contain line breaks
  elif $rule ~ /[\n\r]/ && !$message: missing message: message must be specified if rule contains line breaks
  if messageExpression && !trim(messageExpression): missing messageExpression: messageExpression must be non-empty if specified
  if has(reason) && !(reason in $reasons): unsupported reason: %(join($reasons))
  if fieldPath
    if !trim(fieldPath): invalid fieldPath: must be non-empty if specified
    if fieldPath ~ /[\n\r]/: invalid fieldPath: must not contain line breaks
    if !has(schemaField(fieldPath, ^.).schema): invalid fieldPath: must be a valid path
`;
