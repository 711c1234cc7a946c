import assert from "node:assert/strict";
import { test } from "node:test";
import { readJson, writeJson } from "../../dev/apiserver/exact_json.ts";
import { readProtobuf } from "../../dev/apiserver/builtin/protobuf.ts";
import { writeProtobuf } from "../../dev/apiserver/builtin/protobuf_writer.ts";
import { type ApiSession, withSession } from "./support/api_session.ts";

/** An integer that no double holds: the next one is 9007199254740992. */
const ODD = "9007199254740993";
/** The largest integer of 64 bits. */
const MOST = "9223372036854775807";

/** A definition as JSON; `ODD` in it is an integer. */
const CRD = JSON.stringify({
  metadata: { name: "bigs.example.com" },
  spec: {
    group: "example.com",
    names: { kind: "Big", plural: "bigs" },
    scope: "Namespaced",
    versions: [{
      name: "v1",
      served: true,
      storage: true,
      additionalPrinterColumns: [
        { name: "A", type: "integer", jsonPath: ".spec.a" },
        { name: "N", type: "number", jsonPath: ".spec.a" },
      ],
      selectableFields: [{ jsonPath: ".spec.a" }],
      schema: {
        openAPIV3Schema: {
          type: "object",
          properties: {
            spec: {
              type: "object",
              properties: {
                a: { type: "integer", format: "int64" },
                d: { type: "integer", default: "ODD" },
                e: { type: "integer", enum: ["ODD", 1] },
                f: { type: "integer", format: "int32" },
                m: { type: "integer", multipleOf: 3 },
                i: { "x-kubernetes-int-or-string": true },
                r: {
                  type: "integer",
                  "x-kubernetes-validations": [{ rule: `self != ${ODD}` }],
                },
                s: {
                  type: "array",
                  "x-kubernetes-list-type": "set",
                  items: { type: "integer" },
                },
                u: {
                  type: "object",
                  "x-kubernetes-preserve-unknown-fields": true,
                },
              },
            },
          },
        },
      },
    }],
  },
}).replaceAll('"ODD"', ODD);

const BIGS = "/apis/example.com/v1/namespaces/default/bigs";
const MERGE = { "content-type": "application/merge-patch+json" };
const JSON_PATCH = { "content-type": "application/json-patch+json" };
const APPLY = { "content-type": "application/apply-patch+yaml" };

function withBigs(run: (session: ApiSession) => Promise<void>): Promise<void> {
  return withSession(async (session) => {
    const { status, text } = await session.sendText(
      "POST",
      "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
      CRD,
    );
    assert.equal(status, 201, text);
    await run(session);
  });
}

function big(name: string, spec: string): string {
  return `{"apiVersion":"example.com/v1","kind":"Big","metadata":{"name":"${name}"},"spec":${spec}}`;
}

/** The `spec` in an answer, as its text. */
function specOf(text: string): string {
  return /"spec":(\{.*?\})\}/.exec(text)?.[1] ?? text;
}

test("An integer of 64 bits is stored, defaulted, listed and watched exactly", () =>
  withBigs(async (session) => {
    const body = big("a", `{"a":${MOST},"i":${ODD},"u":{"x":[-${MOST}]}}`);
    const { status, text } = await session.sendText("POST", BIGS, body);
    assert.equal(status, 201, text);
    const spec = `{"a":${MOST},"d":${ODD},"i":${ODD},"u":{"x":[-${MOST}]}}`;
    const canonical = (text: string) => [...text].sort().join("");
    for (const path of ["/a", "", `?fieldSelector=spec.a%3D${MOST}`]) {
      const answer = await session.sendText("GET", `${BIGS}${path}`);
      assert.equal(canonical(specOf(answer.text)), canonical(spec));
    }
    const watched = await session.sendText(
      "GET",
      `${BIGS}?watch=1&timeoutSeconds=1`,
    );
    assert.match(watched.text, new RegExp(`"a":${MOST}`));
    const table = await session.sendText("GET", `${BIGS}/a`, undefined, {
      accept: "application/json;as=Table;g=meta.k8s.io;v=v1",
    });
    assert.match(
      table.text,
      new RegExp(`\\[\"a\",${MOST},9223372036854776000]`),
    );
  }));

