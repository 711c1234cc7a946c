import assert from "node:assert/strict";
import { test } from "node:test";
import { ApiServer } from "@coracle/dev/apiserver";
import type { Terminal } from "@coracle/dev/cli";
import type { OpenApiSchema } from "@coracle/operator/core";
import type { CrdManifest } from "@coracle/operator/crd";
import { CustomResourceDefinition } from "@coracle/operator/kinds";
import { crdCommand } from "../../dev/cli/crd_command.ts";
import { runCommandLine } from "../../dev/cli/main.ts";
import {
  incompatibleChanges,
  schemaChanges,
} from "../../dev/cli/schema_changes.ts";
import { temporaryFolder, writeText } from "../support/temporary_folder.ts";

/** What changes from one schema of a field `a` to another. */
function changes(
  before: object | undefined,
  now: object | undefined,
): string[] {
  const schema = (a: object | undefined): OpenApiSchema => ({
    type: "object",
    properties: a === undefined ? {} : { a: { ...a } },
  });
  return [...schemaChanges(schema(now), schema(before))]
    .map(({ path, what }) => `${path}: ${what}`);
}

const text = { type: "string" };
const rules = (...texts: readonly string[]) => ({
  ...text,
  "x-kubernetes-validations": texts.map((rule) => ({ rule, message: "no" })),
});

test("schemaChanges takes no field for one that all objects inherit", () => {
  const schema = (name: string, required: readonly string[] = []) => ({
    type: "object",
    properties: { [name]: text },
    required,
  });
  for (const name of ["constructor", "toString", "__proto__"]) {
    const list = (now: OpenApiSchema, before: OpenApiSchema) =>
      [...schemaChanges(now, before)].map(({ path, what }) =>
        `${path}: ${what}`
      );
    assert.deepEqual(list(schema("a"), schema(name)), [
      `${name}: the field was removed`,
    ]);
    assert.deepEqual(list(schema(name), schema("a")), [
      "a: the field was removed",
    ]);
    assert.deepEqual(
      list(schema(name, [name]), schema("a"))[0],
      [
        `${name}: it is required now`,
      ][0],
    );
  }
});

test("schemaChanges names each narrower keyword with both values", () => {
  const integer = { type: "integer" };
  const list = { type: "array", items: text };
  const cases: [object | undefined, object | undefined, string][] = [
    [text, undefined, "the field was removed"],
    [text, integer, "type was string, is integer"],
    [{ type: "number" }, integer, "type was number, is integer"],
    [
      { "x-kubernetes-int-or-string": true },
      text,
      "type was integer or string, is string",
    ],
    [
      { ...text, enum: ["a", "b"] },
      { ...text, enum: ["b"] },
      '"a" is no longer allowed',
    ],
    [text, { ...text, enum: ["b"] }, 'only "b" are allowed now'],
    [integer, { ...integer, maximum: 5 }, "maximum 5 is new"],
    [
      { ...integer, maximum: 9 },
      { ...integer, maximum: 5 },
      "maximum was 9, is 5",
    ],
    [
      { ...integer, minimum: 0 },
      { ...integer, minimum: 1 },
      "minimum was 0, is 1",
    ],
    [integer, { ...integer, minimum: 0 }, "minimum 0 is new"],
    [text, { ...text, minLength: 1 }, "minLength 1 is new"],
    [
      { ...list, maxItems: 9 },
      { ...list, maxItems: 8 },
      "maxItems was 9, is 8",
    ],
    [
      integer,
      { ...integer, exclusiveMinimum: true },
      "exclusiveMinimum is new",
    ],
    [integer, { ...integer, multipleOf: 5 }, "multipleOf 5 is new"],
    [text, { ...text, pattern: "^a" }, "pattern ^a is new"],
    [
      { ...text, format: "ipv4" },
      { ...text, format: "ipv6" },
      "format was ipv4, is ipv6",
    ],
    [
      { ...integer, format: "int64" },
      { ...integer, format: "int32" },
      "format was int64, is int32",
    ],
    [{ ...text, nullable: true }, text, "null is no longer allowed"],
    [
      { ...text, default: "a" },
      { ...text, default: "b" },
      "default was a, is b",
    ],
    [{ ...text, default: "a" }, text, "default a was removed"],
    [{ type: "object", "x-kubernetes-preserve-unknown-fields": true }, {
      type: "object",
    }, "fields without a schema are no longer kept"],
    [
      { type: "object", additionalProperties: text },
      { type: "object" },
      "fields without a schema are no longer kept",
    ],
    [
      list,
      { ...list, "x-kubernetes-list-type": "set" },
      "x-kubernetes-list-type was atomic, is set",
    ],
    [text, { ...text, not: { enum: ["a"] } }, "not is new"],
    [
      rules("self != ''"),
      rules("self != 'a'"),
      "the rule \"self != 'a'\" is new, and may refuse stored objects",
    ],
  ];
  for (const [before, now, what] of cases) {
    assert.deepEqual(changes(before, now), [`a: ${what}`]);
  }
});

