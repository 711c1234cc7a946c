const POD = {
  containers: [{
    name: "web",
    image: "web:1",
    ports: [{ containerPort: 80, name: "http" }],
    env: [{ name: "A", value: "b" }],
    resources: { requests: { cpu: "100m" }, limits: { memory: "1Gi" } },
    readinessProbe: { httpGet: { path: "/", port: "http" } },
    volumeMounts: [{ name: "data", mountPath: "/data" }],
  }],
  volumes: [{ name: "data", emptyDir: {} }],
};
const TEMPLATE = { metadata: { labels: { app: "web" } }, spec: POD };
const SELECTOR = { matchLabels: { app: "web" } };
const SUBJECTS = [{ kind: "ServiceAccount", name: "a", namespace: "default" }];

/** Objects that are valid, without kind and name. */
export const TEMPLATES: Readonly<Record<string, readonly object[]>> = {
  ConfigMap: [{ data: { a: "1", b: "2" } }, { immutable: true }],
  Secret: [{ stringData: { a: "b" } }, { data: { a: "YQ==" }, type: "Opaque" }],
  Pod: [{ spec: POD }, { spec: POD, status: { phase: "Running" } }],
  Service: [{
    spec: { selector: { app: "web" }, ports: [{ port: 80, nodePort: 30_080 }] },
  }],
  ReplicationController: [{
    spec: { selector: { app: "web" }, template: TEMPLATE },
  }],
  Deployment: [{ spec: { selector: SELECTOR, template: TEMPLATE } }],
  ReplicaSet: [{ spec: { selector: SELECTOR, template: TEMPLATE } }],
  StatefulSet: [{
    spec: { serviceName: "web", selector: SELECTOR, template: TEMPLATE },
  }],
  DaemonSet: [{ spec: { selector: SELECTOR, template: TEMPLATE } }],
  Job: [{
    spec: {
      template: { spec: { ...POD, restartPolicy: "Never" } },
      backoffLimit: 2,
    },
  }],
  CronJob: [{
    spec: {
      schedule: "* * * * *",
      jobTemplate: {
        spec: { template: { spec: { ...POD, restartPolicy: "OnFailure" } } },
      },
    },
  }],
  HorizontalPodAutoscaler: [{
    spec: {
      maxReplicas: 3,
      scaleTargetRef: {
        apiVersion: "apps/v1",
        kind: "Deployment",
        name: "web",
      },
      metrics: [{
        type: "Resource",
        resource: {
          name: "cpu",
          target: { type: "Utilization", averageUtilization: 50 },
        },
      }],
    },
  }],
  PodDisruptionBudget: [{ spec: { minAvailable: 1, selector: SELECTOR } }],
  Ingress: [{
    spec: {
      rules: [{
        http: {
          paths: [{
            path: "/",
            pathType: "Prefix",
            backend: { service: { name: "web", port: { number: 80 } } },
          }],
        },
      }],
    },
  }],
  NetworkPolicy: [{
    spec: {
      podSelector: SELECTOR,
      ingress: [{ from: [{ ipBlock: { cidr: "10.0.0.0/8" } }] }],
    },
  }],
  Role: [{
    rules: [{ apiGroups: [""], resources: ["pods"], verbs: ["get", "list"] }],
  }],
  RoleBinding: [{
    subjects: SUBJECTS,
    roleRef: {
      apiGroup: "rbac.authorization.k8s.io",
      kind: "ClusterRole",
      name: "view",
    },
  }],
  ClusterRoleBinding: [{
    subjects: SUBJECTS,
    roleRef: {
      apiGroup: "rbac.authorization.k8s.io",
      kind: "ClusterRole",
      name: "edit",
    },
  }],
  CustomResourceDefinition: [{
    metadata: { name: "boats.fuzz.coracle.dev" },
    spec: {
      group: "fuzz.coracle.dev",
      scope: "Namespaced",
      names: { kind: "Boat", plural: "boats", singular: "boat" },
      versions: [{
        name: "v1",
        served: true,
        storage: true,
        subresources: {
          status: {},
          scale: {
            specReplicasPath: ".spec.crew",
            statusReplicasPath: ".status.crew",
          },
        },
        additionalPrinterColumns: [{
          name: "Crew",
          type: "integer",
          jsonPath: ".spec.crew",
        }],
        schema: {
          openAPIV3Schema: {
            type: "object",
            properties: {
              spec: {
                type: "object",
                required: ["name"],
                properties: {
                  name: { type: "string", pattern: "^[a-z]+$", maxLength: 20 },
                  crew: { type: "integer", minimum: 0, default: 1 },
                  cargo: {
                    type: "array",
                    maxItems: 5,
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["id"],
                    items: {
                      type: "object",
                      required: ["id"],
                      properties: {
                        id: { type: "string", maxLength: 9 },
                        size: { "x-kubernetes-int-or-string": true },
                      },
                    },
                  },
                  any: {
                    type: "object",
                    "x-kubernetes-preserve-unknown-fields": true,
                  },
                },
                "x-kubernetes-validations": [{
                  rule: "self.crew < 9 || self.name == 'big'",
                  messageExpression: "self.name + ' is not big'",
                }],
              },
              status: {
                type: "object",
                properties: { crew: { type: "integer" } },
              },
            },
          },
        },
      }],
    },
  }],
  Boat: [
    { spec: { name: "ark", crew: 2, cargo: [{ id: "a", size: "1" }] } },
    { spec: { name: "ark" }, status: { crew: 1 } },
  ],
  ValidatingAdmissionPolicy: [{
    spec: {
      matchConstraints: {
        resourceRules: [{
          apiGroups: [""],
          apiVersions: ["v1"],
          operations: ["CREATE"],
          resources: ["configmaps"],
        }],
      },
      variables: [{ name: "size", expression: "size(object.data)" }],
      validations: [{ expression: "variables.size < 9", message: "too big" }],
    },
  }],
  ValidatingAdmissionPolicyBinding: [{
    spec: { policyName: "a", validationActions: ["Warn", "Audit"] },
  }],
  MutatingAdmissionPolicy: [{
    spec: {
      matchConstraints: {
        resourceRules: [{
          apiGroups: [""],
          apiVersions: ["v1"],
          operations: ["CREATE"],
          resources: ["configmaps"],
        }],
      },
      reinvocationPolicy: "Never",
      mutations: [{
        patchType: "ApplyConfiguration",
        applyConfiguration: {
          expression: "Object{metadata: Object.metadata{labels: {'a': 'b'}}}",
        },
      }],
    },
  }],
  Lease: [{ spec: { holderIdentity: "a", leaseDurationSeconds: 9 } }],
  Event: [{
    involvedObject: { kind: "Pod", name: "a", namespace: "default" },
    reason: "A",
    message: "b",
    type: "Normal",
  }],
  PersistentVolumeClaim: [{
    spec: {
      accessModes: ["ReadWriteOnce"],
      resources: { requests: { storage: "1Gi" } },
    },
  }],
  PersistentVolume: [{
    spec: {
      capacity: { storage: "1Gi" },
      accessModes: ["ReadWriteOnce"],
      hostPath: { path: "/a" },
    },
  }],
  StorageClass: [{ provisioner: "coracle.dev/none" }],
  ResourceQuota: [{ spec: { hard: { "count/secrets": "50" } } }],
  LimitRange: [{
    spec: { limits: [{ type: "Container", default: { cpu: "1" } }] },
  }],
  PriorityClass: [{ value: 10 }],
  TokenReview: [{ spec: { token: "a" } }],
  SubjectAccessReview: [{
    spec: { user: "a", resourceAttributes: { verb: "get", resource: "pods" } },
  }],
  EndpointSlice: [{
    addressType: "IPv4",
    endpoints: [{ addresses: ["10.0.0.1"] }],
    ports: [{ port: 80 }],
  }],
};
