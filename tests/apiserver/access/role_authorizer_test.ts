import assert from "node:assert/strict";
import { test } from "node:test";
import { missingRights } from "../../../dev/apiserver/access/policy_rules.ts";
import * as builtin from "../../../dev/apiserver/builtin/builtin_definitions.ts";
import { StoredObject } from "../../../dev/apiserver/storage/stored_object.ts";
import { TestServer } from "../support/test_server.ts";

const RBAC = "/apis/rbac.authorization.k8s.io/v1";
const ACCESS = "/apis/authorization.k8s.io/v1";

/** Server on which users act by impersonation, with a role for each test. */
class RoleServer extends TestServer {
  constructor() {
    super({ builtin });
  }

  /** Sends a request as a user. */
  as(user: string, ...request: Parameters<TestServer["send"]>) {
    const [method, path, body] = request;
    return this.send(method, path, body, { "impersonate-user": user });
  }

  /** Creates a role, cluster-wide without a namespace, and binds it to a user. */
  async grant(
    rules: readonly unknown[],
    { user = "ann", name = "a", namespace = "" } = {},
  ): Promise<void> {
    const [prefix, place] = namespace === ""
      ? ["Cluster", RBAC]
      : ["", `${RBAC}/namespaces/${namespace}`];
    const made = await this.send(
      "POST",
      `${place}/${prefix.toLowerCase()}roles`,
      { metadata: { name }, rules },
    );
    assert.equal(made.status, 201, JSON.stringify(made.body));
    await this.bind(`${prefix}Role`, name, { user, namespace });
  }

  /** Binds a role to a user. */
  async bind(
    kind: string,
    role: string,
    { user = "ann", namespace = "", as = "" } = {},
  ) {
    const place = namespace === ""
      ? `${RBAC}/clusterrolebindings`
      : `${RBAC}/namespaces/${namespace}/rolebindings`;
    const headers: Record<string, string> = as === "" ? {} : {
      "impersonate-user": as,
    };
    return await this.send("POST", place, {
      metadata: { name: `${role}-${user}`.replaceAll(":", "-") },
      roleRef: { apiGroup: RBAC.split("/")[2], kind, name: role },
      subjects: [{ kind: "User", name: user }],
    }, headers);
  }
}

async function onServer(run: (server: RoleServer) => Promise<void>) {
  const server = new RoleServer();
  try {
    await run(server);
  } finally {
    server.stop();
  }
}

test("a user without roles is refused with kube-apiserver's words", () =>
  onServer(async (server) => {
    const refused = [
      [
        "GET",
        "/api/v1/namespaces/default/pods",
        'pods is forbidden: User "ann" cannot list resource "pods" in API group "" in the namespace "default"',
      ],
      [
        "GET",
        "/api/v1/nodes/n",
        'nodes "n" is forbidden: User "ann" cannot get resource "nodes" in API group "" at the cluster scope',
      ],
      [
        "GET",
        "/api/v1/namespaces/x",
        'namespaces "x" is forbidden: User "ann" cannot get resource "namespaces" in API group "" in the namespace "x"',
      ],
      [
        "PUT",
        "/apis/apps/v1/namespaces/default/deployments/d/scale",
        'deployments.apps "d" is forbidden: User "ann" cannot update resource "deployments/scale" in API group "apps" in the namespace "default"',
      ],
      [
        "DELETE",
        "/api/v1/namespaces/default/pods?fieldSelector=metadata.name%3Dp",
        'pods is forbidden: User "ann" cannot deletecollection resource "pods" in API group "" in the namespace "default"',
      ],
      ["GET", "/metrics", 'forbidden: User "ann" cannot get path "/metrics"'],
    ] as const;
    for (const [method, path, message] of refused) {
      const { status, body } = await server.as("ann", method, path);
      assert.deepEqual([status, body.message], [403, message]);
      assert.equal(body.reason, "Forbidden");
    }
    assert.equal((await server.as("ann", "GET", "/version")).status, 200);
    assert.equal((await server.as("ann", "GET", "/apis")).status, 200);
  }));