test("schemaChanges names nothing that accepts as much as before", () => {
  const integer = { type: "integer" };
  const cases: [object | undefined, object | undefined][] = [
    [undefined, text],
    [text, { ...text, description: "new", nullable: true }],
    [integer, { type: "number" }],
    [integer, { "x-kubernetes-int-or-string": true }],
    [{ ...integer, maximum: 5 }, { ...integer, maximum: 9 }],
    [{ ...integer, minimum: 1 }, integer],
    [text, { ...text, minLength: 0 }],
    [{ ...integer, format: "int32" }, { ...integer, format: "int64" }],
    // The server checks none of these.
    [text, { ...text, format: "semver" }],
    [text, { ...text, format: "int32" }],
    [text, { ...text, format: "password" }],
    [{ type: "number" }, { type: "number", format: "double" }],
    [{ ...text, format: "datetime" }, { ...text, format: "date-time" }],
    // The empty text was refused before.
    [{ ...text, pattern: "^[0-9]+$" }, { ...text, minLength: 1 }],
    [{ ...text, format: "byte" }, { ...text, minLength: 1 }],
    [rules("self != ''"), { ...text, minLength: 1 }],
    [{ ...text, minLength: 1 }, rules("self != ''")],
    [{ ...integer, multipleOf: 10 }, { ...integer, multipleOf: 5 }],
    [{ ...text, enum: ["a"] }, { ...text, enum: ["a", "b"] }],
    [{ ...text, pattern: "^a" }, text],
    [text, { ...text, default: "a" }],
    [rules("self != ''", "self != 'a'"), rules("self != ''")],
    [text, rules("oldSelf == self")],
    [{ type: "object", properties: { b: text } }, {
      type: "object",
      "x-kubernetes-preserve-unknown-fields": true,
    }],
    [{ type: "array", items: text, "x-kubernetes-list-type": "set" }, {
      type: "array",
      items: text,
    }],
  ];
  for (const [before, now] of cases) assert.deepEqual(changes(before, now), []);
});

/** Definition whose versions have these schemas of the spec. */
function definition(
  versions: Readonly<Record<string, object>>,
  more: object = {},
): CrdManifest {
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: "boats.sea.example" },
    spec: {
      group: "sea.example",
      scope: "Namespaced",
      names: {
        kind: "Boat",
        plural: "boats",
        singular: "boat",
        listKind: "BoatList",
      },
      versions: Object.entries(versions).map(([name, spec], at) => ({
        name,
        served: true,
        storage: at === 0,
        subresources: { status: {} },
        schema: {
          openAPIV3Schema: { type: "object", properties: { spec } },
        },
        ...more,
      })),
    },
  } as unknown as CrdManifest;
}

const EARLIER = definition({
  v1: {
    type: "object",
    properties: {
      crew: {
        type: "array",
        items: { type: "object", properties: { name: text } },
      },
    },
  },
  v1alpha1: { type: "object" },
});
const LATER = definition({
  v1: {
    type: "object",
    properties: {
      crew: {
        type: "array",
        items: {
          type: "object",
          properties: { name: text },
          required: ["name"],
        },
      },
    },
  },
}, { subresources: {} });

test("schemaChanges knows which values of an enum a new keyword refuses", () => {
  const before = { ...text, enum: ["System", "b"] };
  const now = { ...text, minLength: 1, maxLength: 9, pattern: "^(System|b)$" };
  assert.deepEqual(changes(before, now), []);
  assert.deepEqual(
    changes(before, { ...now, minLength: 2, pattern: "^(b|[c-d)$" }),
    ["a: minLength 2 is new", "a: pattern ^(b|[c-d)$ is new"],
  );
});

