import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { crdCommand } from "../../dev/cli/crd_command.ts";
import { runCommandLine } from "../../dev/cli/main.ts";
import { temporaryFolder, writeText } from "../support/temporary_folder.ts";

const DEFINITION = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: { name: boats.test.coracle.dev }
spec:
  group: test.coracle.dev
  scope: Namespaced
  names: { kind: Boat, plural: boats, singular: boat, listKind: BoatList, shortNames: [bt] }
  versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          type: object
          required: [spec]
          properties:
            apiVersion: { type: string }
            kind: { type: string }
            metadata: { type: object }
            spec:
              type: object
              description: "What to build:\\n<b>a boat</b> | a raft"
              required: [seats]
              x-kubernetes-validations:
                - rule: self.seats > 0 || has(self.port)
                  message: needs a seat
              properties:
                seats: { type: integer, format: int32, minimum: 0, exclusiveMinimum: true, default: 2 }
                port: { x-kubernetes-int-or-string: true }
                colour: { type: string, enum: [red, blue], nullable: true }
                oars: { type: array, maxItems: 4, items: { type: object, properties: { length: { type: number } } } }
                labels: { type: object, additionalProperties: { type: string } }
                open: { type: object, x-kubernetes-preserve-unknown-fields: true, properties: { a: { type: string } } }
                template: { type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true }
`;

async function reference(definition: string) {
  const folder = temporaryFolder();
  const file = writeText(folder, "boats.yaml", definition);
  const output = join(folder, "docs");
  let said = "";
  const code = await runCommandLine(
    ["crd", file, "--reference", output],
    {
      colors: false,
      out: () => {},
      say: (text) => void (said += text),
      interrupts: () => new AbortController().signal,
    },
    [crdCommand],
  );
  const read = (path: string) => readFileSync(join(output, path), "utf8");
  return { code, said, read };
}

test("coracle crd --reference writes a page with all fields and rules", async () => {
  const { code, said, read } = await reference(DEFINITION);
  assert.equal(code, 0, said);
  assert.equal(
    read("reference.md"),
    `# Reference

## Boat

Namespaced, \`kubectl get boats.test.coracle.dev\`, short names \`bt\`.

### Boat test.coracle.dev/v1

Stored in this version.

| field | type | description |
| --- | --- | --- |
| \`spec\` | object | Required. What to build: &lt;b>a boat&lt;/b> \\| a raft |
| \`spec.seats\` | integer (int32) | Required. Default: \`2\`. Above \`0\`. |
| \`spec.port\` | integer or string |  |
| \`spec.colour\` | string | One of \`red\`, \`blue\`. May be null. |
| \`spec.oars\` | list of object | Most items: \`4\`. |
| \`spec.oars[].length\` | number |  |
| \`spec.labels\` | map of string |  |
| \`spec.open\` | object |  |
| \`spec.open.a\` | string |  |
| \`spec.template\` | object |  |

Rules of the whole object and of its fields:

- \`spec\`: \`self.seats > 0 || has(self.port)\`: needs a seat
`,
  );
});

test("coracle crd --reference writes a JSON Schema for editors", async () => {
  const { said, read } = await reference(DEFINITION);
  assert.match(said, /Wrote .*\/test\.coracle\.dev\/boat_v1\.json\.$/m);
  const schema = JSON.parse(read("test.coracle.dev/boat_v1.json"));
  assert.deepEqual(schema.required, ["apiVersion", "kind", "spec"]);
  assert.deepEqual(schema.properties.apiVersion.enum, ["test.coracle.dev/v1"]);
  assert.equal(schema.additionalProperties, false);
  const metadata = schema.properties.metadata;
  const { description: _, required, ...spec } = schema.properties.spec;
  assert.deepEqual(required, ["seats"]);
  assert.deepEqual(spec, {
    type: "object",
    additionalProperties: false,
    properties: {
      seats: { type: "integer", exclusiveMinimum: 0, default: 2 },
      port: { type: ["integer", "string"] },
      colour: { type: ["string", "null"], enum: ["red", "blue", null] },
      oars: {
        type: "array",
        maxItems: 4,
        items: {
          type: "object",
          properties: { length: { type: "number" } },
          additionalProperties: false,
        },
      },
      labels: { type: "object", additionalProperties: { type: "string" } },
      open: { type: "object", properties: { a: { type: "string" } } },
      template: {
        type: "object",
        properties: {
          apiVersion: { type: "string" },
          kind: { type: "string" },
          metadata,
        },
      },
    },
  });
});

test("coracle crd --reference writes no file outside of its folder", async () => {
  const { code, said } = await reference(
    DEFINITION.replace("kind: Boat,", "kind: ../../Boat,"),
  );
  assert.equal(code, 2);
  assert.match(said, /must be of letters, digits, dashes and dots|kind/);
});
