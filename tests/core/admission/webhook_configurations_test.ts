import assert from "node:assert/strict";
import { test } from "node:test";
import { admissionOf } from "../../../core/admission/admission_options.ts";
import { registeredWebhooks } from "../../../core/admission/webhook_configurations.ts";
import { Pod } from "@coracle/operator/kinds";

const OPERATOR = {
  namespace: "shop-system",
  account: "system:serviceaccount:shop-system:shop",
};

/** Webhook for pods in namespaces, of an operator. */
function registered(
  namespaces: "all" | readonly string[],
  operator: { readonly [Part in keyof typeof OPERATOR]: string | undefined } =
    OPERATOR,
) {
  const { kind: _, ...admission } = admissionOf(Pod, { validate() {} }, {
    failurePolicy: "Fail",
    namespaceSelector: "env=prod",
    matchConditions: { named: "object.metadata.name != ''" },
  });
  const [webhook] = registeredWebhooks("validate", [{
    ...admission,
    kind: {
      version: "v1",
      group: "",
      kind: "Pod",
      plural: "pods",
      scope: "Namespaced",
    },
    paths: { default: "/default", validate: "/validate" },
    number: 1,
    namespaces,
  }], { operator, clientConfig: () => ({}) });
  return webhook!;
}

test("webhooks leave out the operator, its namespace and kube-system", () => {
  const all = registered("all");
  const env = { key: "env", operator: "In", values: ["prod"] };
  const key = "kubernetes.io/metadata.name";
  assert.deepEqual(all["namespaceSelector"], {
    matchExpressions: [env, {
      key,
      operator: "NotIn",
      values: ["kube-system", "shop-system"],
    }],
  });
  assert.deepEqual(all["matchConditions"], [
    {
      name: "not-the-operator",
      expression: `request.userInfo.username != "${OPERATOR.account}"`,
    },
    { name: "named", expression: "object.metadata.name != ''" },
  ]);
  assert.equal(all["failurePolicy"], "Fail");
  const named = registered(["shop-system"]);
  assert.deepEqual(named["namespaceSelector"], {
    matchExpressions: [env, { key, operator: "In", values: ["shop-system"] }],
  });
  // Outside of the cluster, as a person.
  const outside = registered("all", {
    namespace: undefined,
    account: undefined,
  });
  assert.match(
    JSON.stringify(outside["namespaceSelector"]),
    /"NotIn","values":\["kube-system"\]/,
  );
  assert.equal((outside["matchConditions"] as unknown[]).length, 1);
});