test("rules grant verbs, resources, subresources, names and paths", () =>
  onServer(async (server) => {
    await server.grant([
      { apiGroups: [""], resources: ["configmaps"], verbs: ["get", "list"] },
      { apiGroups: [""], resources: ["*/status"], verbs: ["get"] },
      {
        apiGroups: [""],
        resources: ["secrets"],
        resourceNames: ["s"],
        verbs: ["get", "list", "watch", "deletecollection"],
      },
      { nonResourceURLs: ["/metrics", "/logs/*"], verbs: ["get"] },
    ]);
    const space = "/api/v1/namespaces/default";
    const answers = [
      [`${space}/configmaps`, 200],
      ["/api/v1/configmaps", 200],
      [`${space}/configmaps?watch=1`, 403],
      [`${space}/pods/p/status`, 404],
      [`${space}/pods/p`, 403],
      [`${space}/secrets/s`, 404],
      [`${space}/secrets/t`, 403],
      [`${space}/secrets`, 403],
      [`${space}/secrets?fieldSelector=metadata.name%3Ds`, 200],
      ["/logs/a", 404],
      ["/logs", 403],
    ] as const;
    for (const [path, status] of answers) {
      assert.equal((await server.as("ann", "GET", path)).status, status, path);
      assert.equal((await server.as("bob", "GET", path)).status, 403, path);
    }
    // A selected name counts for lists alone.
    const selected = `secrets?fieldSelector=metadata.name%3Ds`;
    for (
      const [method, path] of [
        ["DELETE", `${space}/${selected}`],
        ["GET", `/api/v1/watch/namespaces/default/${selected}`],
      ] as const
    ) {
      assert.equal((await server.as("ann", method, path)).status, 403, path);
    }
  }));

test("a path with /watch/ needs the right to watch, for every method", () =>
  onServer(async (server) => {
    await server.grant([
      {
        apiGroups: [""],
        resources: ["pods"],
        verbs: ["get", "create", "update", "patch", "delete"],
      },
      { apiGroups: [""], resources: ["secrets"], verbs: ["watch"] },
    ]);
    const space = "/api/v1/watch/namespaces/default";
    for (const method of ["POST", "PUT", "PATCH", "DELETE"] as const) {
      const refused = await server.as("ann", method, `${space}/pods/p`, {});
      assert.equal(refused.status, 403, method);
      assert.match(refused.body.message, /cannot watch resource "pods"/);
      const passed = await server.as("ann", method, `${space}/secrets/s`, {});
      assert.equal(passed.status, 405, method);
    }
  }));

test("a RoleBinding grants rights in its namespace, until it is deleted", () =>
  onServer(async (server) => {
    await server.bind("ClusterRole", "view", { namespace: "default" });
    const get = (path: string) => server.as("ann", "GET", path);
    assert.equal((await get("/api/v1/namespaces/default/pods")).status, 200);
    assert.equal((await get("/api/v1/namespaces/default/secrets")).status, 403);
    assert.equal((await get("/api/v1/namespaces/a/pods")).status, 403);
    assert.equal((await get("/api/v1/pods")).status, 403);
    const place = `${RBAC}/namespaces/default/rolebindings/view-ann`;
    assert.equal((await server.send("DELETE", place)).status, 200);
    assert.equal((await get("/api/v1/namespaces/default/pods")).status, 403);
  }));

test("service accounts and groups are subjects; a missing role is reported", () =>
  onServer(async (server) => {
    await server.send("POST", `${RBAC}/clusterrolebindings`, {
      metadata: { name: "b" },
      roleRef: { kind: "ClusterRole", name: "view" },
      subjects: [
        { kind: "ServiceAccount", name: "robot", namespace: "default" },
        { kind: "Group", name: "system:serviceaccounts:a" },
      ],
    });
    const users = [
      ["system:serviceaccount:default:robot", 200],
      ["system:serviceaccount:a:b", 200],
      ["system:serviceaccount:default:b", 403],
    ] as const;
    for (const [user, status] of users) {
      const { status: found } = await server.as(user, "GET", "/api/v1/pods");
      assert.equal(found, status, user);
    }
    await server.bind("ClusterRole", "nothing");
    const { body } = await server.as("ann", "GET", "/api/v1/nodes");
    assert.equal(
      body.message,
      'nodes is forbidden: User "ann" cannot list resource "nodes" in API group "" at the cluster scope: RBAC: clusterrole.rbac.authorization.k8s.io "nothing" not found',
    );
  }));

