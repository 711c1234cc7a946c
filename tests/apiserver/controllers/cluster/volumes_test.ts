import assert from "node:assert/strict";
import { test } from "node:test";
import {
  PersistentVolume,
  PersistentVolumeClaim,
} from "@coracle/operator/kinds";
import { workloadTest } from "../../support/workload_case.ts";

const claimKey = { namespace: "default", name: "data" };

function volume(name: string, storage: string): PersistentVolume {
  return {
    metadata: { name },
    spec: {
      capacity: { storage },
      accessModes: ["ReadWriteOnce"],
      storageClassName: "manual",
      hostPath: { path: "/tmp" },
    },
  };
}

test(
  "a claim is bound to the smallest volume that suits it, and releases it",
  workloadTest({}, async ({ client, clock }) => {
    await client.create(PersistentVolume, volume("large", "10Gi"));
    await client.create(PersistentVolume, volume("small", "1Gi"));
    await client.create(PersistentVolume, volume("tiny", "1Mi"));
    await clock.advance(10);
    const phases = async () =>
      (await client.list(PersistentVolume)).items.map(({ metadata, status }) =>
        `${metadata.name} ${status?.phase}`
      );
    assert.deepEqual(await phases(), [
      "large Available",
      "small Available",
      "tiny Available",
    ]);
    await client.create(PersistentVolumeClaim, {
      metadata: claimKey,
      spec: {
        accessModes: ["ReadWriteOnce"],
        storageClassName: "manual",
        resources: { requests: { storage: "500Mi" } },
      },
    });
    await clock.advance(10);
    const { spec, status } = await client.get(PersistentVolumeClaim, claimKey);
    assert.equal(spec?.volumeName, "small");
    assert.equal(status?.phase, "Bound");
    assert.deepEqual(status?.capacity, { storage: "1Gi" });
    assert.equal((await phases())[1], "small Bound");
    await client.delete(PersistentVolumeClaim, claimKey);
    await clock.advance(10);
    assert.equal((await phases())[1], "small Released");
  }),
);
