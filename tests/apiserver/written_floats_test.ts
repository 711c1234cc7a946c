import assert from "node:assert/strict";
import { test } from "node:test";
import { type ApiSession, withSession } from "./support/api_session.ts";

/** Definition with integers that are checked, scaled, ruled and in a set. */
const CRD = {
  metadata: { name: "floats.example.com" },
  spec: {
    group: "example.com",
    names: { kind: "Float", plural: "floats" },
    scope: "Namespaced",
    versions: [{
      name: "v1",
      served: true,
      storage: true,
      subresources: {
        status: {},
        scale: {
          specReplicasPath: ".spec.replicas",
          statusReplicasPath: ".status.replicas",
        },
      },
      schema: {
        openAPIV3Schema: {
          type: "object",
          properties: {
            spec: {
              type: "object",
              properties: {
                i: { type: "integer" },
                n: {
                  type: "number",
                  "x-kubernetes-validations": [{ rule: "self > 2.0" }],
                },
                replicas: { type: "integer" },
                ruled: {
                  type: "integer",
                  "x-kubernetes-validations": [{ rule: "self > 2" }],
                },
                outer: {
                  type: "object",
                  "x-kubernetes-validations": [{ rule: "self.inner > 2" }],
                  properties: { inner: { type: "integer" } },
                },
                set: {
                  type: "array",
                  "x-kubernetes-list-type": "set",
                  items: { type: "integer" },
                },
              },
            },
            status: {
              type: "object",
              properties: { replicas: { type: "integer" } },
            },
          },
        },
      },
    }],
  },
};

const FLOATS = "/apis/example.com/v1/namespaces/default/floats";
const DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments";
const MERGE = { "content-type": "application/merge-patch+json" };
const STRATEGIC = { "content-type": "application/strategic-merge-patch+json" };
const JSON_PATCH = { "content-type": "application/json-patch+json" };
const APPLY = { "content-type": "application/apply-patch+yaml" };
const YAML = { "content-type": "application/yaml" };

function withFloats(
  run: (session: ApiSession) => Promise<void>,
): Promise<void> {
  return withSession(async (session) => {
    const { status } = await session.send(
      "POST",
      "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
      CRD,
    );
    assert.equal(status, 201);
    await run(session);
  });
}

function float(spec: string, name = "a"): string {
  return `{"apiVersion":"example.com/v1","kind":"Float","metadata":{"name":"${name}"},"spec":${spec}}`;
}

function deployment(replicas: string, name = "a"): string {
  return `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"${name}"},"spec":{"replicas":${replicas},"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i:1.5","resources":{"limits":{"cpu":1e3,"memory":1.0}}}]}}}}`;
}

test("A whole number that is written as a float is no integer of a built-in kind", () =>
  withSession(async (session) => {
    for (const replicas of ["5.0", "1e3", "5E0", "-0.0", "1e-1", "5.5"]) {
      const { status, text } = await session.sendText(
        "POST",
        DEPLOYMENTS,
        deployment(replicas),
      );
      assert.equal(status, 400, text);
      assert.equal(
        JSON.parse(text).message,
        `Deployment in version "v1" cannot be handled as a Deployment: json: cannot unmarshal number ${replicas} into Go struct field DeploymentSpec.spec.replicas of type int32`,
      );
    }
    const { status, text } = await session.sendText(
      "POST",
      DEPLOYMENTS,
      deployment("5"),
    );
    assert.equal(status, 201, text);
    // A quantity takes the text of a number.
    assert.match(text, /"limits":\{"cpu":"1e3","memory":"1"\}/);
    for (
      const [headers, patch] of [
        [MERGE, '{"spec":{"replicas":6.0}}'],
        [
          JSON_PATCH,
          '[{"op":"replace","path":"/spec/replicas","value":6.0}]',
        ],
      ] as const
    ) {
      const refused = await session.sendText(
        "PATCH",
        `${DEPLOYMENTS}/a`,
        patch,
        headers,
      );
      assert.equal(refused.status, 422, refused.text);
      const { message } = JSON.parse(refused.text);
      assert.match(message, /"replicas\\":6\.0/);
      assert.match(
        message,
        /: json: cannot unmarshal number 6\.0 into Go struct field DeploymentSpec\.spec\.replicas of type int32$/,
      );
    }
  }));

