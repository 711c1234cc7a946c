import assert from "node:assert/strict";
import { test } from "node:test";
import { until } from "../../support/until.ts";
import { type ApiSession, withSession } from "../support/api_session.ts";

// deno-lint-ignore no-explicit-any -- tests look at whatever is there
type Any = any;

const MAPS = "/api/v1/namespaces/default/configmaps";
const GROUP = "/apis/admissionregistration.k8s.io/v1";

const MATCH = {
  resourceRules: [{
    operations: ["CREATE", "UPDATE"],
    apiGroups: [""],
    apiVersions: ["v1"],
    resources: ["configmaps"],
  }],
};

/** Adds a policy with one binding of the same name. */
async function policy(
  session: ApiSession,
  name: string,
  spec: Record<string, unknown>,
  binding: Record<string, unknown> = {},
): Promise<void> {
  await session.create(`${GROUP}/validatingadmissionpolicies`, {
    metadata: { name },
    spec: { matchConstraints: MATCH, ...spec },
  });
  await session.create(`${GROUP}/validatingadmissionpolicybindings`, {
    metadata: { name },
    spec: { policyName: name, validationActions: ["Deny"], ...binding },
  });
}

const map = (name: string, data: Record<string, string> = {}) => ({
  metadata: { name },
  data,
});

test("A validating policy denies what its validations refuse", async () => {
  await withSession(async (session) => {
    await policy(session, "p", {
      validations: [
        { expression: "object.data.size() < 3", message: "too many keys" },
        {
          expression: "!('secret' in object.data)",
          messageExpression: "'no secrets in ' + object.metadata.name",
          reason: "Forbidden",
        },
        { expression: "object.metadata.name != 'x'" },
      ],
    });
    await session.create(MAPS, map("fine", { a: "1" }));
    const refusal = async (object: unknown) => {
      const { status, body } = await session.send("POST", MAPS, object);
      assert.deepEqual(body.details.causes, [{
        message: body.message.replace(/^.*? is forbidden: /, ""),
      }]);
      return [status, body.reason, body.message];
    };
    const by =
      "is forbidden: ValidatingAdmissionPolicy 'p' with binding 'p' denied request:";
    assert.deepEqual(await refusal(map("a", { a: "", b: "", c: "" })), [
      422,
      "Invalid",
      `configmaps "a" ${by} too many keys`,
    ]);
    assert.deepEqual(await refusal(map("b", { secret: "" })), [
      403,
      "Forbidden",
      `configmaps "b" ${by} no secrets in b`,
    ]);
    assert.deepEqual(await refusal(map("x", {})), [
      422,
      "Invalid",
      `configmaps "x" ${by} expression 'object.data.size() < 3' resulted in error: no such key: data`,
    ]);
    await session.send(
      "DELETE",
      `${GROUP}/validatingadmissionpolicybindings/p`,
    );
    await session.create(MAPS, map("x"));
  });
});

test("Variables of a policy are evaluated lazily and see earlier ones", async () => {
  await withSession(async (session) => {
    await policy(session, "p", {
      variables: [
        { name: "keys", expression: "object.data.map(key, key)" },
        { name: "odd", expression: "object.data.none == ''" },
        { name: "many", expression: "variables.keys.size() > 1" },
      ],
      validations: [{
        expression: "!variables.many || variables.odd",
        messageExpression: "'got ' + string(variables.keys.size())",
      }],
    });
    await session.create(MAPS, map("a", { a: "" }));
    const { body } = await session.send(
      "POST",
      MAPS,
      map("b", { a: "", b: "" }),
    );
    assert.match(
      body.message,
      /resulted in error: composited variable "odd" fails to evaluate: no such key: none$/,
    );
    const { body: third } = await session.send(
      "POST",
      MAPS,
      map("c", { a: "", none: "x" }),
    );
    assert.match(third.message, /denied request: got 2$/);
  });
});

