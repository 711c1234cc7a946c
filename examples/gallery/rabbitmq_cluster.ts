/**
 * Operator for clusters of RabbitMQ, after that of its vendor: a StatefulSet, two
 * Services, a configuration, and Secrets with the cookie and the first user.
 *
 *     apiVersion: gallery.coracle.dev/v1
 *     kind: RabbitmqCluster
 *     metadata: { name: orders }
 *     spec: { replicas: 3, image: "rabbitmq:4.1", config: "vm_memory_high_watermark.relative = 0.6" }
 *
 * A changed configuration restarts the members one by one, and a new image replaces
 * them. A cluster is not scaled down, since the queues of a member would be lost: the
 * status says so.
 */
import {
  type ApplyObject,
  defineKind,
  type ObjectOf,
  Operator,
  type OperatorOptions,
  setStatus,
} from "@coracle/operator";
import {
  ConfigMap,
  Secret,
  Service,
  StatefulSet,
} from "@coracle/operator/kinds";
import {
  type Condition,
  conditionedStatus,
  setCondition,
} from "@coracle/operator/workflows";
import { createHash, randomBytes } from "node:crypto";
import { z } from "zod";

const RabbitmqCluster = defineKind({
  group: "gallery.coracle.dev",
  version: "v1",
  kind: "RabbitmqCluster",
  spec: z.object({
    replicas: z.int().min(1).max(9).default(1).describe(
      "Members; use an odd number.",
    ),
    image: z.string(),
    // The templates of the volumes of a StatefulSet cannot change.
    storage: z.string().max(20).default("10Gi").meta({
      "x-kubernetes-validations": [
        { rule: "self == oldSelf", message: "is fixed" },
      ],
    }),
    config: z.string().max(10_000).default("").describe(
      "Lines that are added to rabbitmq.conf.",
    ),
  }),
  status: conditionedStatus(z.object({
    readyReplicas: z.int(),
    defaultUser: z.string(),
    host: z.string(),
  })),
  printerColumns: [
    { name: "Ready", type: "integer", jsonPath: ".status.readyReplicas" },
    { name: "Host", type: "string", jsonPath: ".status.host" },
  ],
});
type RabbitmqCluster = ObjectOf<typeof RabbitmqCluster>;

const CONFIG_HASH = "gallery.coracle.dev/config-hash";

const random = (): string => randomBytes(24).toString("base64url");

const base64 = (text: string): string => btoa(text);

function configOf({ metadata: { name, namespace }, spec }: RabbitmqCluster) {
  const members = Array.from(
    { length: spec.replicas },
    (_, at) =>
      `cluster_formation.classic_config.nodes.${
        at + 1
      } = rabbit@${name}-server-${at}.${name}-nodes.${namespace}`,
  );
  return [
    "cluster_formation.peer_discovery_backend = classic_config",
    ...members,
    spec.config,
  ].join("\n");
}

function statefulSetOf(
  { metadata: { name }, spec }: RabbitmqCluster,
  { replicas, hash }: { readonly replicas: number; readonly hash: string },
): ApplyObject<StatefulSet> {
  const labels = { "app.kubernetes.io/name": name };
  return {
    metadata: { name: `${name}-server` },
    spec: {
      replicas,
      serviceName: `${name}-nodes`,
      podManagementPolicy: "Parallel",
      selector: { matchLabels: labels },
      template: {
        metadata: { labels, annotations: { [CONFIG_HASH]: hash } },
        spec: {
          terminationGracePeriodSeconds: 604_800,
          containers: [{
            name: "rabbitmq",
            image: spec.image,
            ports: [
              { name: "amqp", containerPort: 5672 },
              { name: "management", containerPort: 15672 },
            ],
            volumeMounts: [
              { name: "data", mountPath: "/var/lib/rabbitmq" },
              { name: "config", mountPath: "/etc/rabbitmq/conf.d" },
              { name: "user", mountPath: "/etc/rabbitmq/default-user" },
              { name: "cookie", mountPath: "/etc/rabbitmq/cookie" },
            ],
            readinessProbe: { tcpSocket: { port: "amqp" } },
          }],
          volumes: [
            { name: "config", configMap: { name: `${name}-config` } },
            { name: "user", secret: { secretName: `${name}-default-user` } },
            { name: "cookie", secret: { secretName: `${name}-erlang-cookie` } },
          ],
        },
      },
      volumeClaimTemplates: [{
        metadata: { name: "data" },
        spec: {
          accessModes: ["ReadWriteOnce"],
          resources: { requests: { storage: spec.storage } },
        },
      }],
    },
  };
}

