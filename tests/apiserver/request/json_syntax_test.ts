import assert from "node:assert/strict";
import { test } from "node:test";
import { jsonSyntaxProblem } from "../../../dev/apiserver/request/json_syntax.ts";
import { fc } from "../../support/property.ts";
import { withSession } from "../support/api_session.ts";

const problemOf = (text: string) =>
  jsonSyntaxProblem(new TextEncoder().encode(text));

const CONFIG_MAPS = "/api/v1/namespaces/default/configmaps";

/** Answers of kube-apiserver 1.37.2. */
const PROBLEMS: Readonly<Record<string, string>> = {
  "": "unexpected end of JSON input",
  "{": "unexpected end of JSON input",
  '{"a"': "unexpected end of JSON input",
  '{"a":1,': "unexpected end of JSON input",
  '{"a":"x': "unexpected end of JSON input",
  '"\\': "invalid character ' ' in string escape code",
  '{"a":1,}':
    "invalid character '}' looking for beginning of object key string",
  "{a:1}": "invalid character 'a' looking for beginning of object key string",
  "{'a':1}":
    "invalid character '\\'' looking for beginning of object key string",
  "[1,]": "invalid character ']' looking for beginning of value",
  "[,]": "invalid character ',' looking for beginning of value",
  '{"a":é}': "invalid character 'Ã' looking for beginning of value",
  '{"a":\x7f}': "invalid character '\\x7f' looking for beginning of value",
  "\ufeff{}": "invalid character 'ï' looking for beginning of value",
  '{"a" 1}': "invalid character '1' after object key",
  '{"a":1 "b"}': "invalid character '\"' after object key:value pair",
  '{"a":1]': "invalid character ']' after object key:value pair",
  '{"a":01}': "invalid character '1' after object key:value pair",
  "[1 2]": "invalid character '2' after array element",
  "[1}": "invalid character '}' after array element",
  '{"a":1}}': "invalid character '}' after top-level value",
  '{"a":tru}': "invalid character '}' in literal true (expecting 'e')",
  '{"a":nul': "invalid character ' ' in literal null (expecting 'l')",
  '{"a":-}': "invalid character '}' in numeric literal",
  '{"a":1.}': "invalid character '}' after decimal point in numeric literal",
  '{"a":1e+}': "invalid character '}' in exponent of numeric literal",
  '{"a":"\n"}': "invalid character '\\n' in string literal",
  '{"a":"\x01"}': "invalid character '\\x01' in string literal",
  '{"a":"\\x"}': "invalid character 'x' in string escape code",
  '{"a":"\\u12g4"}':
    "invalid character 'g' in \\u hexadecimal character escape",
};

test("A text that is no JSON has the problem that Go's decoder reports", () => {
  for (const [text, problem] of Object.entries(PROBLEMS)) {
    assert.equal(problemOf(text), problem, text);
  }
});

test("A text has a problem exactly if JSON.parse refuses it", () => {
  const cut = fc.tuple(fc.json({ maxDepth: 4 }), fc.nat(), fc.nat()).map((
    [text, from, length],
  ) => {
    const at = from % (text.length + 1);
    return text.slice(0, at) + text.slice(at + length % 3);
  });
  fc.assert(fc.property(cut, (text) => {
    let isJson = true;
    try {
      JSON.parse(text);
    } catch {
      isJson = false;
    }
    assert.equal(problemOf(text) === undefined, isJson, text);
  }));
});

test("A body that is no JSON is refused in Go's words, by each verb", () =>
  withSession(async (session) => {
    await session.create(CONFIG_MAPS, { metadata: { name: "a" } });
    const why = "invalid character '}' looking for beginning of value";
    const decoding = `couldn't get version/kind; json parse error: ${why}`;
    const unrecognized =
      `the object provided is unrecognized (must be of type ConfigMap): ${decoding} ({"a":})`;
    for (
      const [method, path, type, message] of [
        ["POST", CONFIG_MAPS, "json", unrecognized],
        ["PUT", `${CONFIG_MAPS}/a`, "json", unrecognized],
        ["DELETE", `${CONFIG_MAPS}/a`, "json", decoding],
        [
          "PATCH",
          `${CONFIG_MAPS}/a`,
          "json-patch+json",
          "invalid JSON patch",
        ],
        [
          "PATCH",
          `${CONFIG_MAPS}/a`,
          "merge-patch+json",
          "invalid JSON patch",
        ],
        [
          "PATCH",
          `${CONFIG_MAPS}/a`,
          "strategic-merge-patch+json",
          "invalid JSON patch",
        ],
      ] as const
    ) {
      const { status, text } = await session.sendText(method, path, '{"a":}', {
        "content-type": `application/${type}`,
      });
      assert.equal(status, 400, text);
      assert.equal(JSON.parse(text).message, message);
    }
  }));

test("A patch of another type is refused, and null changes nothing", () =>
  withSession(async (session) => {
    await session.create(CONFIG_MAPS, { metadata: { name: "a" } });
    const map = "value of type map[string]interface {}";
    const list = "value of type []handlers.jsonPatchOp";
    for (
      const [type, body, expected] of [
        [
          "merge-patch",
          "true",
          `error decoding patch: json: cannot unmarshal bool into Go ${map}`,
        ],
        ["merge-patch", "null", "Invalid JSON Patch"],
        [
          "strategic-merge-patch",
          "[]",
          `json: cannot unmarshal array into Go ${map}`,
        ],
        ["strategic-merge-patch", "null", undefined],
        [
          "json-patch",
          "1",
          `error decoding patch: json: cannot unmarshal number into Go ${list}`,
        ],
        [
          "json-patch",
          "[1]",
          "error decoding patch: json: cannot unmarshal number into Go value of type handlers.jsonPatchOp",
        ],
        [
          "json-patch",
          '[{"op":1}]',
          "error decoding patch: json: cannot unmarshal number into Go struct field jsonPatchOp.op of type string",
        ],
        ["json-patch", "null", undefined],
      ] as const
    ) {
      const { status, text } = await session.sendText(
        "PATCH",
        `${CONFIG_MAPS}/a`,
        body,
        { "content-type": `application/${type}+json` },
      );
      assert.equal(status, expected === undefined ? 200 : 400, text);
      assert.equal(JSON.parse(text).message, expected);
    }
  }));

test("Options of a deletion that cannot be read are error 400, also in protobuf", () =>
  withSession(async (session) => {
    await session.create(
      "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
      {
        metadata: { name: "as.example.com" },
        spec: {
          group: "example.com",
          names: { plural: "as", kind: "A" },
          scope: "Namespaced",
          versions: [{
            name: "v1",
            served: true,
            storage: true,
            schema: { openAPIV3Schema: { type: "object" } },
          }],
        },
      },
    );
    const path = "/apis/example.com/v1/namespaces/default/as/a";
    for (
      const [body, type] of [
        ["{", "json"],
        ["[]", "json"],
        ["a: {", "yaml"],
        ['{"dryRun":1}', "json"],
        ["x", "vnd.kubernetes.protobuf"],
      ] as const
    ) {
      const { status, text } = await session.sendText("DELETE", path, body, {
        "content-type": `application/${type}`,
      });
      assert.equal(status, 400, text);
    }
    const none = await session.sendText("DELETE", path, "null");
    assert.equal(none.status, 404);
  }));