test("Warn and Audit let requests pass", async () => {
  const events: Any[] = [];
  await withSession(async (session) => {
    await policy(session, "p", {
      validations: [{ expression: "false", message: "no" }],
      auditAnnotations: [
        { key: "name", valueExpression: "'map ' + object.metadata.name" },
        { key: "none", valueExpression: "null" },
      ],
    }, { validationActions: ["Warn", "Audit"] });
    const { status, headers } = await session.send("POST", MAPS, map("a"));
    assert.equal(status, 201);
    assert.equal(
      headers.warning,
      `299 - "Validation failed for ValidatingAdmissionPolicy 'p' with binding 'p': no"`,
    );
    assert.deepEqual(events.at(-1).annotations, {
      "validation.policy.admission.k8s.io/validation_failure":
        '[{"message":"no","policy":"p","binding":"p","expressionIndex":0,"validationActions":["Warn","Audit"]}]',
      "p/name": "map a",
    });
  }, { audit: (event) => events.push(event) });
});

test("An audit annotation has the first validation that failed", async () => {
  const events: Any[] = [];
  await withSession(async (session) => {
    await policy(session, "p", {
      validations: [
        { expression: "false", message: "first" },
        { expression: "false", message: "second" },
      ],
    }, { validationActions: ["Audit"] });
    await session.send("POST", MAPS, map("a"));
    const { annotations } = events.at(-1);
    const [failure] = JSON.parse(
      annotations["validation.policy.admission.k8s.io/validation_failure"],
    );
    assert.equal(failure.message, "first");
  }, { audit: (event) => events.push(event) });
});

test("A policy is evaluated for every parameter of its binding", async () => {
  await withSession(async (session) => {
    const spec = {
      paramKind: { apiVersion: "v1", kind: "ConfigMap" },
      validations: [{
        expression: "object.data.size() <= int(params.data.max)",
        messageExpression: "'at most ' + params.data.max",
      }],
    };
    const limit = (name: string, max: string) => ({
      metadata: { name, labels: { limit: "yes" } },
      data: { max },
    });
    await policy(session, "p", spec, {
      paramRef: { name: "limit", parameterNotFoundAction: "Deny" },
    });
    const refused = await session.send("POST", MAPS, map("a", { a: "" }));
    assert.equal(refused.status, 422);
    assert.match(
      refused.body.message,
      /denied request: failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction$/,
    );
    const elsewhere = "/api/v1/namespaces/kube-public/configmaps";
    await session.create(elsewhere, limit("limit", "1")).catch(() => {});
    await session.send(
      "DELETE",
      `${GROUP}/validatingadmissionpolicybindings/p`,
    );
    await session.create(MAPS, limit("one", "3"));
    await session.create(MAPS, limit("two", "2"));
    await session.create(`${GROUP}/validatingadmissionpolicybindings`, {
      metadata: { name: "all" },
      spec: {
        policyName: "p",
        validationActions: ["Deny"],
        paramRef: {
          selector: { matchLabels: { limit: "yes" } },
          parameterNotFoundAction: "Allow",
        },
      },
    });
    await session.create(MAPS, map("a", { a: "", b: "" }));
    const { body } = await session.send(
      "POST",
      MAPS,
      map("b", { a: "", b: "", c: "" }),
    );
    assert.match(body.message, /denied request: at most 2$/);
  });
});

test("Match conditions and the failure policy decide about failing policies", async () => {
  await withSession(async (session) => {
    await policy(session, "p", {
      matchConditions: [{
        name: "blue",
        expression: "object.metadata.?labels.team.orValue('') == 'blue'",
      }],
      failurePolicy: "Ignore",
      validations: [{ expression: "object.data.x == '1'" }],
    });
    await session.create(MAPS, map("a"));
    await session.create(MAPS, {
      metadata: { name: "b", labels: { team: "blue" } },
    });
    const { body } = await session.send("POST", MAPS, {
      metadata: { name: "c", labels: { team: "blue" } },
      data: { x: "2" },
    });
    assert.match(body.message, /failed expression: object\.data\.x == '1'$/);
  });
});

