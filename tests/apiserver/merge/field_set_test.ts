import assert from "node:assert/strict";
import { test } from "node:test";
import { fc } from "../../support/property.ts";
import {
  fieldElement,
  type FieldPath,
  fieldPathText,
  keyElement,
  parsePathElement,
  valueElement,
} from "../../../dev/apiserver/merge/path_element.ts";
import { FieldSet } from "../../../dev/apiserver/merge/field_set.ts";

const elements = fc.constantFrom(
  "f:a",
  "f:b",
  'k:{"name":"x"}',
  'v:"x"',
  "v:1",
  "i:0",
);
const paths: fc.Arbitrary<FieldPath> = fc.array(elements, {
  minLength: 1,
  maxLength: 4,
});
const pathLists = fc.array(paths, { maxLength: 8 });

/** Model: a plain set of paths as texts. */
const model = (list: readonly FieldPath[]): Set<string> =>
  new Set(list.map((path) => path.join("|")));
const ofSet = (set: FieldSet): Set<string> => model([...set.paths()]);

const operations: [
  name: "union" | "intersection" | "minus" | "minusWhole",
  oracle: (a: Set<string>, b: Set<string>) => string[],
][] = [
  ["union", (a, b) => [...a, ...b]],
  ["intersection", (a, b) => [...a].filter((path) => b.has(path))],
  ["minus", (a, b) => [...a].filter((path) => !b.has(path))],
  [
    "minusWhole",
    (a, b) =>
      [...a].filter((path) =>
        ![...b].some((gone) => path === gone || path.startsWith(`${gone}|`))
      ),
  ],
];

for (const [name, oracle] of operations) {
  test(`FieldSet.${name} equals the operation on plain sets of paths`, () => {
    fc.assert(fc.property(pathLists, pathLists, (left, right) => {
      const result = FieldSet.of(left)[name](FieldSet.of(right));
      const expected = new Set(oracle(model(left), model(right)));
      assert.deepEqual([...ofSet(result)].sort(), [...expected].sort());
    }));
  });
}

test("FieldSet has the members of a plain set of paths", () => {
  fc.assert(fc.property(pathLists, pathLists, (left, right) => {
    const a = FieldSet.of(left);
    const plainA = model(left);
    assert.equal(a.isEmpty, plainA.size === 0);
    for (const path of left) assert.ok(a.has(path));
    for (const path of right) {
      assert.equal(a.has(path), plainA.has(path.join("|")));
    }
  }));
});

test("FieldSet survives a round trip through JSON", () => {
  fc.assert(fc.property(pathLists, (list) => {
    const set = FieldSet.of(list);
    const json = JSON.parse(JSON.stringify(set));
    assert.deepEqual([...ofSet(FieldSet.fromJSON(json))], [...ofSet(set)]);
    assert.deepEqual(FieldSet.fromJSON(json).toJSON(), json);
  }));
});

test("FieldSet encodes a field with children as kube-apiserver does", () => {
  const set = FieldSet.of([
    ["f:spec", "f:ports", 'k:{"port":80,"protocol":"TCP"}'],
    ["f:spec", "f:ports", 'k:{"port":80,"protocol":"TCP"}', "f:port"],
    ["f:spec", "f:size"],
  ]);
  assert.deepEqual(set.toJSON(), {
    "f:spec": {
      "f:ports": {
        'k:{"port":80,"protocol":"TCP"}': { ".": {}, "f:port": {} },
      },
      "f:size": {},
    },
  });
});

test("FieldSet lists the fields of a level before those below", () => {
  const set = FieldSet.of([
    ["f:spec", "f:deep", "f:x"],
    ["f:spec", "f:n"],
    ["f:spec", "f:color"],
  ]);
  assert.equal(set.toString(), ".spec.color\n.spec.n\n.spec.deep.x");
});

test("FieldSet decodes keys in any order and notation", () => {
  const set = FieldSet.fromJSON({
    'k:{ "protocol": "TCP", "port": 8.0e1 }': {},
  });
  assert.ok(set.has(['k:{"port":80,"protocol":"TCP"}']));
});

test("FieldSet refuses invalid field sets", () => {
  for (
    const fields of [
      { spec: {} },
      { "x:spec": {} },
      { "f:spec": 1 },
      { "f:spec": null },
      { "k:[]": {} },
      { "i:x": {} },
      { "v:{": {} },
    ]
  ) {
    assert.throws(
      () => FieldSet.fromJSON(fields as unknown as Record<string, never>),
      SyntaxError,
    );
  }
});

test("FieldSet refuses excessive nesting", () => {
  let fields: Record<string, unknown> = {};
  for (let depth = 0; depth < 2_000; depth++) fields = { "f:a": fields };
  assert.throws(
    () => FieldSet.fromJSON(fields as Record<string, never>),
    SyntaxError,
  );
});

test("FieldSet keeps a field named __proto__", () => {
  const json = JSON.parse('{"f:__proto__":{"f:a":{}}}');
  assert.deepEqual(FieldSet.fromJSON(json).toJSON(), json);
});

test("keyElement orders keys and escapes as Go's encoder does", () => {
  assert.equal(
    keyElement([["port", 80], ["name", "<a&b>"]]),
    'k:{"name":"\\u003ca\\u0026b\\u003e","port":80}',
  );
  assert.equal(
    parsePathElement(keyElement([["name", "<"]])),
    keyElement([["name", "<"]]),
  );
});

test("fieldPathText formats a path for messages", () => {
  const path = [
    fieldElement("spec"),
    keyElement([["name", "web"], ["port", 80]]),
    valueElement("x"),
    "i:3",
  ];
  assert.equal(fieldPathText(path), '.spec[name="web",port=80][="x"][3]');
});
