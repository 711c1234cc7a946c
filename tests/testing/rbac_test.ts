import assert from "node:assert/strict";
import { test } from "node:test";
import { type ResolvedKind, untyped } from "@coracle/operator/client";
import {
  isCovered,
  policyRules,
  rbacManifests,
} from "../../dev/testing/rbac.ts";

function kind(
  group: string,
  name: string,
  scope: "Namespaced" | "Cluster",
): ResolvedKind {
  return {
    group,
    version: "v1",
    kind: name,
    plural: `${name.toLowerCase()}s`,
    scope,
  };
}

const ConfigMap = kind("", "ConfigMap", "Namespaced");
const Secret = kind("", "Secret", "Namespaced");
const Deployment = kind("apps", "Deployment", "Namespaced");
const Node = kind("", "Node", "Cluster");
const Lease = kind("coordination.k8s.io", "Lease", "Namespaced");

test("policyRules() merges only rules that can be merged", () => {
  assert.deepEqual(
    policyRules([
      { kind: Deployment, verbs: ["watch", "get"] },
      { kind: ConfigMap, verbs: ["get"] },
      { kind: Secret, verbs: ["watch", "list", "get"] },
      { kind: ConfigMap, verbs: ["list", "watch"] },
      { kind: Deployment, subresource: "status", verbs: ["patch"] },
      { kind: Node, verbs: [] },
    ]),
    [
      {
        apiGroups: [""],
        resources: ["configmaps", "secrets"],
        verbs: ["get", "list", "watch"],
      },
      {
        apiGroups: ["apps"],
        resources: ["deployments"],
        verbs: ["get", "watch"],
      },
      {
        apiGroups: ["apps"],
        resources: ["deployments/status"],
        verbs: ["patch"],
      },
    ],
  );
});

test("policyRules() rejects a kind whose plural is known only by discovery", () => {
  const Gateway = untyped({ group: "g.io", version: "v1", kind: "Gateway" });
  assert.throws(
    () => policyRules([{ kind: Gateway, verbs: ["get"] }]),
    /the plural name must be known: received g\.io\/v1 Gateway/,
  );
});

test("rbacManifests() binds one ClusterRole for all namespaces", () => {
  const manifests = rbacManifests({
    name: "op",
    namespace: "system",
    access: [
      { kind: ConfigMap, verbs: ["get"] },
      { kind: Lease, verbs: ["get", "create"], namespaces: ["system"] },
    ],
  });
  assert.deepEqual(
    manifests.map(({ kind, metadata }) => [kind, metadata.namespace]),
    [
      ["ServiceAccount", "system"],
      ["ClusterRole", undefined],
      ["ClusterRoleBinding", undefined],
      ["Role", "system"],
      ["RoleBinding", "system"],
    ],
  );
  assert.deepEqual(manifests[2]?.subjects, [
    { kind: "ServiceAccount", name: "op", namespace: "system" },
  ]);
});

test("rbacManifests() separates namespace roles from cluster-scoped kinds", () => {
  const manifests = rbacManifests({
    name: "op",
    namespace: "system",
    access: [
      { kind: ConfigMap, verbs: ["get"], namespaces: ["a", "b"] },
      { kind: Node, verbs: ["list"], namespaces: ["a", "b"] },
    ],
  });
  const roles = manifests.filter(({ rules }) => rules !== undefined);
  assert.deepEqual(
    roles.map(({ kind, metadata, rules }) => [
      kind,
      metadata.namespace,
      rules?.map(({ resources }) => resources).flat(),
    ]),
    [
      ["ClusterRole", undefined, ["nodes"]],
      ["Role", "a", ["configmaps"]],
      ["Role", "b", ["configmaps"]],
    ],
  );
  for (const { roleRef, metadata, subjects } of manifests) {
    if (roleRef === undefined) continue;
    const bound = manifests.filter((role) =>
      role.kind === roleRef.kind && role.metadata.name === roleRef.name &&
      role.metadata.namespace === metadata.namespace
    );
    assert.equal(bound.length, 1, `${roleRef.kind} ${roleRef.name}`);
    assert.deepEqual(subjects, [
      { kind: "ServiceAccount", name: "op", namespace: "system" },
    ]);
  }
});

