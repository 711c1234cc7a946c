import { checkOperator, TestCluster, VirtualClock } from "@coracle/dev";
import { type Ingress, Service } from "@coracle/operator/kinds";
import assert from "node:assert/strict";
import { test } from "node:test";
import options from "./dns_sync.check.ts";
import { operator, recordsOf } from "./dns_sync.ts";

/** Zone in memory that counts its writes. */
class Zone {
  text = "{}";
  writes = 0;

  ask = (_url: string, { method, body }: RequestInit): Promise<Response> => {
    if (method === "PUT") {
      this.text = String(body);
      this.writes++;
    }
    return Promise.resolve(new Response(this.text));
  };
}

const service = (name: string, ip?: string) => ({
  apiVersion: "v1",
  kind: "Service",
  metadata: {
    name,
    namespace: "default",
    annotations: { "dns.example.com/hostname": `${name}.example.com` },
  },
  spec: { type: "LoadBalancer", ports: [{ port: 80 }] },
  ...ip !== undefined && {
    status: { loadBalancer: { ingress: [{ ip }] } },
  },
});

test("The records of a zone are those of Services and Ingresses", () => {
  const ingress: Ingress = {
    metadata: {
      name: "web",
      annotations: { "dns.example.com/hostname": "b.example.com" },
    },
    spec: { rules: [{ host: "a.example.com" }] },
    status: { loadBalancer: { ingress: [{ hostname: "lb.example.net" }] } },
  };
  const objects = [ingress, service("b", "10.0.0.1"), service("none")];
  assert.deepEqual(recordsOf(objects as Parameters<typeof recordsOf>[0]), {
    "a.example.com": ["lb.example.net"],
    "b.example.com": ["10.0.0.1", "lb.example.net"],
  });
});

test("The DNS example syncs a burst of changes once, mends, and runs once", async () => {
  const zone = new Zone();
  const clock = new VirtualClock();
  const cluster = await TestCluster.start({
    clock,
    operator: (options) =>
      operator({ ...options, leaderElection: undefined }, zone.ask),
  });
  try {
    const { client, namespace } = cluster;
    const { writes } = zone;
    for (const name of ["a", "b", "c"]) {
      const key = { namespace, name };
      const { metadata, spec } = service(name);
      await client.create(Service, {
        metadata: { ...metadata, namespace },
        spec: spec as Service["spec"],
      });
      await client.status.patch(Service, key, {
        status: { loadBalancer: { ingress: [{ ip: "10.0.0.1" }] } },
      });
      await clock.advance(1_000);
    }
    await cluster.until(() => zone.writes > writes, { within: "1m" });
    assert.equal(Object.keys(JSON.parse(zone.text)).length, 3);
    assert.equal(zone.writes, writes + 1);
    const wanted = zone.text;
    zone.text = "{}";
    await cluster.until(() => zone.text === wanted, { within: "2h" });

    zone.text = "{}";
    const { logger } = cluster;
    const single = operator(
      { client, clock, logger, namespaces: [namespace], probes: undefined },
      zone.ask,
    );
    await cluster.complete(single.run({ once: true }));
    assert.equal(zone.text, wanted);
  } finally {
    await cluster.stop();
  }
});

test("The DNS example stands its check", { timeout: 120_000 }, async () => {
  const report = await checkOperator({ operator, ...options, plans: 3 });
  assert.deepEqual(report.findings, []);
  assert.equal(report.plans, 3);
});
