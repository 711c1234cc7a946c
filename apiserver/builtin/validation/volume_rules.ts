/** Rules of volumes, claims and CSI kinds; `rules/rule_text.ts` documents the statements. */
export const VOLUME_RULES: string = String.raw`
core.v1.Volume
  one keysBut(., ['name']): must specify a volume type | may not specify more than 1 volume type

core.v1.KeyToPath
  key required
  path is relativePath!
  mode is fileMode

core.v1.SecretVolumeSource
  secretName required
  defaultMode is fileMode

core.v1.ConfigMapVolumeSource
  name required
  defaultMode is fileMode

core.v1.ProjectedVolumeSource
  defaultMode is fileMode
  let $paths = newSet()
  each sources
    one keysBut(., []): | may not specify more than 1 volume type per source
    if secret
      secret.name required
      every secret.items
        if path && again($paths, path): invalid ^^. = ^secret.name ?? '': conflicting duplicate paths
    if configMap
      configMap.name required
      every configMap.items
        if path && again($paths, path): invalid ^^. = ^configMap.name ?? '': conflicting duplicate paths
    every downwardAPI.items
      if path && again($paths, path): invalid ^^. = path: conflicting duplicate paths
    if serviceAccountToken
      if serviceAccountToken.expirationSeconds < 600: invalid serviceAccountToken.expirationSeconds: may not specify a duration less than 10 minutes
      if serviceAccountToken.expirationSeconds > 4294967296: invalid serviceAccountToken.expirationSeconds: may not specify a duration larger than 2^32 seconds
      ^path = serviceAccountToken.path is relativePath!

core.v1.HostPathVolumeSource
  if !path: missing path
  elif path ~ /(?:^|\/)\.\.(?:\/|$)/: invalid path: must not contain '..'

core.v1.EmptyDirVolumeSource
  if quantity(sizeLimit ?? '0') < 0: forbidden sizeLimit: SizeLimit field must be a valid resource quantity

core.v1.NFSVolumeSource
  server required
  path required
  if !(path ~ /^\//): invalid path = path ?? '': must be an absolute path

core.v1.AzureDiskVolumeSource
  diskName required
  diskURI required
  if kind != 'Managed' && !(diskURI ~ /^https:\/\//): unsupported diskURI = diskURI ?? '': https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd
  if kind == 'Managed' && !(diskURI ~ /^\/subscriptions/): unsupported diskURI = diskURI ?? '': /subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}

rule iscsi
  if !iqn: missing iqn
  elif $starts && !(iqn ~ /^(?:iqn|eui|naa)/): invalid iqn: must be valid format starting with iqn, eui, or naa
  elif !(iqn ~ /^iqn\.\d{4}-\d{2}\.[^:\s]+(?::.*)?$|^eui\.[0-9A-F]{16}$|^naa\.[0-9A-F]{16}(?:[0-9A-F]{16})?$/i): invalid iqn: must be valid format
  lun between 0 255

core.v1.ISCSIVolumeSource
  targetPortal required
  let $starts = true
  use iscsi

core.v1.ISCSIPersistentVolumeSource
  targetPortal required
  use iscsi

core.v1.FCVolumeSource
  if !targetWWNs && !wwids: missing targetWWNs: must specify either targetWWNs or wwids, but not both
  if targetWWNs && wwids: invalid targetWWNs: targetWWNs and wwids can not be specified simultaneously
  if targetWWNs && !has(lun): missing lun: lun is required if targetWWNs is specified
  elif targetWWNs: lun between 0 255

rule driver name
  if len($name) > 63: tooLong %($field): 63
  %($field) = $name is lowerSubdomain!

core.v1.CSIVolumeSource
  let $field = 'driver'
  let $name = driver
  use driver name

core.v1.CSIPersistentVolumeSource
  let $field = 'driver'
  let $name = driver
  use driver name
  volumeHandle required

core.v1.PersistentVolumeClaimVolumeSource
  claimName required

core.v1.EphemeralVolumeSource
  volumeClaimTemplate required

core.v1.GCEPersistentDiskVolumeSource
  pdName required
  partition between 0 255

core.v1.AWSElasticBlockStoreVolumeSource
  volumeID required
  partition between 0 255

core.v1.GitRepoVolumeSource
  repository required

core.v1.RBDVolumeSource core.v1.RBDPersistentVolumeSource
  monitors required
  image required

core.v1.CephFSVolumeSource core.v1.CephFSPersistentVolumeSource
  monitors required

core.v1.CinderVolumeSource core.v1.CinderPersistentVolumeSource core.v1.PortworxVolumeSource
  volumeID required

core.v1.AzureFileVolumeSource core.v1.AzureFilePersistentVolumeSource
  secretName required
  shareName required

core.v1.GlusterfsVolumeSource core.v1.GlusterfsPersistentVolumeSource
  endpoints required
  path required

core.v1.FlexVolumeSource core.v1.FlexPersistentVolumeSource
  driver required

core.v1.ScaleIOVolumeSource core.v1.ScaleIOPersistentVolumeSource
  gateway required
  system required
  volumeName required

core.v1.StorageOSVolumeSource core.v1.StorageOSPersistentVolumeSource
  volumeName is label!

core.v1.QuobyteVolumeSource
  if !registry: missing registry: must be a host:port pair or multiple pairs separated by commas
  let $hosts = registry ? split(registry, ',') : []
  every $hosts
    if !(. ~ /^[^:]*:[^:]*$/): invalid registry = ^registry: must be a host:port pair or multiple pairs separated by commas
  volume required

core.v1.VsphereVirtualDiskVolumeSource
  volumePath required

core.v1.PhotonPersistentDiskVolumeSource
  pdID required

core.v1.LocalVolumeSource
  path required

rule access modes
  if !accessModes: missing accessModes: %($why)
  every accessModes
    accessModes = . of: ReadOnlyMany, ReadWriteMany, ReadWriteOnce, ReadWriteOncePod
  if 'ReadWriteOncePod' in accessModes && !isEvery(accessModes, 'ReadWriteOncePod'): forbidden accessModes: may not use ReadWriteOncePod with other access modes

core.v1.PersistentVolumeClaimSpec
  let $why = 'at least 1 access mode is required'
  use access modes
  let $storage = resources.requests.storage
  if !has($storage): missing resources[storage]
  elif quantity($storage) <= 0: invalid resources[storage] = $storage: must be greater than zero
  storageClassName is subdomain?
  if has(dataSource)
    dataSource.name required
    dataSource.kind required
    if !dataSource.apiGroup && dataSource.kind != 'PersistentVolumeClaim': invalid dataSource = dataSource.kind: must be 'PersistentVolumeClaim' when referencing the default apiGroup
  if has(dataSourceRef)
    dataSourceRef.name required
    dataSourceRef.kind required
    if !dataSourceRef.apiGroup && dataSourceRef.kind != 'PersistentVolumeClaim': invalid dataSourceRef = dataSourceRef.kind: must be 'PersistentVolumeClaim' when referencing the default apiGroup

core.v1.PersistentVolumeSpec
  let $why = ''
  use access modes
  let $names = keysBut(capacity, [])
  if !$names: missing capacity
  if !has(capacity.storage) || len($names) > 1: unsupported capacity = capacity ?? emptyMap(): storage
  each capacity
    if quantity(.) <= 0: invalid .: must be greater than zero
  one given(., split('hostPath gcePersistentDisk awsElasticBlockStore glusterfs flocker nfs rbd quobyte cephfs iscsi cinder fc flexVolume azureFile vsphereVolume photonPersistentDisk portworxVolume azureDisk scaleIO local storageos csi', ' ')): must specify a volume type | may not specify more than 1 volume type
  if local && !nodeAffinity: missing nodeAffinity: Local volume requires node affinity
  storageClassName is subdomain?

storage.v1.StorageClass
  provisioner = lower(provisioner) is qualifiedName!
  if reclaimPolicy: reclaimPolicy of: Delete, Retain
  each allowedTopologies
    each matchLabelExpressions
      values required
      each values
        distinct .
      key is qualifiedName

storage.v1.VolumeAttributesClass
  parameters required: must contain at least one key/value pair
  driverName = lower(driverName) is qualifiedName!

storage.v1.CSINode
  each spec.drivers
    let $field = 'name'
    let $name = name
    use driver name
    nodeID required
    distinct name
    every topologyKeys
      . required
      distinct .
      . is qualifiedName
    if allocatable.count < 0: invalid allocatable.count: must be greater than or equal to 0

storage.v1.CSIDriverSpec
  each tokenRequests
    distinct audience = audience ?? ''
    if expirationSeconds < 600: invalid expirationSeconds: may not specify a duration less than 10 minutes
  every volumeLifecycleModes
    volumeLifecycleModes = . of: Persistent, Ephemeral

storage.v1.CSIStorageCapacity
  storageClassName is subdomain
  if quantity(capacity ?? '0') < 0: invalid capacity: must be greater than or equal to 0

storage.v1.VolumeAttachmentSpec
  let $field = 'attacher'
  let $name = attacher
  use driver name
  if !source.inlineVolumeSpec && !has(source.persistentVolumeName): missing source: must specify exactly one of inlineVolumeSpec and persistentVolumeName
  source.persistentVolumeName is subdomain
  nodeName is subdomain
`;
