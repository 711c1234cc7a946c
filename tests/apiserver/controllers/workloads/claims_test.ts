import assert from "node:assert/strict";
import { after, mock, test } from "node:test";
import { CronJob, Deployment, Pod, StatefulSet } from "@coracle/operator/kinds";
import { Collection } from "../../../../dev/apiserver/storage/collection.ts";
import { workloadTest } from "../../support/workload_case.ts";

const OWNERS = 40;
/** Objects that were scanned by the servers of the tests. */
let scanned = 0;
const { scan } = Collection.prototype;
mock.method(
  Collection.prototype,
  "scan",
  function (this: Collection, range: Parameters<typeof scan>[0]) {
    const found = scan.call(this, range);
    scanned += found.length;
    return found;
  },
);
after(() => mock.restoreAll());

const namespace = "default";
const podSpec = { containers: [{ name: "a", image: "a:1" }] };
const specOf = (name: string) => ({
  selector: { matchLabels: { app: name } },
  template: { metadata: { labels: { app: name } }, spec: podSpec },
});

/** Creates owners one by one; returns how many objects each one looks at. */
async function scansPerOwner(
  create: (name: string) => Promise<unknown>,
  settle: () => Promise<void>,
): Promise<number> {
  scanned = 0;
  for (let index = 0; index < OWNERS; index++) {
    await create(`o-${index}`);
    await settle();
  }
  return scanned / OWNERS;
}

test(
  "Deployments look at none of each other's ReplicaSets and Pods",
  workloadTest({ simulate: true }, async ({ client, clock }) => {
    const scans = await scansPerOwner(
      (name) =>
        client.create(Deployment, {
          metadata: { namespace, name },
          spec: { ...specOf(name), strategy: { type: "Recreate" } },
        }),
      () => clock.advance("10s"),
    );
    const { items } = await client.list(Pod, { namespace });
    assert.equal(items.length, OWNERS);
    assert.ok(scans < OWNERS, `${scans} objects for each`);
  }),
);

test(
  "StatefulSets look at none of each other's Pods and revisions",
  workloadTest({ simulate: true }, async ({ client, clock }) => {
    const scans = await scansPerOwner(
      (name) =>
        client.create(StatefulSet, {
          metadata: { namespace, name },
          spec: { ...specOf(name), serviceName: name },
        }),
      () => clock.advance("10s"),
    );
    const { items } = await client.list(Pod, { namespace });
    assert.equal(items.length, OWNERS);
    assert.ok(scans < OWNERS, `${scans} objects for each`);
  }),
);

test(
  "CronJobs look at none of each other's Jobs",
  workloadTest({ controllers: ["*"] }, async ({ client, clock }) => {
    const scans = await scansPerOwner(
      (name) =>
        client.create(CronJob, {
          metadata: { namespace, name },
          spec: {
            schedule: "* * * * *",
            concurrencyPolicy: "Forbid",
            jobTemplate: {
              spec: {
                template: { spec: { ...podSpec, restartPolicy: "Never" } },
              },
            },
          },
        }),
      () => clock.advance("1m"),
    );
    const { items } = await client.list(Pod, { namespace });
    assert.equal(items.length, OWNERS);
    assert.ok(scans < OWNERS, `${scans} objects for each`);
  }),
);
