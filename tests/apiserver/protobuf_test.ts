// deno-lint-ignore-file no-explicit-any -- tests look at whatever is there
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { decodeTyped } from "../../dev/apiserver/builtin/decode.ts";
import {
  definitionOfKind,
  goType,
} from "../../dev/apiserver/builtin/go_types.ts";
import { readProtobuf } from "../../dev/apiserver/builtin/protobuf.ts";
import { writeProtobuf } from "../../dev/apiserver/builtin/protobuf_writer.ts";
import { wireForm } from "../../dev/apiserver/builtin/protobuf_fields.ts";
import { RESOURCES } from "../../dev/apiserver/builtin/data/resource_table.ts";
import type { Schema } from "../../dev/apiserver/merge/schema.ts";
import { fc } from "../support/property.ts";
import type { JsonObject } from "../../core/patch/json_value.ts";

/** What kubectl 1.32 sent, and what the same command printed as JSON. */
const RECORDED = JSON.parse(
  readFileSync(new URL("protobuf_bodies.json", import.meta.url), "utf8"),
) as readonly {
  readonly command: string;
  readonly body: string;
  readonly object: JsonObject;
}[];

/** What a server holds of an object, in which absent and empty are the same. */
function held(object: JsonObject): JsonObject {
  const { apiVersion, kind } = object;
  const definition = definitionOfKind(String(apiVersion), String(kind));
  const decoded = decodeTyped(goType(definition ?? ""), object);
  assert.deepEqual(decoded.problems, []);
  return decoded.object;
}

/** A message of fields, each a number and text or bytes. */
function message(
  ...fields: readonly (readonly [number, string | Uint8Array])[]
): Uint8Array {
  return Buffer.concat(fields.map(([number, value]) => {
    const bytes = Buffer.from(value);
    assert(number < 16 && bytes.length < 128);
    return Buffer.concat([Buffer.of(number * 8 + 2, bytes.length), bytes]);
  }));
}

function body(
  apiVersion: string,
  kind: string,
  object: Uint8Array,
): Uint8Array {
  const envelope = message([1, message([1, apiVersion], [2, kind])], [
    2,
    object,
  ]);
  return Buffer.concat([Buffer.from("k8s\0"), envelope]);
}

for (const { command, body, object } of RECORDED) {
  test(`readProtobuf decodes the body of ${command.slice(0, 44)}`, () => {
    const read = readProtobuf(Buffer.from(body, "base64"));
    assert.deepEqual(held(read), held(object));
  });
}

test("readProtobuf decodes maps, embedded structs and times", () => {
  const meta = message(
    [1, "a"],
    [8, Buffer.of(8, 0x80, 0x94, 0xeb, 0xdc, 3)],
    [11, message([1, "k"], [2, "v"])],
    [11, message([1, "__proto__"], [2, "w"])],
  );
  const volume = message([1, "v"], [2, message([2, message([1, "Memory"])])]);
  const pod = readProtobuf(
    body("v1", "Pod", message([1, meta], [2, message([1, volume])])),
  );
  assert.deepEqual(pod["spec"], {
    volumes: [{ name: "v", emptyDir: { medium: "Memory" } }],
  });
  const metadata = pod["metadata"] as Record<string, unknown>;
  assert.equal(metadata["creationTimestamp"], "2001-09-09T01:46:40Z");
  assert.deepEqual(Object.entries(metadata["labels"] as object), [
    ["k", "v"],
    ["__proto__", "w"],
  ]);
});

test("readProtobuf ignores unknown fields", () => {
  const config = message([15, "later"], [2, message([1, "k"], [2, "v"])]);
  assert.deepEqual(readProtobuf(body("v1", "ConfigMap", config)), {
    apiVersion: "v1",
    kind: "ConfigMap",
    data: { k: "v" },
  });
});

test("readProtobuf rejects a message truncated at any byte", () => {
  const [recorded] = RECORDED;
  const whole = Buffer.from(recorded?.body ?? "", "base64");
  for (let length = 0; length < whole.length; length++) {
    try {
      readProtobuf(whole.subarray(0, length));
    } catch (error) {
      assert(error instanceof SyntaxError, `at ${length}: ${error}`);
    }
  }
  const refused: readonly (readonly [Uint8Array, RegExp])[] = [
    [Buffer.from("{}"), /no magic number/],
    [body("v1", "Sailboat", message()), /a kind that has none: v1 Sailboat/],
    [body("v1", "ConfigMap", Buffer.of(0x0b)), /wire type 3/],
    [body("v1", "ConfigMap", Buffer.of(0x0a, 9, 1)), /9 bytes where fewer/],
    [body("v1", "ConfigMap", Buffer.of(0x0a, 1, 0xff)), /unexpected end/],
    [body("v1", "ConfigMap", Buffer.alloc(12, 0xff)), /more than ten bytes/],
    [body("v1", "ConfigMap", Buffer.of(0x08, 1)), /a number for bytes/],
    [
      body("v1", "Secret", message([3, Buffer.of(0xff)])),
      /a text that is not UTF-8/,
    ],
  ];
  for (const [bytes, why] of refused) {
    assert.throws(() => readProtobuf(bytes), (error: Error) => {
      assert(error instanceof SyntaxError);
      assert.match(error.message, why);
      return true;
    });
  }
});

/** What kube-apiserver 1.32 answers, and the same answer as JSON. */
const ANSWERED = JSON.parse(
  readFileSync(new URL("protobuf_answers.json", import.meta.url), "utf8"),
) as readonly {
  readonly path: string;
  readonly body: string;
  readonly object: JsonObject;
}[];

