/**
 * Upgrades of operators of the gallery with webhooks, several versions, or objects
 * that are none of their own.
 *
 * @module
 */
import type { UntypedObject } from "@coracle/operator/client";
import {
  DEPLOYMENTS,
  GALLERY,
  metadataOf,
  NAMESPACE,
  otherImage,
  type PlanCase,
  STATUS,
} from "./plan_cases.ts";

/** Options of an operator whose webhooks an API server on this machine calls. */
const REACHED = (name: string) =>
  `{ probes: undefined, leaderElection: undefined, webhooks: { host: "127.0.0.1", port: PORT, url: "https://127.0.0.1:PORT", name: "${name}" } }`;

const REFLECTION = "reflector.v1.k8s.emberstack.com/reflection";
const RELOADER = "reloader.stakater.com";

const policies = "admissionregistration.k8s.io/v1";

/** Deployment that uses an object, by its variables. */
function workload(
  name: string,
  reference: Readonly<Record<string, unknown>>,
): UntypedObject {
  const labels = { app: name };
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: {
      ...metadataOf(name),
      annotations: { [`${RELOADER}/auto`]: "true" },
    },
    spec: {
      selector: { matchLabels: labels },
      template: {
        metadata: { labels },
        spec: {
          containers: [{ name: "a", image: "a:1", envFrom: [reference] }],
        },
      },
    },
  };
}

