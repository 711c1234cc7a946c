/**
 * Operator for a clustered store, which keeps data on its members. It scales
 * down by one member at a time, and only when that member has handed its data to
 * the others.
 *
 *     apiVersion: gallery.coracle.dev/v1
 *     kind: StoreCluster
 *     metadata: { name: orders }
 *     spec: { members: 5, image: "store:2", admin: "http://orders-admin:9000" }
 *
 * The API of the store is `PUT {admin}/members/NAME/drain`, which answers how
 * many partitions the member still has, and `DELETE {admin}/members/NAME`.
 */
import {
  type Context,
  defineKind,
  type ObjectOf,
  Operator,
  type OperatorOptions,
  patchStatus,
  setStatus,
} from "@coracle/operator";
import { StatefulSet } from "@coracle/operator/kinds";
import { z } from "zod";

const StoreCluster = defineKind({
  group: "gallery.coracle.dev",
  version: "v1",
  kind: "StoreCluster",
  spec: z.object({
    members: z.int().min(3).max(9).describe("Three copies are kept."),
    image: z.string(),
    admin: z.url(),
    storage: z.string().default("10Gi").meta({
      "x-kubernetes-validations": [
        { rule: "self == oldSelf", message: "storage cannot be changed" },
      ],
    }),
  }),
  status: z.object({
    members: z.int(),
    ready: z.int(),
    draining: z.string(),
    message: z.string(),
  }).partial(),
  printerColumns: [
    { name: "Members", type: "integer", jsonPath: ".status.members" },
    { name: "Ready", type: "integer", jsonPath: ".status.ready" },
    { name: "Draining", type: "string", jsonPath: ".status.draining" },
  ],
});
type StoreCluster = ObjectOf<typeof StoreCluster>;

/** Function with the signature of `fetch`, which a test replaces. */
type Fetch = (url: string, init: RequestInit) => Promise<Response>;

/** Sends a request to the store. */
async function ask(
  send: Fetch,
  { spec }: StoreCluster,
  method: "PUT" | "DELETE",
  path: string,
  ctx: Context<StoreCluster>,
): Promise<{ readonly partitions: number }> {
  const url = `${spec.admin}/members/${path}`;
  const response = await send(url, { method, signal: ctx.signal });
  // A member that is not known has left the store already.
  if (response.status === 404) {
    await response.body?.cancel();
    return { partitions: 0 };
  }
  if (!response.ok) {
    await response.body?.cancel();
    throw new Error(`The store answers ${response.status} to ${method} ${url}`);
  }
  return z.object({ partitions: z.int().min(0).default(0) }).parse(
    await response.json(),
  );
}

async function scale(
  { metadata: { name }, spec }: StoreCluster,
  replicas: number,
  ctx: Context<StoreCluster>,
): Promise<StatefulSet> {
  const labels = { "gallery.coracle.dev/store": name };
  return await ctx.apply(StatefulSet, {
    metadata: { name },
    spec: {
      replicas,
      serviceName: name,
      selector: { matchLabels: labels },
      template: {
        metadata: { labels },
        spec: {
          containers: [{
            name: "store",
            image: spec.image,
            volumeMounts: [{ name: "data", mountPath: "/data" }],
          }],
        },
      },
      // The volume of a member that has left is empty.
      persistentVolumeClaimRetentionPolicy: {
        whenDeleted: "Retain",
        whenScaled: "Delete",
      },
      volumeClaimTemplates: [{
        metadata: { name: "data" },
        spec: {
          accessModes: ["ReadWriteOnce"],
          resources: { requests: { storage: spec.storage } },
        },
      }],
    },
  });
}

export function operator(
  options: OperatorOptions = {},
  send: Fetch = fetch,
): Operator {
  const operator = new Operator(options);
  operator.register(StoreCluster, {
    async reconcile(cluster, ctx) {
      const { metadata: { name }, spec } = cluster;
      // Not from the cache: a number that is too old removes a member with data.
      const found = await ctx.client.find(StatefulSet, ctx.key);
      const members = found?.spec?.replicas ?? spec.members;
      const ready = found?.status?.readyReplicas ?? 0;
      if (spec.members >= members) {
        const { status } = await scale(cluster, spec.members, ctx);
        return setStatus({
          members: spec.members,
          ready: status?.readyReplicas ?? 0,
        });
      }

      await scale(cluster, members, ctx);
      if (ready < members) {
        // Its change triggers the next run.
        const message = "Waits for all members before one leaves";
        return setStatus({ members, ready, message });
      }
      // A StatefulSet removes the member with the highest number.
      const leaving = `${name}-${members - 1}`;
      const { partitions } = await ask(
        send,
        cluster,
        "PUT",
        `${leaving}/drain`,
        ctx,
      );
      if (partitions > 0) {
        const message = `${partitions} partitions are left on ${leaving}`;
        return setStatus({ members, ready, draining: leaving, message })
          .rescheduleAfter("5s");
      }
      await ask(send, cluster, "DELETE", leaving, ctx);
      await scale(cluster, members - 1, ctx);
      ctx.events.normal("Removed", `${leaving} has left the store`);
      return setStatus({ members: members - 1, ready }).rescheduleAfter("5s");
    },
    onError: (_cluster, error) =>
      patchStatus({ message: (error as Error).message }),
  }, { owns: [StatefulSet], install: true });
  return operator;
}

if (import.meta.main) await operator().run();
