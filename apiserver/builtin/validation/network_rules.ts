/** Rules of Services, Ingresses, policies and endpoints; `rules/rule_text.ts` documents the statements. */
export const NETWORK_RULES: string = String.raw`
core.v1.Service
  at spec
    let $type = type
    let $several = len(ports) > 1
    if !ports && clusterIP != 'None' && type != 'ExternalName': missing ports
    if clusterIP == 'None' && type in ['LoadBalancer', 'NodePort']: invalid clusterIPs[0] = 'None': may not be set to 'None' for %(type) services
    if type == 'ExternalName'
      if has(clusterIPs): forbidden clusterIPs: may not be set for ExternalName services
      if has(ipFamilies): forbidden ipFamilies: may not be set for ExternalName services
      if has(ipFamilyPolicy): forbidden ipFamilyPolicy: may not be set for ExternalName services
      externalName = withoutEnd(externalName, '.') is subdomain!
    each ports
      if !name && $several: missing name
      name is label?
      unique name
      port is port
      appProtocol is qualifiedName
      targetPort is port
      if seen(protocol + '/' + port): duplicate . shown '{"Name":"","Protocol":' + json(protocol) + ',"AppProtocol":null,"Port":' + port + ',"TargetPort":0,"NodePort":0}'
      if nodePort && $type == 'ClusterIP': forbidden nodePort: may not be used when \`type\` is 'ClusterIP'
      if nodePort && seen(protocol + '/' + nodePort): duplicate nodePort
    labels selector
    each externalIPs
      . is address
    each ipFamilies
      . of: IPv4, IPv6
      distinct .
    if clusterIPs && clusterIP != clusterIPs[0]: invalid clusterIPs = clusterIPs: first value must match \`clusterIP\`
    if len(clusterIPs) > 1 && 'None' in clusterIPs: invalid clusterIPs = clusterIPs: 'None' must be the first and only value
    else
      each clusterIPs
        if . != 'None' || $index != 0: . is address
    if loadBalancerSourceRanges && type != 'LoadBalancer': forbidden LoadBalancerSourceRanges: may only be used when \`type\` is 'LoadBalancer'
    every loadBalancerSourceRanges
      LoadBalancerSourceRanges[%($index)] = trim(.) is network
    if has(allocateLoadBalancerNodePorts) && type != 'LoadBalancer': forbidden allocateLoadBalancerNodePorts: may only be used when \`type\` is 'LoadBalancer'
    if has(loadBalancerClass) && type != 'LoadBalancer': forbidden loadBalancerClass: may only be used when \`type\` is 'LoadBalancer'
    loadBalancerClass is qualifiedName
    if has(externalTrafficPolicy) && !(type in ['LoadBalancer', 'NodePort']) && !(type == 'ClusterIP' && externalIPs): invalid externalTrafficPolicy: may only be set for externally-accessible services
    if healthCheckNodePort && !(type == 'LoadBalancer' && externalTrafficPolicy == 'Local'): invalid healthCheckNodePort: may only be set when \`type\` is 'LoadBalancer' and \`externalTrafficPolicy\` is 'Local'
    at sessionAffinityConfig.clientIP
      if timeoutSeconds <= 0 || timeoutSeconds > 86_400: invalid timeoutSeconds: must be greater than 0 and less than 86400

networking.v1.NetworkPolicyPort
  if !isNumber(port) && has(endPort): invalid endPort: may not be specified when \`port\` is %(has(port) ? 'non-numeric' : 'not specified')
  port is port
  if isNumber(port) && endPort < port: invalid endPort = port: must be greater than or equal to \`port\`
  if isNumber(port): endPort is port

networking.v1.NetworkPolicyPeer
  if !keysBut(., []): missing .: must specify a peer
  elif len(keysBut(., [])) > 1 && ipBlock: forbidden .: may not specify both ipBlock and another peer

networking.v1.IPBlock
  cidr is network!
  if cidr
    each except
      . is network

rule host
  if isAddress($host): invalid . = $host: must be a DNS name, not an IP address
  if !($host ~ /\*/): . = $host is subdomain
  elif !($host ~ /^\*\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/): invalid . = $host: a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. '*.example.com', regex used for validation is '\*\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')

networking.v1.IngressSpec
  if !rules && !defaultBackend: invalid . = rules: either \`defaultBackend\` or \`rules\` must be specified
  each rules
    let $host = host
    if host
      at host
        use host
    if http && !http.paths: missing http.paths
  each tls
    secretName is subdomain?
    each hosts
      let $host = .
      use host
  ingressClassName is subdomain

networking.v1.HTTPIngressPath
  let $path = path ?? ''
  pathType required: pathType must be specified
  if (pathType in ['Exact', 'Prefix'] || pathType == 'ImplementationSpecific' && $path) && !($path ~ /^\//): invalid path = $path: must be an absolute path
  if pathType in ['Exact', 'Prefix']
    let $sequences = ['//', '/./', '/../', '%2f', '%2F']
    every $sequences
      if includes($path, .): invalid path = $path: must not contain '%(.)'
    if $path ~ /\/\.\.$/: invalid path: cannot end with '/..'
    if $path ~ /\/\.$/: invalid path: cannot end with '/.'

networking.v1.IngressBackend
  if service && resource: invalid . = '': cannot set both resource and service backends
  elif service
    service.name is label!
    if service.port.name && service.port.number: invalid . = '': cannot set both port name & port number
    elif service.port.name: service.port.name is port
    elif service.port.number: service.port.number is port
    else: missing .: port name or number is required
  elif resource
    resource.apiGroup is subdomain
    resource.kind required
    resource.name required
  else: invalid . = '': resource or service backend is required

networking.v1.IngressClass
  at spec
    let $controller = controller ?? ''
    if !$controller: missing controller
    elif !($controller ~ /\/./) || $controller ~ /\/$/: invalid controller: must be a domain-prefixed path (such as "acme.io/foo")
    else: controller = split($controller, '/')[0] is subdomain
    if has(parameters)
      at parameters
        kind required
        name required
        apiGroup is subdomain
        if scope == 'Namespace': namespace is label
        if scope == 'Namespace' && !has(namespace): missing namespace: \`parameters.scope\` is set to 'Namespace'
        if scope == 'Cluster' && has(namespace): forbidden namespace: \`parameters.scope\` is set to 'Cluster'

networking.v1.IPAddress
  if !has(spec.parentRef): missing spec.parentRef
  else
    at spec.parentRef
      group is subdomain?
      resource is pathSegment!
      name is pathSegment!
      namespace is pathSegment?

networking.v1.ServiceCIDR
  at spec
    if !cidrs: missing cidrs: at least one CIDR required
    elif len(cidrs) > 2: invalid cidrs shown '{"CIDRs":' + json(cidrs) + '}': may only hold up to 2 values
    else
      each cidrs
        . is strictNetwork
      if twoOfAFamily(cidrs): invalid cidrs = cidrs: may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64

core.v1.Endpoints
  each subsets
    if !addresses && !notReadyAddresses: missing .: must specify \`addresses\` or \`notReadyAddresses\`
    each addresses notReadyAddresses
      let $ip = ip ?? ''
      ip = $ip is address
      hostname is label?
      nodeName is subdomain
      use special address
    let $several = len(ports) > 1
    each ports
      if name: name is label
      elif $several: missing name
      port = port ?? 0 is port
      appProtocol is qualifiedName

rule special address
  if !isAddress($ip): invalid ip = $ip: must be a valid IP address
  else
    if $ip in ['0.0.0.0', '::']: invalid ip = $ip: may not be unspecified (%($ip))
    if $ip ~ /^127\.|^::1$/: invalid ip = $ip: may not be in the loopback range (127.0.0.0/8, ::1/128)
    if $ip ~ /^169\.254\.|^fe[89ab][0-9a-f]:/i: invalid ip = $ip: may not be in the link-local range (169.254.0.0/16, fe80::/10)
    if $ip ~ /^224\.0\.0\.|^ff[0-9a-f]2:/i: invalid ip = $ip: may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)

discovery.v1.EndpointSlice
  addressType required
  let $type = addressType
  each endpoints
    addresses required: must contain at least 1 address
    each addresses
      if $type == 'FQDN': . is subdomain
      elif $type in ['IPv4', 'IPv6']: . is address
    each hints.forZones
      distinct name
  each ports
    distinct name = name ?? ''

discovery.v1.Endpoint
  hostname is label?
  nodeName is subdomain

discovery.v1.ForZone
  name is labelValue

discovery.v1.EndpointPort
  name is label?
  appProtocol is qualifiedName
`;