test("access reviews name the binding and answer as the authorizer decides", () =>
  onServer(async (server) => {
    await server.bind("ClusterRole", "view", { namespace: "default" });
    const ask = async (namespace: string) => {
      const { body } = await server.send(
        "POST",
        `${ACCESS}/subjectaccessreviews`,
        {
          spec: {
            user: "ann",
            resourceAttributes: { verb: "list", resource: "pods", namespace },
          },
        },
      );
      return body.status;
    };
    assert.deepEqual(await ask("default"), {
      allowed: true,
      reason:
        'RBAC: allowed by RoleBinding "view-ann/default" of ClusterRole "view" to User "ann"',
    });
    assert.deepEqual(await ask("a"), { allowed: false });
    const { body } = await server.as(
      "ann",
      "POST",
      `${ACCESS}/selfsubjectrulesreviews`,
      { spec: { namespace: "default" } },
    );
    const pods = body.status.resourceRules.find((
      { resources }: { resources: string[] },
    ) => resources.includes("pods"));
    assert.deepEqual(pods.verbs, ["get", "list", "watch"]);
    assert.ok(body.status.nonResourceRules.length > 0);
  }));

test("a new cluster has kube-apiserver's roles, with aggregated rules", () =>
  onServer(async (server) => {
    const get = async (path: string) =>
      (await server.send("GET", `${RBAC}/${path}`)).body;
    const admin = await get("clusterroles/admin");
    assert.equal(
      admin.metadata.labels["kubernetes.io/bootstrapping"],
      "rbac-defaults",
    );
    assert.ok(admin.rules.length > 20);
    const { items } = await get("clusterroles");
    for (const name of ["cluster-admin", "edit", "view", "system:discovery"]) {
      assert.ok(
        items.some(({ metadata }: { metadata: { name: string } }) =>
          metadata.name === name
        ),
        name,
      );
    }
    const { subjects } = await get("clusterrolebindings/cluster-admin");
    assert.equal(subjects[0].name, "system:masters");
    const widgets = {
      apiGroups: ["a.b"],
      resources: ["widgets"],
      verbs: ["get"],
    };
    await server.send("POST", `${RBAC}/clusterroles`, {
      metadata: {
        name: "widgets",
        labels: { "rbac.authorization.k8s.io/aggregate-to-view": "true" },
      },
      rules: [widgets],
    });
    const hasWidgets = async (name: string) =>
      JSON.stringify((await get(`clusterroles/${name}`)).rules)
        .includes("widgets");
    assert.ok(await hasWidgets("view"));
    await server.send("DELETE", `${RBAC}/clusterroles/widgets`);
    assert.ok(!await hasWidgets("view"));
  }));

test("missingRights names each verb once for each name and path", () => {
  const rule = {
    apiGroups: [""],
    resources: ["pods"],
    resourceNames: ["a", "b"],
    verbs: ["get", "list"],
  };
  const path = { nonResourceURLs: ["/x"], verbs: ["get"] };
  assert.deepEqual(missingRights([], [rule, path, path]), [
    '{APIGroups:[""], Resources:["pods"], ResourceNames:["a"], Verbs:["get" "list"]}',
    '{APIGroups:[""], Resources:["pods"], ResourceNames:["b"], Verbs:["get" "list"]}',
    '{NonResourceURLs:["/x"], Verbs:["get"]}',
  ]);
});

