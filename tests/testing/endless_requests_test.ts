import assert from "node:assert/strict";
import { test } from "node:test";
import { TestCluster, VirtualClock, withTestCluster } from "@coracle/dev";
import { ApiServer } from "@coracle/dev/apiserver";
import { Operator } from "@coracle/operator/core";
import { ConfigMap } from "@coracle/operator/kinds";
import { EndlessRequests } from "../../dev/testing/endless_requests.ts";
import { inTime } from "../support/in_time.ts";
import { Gadget } from "../support/operator_fixture.ts";

/** Operator whose write by the client triggers its next run. */
function selfTriggering(
  options: Parameters<
    NonNullable<Parameters<typeof withTestCluster>[0]["operator"]>
  >[0],
): Operator {
  const operator = new Operator(options);
  let runs = 0;
  operator.register(Gadget, {
    async reconcile({ metadata }, { client }) {
      const { namespace = "", name } = metadata;
      const spec = { value: `run ${runs++}` };
      await client.patch(Gadget, { namespace, name }, { spec });
    },
  });
  return operator;
}

const GADGET = {
  apiVersion: "sample.coracle.dev/v1",
  kind: "Gadget",
  metadata: { name: "a" },
  spec: { value: "x" },
};

test("A test of an operator that triggers itself fails, and says why", async () => {
  for (const wait of ["until", "advance"] as const) {
    const clock = new VirtualClock();
    const ended = withTestCluster(
      { cluster: "embedded", kinds: [Gadget], clock, operator: selfTriggering },
      async ({ apply, until }) => {
        await apply(GADGET);
        if (wait === "until") await until(() => false);
        else await clock.advance("1h");
      },
    )();
    await assert.rejects(
      inTime("the test ends", ended, 60_000),
      ({ message }) => {
        assert.match(
          message,
          /the runs of an object follow one another without a pause: the operator sent PATCH \S+\/gadgets\/a 1000 times/,
        );
        assert.match(message, /those by ctx\.client do\n\nThe log:\n/);
        return true;
      },
    );
  }
});

test("A loop of requests leaves the event loop to the test runner", async () => {
  const server = await ApiServer.start({ port: false });
  const { client } = server;
  const key = { namespace: "default", name: "a" };
  await client.create(ConfigMap, { metadata: key });
  let isEnded = false;
  let count = 0;
  const loop = (async () => {
    while (!isEnded && count < 100_000) {
      await client.get(ConfigMap, key);
      count++;
    }
  })();
  await new Promise((resolve) => setTimeout(resolve, 1));
  isEnded = true;
  await loop;
  assert.ok(count < 100_000, `${count} requests before the timer`);
  await server.stop();
});

test("EndlessRequests counts writes of one object at one moment", async () => {
  const clock = new VirtualClock();
  const endless = new EndlessRequests(clock);
  const times = (
    count: number,
    method: "GET" | "POST" | "PATCH",
    path: string,
  ) => {
    for (let at = 0; at < count; at++) {
      endless.count({ method, path, headers: {} });
    }
  };
  times(2_000, "GET", "/api/v1/pods/a");
  times(2_000, "POST", "/api/v1/pods");
  times(1_000, "PATCH", "/api/v1/pods/a?fieldManager=a");
  times(1_000, "PATCH", "/api/v1/pods/b");
  await clock.advance(1);
  times(1_000, "PATCH", "/api/v1/pods/a");
  await endless.check();
  assert.throws(() => times(1, "PATCH", "/api/v1/pods/a?dryRun=All"), {
    message:
      /sent PATCH \/api\/v1\/pods\/a 1000 times, and 1000 writes in all, while the clock stood at 1 ms/,
  });
  await assert.rejects(endless.check(), endless.error);
  const others = new EndlessRequests(clock);
  const create = { method: "POST", path: "/api/v1/pods", headers: {} } as const;
  for (let at = 0; at < 100_000; at++) others.count(create);
  assert.throws(() => others.count(create), /100000 writes in all/);
});

test("A cluster of an endless operator stops", async () => {
  const cluster = await TestCluster.start({
    cluster: "embedded",
    kinds: [Gadget],
    clock: new VirtualClock(),
    operator: selfTriggering,
  });
  await cluster.apply(GADGET);
  await inTime("the cluster stops", cluster.stop(), 60_000);
});
