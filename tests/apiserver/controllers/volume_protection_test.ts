import assert from "node:assert/strict";
import { appendFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { VirtualClock } from "@coracle/dev";
import { ApiServer } from "@coracle/dev/apiserver";
import {
  PersistentVolume,
  PersistentVolumeClaim,
  Pod,
} from "@coracle/operator/kinds";
import { temporaryFolder } from "../../support/temporary_folder.ts";

const namespace = "default";
const claimKey = { namespace, name: "claim" };

/** Creates a claim and a pod that uses it. */
async function claimInUse({ client }: ApiServer): Promise<void> {
  await client.create(PersistentVolumeClaim, {
    metadata: claimKey,
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
}

test("a deleted claim is removed once no pod uses it", async () => {
  const clock = new VirtualClock();
  const server = await ApiServer.start({ port: false, clock });
  const { client } = server;
  await claimInUse(server);
  await client.delete(PersistentVolumeClaim, claimKey);
  await clock.settle();
  const held = await client.get(PersistentVolumeClaim, claimKey);
  assert.deepEqual(held.metadata.finalizers, ["kubernetes.io/pvc-protection"]);
  await client.delete(Pod, { namespace, name: "user" });
  await clock.settle();
  assert.equal(await client.find(PersistentVolumeClaim, claimKey), undefined);
  await server.stop();
});

test("a claim whose last pod was deleted before a crash is removed after it", async () => {
  const folder = temporaryFolder();
  const data = join(folder, "data");
  const clock = new VirtualClock();
  const first = await ApiServer.start({ port: false, clock, data });
  await claimInUse(first);
  await first.client.delete(PersistentVolumeClaim, claimKey);
  const { metadata } = await first.client.get(PersistentVolumeClaim, claimKey);
  assert.ok(metadata.deletionTimestamp);
  await first.stop();
  // The process ended after the line of the pod was written.
  const gone = { group: "", plural: "pods", deleted: "default/user" };
  const revision = Number(metadata.resourceVersion) + 1;
  appendFileSync(data, `${JSON.stringify({ revision, ...gone })}\n`);
  const next = await ApiServer.start({ port: false, clock, data });
  await clock.settle();
  assert.equal(
    await next.client.find(PersistentVolumeClaim, claimKey),
    undefined,
  );
  await next.stop();
  rmSync(folder, { recursive: true });
});

for (const version of ["1.36", "1.37"] as const) {
  test(
    `A bound claim of ${version} ${
      version === "1.37" ? "tells" : "does not tell"
    } whether pods refer to it`,
    async () => {
      const clock = new VirtualClock();
      const server = await ApiServer.start({ port: false, clock, version });
      const { client } = server;
      const conditions = async () => {
        await clock.settle();
        const { status } = await client.get(PersistentVolumeClaim, claimKey);
        return status?.conditions?.map(({ type, status, reason }) =>
          [type, status, reason].join(" ")
        ) ?? [];
      };
      const expected = (text: string) => version === "1.37" ? [text] : [];
      await client.create(PersistentVolumeClaim, {
        metadata: claimKey,
        spec: {
          accessModes: ["ReadWriteOnce"],
          resources: { requests: { storage: "1Gi" } },
        },
      });
      assert.deepEqual(await conditions(), []);
      await client.create(PersistentVolume, {
        metadata: { name: "volume" },
        spec: {
          accessModes: ["ReadWriteOnce"],
          capacity: { storage: "1Gi" },
          hostPath: { path: "/data" },
        },
      });
      assert.deepEqual(
        await conditions(),
        expected("Unused True NoPodsUsingPVC"),
      );
      await client.create(Pod, {
        metadata: { namespace, name: "user" },
        spec: {
          containers: [{ name: "c", image: "i" }],
          volumes: [{
            name: "v",
            persistentVolumeClaim: { claimName: "claim" },
          }],
        },
      });
      assert.deepEqual(
        await conditions(),
        expected("Unused False PodUsingPVC"),
      );
      await client.delete(Pod, { namespace, name: "user" });
      assert.deepEqual(
        await conditions(),
        expected("Unused True NoPodsUsingPVC"),
      );
      await server.stop();
    },
  );
}
