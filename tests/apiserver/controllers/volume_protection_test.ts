import assert from "node:assert/strict";
import { test } from "node:test";
import { ApiServer } from "../../../apiserver/server.ts";
import { PersistentVolumeClaim, Pod } from "../../../core/kinds/mod.ts";
import { VirtualClock } from "../../../testing/virtual_clock.ts";

test("a deleted claim is removed once no pod uses it", async () => {
  const clock = new VirtualClock();
  const server = await ApiServer.start({ port: false, clock });
  const { client } = server;
  const namespace = "default";
  const key = { namespace, name: "claim" };
  await client.create(PersistentVolumeClaim, {
    metadata: key,
    spec: {
      accessModes: ["ReadWriteOnce"],
      resources: { requests: { storage: "1Gi" } },
    },
  });
  await client.create(Pod, {
    metadata: { namespace, name: "user" },
    spec: {
      containers: [{ name: "c", image: "i" }],
      volumes: [{ name: "v", persistentVolumeClaim: { claimName: "claim" } }],
    },
  });
  await client.delete(PersistentVolumeClaim, key);
  await clock.settle();
  const held = await client.get(PersistentVolumeClaim, key);
  assert.deepEqual(held.metadata.finalizers, ["kubernetes.io/pvc-protection"]);
  await client.delete(Pod, { namespace, name: "user" });
  await clock.settle();
  assert.equal(await client.find(PersistentVolumeClaim, key), undefined);
  await server.stop();
});
