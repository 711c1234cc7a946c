import type { Transport } from "@coracle/operator/client";
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { ApiServer } from "@coracle/dev/apiserver";
import { planMarkdown, planText } from "../../../dev/cli/plan_text.ts";
import { findingsOf } from "../../../dev/testing/plan/plan_report.ts";
import { ConfigMap } from "@coracle/operator/kinds";
import { planFor } from "./cluster_copy.ts";
import { upgrade } from "./upgrade.ts";

/** Verbs and resources of the plan, which reads as a user of its own. */
const requests: string[] = [];
const server = await ApiServer.start({
  port: false,
  audit: ({ user, verb, group, resource }) => {
    if (user === "planner") requests.push(`${verb} ${group}/${resource}`);
  },
});
after(() => server.stop());

const planner: Transport = {
  send: (request) =>
    server.transport.send({
      ...request,
      headers: {
        ...request.headers,
        "impersonate-user": "planner",
        "impersonate-group": "system:masters",
      },
    }),
  close: () => Promise.resolve(),
};
const { report, planned, happened } = await upgrade(server.client, {
  planned: planner,
  namespace: "default",
});
const refused = await planFor(server.transport, "site_refused");
const text = planText(report, { show: ["all"] });
const markdown = planMarkdown(report, { show: ["all"], operator: "site.ts" });

test("plan of an upgrade: its list equals what then happens", () => {
  assert.deepEqual(planned, happened);
  assert.deepEqual(Object.keys(planned), [
    "change Deployment default/alpha",
    "change Deployment default/bravo",
    "change Deployment default/charlie",
    "change Secret default/alpha",
    "change Secret default/bravo",
    "change Secret default/charlie",
    "change Site default/alpha",
    "change Site default/charlie",
    "create ServiceAccount default/alpha",
    "create ServiceAccount default/bravo",
    "create ServiceAccount default/charlie",
    "delete ConfigMap default/alpha-legacy",
    "delete ConfigMap default/bravo-legacy",
    "delete ConfigMap default/charlie-legacy",
  ]);
  assert.deepEqual(planned["change Deployment default/alpha"], {
    ".spec.replicas": 1,
    ".spec.template.spec.containers[web].image": "nginx:1.30",
  });
});

test("plan: the manager that loses a field, and who deletes", () => {
  const replicas = report.changes.flatMap(({ fields }) => fields)
    .filter(({ takenFrom }) => takenFrom !== undefined);
  assert.deepEqual(replicas, [{
    path: ".spec.replicas",
    before: 3,
    after: 1,
    takenFrom: ["autoscaler"],
  }]);
  const deleted = report.changes.filter(({ action }) => action === "delete");
  assert.deepEqual(
    new Set(deleted.map(({ cause }) => cause)),
    new Set(["prune: the operator no longer wants it"]),
  );
});

test("plan: what a takeover of another operator's fields removes", async () => {
  await server.client.create(ConfigMap, {
    metadata: { namespace: "default", name: "inherited" },
    data: { html: "", left: "behind" },
  }, { fieldManager: "before" });
  const { changes } = await planFor(server.transport, "site_heir");
  const change = changes.find(({ name }) => name === "inherited");
  assert.equal(change?.action, "change");
  const fields = change?.fields.filter(({ path }) => path.startsWith(".data"));
  assert.deepEqual(
    fields?.map(({ path, after, takenFrom }) => [path, after, takenFrom]),
    [[".data.html", "<p>alpha", ["before"]], [".data.left", undefined, [
      "before",
    ]]],
  );
});

test("plan: a refused request is not what controllers do meanwhile", () => {
  const deployments = refused.changes.filter(({ kind }) =>
    kind === "Deployment"
  );
  assert.deepEqual(
    deployments.map(({ fields }) => fields.map(({ path }) => path)),
    Array(3).fill([".spec.template.metadata.labels.tier"]),
  );
});

test("plan: an operator takes no field from itself", () => {
  const maps = refused.changes.filter(({ kind }) => kind === "ConfigMap");
  assert.deepEqual(
    maps.map(({ fields }) =>
      fields.map(({ path, takenFrom }) => [path, takenFrom])
    ),
    Array(3).fill([
      ['.data["index.html"]', undefined],
      ['.data["page.html"]', undefined],
    ]),
  );
  assert.deepEqual(findingsOf(refused), new Set(["change"]));
});

// Other runtimes do not tell which processes run.
const isNode = !("Deno" in globalThis || "Bun" in globalThis);
test(
  "plan: no virtual time passes while a program runs",
  { skip: !isNode },
  async () => {
    const { changes, failures } = await planFor(
      server.transport,
      "site_child",
      {
        duration: 60_000,
      },
    );
    assert.deepEqual(failures, []);
    assert.deepEqual(changes.map(({ action, name }) => [action, name]), [
      ["create", "asked"],
    ]);
  },
);

test("plan: runs that fail are named with their objects", () => {
  const [failure, ...others] = report.failures;
  assert.deepEqual(others, []);
  assert.match(failure?.error ?? "", /status\.level: Too big/);
  assert.deepEqual(failure?.objects, ["default/bravo"]);
  assert.deepEqual(
    findingsOf(report),
    new Set(["delete", "change", "takeover", "create", "fight", "failure"]),
  );
});

test("plan: the cluster sees nothing but gets, lists and discovery", () => {
  assert.ok(requests.length > 0);
  const others = requests.filter((one) => !/^(?:get|list) /.test(one));
  assert.deepEqual(others, []);
});

test("plan: the operator runs once where only its Events were not read", async () => {
  const steps: string[] = [];
  const { failures, events } = await planFor(server.transport, "site_new", {
    onProgress: (text) => steps.push(text),
  });
  assert.equal(failures.length, 1);
  assert.deepEqual(events.map(({ reason }) => reason), ["RunFailed"]);
  assert.deepEqual(steps, ["the operator runs"]);
});

test("plan: values of Secrets are in no form of it", () => {
  const json = JSON.stringify(report);
  for (const form of [text, markdown, json]) {
    assert.doesNotMatch(form, /tiger|dGlnZXI/);
    assert.match(form, /\(hidden\)/);
  }
});

test("plan: controllers of the cluster are simulated, and said to be", () => {
  const created = Object.fromEntries(
    report.answers.map(({ kind, created }) => [kind, created]),
  );
  assert.deepEqual(created, { ReplicaSet: 3, Pod: 3 });
  assert.match(text, /In answer, simulated: controllers of the cluster/);
});

test("plan as text: a summary by kind and cause comes before the details", () => {
  const [summary = "", details = ""] = text.split("\nDetails\n");
  assert.match(summary, /^14 objects would change: /);
  assert.match(summary, /ConfigMap +3 delete\n/);
  assert.match(summary, /3 × create ServiceAccount, apply by site/);
  assert.match(details, /- \.spec\.replicas: 3\n/);
  assert.match(details, /\+ \.spec\.replicas: 1 {3}\(taken from autoscaler\)/);
});