test("rbacManifests() repeats no right for all namespaces in one namespace", () => {
  const manifests = rbacManifests({
    name: "op",
    namespace: "ops",
    access: [
      { kind: ConfigMap, verbs: ["get", "patch"] },
      { kind: ConfigMap, verbs: ["get"], namespaces: ["default", "ops"] },
      { kind: Lease, verbs: ["get"], namespaces: ["ops"] },
    ],
  });
  assert.deepEqual(
    manifests.filter(({ kind }) => kind === "Role").map((
      { metadata, rules },
    ) => [metadata.namespace, rules?.[0]?.resources]),
    [["ops", ["leases"]]],
  );
});

test("isCovered() needs each verb in each namespace", () => {
  const given = [{
    kind: ConfigMap,
    verbs: ["get", "list"],
    namespaces: ["a", "b"],
  }] as const;
  const get = { kind: ConfigMap, verbs: ["get"] } as const;
  assert.equal(isCovered({ ...get, namespaces: ["b"] }, given), true);
  assert.equal(isCovered({ ...get, namespaces: ["a", "b"] }, given), true);
  assert.equal(isCovered({ ...get, namespaces: ["b", "c"] }, given), false);
  assert.equal(isCovered(get, given), false, "all namespaces");
  const verbs = ["get", "patch"] as const;
  assert.equal(
    isCovered({ ...get, verbs, namespaces: ["a"] }, given),
    false,
  );
});

test("policyRules() has each verb, in the usual order", () => {
  const verbs = [
    "get",
    "list",
    "watch",
    "create",
    "update",
    "patch",
    "delete",
    "deletecollection",
    "bind",
    "escalate",
  ] as const;
  const [rule] = policyRules([{ kind: Node, verbs: verbs.toReversed() }]);
  assert.deepEqual(rule?.verbs, verbs);
});

test("isCovered() compares group, subresource and scope", () => {
  const verbs = ["get"] as const;
  const isIn = (
    one: Parameters<typeof isCovered>[0],
    other: Parameters<typeof isCovered>[0],
  ) => isCovered(one, [other]);
  const get = { kind: Deployment, verbs };
  assert.equal(isIn(get, get), true);
  assert.equal(isIn({ ...get, subresource: "status" }, get), false);
  const other = kind("extensions", "Deployment", "Namespaced");
  assert.equal(isIn({ ...get, kind: other }, get), false);
  const node = { kind: Node, verbs };
  assert.equal(isIn(node, { ...node, namespaces: ["a"] }), true);
});

test("rbacManifests() makes no role without rules", () => {
  const access = [{ kind: ConfigMap, verbs: ["get"], namespaces: ["a"] }];
  const manifests = rbacManifests({
    name: "op",
    namespace: "system",
    access: access as Parameters<typeof rbacManifests>[0]["access"],
  });
  assert.deepEqual(manifests.map(({ kind }) => kind), [
    "ServiceAccount",
    "Role",
    "RoleBinding",
  ]);
});

test("policyRules() has a rule of its own for each group", () => {
  const verbs = ["get"] as const;
  assert.deepEqual(
    policyRules([{ kind: Deployment, verbs }, { kind: ConfigMap, verbs }])
      .map(({ apiGroups, resources }) => [apiGroups, resources]),
    [[[""], ["configmaps"]], [["apps"], ["deployments"]]],
  );
});

test("rbacManifests() rejects a kind whose scope is not known", () => {
  const { scope: _, ...kind } = ConfigMap;
  assert.throws(
    () =>
      rbacManifests({
        name: "op",
        namespace: "system",
        access: [{ kind, verbs: ["get"] }],
      }),
    /^TypeError: Cannot create roles: the scope must be known: received v1 Con/,
  );
});
