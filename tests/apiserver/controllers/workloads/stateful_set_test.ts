import assert from "node:assert/strict";
import { test } from "node:test";
import {
  ControllerRevision,
  DaemonSet,
  Node,
  PersistentVolumeClaim,
  Pod,
  StatefulSet,
} from "@coracle/operator/kinds";
import {
  type WorkloadFixture,
  workloadTest,
} from "../../support/workload_case.ts";

const key = { namespace: "default", name: "db" };
const labels = { app: "db" };

function template(image: string) {
  return { metadata: { labels }, spec: { containers: [{ name: "c", image }] } };
}

function database(
  spec: Partial<StatefulSet["spec"]> = {},
): StatefulSet {
  return {
    metadata: key,
    spec: {
      replicas: 3,
      serviceName: "db",
      selector: { matchLabels: labels },
      template: template("v1"),
      ...spec,
    },
  };
}

/** Names and images of the pods, in order. */
async function pods({ client }: WorkloadFixture): Promise<string[]> {
  const { items } = await client.list(Pod);
  return items.map(({ metadata, spec }) =>
    `${metadata.name} ${spec.containers?.[0]?.image}`
  ).sort();
}

test(
  "a StatefulSet starts its pods one after the other, each with its claim",
  workloadTest({ simulate: true }, async (fixture) => {
    const { client, clock } = fixture;
    await client.create(
      StatefulSet,
      database({
        volumeClaimTemplates: [{
          metadata: { name: "data" },
          spec: {
            accessModes: ["ReadWriteOnce"],
            resources: { requests: { storage: "1Gi" } },
          },
        }],
      }),
    );
    await clock.advance(600);
    assert.deepEqual(await pods(fixture), ["db-0 v1", "db-1 v1"]);
    await clock.advance(5_000);
    assert.equal((await client.get(StatefulSet, key)).status?.readyReplicas, 3);
    const claims = await client.list(PersistentVolumeClaim);
    assert.deepEqual(claims.items.map(({ metadata }) => metadata.name), [
      "data-db-0",
      "data-db-1",
      "data-db-2",
    ]);
    const pod = await client.get(Pod, { namespace: "default", name: "db-1" });
    assert.equal(pod.spec.hostname, "db-1");
    assert.equal(pod.metadata.labels?.["apps.kubernetes.io/pod-index"], "1");
  }),
);

test(
  "a StatefulSet without nodes waits for its first pod",
  workloadTest({ controllers: ["*"] }, async (fixture) => {
    await fixture.client.create(StatefulSet, database());
    await fixture.clock.advance(60_000);
    assert.deepEqual(await pods(fixture), ["db-0 v1"]);
  }),
);

test(
  "a rolling update stops at the partition, and goes on without it",
  workloadTest({ simulate: true }, async (fixture) => {
    const { client, clock } = fixture;
    await client.create(
      StatefulSet,
      database({ updateStrategy: { rollingUpdate: { partition: 2 } } }),
    );
    await clock.advance(5_000);
    await client.patch(StatefulSet, key, {
      spec: { template: template("v2") },
    });
    await clock.advance(10_000);
    assert.deepEqual(await pods(fixture), ["db-0 v1", "db-1 v1", "db-2 v2"]);
    const { status } = await client.get(StatefulSet, key);
    assert.notEqual(status?.currentRevision, status?.updateRevision);
    assert.equal(status?.updatedReplicas, 1);
    await client.patch(StatefulSet, key, {
      spec: { updateStrategy: { rollingUpdate: { partition: 0 } } },
    });
    await clock.advance(10_000);
    assert.deepEqual(await pods(fixture), ["db-0 v2", "db-1 v2", "db-2 v2"]);
    const revisions = await client.list(ControllerRevision);
    assert.deepEqual(revisions.items.map(({ revision }) => revision).sort(), [
      1,
      2,
    ]);
  }),
);

test(
  "a smaller StatefulSet removes the highest ordinals, and keeps claims",
  workloadTest({ simulate: true }, async (fixture) => {
    const { client, clock } = fixture;
    await client.create(
      StatefulSet,
      database({ podManagementPolicy: "Parallel" }),
    );
    await clock.advance(600);
    assert.equal((await pods(fixture)).length, 3);
    await client.patch(StatefulSet, key, { spec: { replicas: 1 } });
    await clock.advance(5_000);
    assert.deepEqual(await pods(fixture), ["db-0 v1"]);
  }),
);

test(
  "a DaemonSet has a pod on each node that it tolerates, and on new ones",
  workloadTest({ simulate: { nodes: 2 } }, async ({ client, clock }) => {
    await client.create(DaemonSet, {
      metadata: key,
      spec: { selector: { matchLabels: labels }, template: template("v1") },
    });
    await clock.advance(1_000);
    const nodes = async () =>
      (await client.list(Pod)).items.map(({ spec }) => spec.nodeName).sort();
    assert.deepEqual(await nodes(), ["node-1", "node-2"]);
    await client.create(Node, { metadata: { name: "new" }, spec: {} });
    await client.create(Node, {
      metadata: { name: "tainted" },
      spec: { taints: [{ key: "gpu", effect: "NoSchedule" }] },
    });
    await clock.advance(1_000);
    assert.deepEqual(await nodes(), ["new", "node-1", "node-2"]);
    const { status } = await client.get(DaemonSet, key);
    assert.equal(status?.numberReady, 3);
    assert.equal(status?.desiredNumberScheduled, 3);
  }),
);

test(
  "a DaemonSet replaces one pod at a time, and keeps its revisions",
  workloadTest({ simulate: { nodes: 3 } }, async (fixture) => {
    const { client, clock } = fixture;
    await client.create(DaemonSet, {
      metadata: key,
      spec: { selector: { matchLabels: labels }, template: template("v1") },
    });
    await clock.advance(1_000);
    await client.patch(DaemonSet, key, { spec: { template: template("v2") } });
    let least = 3;
    for (let step = 0; step < 50; step++) {
      await clock.advance(100);
      const { status } = await client.get(DaemonSet, key);
      least = Math.min(least, status?.numberAvailable ?? 0);
    }
    assert.equal(least, 2);
    assert.ok((await pods(fixture)).every((pod) => pod.endsWith(" v2")));
    assert.equal((await client.list(ControllerRevision)).items.length, 2);
  }),
);