test("schemaChanges names the narrower values of a map of any values", () => {
  const before = { type: "object", additionalProperties: true };
  const now = { type: "object", additionalProperties: text };
  assert.deepEqual([...schemaChanges(now, before, "spec.labels")], [
    { path: "spec.labels.*", what: "type was any, is string" },
  ]);
});

test("schemaChanges leaves out new rules that only ask for what is new", () => {
  const types = (...values: readonly string[]) => ({ ...text, enum: values });
  const filter = (type: object, more: object = {}) => ({
    type: "object",
    required: ["type"],
    properties: { type, path: text, ...more },
  });
  const list = (items: object, ...rules: readonly string[]) => ({
    type: "array",
    items,
    "x-kubernetes-validations": rules.map((rule) => ({ rule })),
  });
  const cors = { cors: { type: "object" } };
  const before = filter(types("Path"));
  const now = filter(types("Path", "Cors"), cors);
  const found = (rule: string, one = before, other: object = now) =>
    changes(list(one), list(other, rule)).length;
  for (
    const rule of [
      "self.all(f, !(has(f.cors) && f.type != 'Cors'))",
      "self.all(f, !(!has(f.cors) && f.type == 'Cors'))",
      "self.all(f, 'Cors' != f.type || has(f.cors))",
      "self.all(f, f.type == 'Cors' ? has(f.cors) : true)",
      "self.filter(f, f.type == 'Cors').size() <= 1",
      "size(self.filter(f, f.type == 'Cors')) < 2",
      "!self.exists(f, has(f.cors))",
    ]
  ) assert.equal(found(rule), 0, rule);
  for (
    const rule of [
      "self.all(f, !(has(f.path) && f.type == 'Path'))",
      "self.all(f, !(has(f.cors) || f.type == 'Path'))",
      "self.all(f, has(f.cors))",
      "self.all(f, f.path != 'Cors')",
      "self.filter(f, f.type == 'Path').size() <= 1",
      "self.filter(f, f.type == 'Cors').size() >= 1",
      "self.filter(f, f.type == 'Cors').size() <= 0 - 1",
      "self.exists(f, !has(f.cors))",
      "self.all(f, !has(f.metadata))",
      "self.all(f, !has(f.__type__))",
      "size(self) <= 1",
      "this is no rule",
    ]
  ) assert.equal(found(rule), 1, rule);
  const rule = "self.all(f, !has(f.cors))";
  const open = { ...before, "x-kubernetes-preserve-unknown-fields": true };
  const given = { cors: { type: "object", default: {} } };
  assert.equal(found(rule), 0);
  assert.equal(found(rule, open, { ...open, ...now }), 1, "it may be there");
  const defaulted = filter(types("Path"), given);
  assert.equal(found(rule, before, defaulted), 1, "objects get the default");
  const optional = { ...before, required: [] };
  const typed = "self.all(f, f.type != 'Cors')";
  assert.equal(found(typed), 0);
  assert.equal(
    found(typed, optional as typeof before),
    2,
    "an error without it",
  );
});

/** Object whose fields are texts, with rules. */
const ruled = (fields: object, ...texts: readonly string[]) => ({
  type: "object",
  properties: fields,
  "x-kubernetes-validations": texts.map((rule) => ({ rule })),
});
const types = (...values: readonly string[]) => ({ ...text, enum: values });

