/**
 * Docs of fields that people meet most, by type and field; those of `*` are for
 * the field in all types. A field without a doc has none in the types.
 *
 * @module
 */

type FieldDocs = Readonly<Record<string, string>>;

/** Docs of the fields of workloads that several kinds have alike. */
const WORKLOAD: FieldDocs = {
  minReadySeconds:
    "Seconds that a new pod must be ready before it counts as available; 0 if absent.",
  replicas: "Desired number of pods; 1 if absent.",
  revisionHistoryLimit:
    "Number of old revisions that are kept for a rollback; 10 if absent.",
  selector:
    "Selector of the pods that belong to it; must match the labels of `template`, and cannot be changed.",
  template: "Template of the pods.",
};
const WORKLOAD_STATUS: FieldDocs = {
  availableReplicas:
    "Number of pods that have been ready for at least `minReadySeconds`.",
  collisionCount: "Number of name collisions of revisions, for the next name.",
  currentReplicas: "Number of pods of the current revision.",
  readyReplicas: "Number of pods that are ready.",
  replicas: "Number of pods, ready or not.",
  unavailableReplicas:
    "Number of pods that are still missing or not available.",
  updatedReplicas: "Number of pods of the newest template.",
};
const POD_SECURITY: FieldDocs = {
  runAsGroup: "Group ID of the first process; that of the image if absent.",
  runAsNonRoot:
    "Whether the kubelet refuses to start a container as root; the user of the image must then be a number.",
  runAsUser: "User ID of the first process; that of the image if absent.",
  seccompProfile:
    'Filter of system calls, such as `{ type: "RuntimeDefault" }`.',
};
const KEY_SELECTOR: FieldDocs = {
  key: "Key in its data.",
  name: "Name of the object, in the namespace of the pod.",
  optional: "Whether the pod starts although the object or key is missing.",
};
const VOLUME_OF_KEYS: FieldDocs = {
  defaultMode: "Mode bits of the files, such as `0o440`; 0o644 if absent.",
  items: "Keys that become files, and their paths; all keys if absent.",
  optional: "Whether the pod starts although the object is missing.",
};
const ROLE: FieldDocs = { rules: "Rules, each of which allows some requests." };
const BINDING: FieldDocs = {
  roleRef: "Role that is granted; cannot be changed.",
  subjects: "Users, groups and service accounts that get the role.",
};