test("A patch or an apply keeps integers of 64 bits, and a test tells them apart", () =>
  withBigs(async (session) => {
    await session.sendText("POST", BIGS, big("a", `{"a":${ODD}}`));
    const patch = (body: string, headers: Record<string, string>, query = "") =>
      session.sendText("PATCH", `${BIGS}/a${query}`, body, headers);
    const labelled = await patch('{"metadata":{"labels":{"a":"b"}}}', MERGE);
    assert.match(labelled.text, new RegExp(`"a":${ODD}`));
    const merged = await patch('{"spec":{"a":9007199254740995}}', MERGE);
    assert.match(merged.text, /"a":9007199254740995/);
    const operations = (expected: string) =>
      `[{"op":"test","path":"/spec/a","value":${expected}},{"op":"replace","path":"/spec/a","value":${MOST}}]`;
    const wrong = await patch(operations("9007199254740996"), JSON_PATCH);
    assert.equal(wrong.status, 422);
    const replaced = await patch(operations("9007199254740995"), JSON_PATCH);
    assert.match(replaced.text, new RegExp(`"a":${MOST}`));
    const apply = (spec: string) =>
      patch(big("a", spec), APPLY, "?fieldManager=x");
    assert.equal((await apply(`{"a":9223372036854775806}`)).status, 409);
    const applied = await apply(`{"a":${MOST},"s":[${ODD}]}`);
    assert.match(applied.text, new RegExp(`"v:${ODD}":\\{\\}`));
    const moved = await apply(`{"a":${MOST},"s":[9007199254740992]}`);
    assert.match(moved.text, /"s":\[9007199254740992\]/);
  }));

for (
  const [spec, message] of [
    [
      '{"a":9223372036854775808}',
      'spec.a: Invalid value: "float64": spec.a in body must be of type int64: "float64"',
    ],
    [
      '{"d":1e16}',
      'spec.d: Invalid value: "number": spec.d in body must be of type integer: "number"',
    ],
    [
      '{"e":9007199254740992}',
      'spec.e: Unsupported value: 9007199254740992: supported values: "9007199254740993", "1"',
    ],
    [
      `{"f":${ODD}}`,
      `Checked value must be of type integer with format int32 in spec.f`,
    ],
    [
      '{"m":9007199254740994}',
      "spec.m: Invalid value: 9007199254740994: spec.m in body should be a multiple of 3",
    ],
    [`{"m":${ODD},"s":[${ODD},9007199254740992]}`, undefined],
    [`{"s":[${ODD},${ODD}]}`, `spec.s[1]: Duplicate value: ${ODD}`],
    [
      `{"r":${ODD}}`,
      `spec.r: Invalid value: ${ODD}: failed rule: self != ${ODD}`,
    ],
    ['{"r":9007199254740992}', undefined],
  ] as const
) {
  test(`Schema and rules judge ${spec} by all digits`, () =>
    withBigs(async (session) => {
      const { status, text } = await session.sendText(
        "POST",
        BIGS,
        big("a", spec),
      );
      assert.equal(status, message === undefined ? 201 : 422, text);
      if (message !== undefined) {
        const { message: said } = JSON.parse(text);
        assert.ok(said.includes(message), said);
      }
    }));
}

