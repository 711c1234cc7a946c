import assert from "node:assert/strict";
import { test } from "node:test";
import { untyped } from "../../core/api/kind.ts";
import { roleAccess } from "../../testing/operator_access.ts";

const kind = (group: string, kind: string) =>
  untyped({ group, version: "v1", kind });
const RBAC = "rbac.authorization.k8s.io";

/** Verbs that an operator needs that writes these kinds. */
function verbsOf(...written: readonly ReturnType<typeof kind>[]): unknown {
  const access = roleAccess(written);
  const verbs = new Set(access.map(({ verbs }) => verbs.join()));
  assert.equal(verbs.size, Math.min(1, access.length));
  return [...verbs][0];
}

test("roleAccess gives rights over roles only to those who write them", () => {
  assert.equal(verbsOf(), undefined);
  assert.equal(verbsOf(kind(RBAC, "RoleBinding")), "bind");
  assert.equal(verbsOf(kind(RBAC, "ClusterRole")), "escalate");
  assert.equal(
    verbsOf(kind(RBAC, "Role"), kind(RBAC, "ClusterRoleBinding")),
    "bind,escalate",
  );
  const foreign = [kind("example.com", "Role"), kind("a.io", "PolicyBinding")];
  assert.equal(verbsOf(...foreign), undefined);
});
