/**
 * Operator of real size for measuring the check: two versions, leader election
 * and ten dependents; two have pods.
 *
 * @module
 */
import {
  defineKind,
  Operator,
  type OperatorOptions,
  patchStatus,
} from "@coracle/operator";
import {
  ConfigMap,
  Deployment,
  NetworkPolicy,
  PodDisruptionBudget,
  Secret,
  Service,
  ServiceAccount,
  StatefulSet,
} from "@coracle/operator/kinds";
import { z } from "zod";

const Store = defineKind({
  group: "size.coracle.dev",
  version: "v1",
  kind: "Store",
  spec: z.object({
    replicas: z.int().min(1).max(5).default(2),
    image: z.string().default("store:1"),
    cache: z.object({ megabytes: z.int().min(1).default(64) }).optional(),
    suspended: z.boolean().default(false),
  }),
  status: z.object({
    ready: z.number(),
    phase: z.enum(["Pending", "Ready"]),
  }).partial(),
  versions: [{
    name: "v1alpha1",
    spec: z.object({
      replicas: z.int().min(1).max(5).default(2),
      image: z.string().default("store:1"),
      suspended: z.boolean().default(false),
    }),
  }],
});

export function operator(options: OperatorOptions = {}): Operator {
  const operator = new Operator({
    leaderElection: { name: "store" },
    ...options,
  });
  operator.register(Store, {
    async reconcile({ metadata, spec }, ctx) {
      const { name } = metadata;
      const labels = { app: name };
      const container = { name: "store", image: spec.image };
      const template = {
        metadata: { labels },
        spec: { serviceAccountName: name, containers: [container] },
      };
      const selector = { matchLabels: labels };
      const replicas = spec.suspended ? 0 : spec.replicas;
      await ctx.apply(ServiceAccount, { metadata: { name, labels } });
      await ctx.apply(Secret, {
        metadata: { name: `${name}-keys`, labels },
        stringData: { key: `of ${name}` },
      });
      await ctx.apply(ConfigMap, {
        metadata: { name: `${name}-server`, labels },
        data: { image: spec.image, replicas: String(spec.replicas) },
      });
      await ctx.apply(ConfigMap, {
        metadata: { name: `${name}-cache`, labels },
        data: { megabytes: String(spec.cache?.megabytes ?? 0) },
      });
      await ctx.apply(Service, {
        metadata: { name, labels },
        spec: { selector: labels, ports: [{ port: 80 }] },
      });
      await ctx.apply(Service, {
        metadata: { name: `${name}-peers`, labels },
        spec: { clusterIP: "None", selector: labels, ports: [{ port: 81 }] },
      });
      await ctx.apply(PodDisruptionBudget, {
        metadata: { name, labels },
        spec: { maxUnavailable: 1, selector },
      });
      await ctx.apply(NetworkPolicy, {
        metadata: { name, labels },
        spec: { podSelector: selector, policyTypes: ["Ingress"] },
      });
      const set = await ctx.apply(StatefulSet, {
        metadata: { name, labels },
        spec: { serviceName: name, replicas, selector, template },
      });
      await ctx.apply(Deployment, {
        metadata: { name: `${name}-proxy`, labels },
        spec: {
          replicas: spec.suspended ? 0 : 1,
          selector: { matchLabels: { proxy: name } },
          template: {
            metadata: { labels: { proxy: name } },
            spec: { containers: [{ name: "proxy", image: "proxy:1" }] },
          },
        },
      });
      const ready = set.status?.readyReplicas ?? 0;
      return patchStatus({
        ready,
        phase: ready === replicas ? "Ready" : "Pending",
      });
    },
  }, {
    owns: [
      ServiceAccount,
      Secret,
      ConfigMap,
      Service,
      PodDisruptionBudget,
      NetworkPolicy,
      StatefulSet,
      Deployment,
    ],
  });
  return operator;
}

if (import.meta.main) await operator().run();
