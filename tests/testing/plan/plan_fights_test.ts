import assert from "node:assert/strict";
import { after, test } from "node:test";
import { ApiServer } from "@coracle/dev/apiserver";
import { installCrd } from "@coracle/operator/crd";
import { ConfigMap, Deployment } from "@coracle/operator/kinds";
import { planText } from "../../../dev/cli/plan_text.ts";
import { findingsOf } from "../../../dev/testing/plan/plan_report.ts";
import { planFor } from "./cluster_copy.ts";
import { Site } from "./fixtures/site.ts";

const server = await ApiServer.start({ port: false });
after(() => server.stop());
const { client } = server;
const namespace = "default";
await installCrd(client, Site);
for (const name of ["alpha", "bravo", "charlie"]) {
  await client.create(Site, {
    metadata: { namespace, name },
    spec: { html: "<p>" },
  });
  await client.create(ConfigMap, {
    metadata: { namespace, name },
    data: { page: "theirs", other: "theirs" },
  }, { fieldManager: "rival" });
}
await client.status.apply(Site, {
  metadata: { namespace, name: "charlie" },
  spec: undefined as never,
  status: { level: 3 },
}, { fieldManager: "judge" });
const report = await planFor(server.transport, "site_contest");

test("plan: fields that are taken again whenever their manager sets them back", () => {
  const lost = report.changes.flatMap(({ kind, name, fields }) =>
    fields.flatMap(({ path, takenFrom }) =>
      takenFrom === undefined ? [] : [`${kind} ${name} ${path} ${takenFrom}`]
    )
  );
  assert.deepEqual(lost, [
    "ConfigMap alpha .data.page rival",
    "ConfigMap bravo .data.page rival",
    "Site charlie .status.level judge",
  ]);
  const fights = report.fights.map(({ answer, ...one }) => ({
    ...one,
    isWithin: answer <= 60_000,
  }));
  const isWithin = true;
  assert.deepEqual(fights, [
    {
      object: "ConfigMap default/alpha",
      manager: "rival",
      fields: [".data.page"],
      isWithin,
    },
    {
      object: "Site default/charlie",
      manager: "judge",
      fields: [".status.level"],
      isWithin,
    },
  ]);
  assert.ok(findingsOf(report).has("fight"));
});

test("plan: a status that the cluster writes again is no fight of the operator", async () => {
  const key = { namespace, name: "delta" };
  const labels = { app: key.name };
  const containers = [{ name: "a", image: "a:1" }];
  await client.create(Deployment, {
    metadata: key,
    spec: {
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { containers } },
    },
  });
  // The simulated controllers take it away when the pods run.
  await client.status.patch(Deployment, key, {
    status: { unavailableReplicas: 2 },
  }, { fieldManager: "kube-controller-manager" });
  const { changes, fights } = await planFor(server.transport, "site_image");
  const change = changes.find(({ kind }) => kind === "Deployment");
  assert.deepEqual(change?.fields.map(({ path }) => path), [
    ".spec.template.spec.containers[a].image",
  ]);
  assert.deepEqual(fights, []);
});

test("plan: what other managers do at its end is not in the rest of it", async () => {
  const page = report.changes.find(({ name, kind }) =>
    name === "alpha" && kind === "ConfigMap"
  )?.fields.find(({ path }) => path === ".data.page");
  assert.deepEqual([page?.before, page?.after], ["theirs", "ours"]);
  assert.equal(report.simulated.duration, 3_600_000);
  assert.deepEqual(report.loops, []);
  const { data } = await client.get(ConfigMap, { namespace, name: "alpha" });
  assert.deepEqual(data, { page: "theirs", other: "theirs" });
});

test("plan as text: fights are named with the manager and the time of the answer", () => {
  const text = planText(report, { show: [] });
  assert.match(
    text,
    /Fights, if other managers set their fields back\n {2}1 × ConfigMap: \.data\.page, of rival: the operator sets them again within 1s \(default\/alpha\)\n/,
  );
});

test("plan: the wait for an answer in a fight ends with its limit of timers", async () => {
  const { simulated, changes, fights } = await planFor(
    server.transport,
    "site_poll",
  );
  assert.equal(simulated.quiet, true);
  assert.equal(changes.length, 3);
  assert.deepEqual(fights, []);
});

test("plan: an operator that never rests ends with its limit of requests", async () => {
  const { simulated, loops } = await planFor(server.transport, "site_busy", {
    actions: 1_500,
  });
  assert.equal(simulated.quiet, false);
  assert.ok(simulated.duration < 3_600_000);
  assert.deepEqual(
    loops.map(({ object, states, fields }) => [object, states, fields]),
    ["alpha", "bravo", "charlie"].map((name) => [
      `Site default/${name}`,
      3,
      [".status.level"],
    ]),
  );
});
