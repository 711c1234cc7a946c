import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { ApiServer, type AuditEvent } from "@coracle/dev/apiserver";
import type {
  DiscoveredResource,
  OperatorHandle,
} from "@coracle/operator/core";
import {
  ClusterRole,
  ClusterRoleBinding,
  Namespace,
} from "@coracle/operator/kinds";
import { recorder } from "../../dev/cli/dev_command.ts";
import {
  type DevAccount,
  grantRights,
  missingRights,
  userOf,
} from "../../dev/cli/dev_rights.ts";
import {
  readRequests,
  RequestRecord,
} from "../../dev/testing/request_record.ts";
import { temporaryFolder } from "../support/temporary_folder.ts";
import { until } from "../support/until.ts";

const ACCOUNT = { name: "a", admin: false, manages: [], recorded: [] };

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
    /^The operator may not patch configmaps in namespace default\. Its role needs this rule:\n\n {2}- apiGroups: \[""\]\n {4}resources: \["configmaps"\]\n {4}verbs: \["patch","create"\]/,
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

test("missingRights() ignores that the server stops before it has answered", async () => {
  const audit = missingRights(ACCOUNT, {
    say() {},
    resources: () => Promise.reject(new Error("stopped")),
  });
  audit({
    status: 403,
    user: userOf(ACCOUNT),
    resource: "nodes",
    subresource: "",
  } as AuditEvent);
  await new Promise((resolve) => setImmediate(resolve));
});

/** Rights that an account of `coracle dev` gets, as text, and the namespaces. */
async function granted(account: Partial<DevAccount>): Promise<{
  readonly rules: readonly string[];
  readonly roles: readonly string[];
  readonly namespaces: readonly string[];
}> {
  const builtIn = (kind: string) => ({ group: "", version: "v1", kind });
  const unserved = { group: "test.dev", version: "v1", kind: "Gone" };
  const operator = {
    controllers: [{
      name: "a",
      kind: builtIn("ConfigMap"),
      secondaryKinds: [builtIn("Secret"), unserved],
      readOnlyKinds: [builtIn("Node"), unserved],
      settings: { install: false, usesFinalizer: false },
    }, {
      name: "b",
      kind: unserved,
      secondaryKinds: [],
      readOnlyKinds: [],
      settings: { install: false, usesFinalizer: false },
    }],
    settings: {
      namespaces: "all",
      leaderElection: { name: "a", namespace: "leases" },
    },
  } as object as OperatorHandle;
  const server = await ApiServer.start({ port: false });
  const { client } = server;
  try {
    await grantRights(client, [operator], { ...ACCOUNT, ...account });
    const { items } = await client.list(ClusterRole);
    const bindings = await client.list(ClusterRoleBinding);
    const ofAccount = ({ subjects = [] }: ClusterRoleBinding) =>
      subjects.some(({ kind, name, namespace }) =>
        kind === "ServiceAccount" && name === "a" && namespace === "default"
      );
    const namespaces = await client.list(Namespace);
    return {
      rules: items.filter(({ metadata }) => metadata.name === "a")
        .flatMap(({ rules }) =>
          rules?.flatMap(({ resources = [], verbs }) =>
            resources.map((name) => `${name}: ${verbs}`)
          ) ?? []
        ),
      roles: bindings.items.filter(ofAccount)
        .map(({ roleRef }) => roleRef.name),
      namespaces: namespaces.items.map(({ metadata }) => metadata.name),
    };
  } finally {
    await server.stop();
  }
}

test("grantRights() grants what the operators need of the served kinds", async () => {
  const { rules, roles, namespaces } = await granted({ manages: ["Service"] });
  const writes = "get,list,watch,create,update,patch,delete";
  for (const rule of [`secrets: ${writes}`, "nodes: get,list,watch"]) {
    assert.ok(rules.includes(rule), rules.join("\n"));
  }
  assert.ok(rules.some((rule) => rule.startsWith("configmaps: ")));
  assert.ok(rules.some((rule) => rule.startsWith("services: ")));
  assert.ok(!rules.some((rule) => /gone|^ns|undefined/i.test(rule)));
  assert.deepEqual(roles, ["a"]);
  assert.ok(namespaces.includes("leases"));
});

test("grantRights() grants an admin all rights", async () => {
  const { rules, roles } = await granted({ admin: true });
  assert.deepEqual([rules, roles], [[], ["cluster-admin"]]);
});

test("grantRights() grants what an earlier run has recorded", async () => {
  const file = join(temporaryFolder(), "requests");
  const request = { verb: "get", group: "apps", resource: "deployments/scale" };
  new RequestRecord(file).add(request, 200);
  const { rules } = await granted({ recorded: [file] });
  assert.ok(rules.includes("deployments/scale: get"), rules.join("\n"));
});

test("A record of coracle dev has the requests of the account, as rules need them", () => {
  const file = join(temporaryFolder(), "requests");
  const record = recorder(file, ACCOUNT);
  const event = {
    status: 200,
    user: userOf(ACCOUNT),
    verb: "patch",
    group: "apps",
    resource: "deployments",
    subresource: "",
    namespace: "default",
  } as AuditEvent;
  record({ ...event, user: "admin", verb: "delete" });
  record({ ...event, resource: "", verb: "get" });
  record({ ...event, subresource: "status" });
  record({ ...event, status: 201 });
  record({
    ...event,
    verb: "get",
    group: "",
    resource: "nodes",
    namespace: "",
  });
  const own = { group: "apps", resource: "deployments", namespace: "default" };
  assert.deepEqual(readRequests(file), [
    { ...own, verb: "patch", resource: "deployments/status" },
    { ...own, verb: "patch" },
    { ...own, verb: "create" },
    { verb: "get", group: "", resource: "nodes", namespace: undefined },
  ]);
});
