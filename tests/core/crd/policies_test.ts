import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import { ApiServer } from "@coracle/dev/apiserver";
import { ApiError, untyped } from "@coracle/operator/client";
import {
  defineKind,
  mutatingPolicy,
  type MutatingPolicyOptions,
  validatingPolicy,
  type ValidatingPolicyOptions,
} from "@coracle/operator/crd";
import {
  ConfigMap,
  MutatingAdmissionPolicy,
  MutatingAdmissionPolicyBinding,
  ValidatingAdmissionPolicy,
  ValidatingAdmissionPolicyBinding,
} from "@coracle/operator/kinds";
import { until } from "../../support/until.ts";

const Pool = defineKind({
  group: "sea.example.org",
  version: "v1",
  kind: "Pool",
  spec: z.object({ size: z.int() }),
});

const VALID: ValidatingPolicyOptions = {
  name: "sizes.sea.example.org",
  validations: [{ expression: "object.spec.size < 9", message: "too large" }],
};

test("validatingPolicy() makes a policy and its binding", () => {
  const { since, policy, binding } = validatingPolicy(Pool, {
    ...VALID,
    operations: ["UPDATE"],
    subresources: ["status"],
    failurePolicy: "Ignore",
    matchConditions: { people: "!request.userInfo.username.startsWith('sys')" },
    variables: { limit: "int(params.data.limit)" },
    namespaceSelector: "team,env!=test",
    objectSelector: "checked=yes",
    params: { kind: ConfigMap, selector: "limits", missing: "Allow" },
    actions: ["Warn", "Audit"],
  });
  assert.equal(since, "1.30");
  assert.deepEqual(policy, {
    apiVersion: "admissionregistration.k8s.io/v1",
    kind: "ValidatingAdmissionPolicy",
    metadata: { name: "sizes.sea.example.org" },
    spec: {
      failurePolicy: "Ignore",
      matchConditions: [{
        name: "people",
        expression: "!request.userInfo.username.startsWith('sys')",
      }],
      matchConstraints: {
        matchPolicy: "Equivalent",
        namespaceSelector: {
          matchExpressions: [
            { key: "team", operator: "Exists" },
            { key: "env", operator: "NotIn", values: ["test"] },
          ],
        },
        objectSelector: {
          matchExpressions: [
            { key: "checked", operator: "In", values: ["yes"] },
          ],
        },
        resourceRules: [{
          apiGroups: ["sea.example.org"],
          apiVersions: ["v1"],
          operations: ["UPDATE"],
          resources: ["pools", "pools/status"],
        }],
      },
      paramKind: { apiVersion: "v1", kind: "ConfigMap" },
      validations: [
        { expression: "object.spec.size < 9", message: "too large" },
      ],
      variables: [{ name: "limit", expression: "int(params.data.limit)" }],
    },
  });
  assert.deepEqual(binding.spec, {
    policyName: "sizes.sea.example.org",
    paramRef: {
      parameterNotFoundAction: "Allow",
      selector: { matchExpressions: [{ key: "limits", operator: "Exists" }] },
    },
    validationActions: ["Warn", "Audit"],
  });
});

test("Policies are enforced by an API server, on built-in kinds too", async () => {
  const server = await ApiServer.start({ port: false });
  try {
    const { client } = server;
    const mutating = mutatingPolicy(ConfigMap, {
      name: "owners.example.org",
      operations: ["CREATE"],
      mutations: [
        { apply: "Object{data: {'owner': request.userInfo.username}}" },
        {
          patch: "[JSONPatch{op: 'add', path: '/data/checked', value: 'yes'}]",
        },
      ],
    });
    const validating = validatingPolicy(ConfigMap, {
      name: "limits.example.org",
      validations: [{
        expression: "!has(object.data.limit) || int(object.data.limit) < 9",
        messageExpression: "'not ' + object.data.limit",
      }],
    });
    await client.create(MutatingAdmissionPolicy, mutating.policy);
    await client.create(MutatingAdmissionPolicyBinding, mutating.binding);
    await client.create(ValidatingAdmissionPolicy, validating.policy);
    await client.create(ValidatingAdmissionPolicyBinding, validating.binding);
    const create = (limit: string) =>
      client.create(ConfigMap, {
        metadata: { generateName: "a-", namespace: "default", name: "" },
        data: { limit },
      });
    await until(
      "the policy changes",
      async () => (await create("1")).data?.["checked"] === "yes",
    );
    const { data } = await create("8");
    assert.deepEqual(Object.keys(data ?? {}).sort(), [
      "checked",
      "limit",
      "owner",
    ]);
    await assert.rejects(
      create("9"),
      (error) =>
        ApiError.is(error) && /denied request: not 9/.test(error.message),
    );
  } finally {
    await server.stop();
  }
});

for (
  const [what, options, message] of [
    ["an unknown field", {
      validations: [{ expression: "object.spec.sise > 1" }],
    }, /Pool, policy sizes.* no field "sise".*, did you mean "size"\?/],
    ["an open bracket", {
      matchConditions: { a: "has(object.spec.size" },
    }, /'\)' is missing/],
    ["no action", { actions: [] }, /'actions' must have Deny, Warn or Audit/],
    ["another operation", { operations: ["READ"] }, /'operations' must have/],
    ["an unknown option", { rules: [] }, /there is no option "rules"/],
    ["a reason that is none", {
      validations: [{ expression: "true", reason: "No" }],
    }, /"reason" must be one of/],
    ["no validations", { validations: undefined }, /"validations" must be/],
  ] as const
) {
  test(`validatingPolicy() refuses ${what}`, () => {
    assert.throws(
      () => validatingPolicy(Pool, { ...VALID, ...options } as never),
      message,
    );
  });
}

test("mutatingPolicy() refuses a change without one expression", () => {
  const make = (mutation: object) => () =>
    mutatingPolicy(
      Pool,
      { name: "a", mutations: [mutation] } as MutatingPolicyOptions,
    );
  assert.throws(make({}), /one of 'apply' and 'patch': received none/);
  assert.throws(make({ apply: "a", patch: "b" }), /received both/);
  assert.throws(
    () =>
      validatingPolicy(untyped({ group: "", version: "v1", kind: "A" }), VALID),
    /the kind must have a plural/,
  );
});
