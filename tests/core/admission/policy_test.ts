import assert from "node:assert/strict";
import { after, test } from "node:test";
import { z } from "zod";
import { ApiServer } from "@coracle/dev/apiserver";
import {
  Client,
  deny,
  Operator,
  silentLogger,
  type Transport,
} from "@coracle/operator/core";
import {
  defineKind,
  immutable,
  mutatingPolicy,
  rule,
  validatingPolicy,
} from "@coracle/operator/crd";
import {
  ConfigMap,
  MutatingAdmissionPolicy,
  ValidatingAdmissionPolicy,
  ValidatingAdmissionPolicyBinding,
  ValidatingWebhookConfiguration,
} from "@coracle/operator/kinds";
import { webhookServices } from "../../../dev/testing/webhook_services.ts";
import { until } from "../../support/until.ts";

const { host, services } = webhookServices();
const server = await ApiServer.start({ port: false, services });
after(() => server.stop());

/** Transport to a server that has no policies, as Kubernetes before 1.30. */
const older: Transport = {
  ...server.transport,
  send: (request) =>
    server.transport.send({
      ...request,
      path: request.path.replace(/admissionpolic(?:y|ies)/, "unknown"),
    }),
  close: () => Promise.resolve(),
};

const limits = validatingPolicy(ConfigMap, {
  name: "limits.policy.test",
  operations: ["CREATE"],
  matchConditions: { limited: "has(object.data.limit)" },
  validations: [{
    expression: "int(object.data.limit) < 9",
    message: "too large for the policy",
  }],
});

function create(limit: string, name = "") {
  return server.client.create(ConfigMap, {
    metadata: { namespace: "default", generateName: "a-", name },
    data: limit === "" ? {} : { limit },
  }, { dryRun: true });
}

function operatorOn(transport?: Transport): Operator {
  return new Operator({
    client: transport ? new Client({ transport }) : server.client,
    logger: silentLogger,
    webhooks: host,
  });
}

test("a policy is applied with its binding, and removed on request", async () => {
  const operator = operatorOn();
  const seen: unknown[] = [];
  operator.admit(limits, { validate: (map) => void seen.push(map.data) });
  assert.deepEqual(operator.admission(), [{
    kind: "v1 ConfigMap",
    rule: "ValidatingAdmissionPolicy limits.policy.test",
    place: "policy",
    why:
      "the definition of its kind is not the operator's; from Kubernetes 1.30 on; before it validate() of a webhook",
  }]);
  await operator.start();
  try {
    await until(
      "the policy denies",
      () =>
        create("9").then(
          () => false,
          ({ message }) => /for the policy/.test(message),
        ),
    );
    await create("8");
    assert.equal(operator.admission()[0]?.place, "policy");
    assert.equal(operator.health().webhooks?.error, undefined);
    // The API server decides alone.
    assert.deepEqual(seen, []);
    const { items } = await server.client.list(ValidatingWebhookConfiguration);
    assert.deepEqual(items.flatMap(({ webhooks = [] }) => webhooks), []);
    await operator.removeWebhooks();
    const key = { name: limits.policy.metadata.name };
    const find = server.client.find.bind(server.client);
    assert.equal(await find(ValidatingAdmissionPolicy, key), undefined);
    assert.equal(await find(ValidatingAdmissionPolicyBinding, key), undefined);
  } finally {
    await operator.stop();
  }
});

test("a handler stands in for a policy where the server has none", async () => {
  const operator = operatorOn(older);
  operator.admit(limits, {
    validate: ({ data = {} }) =>
      Number(data["limit"]) < 9 ? undefined : deny("too large for the handler"),
  });
  const owner = mutatingPolicy(ConfigMap, {
    name: "owner.policy.test",
    mutations: [{ apply: "Object{data: {'owner': 'policy'}}" }],
  });
  operator.admit(owner, {
    default: (map) => ({ ...map, data: { ...map.data, owner: "handler" } }),
  });
  await operator.start();
  try {
    await assert.rejects(
      create("9"),
      /denied the request: too large for the handler/,
    );
    assert.equal((await create("8")).data?.["owner"], "handler");
    // The conditions of the policy are those of the webhook.
    await create("");
    const [{ why, ...first } = { why: "" }] = operator.admission();
    assert.deepEqual(first, {
      kind: "v1 ConfigMap",
      rule: "ValidatingAdmissionPolicy limits.policy.test",
      place: "webhook",
    });
    assert.equal(
      why,
      "the API server lacks its policies, which exist from Kubernetes 1.30 on",
    );
    const { client } = server;
    const { items } = await client.list(ValidatingAdmissionPolicy);
    assert.deepEqual(items, []);
    assert.deepEqual((await client.list(MutatingAdmissionPolicy)).items, []);
  } finally {
    await operator.stop();
  }
});