test("nobody grants rights that they lack, unless they may escalate or bind", () =>
  onServer(async (server) => {
    const roles = ["roles", "clusterroles", "clusterrolebindings"];
    const group = "rbac.authorization.k8s.io";
    await server.grant([
      { apiGroups: [group], resources: roles, verbs: ["create", "patch"] },
      { apiGroups: [""], resources: ["pods"], verbs: ["get"] },
    ]);
    const create = (rules: unknown[], more: object = {}) =>
      server.as("ann", "POST", `${RBAC}/clusterroles`, {
        metadata: { name: "made" },
        rules,
        ...more,
      });
    const refused = await create([
      { apiGroups: [""], resources: ["pods"], verbs: ["get", "list", "watch"] },
      { apiGroups: ["", "apps"], resources: ["nodes"], verbs: ["get"] },
    ]);
    assert.equal(refused.status, 403);
    assert.equal(
      refused.body.message,
      'clusterroles.rbac.authorization.k8s.io "made" is forbidden: user "ann" (groups=["system:authenticated"]) is attempting to grant RBAC permissions not currently held:\n' +
        '{APIGroups:[""], Resources:["nodes"], Verbs:["get"]}\n' +
        '{APIGroups:[""], Resources:["pods"], Verbs:["list" "watch"]}\n' +
        '{APIGroups:["apps"], Resources:["nodes"], Verbs:["get"]}',
    );
    const aggregated = await create([], {
      aggregationRule: {
        clusterRoleSelectors: [{ matchLabels: { a: "b" } }],
      },
    });
    assert.match(aggregated.body.message, /must have cluster-admin privileges/);
    const own = [{ apiGroups: [""], resources: ["pods"], verbs: ["get"] }];
    assert.equal((await create(own)).status, 201);
    const bind = (role: string) =>
      server.bind("ClusterRole", role, { user: "bob", as: "ann" });
    assert.equal((await bind("made")).status, 201);
    assert.match((await bind("view")).body.message, /not currently held/);
    assert.equal((await bind("nothing")).status, 404);
    await server.grant([
      { apiGroups: [group], resources: roles, verbs: ["bind", "escalate"] },
    ], { name: "more" });
    assert.equal((await bind("view")).status, 201);
    const patched = await server.send(
      "PATCH",
      `${RBAC}/clusterroles/made`,
      { rules: [{ apiGroups: ["*"], resources: ["*"], verbs: ["*"] }] },
      {
        "impersonate-user": "ann",
        "content-type": "application/merge-patch+json",
      },
    );
    assert.equal(patched.status, 200);
  }));

test("streams of pods need the verb create as well as get", () =>
  onServer(async (server) => {
    const pod = "/api/v1/namespaces/default/pods/web";
    const streams = ["exec", "attach", "portforward"];
    const answers = (method: "GET" | "POST") =>
      Promise.all(streams.map(async (name) => {
        const path = `${pod}/${name}?command=x&ports=80`;
        const { status, body } = await server.as("ann", method, path);
        return [status, body.message];
      }));
    const refused = (verb: string) =>
      streams.map((name) => [
        403,
        `pods "web" is forbidden: User "ann" cannot ${verb} resource "pods/${name}" in API group "" in the namespace "default"`,
      ]);
    const resources = streams.map((name) => `pods/${name}`);
    const rule = { apiGroups: [""], resources };
    assert.deepEqual(await answers("GET"), refused("get"));
    await server.grant([{ ...rule, verbs: ["get"] }], { name: "reads" });
    assert.deepEqual(
      await answers("GET"),
      streams.map(() => [403, 'pods "web" is forbidden: ']),
    );
    assert.deepEqual(await answers("POST"), refused("create"));
    await server.grant([{ ...rule, verbs: ["create"] }], { name: "creates" });
    const found = streams.map(() => [404, 'pods "web" not found']);
    assert.deepEqual(await answers("GET"), found);
    assert.deepEqual(await answers("POST"), found);
  }));

