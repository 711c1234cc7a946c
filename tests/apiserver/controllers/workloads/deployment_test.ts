import assert from "node:assert/strict";
import { test } from "node:test";
import {
  Deployment,
  Node,
  Pod,
  ReplicaSet,
  ReplicationController,
} from "@coracle/operator/kinds";
import { workloadTest } from "../../support/workload_case.ts";

const key = { namespace: "default", name: "web" };
const labels = { app: "web" };

function web(image = "v1", spec: Partial<Deployment["spec"]> = {}): Deployment {
  return {
    metadata: key,
    spec: {
      replicas: 2,
      selector: { matchLabels: labels },
      template: {
        metadata: { labels },
        spec: { containers: [{ name: "c", image }] },
      },
      ...spec,
    },
  };
}

test(
  "a Deployment on simulated nodes becomes ready after half a second",
  workloadTest({ simulate: true }, async ({ client, clock }) => {
    await client.create(Deployment, web());
    await clock.advance(499);
    const early = await client.get(Deployment, key);
    assert.equal(early.status?.readyReplicas, undefined);
    assert.equal(early.status?.unavailableReplicas, 2);
    await clock.advance(1);
    const { status, metadata } = await client.get(Deployment, key);
    assert.deepEqual({ ...status, conditions: undefined }, {
      observedGeneration: 1,
      replicas: 2,
      updatedReplicas: 2,
      readyReplicas: 2,
      availableReplicas: 2,
      terminatingReplicas: 0,
      conditions: undefined,
    });
    assert.deepEqual(
      status?.conditions?.map(({ type, status, reason }) => [
        type,
        status,
        reason,
      ]),
      [
        ["Available", "True", "MinimumReplicasAvailable"],
        ["Progressing", "True", "NewReplicaSetAvailable"],
      ],
    );
    assert.equal(metadata.generation, 1);
    assert.equal(
      metadata.annotations?.["deployment.kubernetes.io/revision"],
      "1",
    );
  }),
);

test(
  "a Deployment without nodes has pending pods and misses its deadline",
  workloadTest({ controllers: ["*"] }, async ({ client, clock }) => {
    await client.create(
      Deployment,
      web("v1", { progressDeadlineSeconds: 60 }),
    );
    await clock.advance(1_000);
    const { items } = await client.list(Pod, { namespace: "default" });
    assert.deepEqual(items.map(({ status }) => status?.phase), [
      "Pending",
      "Pending",
    ]);
    const progress = async () =>
      (await client.get(Deployment, key)).status?.conditions?.find(({ type }) =>
        type === "Progressing"
      )?.reason;
    assert.equal(await progress(), "ReplicaSetUpdated");
    await clock.advance(65_000);
    assert.equal(await progress(), "ProgressDeadlineExceeded");
  }),
);

test(
  "a new template makes a new revision, and the old one is scaled to zero",
  workloadTest({ simulate: true }, async ({ client, clock }) => {
    await client.create(Deployment, web());
    await clock.advance(1_000);
    await client.patch(Deployment, key, {
      spec: web("v2").spec,
    });
    await clock.advance(10_000);
    const { items } = await client.list(ReplicaSet, { namespace: "default" });
    const sizes = items.map(({ metadata, spec, status }) => [
      metadata.annotations?.["deployment.kubernetes.io/revision"],
      spec?.replicas,
      status?.readyReplicas ?? 0,
    ]).sort();
    assert.deepEqual(sizes, [["1", 0, 0], ["2", 2, 2]]);
  }),
);

test(
  "a released pod has no list of owners, and a ready node none of taints",
  workloadTest({ simulate: true }, async ({ client, clock }) => {
    await client.create(Deployment, web());
    await clock.advance(1_000);
    const [pod] = (await client.list(Pod)).items;
    const { name = "" } = pod?.metadata ?? {};
    const at = { namespace: "default", name };
    await client.patch(Pod, at, { metadata: { labels: { app: "other" } } });
    await clock.advance(1_000);
    const { metadata } = await client.get(Pod, at);
    assert.equal(Object.hasOwn(metadata, "ownerReferences"), false);
    const { spec = {} } = await client.get(Node, { name: "node-1" });
    assert.equal(Object.hasOwn(spec, "taints"), false);
  }),
);

test(
  "a Deployment and its ReplicaSet count the pods that still terminate",
  workloadTest({ simulate: true }, async ({ client, clock }) => {
    await client.create(Deployment, web());
    await clock.advance(1_000);
    const { items: [pod] } = await client.list(Pod, { namespace: "default" });
    const counts = async (milliseconds: number) => {
      await clock.advance(milliseconds);
      const { items } = await client.list(ReplicaSet, { namespace: "default" });
      const { status } = await client.get(Deployment, key);
      return [...items, { status }].map(({ status }) => [
        status?.replicas,
        status?.terminatingReplicas,
      ]);
    };
    await client.delete(Pod, pod!.metadata);
    assert.deepEqual(await counts(1), [[2, 1], [2, 1]]);
    assert.deepEqual(await counts(60_000), [[2, 0], [2, 0]]);
  }),
);

test(
  "a ReplicationController has no number of terminating pods, as on a cluster",
  workloadTest({ simulate: true }, async ({ client, clock }) => {
    const { replicas, template } = web().spec!;
    await client.create(ReplicationController, {
      metadata: key,
      spec: { replicas, selector: labels, template },
    });
    await clock.advance(1_000);
    const { status } = await client.get(ReplicationController, key);
    assert.deepEqual([
      status?.readyReplicas,
      Object.keys(status ?? {}).includes("terminatingReplicas"),
    ], [2, false]);
  }),
);
