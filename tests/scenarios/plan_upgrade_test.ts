import assert from "node:assert/strict";
import { test } from "node:test";
import { TestCluster } from "@coracle/dev";
import { removesDefinitions } from "../support/remove_objects.ts";
import { Site } from "../testing/plan/fixtures/site.ts";
import { upgrade } from "../testing/plan/upgrade.ts";

removesDefinitions(Site);

test("plan of an upgrade equals what then happens on the same cluster", async () => {
  const cluster = await TestCluster.start();
  const { client, transport, namespace } = cluster;
  try {
    const { planned, happened, report } = await upgrade(client, {
      planned: transport,
      namespace,
      kinds: [
        { group: "plan.coracle.dev", kind: "Site" },
        { group: "apps", kind: "Deployment" },
        ...["ConfigMap", "Secret", "ServiceAccount"].map((kind) => ({
          group: "",
          kind,
        })),
      ],
    });
    assert.equal(Object.keys(happened).length, 14);
    assert.deepEqual(planned, happened);
    assert.deepEqual(report.failures.map(({ objects }) => objects), [
      [`${namespace}/bravo`],
    ]);
    const taken = report.changes.flatMap(({ fields }) => fields)
      .flatMap(({ takenFrom = [] }) => takenFrom);
    assert.deepEqual(taken, ["autoscaler"]);
  } finally {
    await cluster.stop();
  }
});