export const GALLERY_CASES: Readonly<Record<string, PlanCase>> = {
  memcached_servers: {
    file: "gallery/memcached_servers.ts",
    options: REACHED("memcached-servers"),
    old: [
      ["initialDelaySeconds: 5", "initialDelaySeconds: 15"],
      ["policy?.enabled && {", "{"],
      ["from: policy.allowedSources?", "from: policy?.allowedSources?"],
    ],
    first: [{
      apiVersion: "apiextensions.k8s.io/v1",
      kind: "CustomResourceDefinition",
      metadata: { name: "servicemonitors.monitoring.coreos.com" },
      spec: {
        group: "monitoring.coreos.com",
        names: { kind: "ServiceMonitor", plural: "servicemonitors" },
        scope: "Namespaced",
        versions: [{
          name: "v1",
          served: true,
          storage: true,
          schema: {
            openAPIV3Schema: {
              type: "object",
              "x-kubernetes-preserve-unknown-fields": true,
            },
          },
        }],
      },
    }],
    objects: 7,
    make: (name, index) => [{
      apiVersion: "memcached.c5c3.io/v1beta1",
      kind: "Memcached",
      metadata: metadataOf(name),
      spec: index % 2 === 0
        ? { monitoring: { enabled: true, serviceMonitor: {} } }
        : { replicas: 2 },
    }],
    rival: otherImage("memcached"),
    refuses: DEPLOYMENTS,
    finds: ["change", "delete", "takeover", "failure"],
  },
  cron_versions: {
    file: "gallery/cron_versions.ts",
    options: REACHED("cron-versions"),
    old: [
      ["active: active.toSorted(),", 'active: ["none", ...active].toSorted(),'],
      [
        "spec.failedJobsHistoryLimit ??= 1",
        "spec.failedJobsHistoryLimit ??= 2",
      ],
      ["schedule: z.string().max(509)", "schedule: z.string().max(100)"],
    ],
    objects: 1,
    make: (name, index) => [{
      apiVersion: index % 2 === 0
        ? "gallery.coracle.dev/v1"
        : "gallery.coracle.dev/v2",
      kind: "CronJob",
      metadata: metadataOf(name),
      spec: {
        schedule: index % 2 === 0
          ? "0 0 1 1 *"
          : { minute: "0", hour: "0", dayOfMonth: "1", month: "1" },
        jobTemplate: {
          spec: {
            template: {
              spec: {
                restartPolicy: "Never",
                containers: [{ name: "a", image: "a:1" }],
              },
            },
          },
        },
      },
    }],
    refuses: STATUS("cronjobs", "gallery.coracle.dev"),
    finds: ["change", "failure"],
  },
  pod_policies: {
    file: "gallery/pod_policies.ts",
    options: REACHED("pod-policies"),
    old: [
      ['REGISTRY = "registry.sample/"', 'REGISTRY = "registry.old/"'],
      ['failurePolicy: "Fail"', 'failurePolicy: "Ignore"'],
    ],
    objects: 1,
    make: (name) => [{
      apiVersion: "v1",
      kind: "Pod",
      metadata: metadataOf(name),
      spec: { containers: [{ name: "a", image: "a:1" }] },
    }],
    rival: () => ({
      apiVersion: policies,
      kind: "ValidatingAdmissionPolicy",
      metadata: { name: "own-registry.gallery.coracle.dev" },
      spec: { failurePolicy: "Ignore" },
    }),
    finds: ["change", "takeover"],
  },
  pod_security: {
    file: "gallery/pod_security.ts",
    options: REACHED("pod-security"),
    old: [
      ['failurePolicy = "Fail"', 'failurePolicy = "Ignore"'],
      ["name: z.string().max(100)", "name: z.string().max(50)"],
    ],
    objects: 1,
    make: (name) => [{
      apiVersion: GALLERY,
      kind: "Exemption",
      metadata: metadataOf(name),
      spec: { policies: ["NonRoot"], namespace: NAMESPACE, name },
    }],
    finds: ["change"],
  },
  reflector: {
    file: "gallery/reflector.ts",
    old: [
      [
        "const { data, binaryData } = source;",
        'const { data: given, binaryData } = source;\nconst data = { ...given, old: "b2xk" };',
      ],
      ["    includes(annotations[AUTO_NAMESPACES], namespace) &&\n", ""],
    ],
    objects: 3,
    first: ["wanted", "unwanted"].map((name) => ({
      apiVersion: "v1",
      kind: "Namespace",
      metadata: { name },
    })),
    make: (name, index) => [{
      apiVersion: "v1",
      kind: index % 2 === 0 ? "ConfigMap" : "Secret",
      metadata: {
        ...metadataOf(name),
        annotations: {
          [`${REFLECTION}-allowed`]: "true",
          [`${REFLECTION}-allowed-namespaces`]: "wanted,unwanted",
          [`${REFLECTION}-auto-enabled`]: "true",
          [`${REFLECTION}-auto-namespaces`]: "wanted",
        },
      },
      data: { a: "Yg==" },
    }],
    rival: (name) => ({
      apiVersion: "v1",
      kind: Number(name.slice(1)) % 2 === 0 ? "ConfigMap" : "Secret",
      metadata: { namespace: "wanted", name },
      data: { a: "Yw==" },
    }),
    refuses: { group: "", resource: "configmaps", field: "data" },
    finds: ["change", "delete", "takeover", "failure"],
  },
  reloader: {
    file: "gallery/reloader.ts",
    old: [[
      "JSON.stringify([of, name, sorted])",
      "JSON.stringify([name, sorted])",
    ]],
    objects: 4,
    make: (name, index) => [
      index % 2 === 0
        ? {
          apiVersion: "v1",
          kind: "ConfigMap",
          metadata: metadataOf(name),
          data: { a: "b" },
        }
        : {
          apiVersion: "v1",
          kind: "Secret",
          metadata: metadataOf(name),
          data: { a: "Yg==" },
        },
      workload(
        name,
        index % 2 === 0 ? { configMapRef: { name } } : { secretRef: { name } },
      ),
    ],
    rival: (name) => ({
      apiVersion: "apps/v1",
      kind: "Deployment",
      metadata: {
        ...metadataOf(name),
        annotations: { "gallery.coracle.dev/config-hash": "rival" },
      },
    }),
    refuses: DEPLOYMENTS,
    finds: ["change", "takeover", "failure"],
  },
  rabbitmq_cluster: {
    file: "gallery/rabbitmq_cluster.ts",
    old: [
      [
        "terminationGracePeriodSeconds: 604_800",
        "terminationGracePeriodSeconds: 60",
      ],
    ],
    objects: 12,
    make: (name) => [{
      apiVersion: GALLERY,
      kind: "RabbitmqCluster",
      metadata: metadataOf(name),
      spec: { replicas: 3, image: "rabbitmq:4.1" },
    }],
    rival: (name) => ({
      ...otherImage("rabbitmq")(`${name}-server`),
      kind: "StatefulSet",
    }),
    refuses: { ...DEPLOYMENTS, resource: "statefulsets" },
    finds: ["change", "takeover", "failure"],
  },
};
