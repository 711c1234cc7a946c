import assert from "node:assert/strict";
import { test } from "node:test";
import {
  Endpoints,
  EndpointSlice,
  Pod,
  Service,
} from "@coracle/operator/kinds";
import { workloadTest } from "../../support/workload_case.ts";

const key = { namespace: "default", name: "web" };
const labels = { app: "web" };

function pod(name: string): Pod {
  return {
    metadata: { namespace: "default", name, labels },
    spec: {
      containers: [{
        name: "c",
        image: "i",
        ports: [{ name: "http", containerPort: 8080 }],
      }],
    },
  };
}

test(
  "a Service has the ready pods of its selector as endpoints",
  workloadTest({ simulate: true }, async ({ client, clock }) => {
    await client.create(Service, {
      metadata: key,
      spec: { selector: labels, ports: [{ port: 80, targetPort: "http" }] },
    });
    await client.create(Pod, pod("a"));
    await client.create(Pod, pod("b"));
    await clock.advance(1_000);
    const slices = async () =>
      (await client.list(EndpointSlice, {
        labelSelector: "kubernetes.io/service-name=web",
      })).items;
    const [slice, ...more] = await slices();
    assert.equal(more.length, 0);
    assert.deepEqual(
      slice?.endpoints?.map(({ targetRef, conditions }) => [
        targetRef?.name,
        conditions?.ready,
      ]),
      [["a", true], ["b", true]],
    );
    assert.equal(slice?.ports?.[0]?.port, 8080);
    const endpoints = await client.get(Endpoints, key);
    assert.equal(endpoints.subsets?.[0]?.addresses?.length, 2);
    await client.delete(Pod, { namespace: "default", name: "a" });
    await clock.advance(1_000);
    const [left] = await slices();
    assert.deepEqual(left?.endpoints?.map(({ targetRef }) => targetRef?.name), [
      "b",
    ]);
    assert.equal(left?.metadata.name, slice?.metadata.name);
    await client.delete(Service, key);
    await clock.advance(1_000);
    assert.equal((await slices()).length, 0);
    assert.equal((await client.list(Endpoints)).items.length, 0);
  }),
);

test(
  "Endpoints of a Service without a selector are mirrored",
  workloadTest({ controllers: ["*"] }, async ({ client, clock }) => {
    await client.create(Service, {
      metadata: key,
      spec: { ports: [{ port: 80 }] },
    });
    const subset = (ip: string) => ({
      subsets: [{ addresses: [{ ip }], ports: [{ port: 9090 }] }],
    });
    await client.create(Endpoints, { metadata: key, ...subset("10.0.0.1") });
    await clock.advance(10);
    const addresses = async () =>
      (await client.list(EndpointSlice)).items.flatMap(({ endpoints }) =>
        endpoints?.flatMap(({ addresses }) => addresses) ?? []
      );
    assert.deepEqual(await addresses(), ["10.0.0.1"]);
    await client.patch(Endpoints, key, subset("10.0.0.2"));
    await clock.advance(10);
    assert.deepEqual(await addresses(), ["10.0.0.2"]);
    await client.patch(Endpoints, key, subset("FD00::0:1"));
    await clock.advance(10);
    assert.deepEqual(await addresses(), ["fd00::1"]);
    await client.delete(Endpoints, key);
    await clock.advance(10);
    assert.deepEqual(await addresses(), []);
  }),
);

test(
  "a pod that is deleted stays in slices, and leaves Endpoints at once",
  workloadTest({ simulate: true }, async ({ client, clock }) => {
    await client.create(Service, {
      metadata: key,
      spec: { selector: labels, ports: [{ port: 80, targetPort: "http" }] },
    });
    const { metadata, spec } = pod("a");
    const finalizers = ["example.com/held"];
    await client.create(Pod, { metadata: { ...metadata, finalizers }, spec });
    await clock.advance(1_000);
    const listed = async () => (await client.get(Endpoints, key)).subsets ?? [];
    const [subset] = await listed();
    assert.equal(subset?.addresses?.length, 1);
    assert.deepEqual(subset?.ports, [{ port: 8080, protocol: "TCP" }]);
    await client.delete(Pod, { namespace: "default", name: "a" });
    await clock.advance(100);
    assert.deepEqual(await listed(), []);
    const [slice] = (await client.list(EndpointSlice)).items;
    assert.deepEqual(slice?.endpoints?.map(({ conditions }) => conditions), [
      { ready: false, serving: true, terminating: true },
    ]);
  }),
);
