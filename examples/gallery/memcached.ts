/**
 * Operator for Memcached servers: a Deployment and a headless Service per
 * object, whose status names the pods that run.
 *
 *     apiVersion: gallery.coracle.dev/v1
 *     kind: Memcached
 *     metadata: { name: sessions }
 *     spec: { size: 3, memory: 64 }
 */
import {
  defineKind,
  Operator,
  type OperatorOptions,
  setStatus,
  watch,
} from "@coracle/operator";
import { Deployment, Pod, Service } from "@coracle/operator/kinds";
import { byFunction } from "@coracle/operator/sources";
import { z } from "zod";

/** Label with the name of the object that a pod belongs to. */
const LABEL = "gallery.coracle.dev/memcached";
const PORT = 11211;

const Memcached = defineKind({
  group: "gallery.coracle.dev",
  version: "v1",
  kind: "Memcached",
  plural: "memcacheds",
  spec: z.object({
    size: z.int().min(1).max(10).default(1),
    memory: z.int().min(8).default(64).describe("Megabytes per server."),
    image: z.string().default("memcached:1.6"),
  }),
  status: z.object({
    nodes: z.array(z.string()),
    ready: z.string(),
  }).partial(),
  printerColumns: [
    { name: "Ready", type: "string", jsonPath: ".status.ready" },
  ],
});

export function operator(options: OperatorOptions = {}): Operator {
  const operator = new Operator(options);
  operator.register(Memcached, {
    async reconcile({ metadata: { name }, spec }, ctx) {
      const labels = { [LABEL]: name };
      const deployment = await ctx.apply(Deployment, {
        metadata: { name, labels },
        spec: {
          replicas: spec.size,
          selector: { matchLabels: labels },
          template: {
            metadata: { labels },
            spec: {
              securityContext: { runAsNonRoot: true, runAsUser: 11211 },
              containers: [{
                name: "memcached",
                image: spec.image,
                args: ["-m", String(spec.memory)],
                ports: [{ name: "memcached", containerPort: PORT }],
              }],
            },
          },
        },
      });
      await ctx.apply(Service, {
        metadata: { name, labels },
        spec: {
          clusterIP: "None",
          selector: labels,
          ports: [{ name: "memcached", port: PORT }],
        },
      });
      const pods = await ctx.secondaries(Pod);
      const ready = deployment.status?.readyReplicas ?? 0;
      return setStatus({
        nodes: pods.filter(({ status }) => status?.phase === "Running")
          .map(({ metadata }) => metadata.name).toSorted(),
        ready: `${ready}/${spec.size}`,
      });
    },
  }, {
    owns: [Deployment, Service],
    // Pods are owned by a ReplicaSet, so a label says whose they are.
    watches: [
      watch(Pod, {
        labelSelector: LABEL,
        mapper: byFunction(({ metadata: { namespace, labels } }) => [
          { namespace, name: labels?.[LABEL] ?? "" },
        ]),
      }),
    ],
    install: true,
  });
  return operator;
}

if (import.meta.main) await operator().run();