test("A policy sees request, namespace and rights of the user", async () => {
  await withSession(async (session) => {
    const holds = async (expression: string, name: string) => {
      await policy(session, name, { validations: [{ expression }] });
      const { status, body } = await session.send("POST", MAPS, map(name));
      assert.equal(status, 201, body.message);
      await session.send(
        "DELETE",
        `${GROUP}/validatingadmissionpolicybindings/${name}`,
      );
    };
    const expressions = [
      "request.operation == 'CREATE' && request.kind.kind == 'ConfigMap'",
      "request.resource.resource == 'configmaps' && !has(request.subResource)",
      "'system:masters' in request.userInfo.groups && request.dryRun == false",
      "namespaceObject.metadata.name == 'default' && namespaceObject.status.phase == 'Active'",
      "authorizer.group('apps').resource('deployments').subresource('status').namespace('default').name('a').check('patch').allowed()",
      "authorizer.requestResource.check('create').allowed() && authorizer.path('/healthz').check('get').allowed()",
      "!authorizer.serviceAccount('default', 'default').group('').resource('pods').namespace('default').check('delete').allowed()",
      "oldObject == null && object.kind == 'ConfigMap'",
    ];
    for (const [index, expression] of expressions.entries()) {
      await holds(expression, `p${index}`);
    }
  });
});

test("Expressions of policies and webhooks must compile", async () => {
  await withSession(async (session) => {
    const { status, body } = await session.send(
      "POST",
      `${GROUP}/validatingadmissionpolicies`,
      {
        metadata: { name: "p" },
        spec: {
          matchConstraints: MATCH,
          variables: [{ name: "v", expression: "object.x +" }],
          validations: [
            { expression: "object.metadata.name" },
            { expression: "params.data == 1", messageExpression: "1" },
          ],
        },
      },
    );
    assert.equal(status, 422);
    assert.deepEqual(
      body.details.causes.map((
        { field, message }: Any,
      ) => [field, message.split("\n")[0]]),
      [
        [
          "spec.variables[0].expression",
          "Invalid value: \"object.x +\": compilation failed: ERROR: <input>:1:11: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}",
        ],
        [
          "spec.validations[0].expression",
          'Invalid value: "object.metadata.name": must evaluate to bool but got dyn',
        ],
        [
          "spec.validations[1].expression",
          `Invalid value: "params.data == 1": compilation failed: ERROR: <input>:1:1: undeclared reference to 'params' (in container '')`,
        ],
        [
          "spec.validations[1].messageExpression",
          'Invalid value: "1": must evaluate to string but got int',
        ],
      ],
    );
  });
});

test("The types of a policy are checked against the kinds of its rules", async () => {
  await withSession(async (session) => {
    const path = `${GROUP}/validatingadmissionpolicies`;
    await session.create(path, {
      metadata: { name: "p" },
      spec: {
        matchConstraints: {
          resourceRules: [{
            operations: ["CREATE"],
            apiGroups: ["apps"],
            apiVersions: ["v1"],
            resources: ["deployments"],
          }],
        },
        validations: [
          { expression: "object.spec.replicas > '1'" },
          { expression: "object.spec.maxRetries < 10" },
          {
            expression: "object.spec.replicas > 1",
            messageExpression: "'wants ' + object.spec.replicas",
          },
          { expression: "object.metadata.labels['a'] == 'b'" },
        ],
      },
    });
    let status: Any;
    await until("the policy is checked", async () => {
      ({ body: { status } } = await session.send("GET", `${path}/p`));
      return status?.observedGeneration === 1;
    });
    const { expressionWarnings } = status.typeChecking;
    assert.deepEqual(
      expressionWarnings.map(({ fieldRef, warning }: Any) => [
        fieldRef,
        warning.split("\n")[0],
      ]),
      [
        [
          "spec.validations[0].expression",
          "apps/v1, Kind=Deployment: ERROR: <input>:1:22: found no matching overload for '_>_' applied to '(int, string)'",
        ],
        [
          "spec.validations[1].expression",
          "apps/v1, Kind=Deployment: ERROR: <input>:1:12: undefined field 'maxRetries'",
        ],
        [
          "spec.validations[2].messageExpression",
          "apps/v1, Kind=Deployment: ERROR: <input>:1:10: found no matching overload for '_+_' applied to '(string, int)'",
        ],
      ],
    );
  });
});