test("schemaChanges leaves out new rules that former ones imply", () => {
  const fields = {
    a: text,
    b: text,
    c: { type: "array", items: ruled({ d: types("x", "y"), e: text }) },
    f: { type: "object", properties: { g: text } },
    h: { ...text, nullable: true },
  };
  const count = (former: readonly string[], rule: string, more: object = {}) =>
    changes(ruled(fields, ...former), ruled({ ...fields, ...more }, rule))
      .length;
  const implied: [string[], string][] = [
    [["self.a!='it'"], 'self.a != "it"'],
    [["has(self.a) && has(self.b)"], "has(self.b) && has(self.a)"],
    [
      ["!has(self.a) || (has(self.b) && self.b == 'x')"],
      "!has(self.a) || (has(self.b) && (self.b == 'x' || self.b == 'y'))",
    ],
    [
      ["(has(self.a) ? 1 : 0) + (has(self.b) ? 1 : 0) <= 1"],
      "!(has(self.b) && has(self.a))",
    ],
    [
      ["(has(self.a) && self.a.startsWith('u:')) ? !has(self.b) : true"],
      '(has(self.a) ? self.a : "").startsWith("u:") ? !has(self.b) : true',
    ],
    [
      ["!has(self.a) || self.a == 'x' ? !has(self.b) : true"],
      "(has(self.a) ? self.a : 'x') in ['x'] ? !has(self.b) : true",
    ],
    [
      ["(has(self.f) && has(self.f.g) && self.f.g.size() > 0) || !has(self.a)"],
      "has(self.a) ? size(self.f.g) > 0 : true",
    ],
    [
      ["!has(self.c) || size(self.c) == 1"],
      "(has(self.c) ? self.c : []).size() <= 1",
    ],
    [
      ["self.c.all(i, i.d == 'x' ? has(i.e) : true)"],
      "self.c.all(j, j.d != 'x' || has(j.e) || has(self.a))",
    ],
    [["has(self.a)", "!has(self.a) || has(self.b)"], "has(self.b)"],
  ];
  for (const [former, rule] of implied) {
    assert.equal(count(former, rule), 0, rule);
    assert.equal(count([], rule), 1, rule);
  }
  const other: [string[], string][] = [
    [["self.a != 'it'"], "self.a != 'It'"],
    [["has(self.a) || has(self.b)"], "has(self.a)"],
    [
      ["has(self.a) && has(self.b)"],
      "has(self.a) && has(self.b) && has(self.c)",
    ],
    [["size(self.c) <= 1"], "size(self.c) == 1"],
    [["self.c.all(i, has(i.e))"], "self.c.all(i, has(i.d))"],
    [["self.c.exists(i, has(i.e))"], "self.c.all(i, has(i.e))"],
    [
      ["self.c.all(i, self.c.all(j, i.d == j.e))"],
      "self.c.all(i, self.c.all(j, j.d == i.d))",
    ],
    [
      ["self.c[0].e == 'a' || true"],
      "self.c[0].e == 'a' || self.c[0].e != 'a'",
    ],
    [["!has(self.h) || self.h != 'x'"], "has(self.h) && self.h != 'x'"],
    [["oldSelf.a == 'x' || has(self.a)"], "has(self.a)"],
  ];
  for (const [former, rule] of other) {
    assert.equal(count(former, rule), 1, rule);
  }
  // The former rule was asked about objects without the default.
  const given = { b: { ...text, default: "x" } };
  assert.equal(count(["!has(self.b)"], "!has(self.b)"), 0);
  assert.equal(
    count(["!has(self.b) || has(self.a)"], "!(has(self.b) && !has(self.a))"),
    0,
  );
  assert.equal(
    count(
      ["!has(self.b) || has(self.a)"],
      "!(has(self.b) && !has(self.a))",
      given,
    ),
    1,
  );
});

test("schemaChanges reads which fields combined keywords ask for", () => {
  const need = (...fields: readonly string[]) => ({ required: fields });
  const atMostOne = (...fields: readonly string[]) => ({
    oneOf: [
      { not: { anyOf: fields.map((field) => need(field)) } },
      ...fields.map((field) => need(field)),
    ],
  });
  const of = (more: object, ...fields: readonly string[]) => ({
    type: "object",
    properties: Object.fromEntries(fields.map((field) => [field, text])),
    ...more,
  });
  const before = of(atMostOne("a", "b"), "a", "b");
  assert.deepEqual(
    changes(before, of(atMostOne("a", "b", "c"), "a", "b", "c")),
    [],
    "the new field is in no object",
  );
  assert.deepEqual(
    changes(
      of(atMostOne("a", "b"), "a", "b", "c"),
      of(atMostOne("a", "b", "c"), "a", "b", "c"),
    ),
    ["a: oneOf is another"],
  );
  assert.deepEqual(changes(before, of({ not: need("a", "b") }, "a", "b")), []);
  assert.deepEqual(
    changes(before, of({ anyOf: [need("a"), need("b")] }, "a", "b")),
    [
      "a: anyOf is new",
    ],
  );
  assert.deepEqual(
    changes(
      of({ anyOf: [{ minProperties: 1 }] }, "a"),
      of({ allOf: [{ minProperties: 1 }] }, "a"),
    ),
    [],
  );
});