for (const { path, body, object } of ANSWERED) {
  const name = path.replace(/^.*\/(.{1,40})$/, "$1");
  test(`writeProtobuf encodes ${object["kind"]} ${name} as kube-apiserver`, () => {
    const encoded = Buffer.from(writeProtobuf(object)).toString("base64");
    assert.equal(encoded, body);
  });
}

test("readProtobuf reads the schemas of a CustomResourceDefinition", () => {
  const [recorded] = ANSWERED;
  const read = readProtobuf(Buffer.from(recorded?.body ?? "", "base64"));
  assert.deepEqual(held(read), held(recorded?.object ?? {}));
  const one = (schema: JsonObject) => {
    const crd = structuredClone(recorded?.object) as any;
    crd.spec.versions[0].schema.openAPIV3Schema = schema;
    const { spec } = readProtobuf(writeProtobuf(crd)) as any;
    return held({ ...crd, spec });
  };
  const schema: JsonObject = {
    additionalProperties: false,
    items: [{ type: "string" }, {}],
    dependencies: { a: ["b", "c"], d: { type: "object" } },
    enum: [null, "a", 1.5, { b: [true] }],
    default: { a: null },
    maximum: -0.125,
    minLength: 2 ** 40,
    $ref: "#/a",
    "x-kubernetes-preserve-unknown-fields": true,
  };
  assert.deepEqual(
    (one(schema) as any).spec.versions[0].schema.openAPIV3Schema,
    (held({
      ...recorded?.object,
      spec: { versions: [{ schema: { openAPIV3Schema: schema } }] },
    }) as any).spec.versions[0].schema.openAPIV3Schema,
  );
});

/** Values of a schema, to a depth at which recursive schemas end. */
function valuesOf(schema: Schema, depth: number): fc.Arbitrary<unknown> {
  switch (wireForm(schema)) {
    case "empty":
      return fc.constant({});
    case "schemaOrArray":
      return fc.constantFrom<unknown>({ type: "string" }, [{ format: "x" }]);
    case "schemaOrBool":
      return fc.constantFrom<unknown>(true, false, { minLength: 1 });
    case "schemaOrTexts":
      return fc.constantFrom<unknown>(["a", "b"], { minLength: 1 });
    case "quantity":
      return fc.constantFrom("1", "1500m", "2Gi");
    case "intOrString":
      return fc.oneof(fc.integer(), fc.constantFrom("25%", "http"));
    case "time":
      return fc.constantFrom("2026-01-02T03:04:05Z", "1969-12-31T23:59:59Z");
    case "microTime":
      return fc.constantFrom("2026-01-02T03:04:05.000600Z");
    case "bytes":
      return fc.constantFrom("AP8=", "YQ==");
    case "any":
      return fc.constantFrom({ a: [1, "é"] }, { "": null });
    case undefined:
      break;
  }
  const { items, additionalProperties: values, type } = schema;
  const size = { minLength: 1, maxLength: 2 };
  if (items) return fc.array(valuesOf(items, depth - 1), size);
  if (values) {
    return fc.tuple(fc.constantFrom("k", "ü"), valuesOf(values, depth - 1))
      .map(([key, value]) => ({ [key]: value }));
  }
  if (type === "string") return fc.constantFrom("x", "ü€😀", "a".repeat(200));
  if (type === "boolean") return fc.constant(true);
  if (type === "number") return fc.constantFrom(0.5, -1e21);
  if (type === "integer") {
    return schema.format === "int64"
      ? fc.constantFrom(1, 300, -1, 2 ** 53 - 1, -(2 ** 52))
      : fc.constantFrom(1, 127, 128, -1, 2 ** 31 - 1);
  }
  const fields = depth <= 0 ? [] : [...schema.properties]
    .filter(([name]) => name !== "apiVersion" && name !== "kind");
  return fc.record(
    Object.fromEntries(
      fields.map(([name, field]) => [name, valuesOf(field, depth - 1)]),
    ),
    { requiredKeys: [] },
  );
}

test("protobuf of every built-in kind reads back as it was written", () => {
  for (const { group, version, kind } of RESOURCES) {
    const apiVersion = group === "" ? version : `${group}/${version}`;
    for (const name of [kind, `${kind}List`]) {
      const definition = definitionOfKind(apiVersion, name);
      if (definition === undefined) continue;
      const values = valuesOf(goType(definition).schema, 5);
      fc.assert(
        fc.property(values, (value) => {
          const object = { apiVersion, kind: name, ...value as JsonObject };
          const read = readProtobuf(writeProtobuf(object));
          assert.deepEqual(held(read), held(object));
        }),
        { numRuns: 3 },
      );
    }
  }
});

test("readProtobuf reads the options of a deletion in any group version", () => {
  const text = (value: string) => Buffer.from(value);
  for (
    const version of ["v1", "apps/v1", "apiextensions.k8s.io/v1", "x.y/v2"]
  ) {
    const meta = message([1, version], [2, "DeleteOptions"]);
    // Field 4 is propagationPolicy.
    const options = message([4, text("Orphan")]);
    const body = Buffer.concat([
      text("k8s\0"),
      message([1, meta], [2, options]),
    ]);
    assert.deepEqual(readProtobuf(body), {
      apiVersion: version,
      kind: "DeleteOptions",
      propagationPolicy: "Orphan",
    });
  }
});