export const FIELD_DOCS: Readonly<Record<string, FieldDocs>> = {
  "*": {
    conditions:
      "Latest observations of the state, one per type, such as `Ready`.",
    observedGeneration:
      "Generation of the spec that the status describes; the status is out of date while `metadata.generation` is greater.",
    lastTransitionTime: "Time at which `status` changed last.",
  },
  AggregationRule: {
    clusterRoleSelectors:
      "Selectors of ClusterRoles whose rules the control plane copies into this one.",
  },
  Affinity: {
    nodeAffinity: "Rules about the labels of nodes.",
    podAffinity: "Rules that put the pod near other pods.",
    podAntiAffinity: "Rules that keep the pod away from other pods.",
  },
  Capabilities: {
    add: "Linux capabilities to add, such as `NET_BIND_SERVICE`.",
    drop: "Linux capabilities to remove; `ALL` removes all.",
  },
  ClusterRole: {
    ...ROLE,
    aggregationRule:
      "Selection of the ClusterRoles that the rules are combined from.",
  },
  ClusterRoleBinding: BINDING,
  Condition: {
    message: "Details for people.",
    reason: "Reason of the last change in CamelCase, for programs.",
    status: "`True`, `False` or `Unknown`.",
    type: "Type of the condition, such as `Ready`.",
  },
  ConfigMap: {
    binaryData: "Values that are not UTF-8, by key, in base64.",
    data: "Texts by key.",
    immutable: "Whether the data can never be changed.",
  },
  ConfigMapKeySelector: KEY_SELECTOR,
  ConfigMapVolumeSource: { ...VOLUME_OF_KEYS, name: "Name of the ConfigMap." },
  Container: {
    args:
      "Arguments of the command; those of the image (`CMD`) if absent. `$(NAME)` is replaced by a variable of `env`.",
    command:
      "Command, without a shell; that of the image (`ENTRYPOINT`) if absent.",
    env: "Environment variables.",
    envFrom:
      "ConfigMaps and Secrets whose keys become environment variables; `env` goes before them.",
    image: "Image, such as `registry.example.com/app:1.2`.",
    imagePullPolicy:
      "When the image is pulled: `IfNotPresent` if absent, but `Always` for the tag `latest`.",
    lifecycle: "Hooks after the start and before the stop.",
    livenessProbe: "Probe after whose failures the container is restarted.",
    name: "Name, unique in the pod.",
    ports:
      "Ports that it listens on; informative, others can be reached as well.",
    readinessProbe:
      "Probe whose failures take the pod out of its Services until it succeeds.",
    resources: "Requests and limits of CPU, memory and other resources.",
    restartPolicy:
      "`Always` makes an init container a sidecar, which runs as long as the pod.",
    securityContext: "Security settings, which go before those of the pod.",
    startupProbe:
      "Probe that must succeed before the other probes begin, for slow starts.",
    terminationMessagePath:
      "File whose text becomes `state.terminated.message`; `/dev/termination-log` if absent.",
    terminationMessagePolicy:
      "Whether the end of the log is the message after a failure without a file.",
    volumeMounts: "Volumes of the pod and where they are in the container.",
    workingDir: "Working directory; that of the image if absent.",
  },
  ContainerPort: {
    containerPort: "Number of the port in the container.",
    hostPort: "Port of the node that leads to it; usually better left out.",
    name: "Name, which probes and Services may use instead of the number.",
    protocol: "Protocol; `TCP` if absent.",
  },
  ContainerStateTerminated: {
    exitCode: "Exit code of the process.",
    reason: "Short reason, such as `Completed`, `Error` or `OOMKilled`.",
  },
  ContainerStateWaiting: {
    reason: "Short reason, such as `ImagePullBackOff` or `CrashLoopBackOff`.",
  },
  ContainerStatus: {
    lastState: "How the container ended before its last restart.",
    ready: "Whether it passes its readiness probe.",
    restartCount: "Number of restarts.",
    started: "Whether it passes its startup probe.",
    state: "Current state: waiting, running or terminated.",
  },
  CronJobSpec: {
    concurrencyPolicy:
      "What happens at a time at which the last Job still runs: `Allow` (if absent) starts another, `Forbid` skips it, `Replace` stops the old one.",
    failedJobsHistoryLimit: "Number of failed Jobs that are kept; 1 if absent.",
    jobTemplate: "Template of the Jobs.",
    schedule: "Times in cron format, such as `0 3 * * *`.",
    startingDeadlineSeconds:
      "Seconds after which a Job that could not start in time is skipped.",
    successfulJobsHistoryLimit:
      "Number of successful Jobs that are kept; 3 if absent.",
    suspend: "Whether no further Job is started; running ones go on.",
    timeZone:
      "Time zone of the schedule, such as `Europe/Berlin`; that of the controller manager if absent.",
  },
  CronJobStatus: {
    active: "Jobs that run.",
    lastScheduleTime: "Time at which a Job was last started.",
    lastSuccessfulTime: "Time at which a Job last succeeded.",
  },
  CrossVersionObjectReference: {
    apiVersion: "API version, such as `apps/v1`.",
    kind: "Kind, such as `Deployment`.",
    name: "Name of the object, in the same namespace.",
  },
  DaemonSetSpec: {
    ...WORKLOAD,
    updateStrategy: "How pods are replaced after a change of the template.",
  },
  DaemonSetStatus: {
    currentNumberScheduled: "Number of nodes that run the pod and should.",
    desiredNumberScheduled: "Number of nodes that should run the pod.",
    numberAvailable: "Number of nodes whose pod is available.",
    numberMisscheduled: "Number of nodes that run the pod but should not.",
    numberReady: "Number of nodes whose pod is ready.",
    numberUnavailable: "Number of nodes that lack an available pod.",
    updatedNumberScheduled:
      "Number of nodes with a pod of the newest template.",
  },
  DeploymentCondition: {
    type: "`Available`, `Progressing` or `ReplicaFailure`.",
  },
  DeploymentSpec: {
    ...WORKLOAD,
    paused: "Whether changes of the template are not rolled out.",
    progressDeadlineSeconds:
      "Seconds without progress after which the condition `Progressing` is false; 600 if absent.",
    strategy: "How pods are replaced after a change of the template.",
  },
  DeploymentStatus: WORKLOAD_STATUS,
  DeploymentStrategy: {
    rollingUpdate: "Limits of a rolling update.",
    type:
      "`RollingUpdate` (if absent) replaces pods step by step, `Recreate` stops all before it starts new ones.",
  },
  EmptyDirVolumeSource: {
    medium:
      "`Memory` for a file system in memory; the disk of the node if absent.",
    sizeLimit: "Size after which the pod is evicted.",
  },
  EnvFromSource: {
    configMapRef: "ConfigMap whose keys become variables.",
    prefix: "Text before the name of each variable.",
    secretRef: "Secret whose keys become variables.",
  },
  EnvVar: {
    name: "Name of the variable.",
    value: "Text; `$(NAME)` is replaced by an earlier variable.",
    valueFrom: "Source of the value, instead of `value`.",
  },
  EnvVarSource: {
    configMapKeyRef: "Key of a ConfigMap.",
    fieldRef: "Field of the pod, such as `metadata.name` or `status.podIP`.",
    resourceFieldRef: "Request or limit of a container.",
    secretKeyRef: "Key of a Secret.",
  },
  Event: {
    count: "Number of times that it happened.",
    involvedObject: "Object that the Event is about.",
    message: "Details for people.",
    reason: "Short reason in CamelCase, such as `FailedScheduling`.",
    type: "`Normal` or `Warning`.",
  },
  ExecAction: {
    command:
      "Command in the container, without a shell; exit code 0 is a success.",
  },
  HTTPGetAction: {
    host: "Host; the IP of the pod if absent.",
    path: "Path of the URL.",
    port: "Number or name of the port.",
    scheme: "`HTTP` (if absent) or `HTTPS`, whose certificate is not verified.",
  },
  HTTPIngressPath: {
    backend: "Service that gets the requests.",
    path: "Path that begins with a slash.",
    pathType:
      "`Prefix` matches by segments of the path, `Exact` the path itself; `ImplementationSpecific` is up to the controller.",
  },
  HorizontalPodAutoscalerSpec: {
    behavior: "How fast it scales up and down.",
    maxReplicas: "Greatest number of pods.",
    metrics:
      "Metrics and their targets; the greatest number of pods that one asks for counts.",
    minReplicas: "Least number of pods; 1 if absent.",
    scaleTargetRef: "Object whose `scale` is set, such as a Deployment.",
  },
  HostPathVolumeSource: {
    path: "Path on the node.",
    type: "What must be there, such as `Directory`; not checked if absent.",
  },
  IPBlock: {
    cidr: "Range such as `192.168.1.0/24`.",
    except: "Ranges within `cidr` that are left out.",
  },
  IngressBackend: {
    resource: "Object in the same namespace, instead of a Service.",
    service: "Service in the same namespace.",
  },
  IngressRule: {
    host:
      "Host name, such as `www.example.com` or `*.example.com`; any if absent.",
    http: "Paths and their backends.",
  },
  IngressServiceBackend: {
    name: "Name of the Service.",
    port: "Name or number of its port.",
  },
  IngressSpec: {
    defaultBackend: "Backend of requests that no rule matches.",
    ingressClassName:
      "IngressClass, which names the controller; the default class if absent.",
    rules: "Hosts and paths, and their backends.",
    tls: "Certificates of hosts.",
  },
  IngressTLS: {
    hosts: "Host names in the certificate.",
    secretName: "Secret of the type `kubernetes.io/tls` with the certificate.",
  },
  JobSpec: {
    activeDeadlineSeconds:
      "Seconds after whose end the Job fails and its pods are stopped.",
    backoffLimit:
      "Number of retries after which the Job has failed; 6 if absent.",
    completionMode:
      "`Indexed` gives each pod an index, in the variable `JOB_COMPLETION_INDEX`; `NonIndexed` if absent.",
    completions: "Number of pods that must succeed; 1 if absent.",
    parallelism: "Greatest number of pods at the same time; 1 if absent.",
    podFailurePolicy:
      "Which failures of pods end the Job or do not count as retries.",
    selector: "Selector of the pods, which the server sets.",
    suspend: "Whether pods are stopped, and not started, until it is false.",
    template:
      "Template of the pods, whose `restartPolicy` must be `Never` or `OnFailure`.",
    ttlSecondsAfterFinished:
      "Seconds after the end at which the Job is deleted; never if absent.",
  },
  JobStatus: {
    active: "Number of pods that run or wait.",
    completionTime: "Time at which the Job succeeded.",
    failed: "Number of pods that failed.",
    ready: "Number of pods that are ready.",
    startTime: "Time at which the Job started or was resumed.",
    succeeded: "Number of pods that succeeded.",
  },
  JobTemplateSpec: { metadata: "Labels and annotations of the Jobs." },
  KeyToPath: {
    key: "Key in the data.",
    mode: "Mode bits of the file; those of the volume if absent.",
    path: "Path of the file in the volume.",
  },
  LabelSelector: {
    matchExpressions: "Conditions on labels, all of which must hold.",
    matchLabels: "Labels that must have these values.",
  },
  LabelSelectorRequirement: {
    key: "Key of the label.",
    operator: "`In`, `NotIn`, `Exists` or `DoesNotExist`.",
    values: "Values for `In` and `NotIn`.",
  },
  LeaseSpec: {
    acquireTime: "Time at which the holder got the Lease.",
    holderIdentity: "Identity of the holder.",
    leaseDurationSeconds:
      "Seconds after the last renewal at which others may take the Lease.",
    leaseTransitions: "Number of changes of the holder.",
    renewTime: "Time of the last renewal.",
  },
  Lifecycle: {
    postStart:
      "Action after the start; the container is not ready before its end.",
    preStop: "Action before the container gets `SIGTERM`.",
  },
  LimitRangeItem: {
    default: "Limits of containers that have none.",
    defaultRequest: "Requests of containers that have none.",
    max: "Greatest amounts.",
    min: "Least amounts.",
    type: "`Container`, `Pod` or `PersistentVolumeClaim`.",
  },
  LocalObjectReference: { name: "Name of the object, in the same namespace." },
  NamespaceStatus: { phase: "`Active` or `Terminating`." },
  NetworkPolicyEgressRule: {
    ports: "Ports that may be reached; all if absent.",
    to: "Peers that may be reached; all if absent.",
  },
  NetworkPolicyIngressRule: {
    from: "Peers that may connect; all if absent.",
    ports: "Ports that may be reached; all if absent.",
  },
  NetworkPolicyPeer: {
    ipBlock: "Range of IP addresses, without selectors.",
    namespaceSelector:
      "Selector of namespaces; the policy's own if absent, all if empty.",
    podSelector: "Selector of pods in these namespaces; all if empty.",
  },
  NetworkPolicyPort: {
    endPort: "Last port of a range that begins with `port`.",
    port: "Number or name of the port; all if absent.",
    protocol: "Protocol; `TCP` if absent.",
  },
  NetworkPolicySpec: {
    egress: "Connections that the pods may make; none if empty.",
    ingress: "Connections that the pods may get; none if empty.",
    podSelector: "Selector of the pods that the policy is for; all if empty.",
    policyTypes:
      "Directions that are restricted: `Ingress`, and `Egress` if there is a rule for it, if absent.",
  },
  NodeSpec: {
    taints: "Taints, which keep pods without a toleration away.",
    unschedulable:
      "Whether no new pod is scheduled on it, as by `kubectl cordon`.",
  },
  NodeStatus: {
    addresses: "Addresses of the node.",
    allocatable: "Amounts of resources that pods can request.",
    capacity: "Amounts of resources that the node has.",
  },
  ObjectFieldSelector: {
    fieldPath: "Path such as `metadata.labels['app']` or `spec.nodeName`.",
  },
  PersistentVolumeClaimSpec: {
    accessModes:
      "How nodes may mount it, such as `ReadWriteOnce` or `ReadWriteMany`.",
    resources: 'Size, as `{ requests: { storage: "1Gi" } }`.',
    storageClassName: "StorageClass; the default one if absent, none if empty.",
    volumeMode: "`Filesystem` (if absent) or `Block`.",
    volumeName: "Name of the PersistentVolume that is bound.",
  },
  PersistentVolumeClaimStatus: { phase: "`Pending`, `Bound` or `Lost`." },
  PersistentVolumeClaimVolumeSource: {
    claimName: "Name of the PersistentVolumeClaim.",
    readOnly: "Whether it is mounted for reading only.",
  },
  PodDisruptionBudgetSpec: {
    maxUnavailable: "Number or percentage of pods that may be missing.",
    minAvailable: "Number or percentage of pods that must stay available.",
    selector: "Selector of the pods.",
  },
  PodSecurityContext: {
    ...POD_SECURITY,
    fsGroup: "Group ID of the files in volumes.",
    supplementalGroups: "Further group IDs of the processes.",
  },
  PodSpec: {
    activeDeadlineSeconds: "Seconds after whose end the pod fails.",
    affinity: "Rules about the nodes that the pod may or should run on.",
    automountServiceAccountToken:
      "Whether containers get a token for the API server; true if absent.",
    containers: "Containers, at least one; cannot be added or removed later.",
    dnsPolicy: "How names are resolved; `ClusterFirst` if absent.",
    hostNetwork: "Whether the pod uses the network of its node.",
    imagePullSecrets: "Secrets with credentials of image registries.",
    initContainers:
      "Containers that run to their end, one after the other, before `containers` start.",
    nodeName: "Name of the node, which the scheduler sets.",
    nodeSelector: "Labels that the node must have.",
    priorityClassName: "PriorityClass of the pod.",
    restartPolicy:
      "When containers that have ended are restarted: `Always` (if absent), `OnFailure` or `Never`.",
    schedulerName: "Scheduler; `default-scheduler` if absent.",
    securityContext: "Security settings of all containers.",
    serviceAccountName: "ServiceAccount of the processes; `default` if absent.",
    shareProcessNamespace: "Whether the containers see each other's processes.",
    terminationGracePeriodSeconds:
      "Seconds between `SIGTERM` and `SIGKILL`; 30 if absent.",
    tolerations: "Taints of nodes that do not keep the pod away.",
    topologySpreadConstraints: "How pods are spread over zones or nodes.",
    volumes: "Volumes that containers can mount.",
  },
  PodStatus: {
    containerStatuses: "States of the containers.",
    hostIP: "IP address of the node.",
    phase: "`Pending`, `Running`, `Succeeded`, `Failed` or `Unknown`.",
    podIP: "IP address of the pod.",
    qosClass: "`Guaranteed`, `Burstable` or `BestEffort`, by its resources.",
    reason: "Short reason of the state, such as `Evicted`.",
    startTime: "Time at which the kubelet accepted the pod.",
  },
  PodTemplateSpec: {
    metadata: "Labels and annotations of the pods.",
    spec: "Desired state of the pods.",
  },
  PolicyRule: {
    apiGroups: 'API groups; `""` is the core group and `*` all.',
    nonResourceURLs: "URL paths that are no resources, such as `/metrics`.",
    resourceNames: "Names of objects; all if absent.",
    resources: "Plural names such as `pods` or `pods/status`; `*` is all.",
    verbs: "Verbs such as `get`, `list`, `watch` and `patch`; `*` is all.",
  },
  Probe: {
    exec: "Command that is run in the container.",
    failureThreshold: "Failures in a row that count as one; 3 if absent.",
    grpc: "Health check by gRPC.",
    httpGet: "Request whose status must be from 200 to 399.",
    initialDelaySeconds:
      "Seconds from the start to the first probe; 0 if absent.",
    periodSeconds: "Seconds between two probes; 10 if absent.",
    successThreshold: "Successes in a row after a failure; 1 if absent.",
    tcpSocket: "Port that must accept a connection.",
    timeoutSeconds: "Seconds after which a probe fails; 1 if absent.",
  },
  ReplicaSetSpec: WORKLOAD,
  ReplicaSetStatus: WORKLOAD_STATUS,
  ResourceQuotaSpec: {
    hard: "Greatest sums in the namespace, such as `requests.cpu` or `pods`.",
    scopes: "Which objects count; all if absent.",
  },
  ResourceQuotaStatus: {
    hard: "Limits that are enforced.",
    used: "Current sums.",
  },
  ResourceRequirements: {
    limits:
      'Greatest amounts, such as `{ memory: "128Mi" }`: more CPU is throttled, more memory ends the container.',
    requests:
      'Amounts that the scheduler reserves on the node, such as `{ cpu: "100m" }`; the limits if absent.',
  },
  Role: ROLE,
  RoleBinding: BINDING,
  RoleRef: {
    apiGroup: "`rbac.authorization.k8s.io`.",
    kind: "`Role` or `ClusterRole`.",
    name: "Name of the role.",
  },
  RollingUpdateDeployment: {
    maxSurge: "Number or percentage of additional pods; 25% if absent.",
    maxUnavailable: "Number or percentage of missing pods; 25% if absent.",
  },
  Secret: {
    data: "Values by key, in base64.",
    immutable: "Whether the data can never be changed.",
    stringData: "Texts by key, which the server adds to `data`; never read.",
    type:
      "Type such as `kubernetes.io/tls`, which asks for certain keys; `Opaque` if absent.",
  },
  SecretKeySelector: KEY_SELECTOR,
  SecretVolumeSource: { ...VOLUME_OF_KEYS, secretName: "Name of the Secret." },
  SecurityContext: {
    ...POD_SECURITY,
    allowPrivilegeEscalation:
      "Whether a process may get more rights than its parent.",
    capabilities: "Linux capabilities that are added and removed.",
    privileged: "Whether processes have the rights of root on the node.",
    readOnlyRootFilesystem: "Whether the root file system is read-only.",
  },
  ServiceAccount: {
    automountServiceAccountToken:
      "Whether pods get a token for the API server; true if absent.",
    imagePullSecrets: "Secrets that pods use to pull images.",
  },
  ServiceBackendPort: {
    name: "Name of the port, instead of `number`.",
    number: "Number of the port, instead of `name`.",
  },
  ServicePort: {
    appProtocol: "Application protocol, such as `kubernetes.io/h2c`.",
    name: "Name, needed if there are several ports.",
    nodePort: "Port on every node, from 30000 to 32767; chosen by the server.",
    port: "Number of the port of the Service.",
    protocol: "Protocol; `TCP` if absent.",
    targetPort: "Number or name of the port of the pods; `port` if absent.",
  },
  ServiceSpec: {
    clusterIP:
      "IP address in the cluster, which the server chooses; `None` for a headless Service.",
    externalName:
      "DNS name that a Service of the type `ExternalName` leads to.",
    externalTrafficPolicy:
      "`Local` keeps the IP address of clients and the traffic on its node.",
    loadBalancerClass: "Implementation of the load balancer.",
    ports: "Ports of the Service.",
    publishNotReadyAddresses: "Whether pods that are not ready get traffic.",
    selector: "Labels of the pods that get the traffic.",
    sessionAffinity: "`ClientIP` leads a client to the same pod again.",
    type:
      "`ClusterIP` (if absent), `NodePort`, `LoadBalancer` or `ExternalName`.",
  },
  ServiceStatus: { loadBalancer: "Addresses of the load balancer." },
  StatefulSetSpec: {
    ...WORKLOAD,
    podManagementPolicy:
      "`OrderedReady` (if absent) starts pods one after the other, `Parallel` all together.",
    serviceName: "Headless Service that gives the pods their DNS names.",
    updateStrategy: "How pods are replaced after a change of the template.",
    volumeClaimTemplates: "PersistentVolumeClaims that each pod gets.",
  },
  StatefulSetStatus: WORKLOAD_STATUS,
  StorageClass: {
    parameters: "Parameters of the provisioner.",
    provisioner: "Driver that makes volumes, such as `ebs.csi.aws.com`.",
    reclaimPolicy:
      "What becomes of volumes of deleted claims; `Delete` if absent.",
    volumeBindingMode:
      "`WaitForFirstConsumer` makes a volume when a pod needs it; `Immediate` if absent.",
  },
  Subject: {
    kind: "`User`, `Group` or `ServiceAccount`.",
    name: "Name of the subject.",
    namespace: "Namespace of a service account.",
  },
  TCPSocketAction: {
    host: "Host; the IP of the pod if absent.",
    port: "Number or name of the port.",
  },
  Toleration: {
    effect: "Effect of the taint; all if absent.",
    key: "Key of the taint; all if absent, with `Exists`.",
    operator: "`Equal` (if absent) compares the value, `Exists` does not.",
    tolerationSeconds:
      "Seconds until an eviction by `NoExecute`; never if absent.",
    value: "Value of the taint.",
  },
  TopologySpreadConstraint: {
    labelSelector: "Selector of the pods that are counted.",
    maxSkew: "Greatest difference of the numbers of pods of two domains.",
    topologyKey: "Label of nodes, whose values are the domains.",
    whenUnsatisfiable:
      "`DoNotSchedule` lets the pod wait, `ScheduleAnyway` only prefers.",
  },
  Volume: {
    configMap: "Keys of a ConfigMap as files.",
    csi: "Volume of a CSI driver that lives as long as the pod.",
    downwardAPI: "Fields of the pod as files.",
    emptyDir: "Empty folder that lives as long as the pod.",
    ephemeral: "PersistentVolumeClaim that lives as long as the pod.",
    hostPath: "Path of the node.",
    name: "Name, which `volumeMounts` refer to.",
    nfs: "Folder of an NFS server.",
    persistentVolumeClaim: "PersistentVolumeClaim in the same namespace.",
    projected: "Several sources in one folder, such as tokens.",
    secret: "Keys of a Secret as files.",
  },
  VolumeMount: {
    mountPath: "Path in the container.",
    name: "Name of the volume.",
    readOnly: "Whether it can only be read.",
    subPath: "Path in the volume that is mounted; its root if absent.",
  },
};
