import assert from "node:assert/strict";
import { test } from "node:test";
import { ApiServer } from "../../../apiserver/server.ts";
import { Deployment } from "../../../core/kinds/mod.ts";
import { VirtualClock } from "../../../testing/virtual_clock.ts";

const key = { namespace: "default", name: "web" };

/** Runs a test with a server that has a Deployment, created just now. */
async function withDeployment(
  work: (fixture: {
    readonly server: ApiServer;
    readonly clock: VirtualClock;
    create(): Promise<unknown>;
    ready(): Promise<number | undefined>;
  }) => Promise<void>,
): Promise<void> {
  const clock = new VirtualClock();
  const server = await ApiServer.start({ port: false, simulate: true, clock });
  const { client } = server;
  const labels = { app: "web" };
  const create = () =>
    client.create(Deployment, {
      metadata: key,
      spec: {
        replicas: 2,
        selector: { matchLabels: labels },
        template: {
          metadata: { labels },
          spec: { containers: [{ name: "c", image: "i" }] },
        },
      },
    });
  const ready = async () =>
    (await client.get(Deployment, key)).status?.readyReplicas;
  try {
    await create();
    await work({ server, clock, create, ready });
  } finally {
    await server.stop();
  }
}

test("a Deployment becomes ready after half a second", async () => {
  await withDeployment(async ({ clock, ready }) => {
    await clock.advance(499);
    assert.equal(await ready(), undefined);
    await clock.advance(1);
    assert.equal(await ready(), 2);
  });
});

test("a Deployment that was created before a restart becomes ready after it", async () => {
  await withDeployment(async ({ server, clock, ready }) => {
    await server.faults.restart();
    await clock.advance(500);
    assert.equal(await ready(), 2);
  });
});

test("a Deployment that was deleted and created again becomes ready", async () => {
  await withDeployment(async ({ server, clock, create, ready }) => {
    await clock.advance(100);
    await server.client.delete(Deployment, key);
    await create();
    await clock.advance(500);
    assert.equal(await ready(), 2);
  });
});
