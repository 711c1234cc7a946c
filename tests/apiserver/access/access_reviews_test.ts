import assert from "node:assert/strict";
import { test } from "node:test";
import * as builtin from "../../../dev/apiserver/builtin/builtin_definitions.ts";
import { TestServer } from "../support/test_server.ts";

const ACCESS = "/apis/authorization.k8s.io/v1";
const IDENTITY = "/apis/authentication.k8s.io/v1";
const resourceAttributes = { verb: "get", resource: "pods" };

async function ask(path: string, spec: unknown) {
  const server = new TestServer({ builtin });
  const answer = await server.send("POST", path, { spec });
  server.stop();
  return answer;
}

async function fieldsOf(path: string, spec: unknown): Promise<string[]> {
  const { status, body } = await ask(path, spec);
  assert.equal(status, 422);
  const causes: { field: string }[] = body.details.causes;
  return causes.map(({ field }) => field);
}

test("access reviews grant everything to the administrator and nothing to others", async () => {
  const self = await ask(`${ACCESS}/selfsubjectaccessreviews`, {
    resourceAttributes,
  });
  assert.equal(self.status, 201);
  assert.equal(self.body.status.allowed, true);
  const bob = await ask(`${ACCESS}/subjectaccessreviews`, {
    user: "bob",
    resourceAttributes,
  });
  assert.equal(bob.body.status.allowed, false);
  const local = await ask(
    `${ACCESS}/namespaces/default/localsubjectaccessreviews`,
    {
      user: "bob",
      groups: ["system:masters"],
      resourceAttributes: { ...resourceAttributes, namespace: "default" },
    },
  );
  assert.equal(local.body.status.allowed, true);
  assert.equal(local.body.metadata.namespace, "default");
});

test("access reviews require one kind of attributes and a user", async () => {
  const nonResourceAttributes = { path: "/x", verb: "get" };
  const self = `${ACCESS}/selfsubjectaccessreviews`;
  assert.deepEqual(await fieldsOf(self, {}), ["spec"]);
  assert.deepEqual(
    await fieldsOf(self, { resourceAttributes, nonResourceAttributes }),
    ["spec"],
  );
  assert.deepEqual(
    await fieldsOf(`${ACCESS}/subjectaccessreviews`, { resourceAttributes }),
    ["spec.user"],
  );
  const local = `${ACCESS}/namespaces/default/localsubjectaccessreviews`;
  const user = "bob";
  assert.deepEqual(await fieldsOf(local, { user, resourceAttributes }), [
    "spec.resourceAttributes.namespace",
  ]);
  assert.deepEqual(await fieldsOf(local, { user, nonResourceAttributes }), [
    "spec.nonResourceAttributes",
  ]);
});

test("SelfSubjectRulesReview requires a namespace", async () => {
  const path = `${ACCESS}/selfsubjectrulesreviews`;
  assert.equal((await ask(path, {})).status, 400);
  const { body } = await ask(path, { namespace: "default" });
  assert.deepEqual(body.spec, {});
  assert.deepEqual(body.status.resourceRules[0], {
    verbs: ["*"],
    apiGroups: ["*"],
    resources: ["*"],
  });
});

test("token and self subject reviews name the user", async () => {
  const path = `${IDENTITY}/tokenreviews`;
  assert.equal((await ask(path, {})).status, 400);
  const known = await ask(path, { token: "secret" });
  assert.equal(known.body.status.authenticated, true);
  const unknown = await ask(path, { token: "wrong" });
  assert.equal(unknown.body.status.authenticated, undefined);
  assert.ok(unknown.body.status.error);
  const self = await ask(`${IDENTITY}/selfsubjectreviews`, {});
  assert.deepEqual(self.body.status, { userInfo: known.body.status.user });
});