test("an apply and a PUT that create need the verb create, too", () =>
  onServer(async (server) => {
    const lease = "/apis/coordination.k8s.io/v1/namespaces/default/leases/a";
    const apply = async (name: string, query = "") => {
      const path = `/api/v1/namespaces/default/configmaps/${name}`;
      const { status, body } = await server.send(
        "PATCH",
        `${path}?fieldManager=ann${query}`,
        { apiVersion: "v1", kind: "ConfigMap", metadata: { name } },
        {
          "impersonate-user": "ann",
          "content-type": "application/apply-patch+yaml",
        },
      );
      return status === 403 ? body.message : status;
    };
    const put = async () => {
      const body = { metadata: { name: "a", namespace: "default" } };
      const answer = await server.as("ann", "PUT", lease, body);
      return answer.status === 403 ? answer.body.message : answer.status;
    };
    await server.send("POST", "/api/v1/namespaces/default/configmaps", {
      metadata: { name: "present" },
    });
    const writes = [
      { apiGroups: [""], resources: ["configmaps"], verbs: ["patch"] },
      {
        apiGroups: ["coordination.k8s.io"],
        resources: ["leases"],
        verbs: ["update"],
      },
    ];
    await server.grant(writes, { name: "writes" });
    assert.equal(await apply("present"), 200);
    assert.equal(await apply("a"), 'configmaps "a" is forbidden: ');
    assert.equal(
      await apply("a", "&dryRun=All"),
      'configmaps "a" is forbidden: ',
    );
    assert.equal(await put(), 'leases.coordination.k8s.io "a" is forbidden: ');
    const creates = writes.map((rule) => ({ ...rule, verbs: ["create"] }));
    await server.grant(creates, { name: "creates" });
    assert.equal(await apply("a"), 201);
    assert.equal(await put(), 201);
  }));

/** Counts the stored objects that are decoded during some work. */
async function decodedDuring(work: () => Promise<unknown>): Promise<number> {
  const { parse } = StoredObject.prototype;
  let count = 0;
  StoredObject.prototype.parse = function () {
    count++;
    return parse.call(this);
  };
  try {
    await work();
  } finally {
    StoredObject.prototype.parse = parse;
  }
  return count;
}

test("a check after a change costs the same with many bindings", () =>
  onServer(async (server) => {
    await server.grant([{
      apiGroups: ["*"],
      resources: ["*"],
      verbs: ["*"],
    }]);
    const make = (user: string) =>
      server.bind("ClusterRole", "view", {
        user,
        namespace: "default",
        as: "ann",
      });
    await make("first");
    const few = await decodedDuring(() => make("second"));
    for (let i = 0; i < 20; i++) {
      await server.bind("ClusterRole", "view", {
        user: `other-${i}`,
        namespace: "kube-system",
      });
    }
    assert.equal(await decodedDuring(() => make("third")), few);
  }));

test("a changed binding or role counts at once, and the others stay", () =>
  onServer(async (server) => {
    const pods = "/api/v1/namespaces/default/pods";
    const rights = () =>
      Promise.all(
        ["ann", "bob"].map(async (user) =>
          (await server.as(user, "GET", pods)).status
        ),
      );
    const rules = [{ apiGroups: [""], resources: ["pods"], verbs: ["list"] }];
    const place = { namespace: "default", name: "a" };
    await server.grant(rules, place);
    assert.deepEqual(await rights(), [200, 403]);
    await server.bind("Role", "a", { ...place, user: "bob" });
    assert.deepEqual(await rights(), [200, 200]);
    const home = `${RBAC}/namespaces/default`;
    await server.send("DELETE", `${home}/rolebindings/a-bob`);
    assert.deepEqual(await rights(), [200, 403]);
    const path = `${home}/rolebindings/a-ann`;
    const { body } = await server.send("GET", path);
    const subjects = [{ kind: "User", name: "bob" }];
    await server.send("PUT", path, { ...body, subjects });
    assert.deepEqual(await rights(), [403, 200]);
    await server.send("DELETE", `${home}/roles/a`);
    assert.deepEqual(await rights(), [403, 403]);
    await server.send("POST", `${home}/roles`, {
      metadata: { name: "a" },
      rules,
    });
    assert.deepEqual(await rights(), [403, 200]);
  }));