test("incompatibleChanges says of a version only what its users meet", () => {
  const spec = { type: "object", properties: { a: text, b: text } };
  const narrow = {
    type: "object",
    properties: { a: { ...text, maxLength: 1 } },
  };
  const unserved = (of: CrdManifest) => {
    const copy = structuredClone(of) as unknown as {
      spec: { versions: { served: boolean }[] };
      status?: object;
    };
    (copy.spec.versions[1] as { served: boolean }).served = false;
    return copy as typeof copy & CrdManifest;
  };
  const earlier = definition({ v1: spec, v1alpha1: spec });
  const later = unserved(definition({ v1: spec, v1alpha1: narrow }));
  assert.deepEqual(incompatibleChanges(later, earlier), [
    "boats.sea.example v1alpha1: the version is no longer served",
    "boats.sea.example v1alpha1 spec.b: the field was removed",
  ]);
  const gone = definition({ v1: spec });
  assert.deepEqual(incompatibleChanges(gone, unserved(earlier)), []);
  assert.deepEqual(
    incompatibleChanges(gone, {
      ...unserved(earlier),
      status: { storedVersions: ["v1alpha1", "v1"] },
    } as CrdManifest),
    ["boats.sea.example v1alpha1: the version was removed"],
  );
  const selectable = definition({ v1: spec }, {
    selectableFields: [{ jsonPath: ".spec.a" }],
  });
  assert.deepEqual(incompatibleChanges(gone, selectable), [
    "boats.sea.example v1: field selectors can no longer name .spec.a",
  ]);
});

test("incompatibleChanges names version, path and subresource", () => {
  assert.deepEqual(incompatibleChanges(LATER, EARLIER), [
    "boats.sea.example v1: the subresource status was removed",
    "boats.sea.example v1 spec.crew[].name: it is required now",
    "boats.sea.example v1alpha1: the version was removed",
  ]);
  assert.deepEqual(incompatibleChanges(EARLIER, EARLIER), []);
  const cluster = structuredClone(EARLIER) as { spec: { scope: string } };
  cluster.spec.scope = "Cluster";
  assert.deepEqual(incompatibleChanges(cluster as CrdManifest, EARLIER), [
    "boats.sea.example: scope was Namespaced, is Cluster",
  ]);
});

async function run(...args: readonly string[]) {
  let out = "";
  let said = "";
  const terminal: Terminal = {
    colors: false,
    out: (line) => void (out += line),
    say: (line) => void (said += line),
    interrupts: () => new AbortController().signal,
  };
  const code = await runCommandLine(["crd", ...args], terminal, [crdCommand]);
  return { code, out, said };
}

test("coracle crd --compare ends with 1 if a change breaks objects", async () => {
  const folder = temporaryFolder();
  const [before, now] = [EARLIER, LATER].map((one, at) =>
    writeText(folder, `${at}.yaml`, JSON.stringify(one))
  ) as [string, string];
  const { code, out, said } = await run(now, "--compare", before);
  assert.equal(code, 1);
  assert.equal(out.split("\n").length, 4);
  assert.equal(said, "3 incompatible changes.\n");
  assert.deepEqual(await run(before, "--compare", before), {
    code: 0,
    out: "",
    said: "No incompatible changes.\n",
  });
  const other = structuredClone(LATER) as { metadata: { name: string } };
  other.metadata.name = "ships.sea.example";
  const third = writeText(folder, "2.yaml", JSON.stringify(other));
  assert.deepEqual(await run(third, "--compare", before), {
    code: 1,
    out: "boats.sea.example: the definition was removed\n",
    said: "ships.sea.example is new.\n1 incompatible change.\n",
  });
});

test("coracle crd --kubeconfig compares with what a cluster has installed", async () => {
  const server = await ApiServer.start({ seed: 1 });
  try {
    await server.client.create(CustomResourceDefinition, EARLIER as never);
    const folder = temporaryFolder();
    const kubeconfig = writeText(folder, "kubeconfig", server.kubeconfig);
    const file = writeText(folder, "crd.yaml", JSON.stringify(LATER));
    const { code, said } = await run(file, "--kubeconfig", kubeconfig);
    assert.deepEqual([code, said], [1, "3 incompatible changes.\n"]);
  } finally {
    await server.stop();
  }
});