test("A built-in kind keeps integers of 64 bits and names them in refusals", () =>
  withSession(async (session) => {
    const revision = await session.sendText(
      "POST",
      "/apis/apps/v1/namespaces/default/controllerrevisions",
      `{"metadata":{"name":"a"},"revision":${MOST},"data":{"x":${ODD}}}`,
    );
    assert.equal(revision.status, 201, revision.text);
    assert.match(revision.text, new RegExp(`"data":\\{"x":${ODD}\\}`));
    assert.match(revision.text, new RegExp(`"revision":${MOST}`));
    const quota = await session.sendText(
      "POST",
      "/api/v1/namespaces/default/resourcequotas",
      `{"metadata":{"name":"a"},"spec":{"hard":{"pods":${ODD}}}}`,
    );
    assert.match(quota.text, new RegExp(`"pods":"${ODD}"`));
    const pod = (fields: string) =>
      session.sendText(
        "POST",
        "/api/v1/namespaces/default/pods",
        `{"metadata":{"name":"a"},"spec":{${fields},"containers":[{"name":"a","image":"b"}]}}`,
      );
    assert.match(
      (await pod(`"activeDeadlineSeconds":${MOST}`)).text,
      new RegExp(`Invalid value: ${MOST}: must be between 1 and 2147483647`),
    );
    assert.match(
      (await pod(`"priority":${ODD}`)).text,
      new RegExp(`cannot unmarshal number ${ODD} into .* of type int32`),
    );
    const service = await session.sendText(
      "POST",
      "/api/v1/namespaces/default/services",
      `{"metadata":{"name":"a"},"spec":{"ports":[{"port":80,"targetPort":3000000000}]}}`,
    );
    assert.equal(service.status, 400, service.text);
    const kept = await pod(`"terminationGracePeriodSeconds":${ODD}`);
    assert.match(kept.text, new RegExp(`GracePeriodSeconds":${ODD}`));
    const deleted = await session.sendText(
      "DELETE",
      "/api/v1/namespaces/default/pods/a",
      `{"gracePeriodSeconds":${ODD}}`,
    );
    assert.equal(deleted.status, 200, deleted.text);
  }));

test("A webhook changes no integer but those that it patches", () => {
  const seen: unknown[] = [];
  const patch = `[{"op":"add","path":"/spec/u","value":{"x":${ODD}}}]`;
  // deno-lint-ignore no-explicit-any -- the review of a webhook
  const review = ({ apiVersion, kind, request }: any) => {
    seen.push(request.object.spec.a);
    const response = {
      uid: request.uid,
      allowed: true,
      patchType: "JSONPatch",
    };
    return { apiVersion, kind, response: { ...response, patch: btoa(patch) } };
  };
  return withSession(async (session) => {
    await session.sendText(
      "POST",
      "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
      CRD,
    );
    await session.create(
      "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
      {
        metadata: { name: "a" },
        webhooks: [{
          name: "a.example.com",
          clientConfig: { service: { namespace: "ops", name: "a" } },
          rules: [{
            operations: ["*"],
            apiGroups: ["example.com"],
            apiVersions: ["v1"],
            resources: ["bigs"],
          }],
          sideEffects: "None",
          admissionReviewVersions: ["v1"],
        }],
      },
    );
    const { text } = await session.sendText(
      "POST",
      BIGS,
      big("a", `{"a":${ODD}}`),
    );
    assert.match(text, new RegExp(`"a":${ODD}`));
    assert.match(text, new RegExp(`"u":\\{"x":${ODD}\\}`));
    assert.deepEqual(seen, [Number(ODD)]);
  }, { services: { "ops/a": review } });
});

test("YAML gives integers of 64 bits exactly, and larger ones as doubles", () =>
  withBigs(async (session) => {
    const { text } = await session.sendText(
      "POST",
      BIGS,
      `apiVersion: example.com/v1\nkind: Big\nmetadata: {name: b}\nspec: {a: ${ODD}, u: {x: 18446744073709551615}}\n`,
      { "content-type": "application/yaml" },
    );
    assert.match(text, new RegExp(`"a":${ODD}`));
    assert.match(text, /"x":18446744073709552000/);
  }));

test("Protobuf carries integers of 64 bits exactly", () => {
  const text =
    `{"kind":"ControllerRevision","apiVersion":"apps/v1","metadata":{"name":"a"},"data":{"x":${ODD}},"revision":-${MOST}}`;
  const object = readJson(text) as Record<string, unknown>;
  const read = readProtobuf(writeProtobuf(object));
  assert.equal(read.revision, -BigInt(MOST));
  assert.equal(writeJson(read.data), `{"x":${ODD}}`);
});