export function operator(options: OperatorOptions = {}): Operator {
  const operator = new Operator(options);
  operator.register(RabbitmqCluster, {
    async reconcile(cluster, ctx) {
      const { metadata, spec, status } = cluster;
      const { name, namespace, generation } = metadata;
      // Not from the cache: what is drawn twice locks the members out.
      const drawn = async (
        name: string,
        make: () => Record<string, string>,
      ) => {
        const found = await ctx.client.find(Secret, {
          namespace,
          name,
        });
        const data = found?.data ??
          Object.fromEntries(
            Object.entries(make()).map(([key, text]) => [key, base64(text)]),
          );
        await ctx.apply(Secret, { metadata: { name }, data });
      };
      await drawn(`${name}-erlang-cookie`, () => ({ cookie: random() }));
      const user = `${name}-default-user`;
      await drawn(user, () => ({ username: "admin", password: random() }));

      const config = configOf(cluster);
      await ctx.apply(ConfigMap, {
        metadata: { name: `${name}-config` },
        data: { "rabbitmq.conf": config },
      });
      const selector = { "app.kubernetes.io/name": name };
      await ctx.apply(Service, {
        metadata: { name: `${name}-nodes` },
        spec: {
          selector,
          clusterIP: "None",
          // Members find each other before they are ready.
          publishNotReadyAddresses: true,
          ports: [{ name: "epmd", port: 4369 }, { name: "dist", port: 25672 }],
        },
      });
      await ctx.apply(Service, {
        metadata: { name },
        spec: {
          selector,
          ports: [
            { name: "amqp", port: 5672 },
            { name: "management", port: 15672 },
          ],
        },
      });

      const key = { namespace, name: `${name}-server` };
      const before = (await ctx.client.find(StatefulSet, key))?.spec?.replicas;
      const replicas = Math.max(spec.replicas, before ?? 0);
      const set = await ctx.apply(
        StatefulSet,
        statefulSetOf(cluster, {
          replicas,
          // More members are no reason to restart those that are there.
          hash: createHash("sha256").update(spec.config).digest("hex"),
        }),
      );

      const {
        readyReplicas = 0,
        updatedReplicas = 0,
        observedGeneration,
      } = set.status ?? {};
      const isCurrent = observedGeneration === set.metadata.generation &&
        readyReplicas >= replicas && updatedReplicas >= replicas;
      const isSmaller = replicas > spec.replicas;
      const condition = (
        type: string,
        isTrue: boolean,
        reason: string,
        message: string,
      ): Pick<Condition, "type" | "status" | "reason" | "message"> => ({
        type,
        status: isTrue ? "True" : "False",
        reason,
        message,
      });
      const now = ctx.clock.wallTime();
      const conditions = [
        condition(
          "AllReplicasReady",
          isCurrent,
          isCurrent ? "AllPodsAreReady" : "NotAllPodsReady",
          `${readyReplicas} of ${replicas} members are ready`,
        ),
        condition(
          "ReconcileSuccess",
          !isSmaller,
          isSmaller ? "UnsupportedOperation" : "Success",
          isSmaller
            ? `A cluster of ${replicas} members is not scaled down`
            : "",
        ),
      ].reduce(
        (all, one) => setCondition(all, one, { now, generation }),
        status?.conditions,
      );
      return setStatus({
        readyReplicas,
        defaultUser: user,
        host: `${name}.${namespace}.svc`,
        conditions,
      });
    },
  }, { owns: [ConfigMap, Secret, Service, StatefulSet], install: true });
  return operator;
}

if (import.meta.main) await operator().run();