test("a policy alone needs no webhooks, and its absence shows in the health", async () => {
  const options = { logger: silentLogger };
  const operator = new Operator({ ...options, client: server.client });
  operator.admit(limits);
  assert.equal(operator.settings.webhooks, undefined);
  await operator.start();
  await until(
    "the policy denies",
    () => create("9").then(() => false, () => true),
  );
  await operator.removeWebhooks();
  await operator.stop();
  const lacking = new Operator({
    ...options,
    client: new Client({ transport: older }),
  });
  lacking.admit(limits);
  await assert.rejects(
    lacking.start(),
    /^Error: Cannot apply the ValidatingAdmissionPolicy limits\.policy\.test: the API server has them from Kubernetes 1\.30 on, and no handler stands in its place$/,
  );
});

test("admit() refuses handlers that do not what the policy does", () => {
  const operator = operatorOn();
  assert.throws(
    () => operator.admit(limits, { default: (map) => map }),
    /^TypeError: Cannot read the options of the handlers of policy limits\.policy\.test: only "validate" can stand in the place of a ValidatingAdmissionPolicy: received "default"/,
  );
  const byParams = validatingPolicy(ConfigMap, {
    name: "params.policy.test",
    params: { kind: ConfigMap },
    matchConditions: { wanted: "'params' != '' && params.data.on == 'yes'" },
    validations: [{ expression: "true" }],
  });
  operator.admit(byParams);
  assert.throws(
    () => operator.admit(byParams, { validate() {} }),
    /"matchConditions" must not use "params", which only policies have: received "wanted"$/,
  );
  for (const matchConditions of [{ "a b": "true" }, { a: "" }, { a: "(" }]) {
    assert.throws(
      () =>
        operator.admit(ConfigMap, { validate() {} }, {
          failurePolicy: "Fail",
          matchConditions,
        }),
      TypeError,
    );
  }
});

test("admission() says where each rule is enforced, and why there", () => {
  const Pool = defineKind({
    group: "policy.test",
    version: "v1",
    kind: "Pool",
    spec: z.object({
      min: z.int().min(1).default(1),
      max: z.int().max(9).optional(),
      name: z.string().meta({
        "x-kubernetes-validations": [rule("self.size() < 9")],
      }),
      tags: z.array(z.string().refine((tag) => tag !== "latest")).nullable()
        .optional(),
    }).refine(({ min, max = 9 }) => min <= max),
    versions: [{
      name: "v1beta1",
      spec: z.object({ size: z.string().trim() }),
      up: () => ({ spec: { min: 1, name: "a" } }),
      down: () => ({ spec: { size: "1" } }),
    }],
    rules: [immutable(".spec.name")],
  });
  const operator = operatorOn();
  operator.register(Pool, { reconcile() {} }, {
    admission: { failurePolicy: "Fail", validate() {} },
  });
  operator.admit(validatingPolicy(Pool, {
    name: "users.policy.test",
    validations: [{ expression: "request.userInfo.username != 'a'" }],
  }));
  const found = operator.admission().map(({ rule, place }) =>
    `${place} ${rule}`
  );
  assert.deepEqual(found, [
    "CEL rule the object: (has(self.spec) && has(self.spec.name)) == (has(oldSelf.spec) && has(oldSelf.sp…",
    "schema spec: required",
    "schema spec.name: required",
    "schema spec.min: minimum 1",
    "schema spec.min: default 1",
    "schema spec.max: maximum 9",
    "CEL rule spec.name: self.size() < 9",
    "nowhere spec: a check in code, such as refine()",
    "nowhere spec.tags[]: a check in code, such as refine()",
    "schema spec: required",
    "schema spec.size: required",
    "nowhere spec.size: a check in code, such as refine()",
    "webhook validate()",
    "policy ValidatingAdmissionPolicy users.policy.test",
  ]);
  const whys = operator.admission().map(({ why }) => why);
  assert.match(whys[0] ?? "", /compares with the stored object/);
  assert.match(whys.at(-1) ?? "", /^it reads the request and its user/);
});