test("A strategic merge patch, YAML and an apply make integers of whole floats", () =>
  withSession(async (session) => {
    const created = await session.sendText(
      "POST",
      DEPLOYMENTS,
      "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec:\n  replicas: 5.0\n  selector: {matchLabels: {a: b}}\n  template:\n    metadata: {labels: {a: b}}\n    spec: {containers: [{name: c, image: i}]}\n",
      YAML,
    );
    assert.equal(created.status, 201, created.text);
    assert.match(created.text, /"replicas":5,/);
    const patched = await session.sendText(
      "PATCH",
      `${DEPLOYMENTS}/a`,
      '{"spec":{"replicas":1e1}}',
      STRATEGIC,
    );
    assert.equal(patched.status, 200, patched.text);
    assert.match(patched.text, /"replicas":10,/);
    const applied = await session.sendText(
      "PATCH",
      `${DEPLOYMENTS}/b?fieldManager=x`,
      deployment("2.0", "b"),
      APPLY,
    );
    assert.equal(applied.status, 201, applied.text);
    assert.match(applied.text, /"replicas":2,/);
  }));

test("A whole float fits an integer of a schema, and is stored as an integer", () =>
  withFloats(async (session) => {
    const created = await session.sendText(
      "POST",
      FLOATS,
      float('{"i":5.0,"n":4.0,"set":[5.0,5]}'),
    );
    assert.equal(created.status, 201, created.text);
    assert.match(
      created.text,
      /"spec":\{"i":5,"n":4,"set":\[5,5\]\}/,
    );
    const test = (value: string) =>
      session.sendText(
        "PATCH",
        `${FLOATS}/a`,
        `[{"op":"test","path":"/spec/i","value":${value}}]`,
        JSON_PATCH,
      );
    assert.equal((await test("5.0")).status, 422);
    assert.equal((await test("5")).status, 200);
    for (const i of ["9007199254740993.0", "1e18"]) {
      const { status, text } = await session.sendText(
        "POST",
        FLOATS,
        float(`{"i":${i}}`, "b"),
      );
      assert.equal(status, 422, text);
    }
    // In YAML it becomes the digits of its double.
    const applied = await session.sendText(
      "PATCH",
      `${FLOATS}/b?fieldManager=x`,
      float('{"i":9007199254740993.0}', "b"),
      APPLY,
    );
    assert.equal(applied.status, 201, applied.text);
    assert.match(applied.text, /"i":9007199254740992\b/);
  }));

test("A rule or a scale takes no whole float for an integer", () =>
  withFloats(async (session) => {
    const wrong =
      'Invalid value: "integer": invalid data, expected int, got float64 evaluating rule: self > 2';
    for (
      const [spec, message] of [
        ['{"ruled":5.0}', `spec.ruled: ${wrong}`],
        [
          '{"outer":{"inner":5.0}}',
          'spec.outer: Invalid value: "object": invalid data, expected int, got float64 evaluating rule: self.inner > 2',
        ],
        [
          '{"replicas":1e1}',
          ".spec.replicas: Invalid value: 0: .spec.replicas accessor error: 10 is of the type float64, expected int64",
        ],
        ['{"n":1.0}', "spec.n: Invalid value: 1: failed rule: self > 2.0"],
      ] as const
    ) {
      const { status, text } = await session.sendText(
        "POST",
        FLOATS,
        float(spec),
      );
      assert.equal(status, 422, text);
      assert.equal(
        JSON.parse(text).message,
        `Float.example.com "a" is invalid: ${message}`,
      );
    }
    await session.sendText("POST", FLOATS, float('{"replicas":1}'));
    for (
      const [path, patch, message] of [
        ["", '{"spec":{"replicas":7.0}}', /7 is of the type float64/],
        ["/status", '{"status":{"replicas":7.0}}', /7 is of the type float64/],
        [
          "/scale",
          '{"spec":{"replicas":7.0}}',
          /cannot unmarshal number 7\.0 into Go struct field ScaleSpec/,
        ],
      ] as const
    ) {
      const { status, text } = await session.sendText(
        "PATCH",
        `${FLOATS}/a${path}`,
        patch,
        MERGE,
      );
      assert.equal(status, 422, text);
      assert.match(JSON.parse(text).message, message);
    }
  }));
