import assert from "node:assert/strict";
import { test } from "node:test";
import type { AuditEvent } from "../../apiserver/request_handler.ts";
import { ApiServer } from "../../apiserver/server.ts";
import type { DiscoveredResource } from "../../core/client/discovery.ts";
import { missingRights, userOf } from "../../cli/dev_rights.ts";
import { until } from "../support/until.ts";

const ACCOUNT = { name: "a", admin: false, manages: "", recorded: undefined };

/** What is said of a forbidden request that is sent twice, and of others. */
async function saidOf(
  request: Partial<AuditEvent>,
  ...others: readonly Partial<AuditEvent>[]
): Promise<string> {
  const said: string[] = [];
  const server = await ApiServer.start({ port: false });
  try {
    const audit = missingRights(ACCOUNT, {
      say: (text) => void said.push(text),
      resources: () => server.client.resources(),
    });
    const event = {
      status: 403,
      user: userOf(ACCOUNT),
      verb: "patch",
      group: "",
      resource: "configmaps",
      subresource: "",
      namespace: "default",
      ...request,
    } as AuditEvent;
    audit({ ...event, user: "somebody else", verb: "deletecollection" });
    audit(event);
    audit(event);
    for (const other of others) audit({ ...event, ...other });
    await until("all is said", () => said.length > others.length);
  } finally {
    await server.stop();
  }
  assert.equal(said.length, 1 + others.length);
  return said.join("");
}

test("missingRights() reports a missing right once, with its rule", async () => {
  assert.match(
    await saidOf({}),
    /^The operator may not patch configmaps in namespace default\. Its role needs this rule:\n\n {2}- apiGroups: \[""\]\n {4}resources: \["configmaps"\]\n {4}verbs: \["patch"\]/,
  );
  assert.match(
    await saidOf({
      group: "apps",
      resource: "deployments",
      subresource: "status",
    }),
    /resources: \["deployments\/status"\]/,
  );
  assert.match(
    await saidOf({ verb: "get", resource: "pods", subresource: "exec" }),
    /resources: \["pods\/exec"\]\n {4}verbs: \["get","create"\]/,
  );
});

test("missingRights() reports resources of the same name in several groups", async () => {
  assert.match(
    await saidOf({ resource: "events" }, {
      resource: "events",
      group: "events.k8s.io",
    }),
    /apiGroups: \[""\][^]*apiGroups: \["events\.k8s\.io"\]/,
  );
});

test("missingRights() advises no rule for what the server does not serve", async () => {
  assert.equal(
    await saidOf({ subresource: "status" }),
    "The operator may not patch configmaps/status in namespace default. No rule helps: the server does not serve it.\n\n",
  );
  assert.match(await saidOf({ resource: "typos" }), /No rule helps/);
});

test("missingRights() reports only refusals of the account's resources", async () => {
  const said: string[] = [];
  const audit = missingRights(ACCOUNT, {
    say: (text) => void said.push(text),
    resources: () =>
      Promise.resolve([
        { group: "a.io", plural: "pods", subresources: [] },
        { group: "", plural: "nodes", subresources: [] },
      ] as unknown as DiscoveredResource[]),
  });
  const event = {
    status: 403,
    user: "system:serviceaccount:default:a",
    verb: "get",
    group: "",
    resource: "nodes",
    subresource: "",
    namespace: "",
  } as AuditEvent;
  audit({ ...event, status: 404, verb: "watch" });
  audit({ ...event, resource: "" });
  audit({ ...event, user: "system:serviceaccount:default" });
  audit(event);
  audit({ ...event, verb: "list" });
  // The server serves the plural of another group.
  audit({ ...event, resource: "pods" });
  await until("all is said", () => said.length >= 3);
  assert.deepEqual(said.map((text) => text.split(" Its ")[0]), [
    "The operator may not get nodes.",
    "The operator may not list nodes.",
    "The operator may not get pods. No rule helps: the server does not serve it.\n\n",
  ]);
});
