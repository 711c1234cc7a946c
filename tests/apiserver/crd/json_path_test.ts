import assert from "node:assert/strict";
import { test } from "node:test";
import { compileJsonPath } from "../../../dev/apiserver/crd/json_path.ts";
import { printerColumns } from "../../../dev/apiserver/crd/printer_columns.ts";
import type { PrinterColumn } from "../../../core/crd/kind_definition.ts";

const OBJECT = {
  metadata: {
    name: "a",
    creationTimestamp: "2024-01-01T00:00:00Z",
    labels: { "app.kubernetes.io/name": "web" },
  },
  spec: {
    n: 3,
    list: [10, 20, 30, 40],
    empty: null,
    flag: true,
    nested: { b: 1, a: "<" },
    large: 1e21,
  },
  status: {
    conditions: [
      { type: "Ready", status: "True", weight: 2 },
      { type: "Stalled", status: "False", weight: 5 },
    ],
    mixed: [{ a: "b" }, { a: 1 }, { b: true }],
  },
};

const FOUND: readonly (readonly [string, readonly unknown[]])[] = [
  [".spec.n", [3]],
  [".spec.nope.deeper", []],
  [".spec['n']", [3]],
  [".metadata.labels['app.kubernetes.io/name']", []],
  [".metadata.labels['app\\.kubernetes\\.io/name']", ["web"]],
  [".metadata.labels.app\\.kubernetes\\.io/name", ["web"]],
  [".spec.list[0]", [10]],
  [".spec.list[-1]", [40]],
  [".spec.list[9]", []],
  [".spec.list[1:3]", [20, 30]],
  [".spec.list[::2]", [10, 30]],
  [".spec.list[0,2]", [10, 30]],
  [".spec.list[*]", [10, 20, 30, 40]],
  ['.status.conditions[?(@.type=="Ready")].status', ["True"]],
  [".status.conditions[?(@.type!='Ready')].status", ["False"]],
  [".status.conditions[?(@.weight>3)].type", ["Stalled"]],
  [".status.conditions[?(@.weight<=2)].type", ["Ready"]],
  [".status.conditions[?(@.missing)].type", []],
  [".status.conditions[?(@.weight)].type", ["Ready", "Stalled"]],
  [".status.conditions[*].type", ["Ready", "Stalled"]],
  ["..weight", [2, 5]],
  // What fails in Go leaves no value at all.
  [".spec.list[1:9]", []],
  [".spec.list[-9:1]", []],
  [".spec.list[2:1]", []],
  [".spec.list[::-1]", []],
  [".spec.n[0]", []],
  [".spec.empty[0]", []],
  [".status.conditions[*].list[0]", []],
  [".status.conditions[?(@.weight<=2.0)].type", []],
  ['.status.conditions[?(@.weight>"1")].type', []],
  ['.status.mixed[?(@.a=="b")].a', []],
  [".status.mixed[?(@.b==true)].b", [true]],
  [".status.mixed[?(@.b<true)].b", []],
  [".status.mixed[?(@.a=>1)].a", []],
  [".status.conditions[?(@.weight in [2])].type", ["Ready", "Stalled"]],
  [".spec[?(@.n)]", []],
  [".", []],
];

for (const [path, values] of FOUND) {
  test(`compileJsonPath() finds ${path}`, () => {
    assert.deepEqual(compileJsonPath(path).find(OBJECT), values);
  });
}

for (
  const path of [
    ".a[",
    ".a[]",
    ".a[x]",
    ".a[?(@.b==1)",
    '.a[?(@.b=~"a")]',
    "!",
  ]
) {
  test(`compileJsonPath() rejects ${path}`, () => {
    assert.throws(() => compileJsonPath(path), SyntaxError);
  });
}

test("printerColumns() formats cells by the type of their column", () => {
  const column = (
    type: PrinterColumn["type"],
    jsonPath: string,
    priority?: number,
  ) => ({ name: jsonPath, type, jsonPath, priority });
  const { columns, cells } = printerColumns({
    additionalPrinterColumns: [
      column("integer", ".spec.n"),
      column("string", ".spec.n", 1),
      column("integer", ".metadata.name"),
      column("boolean", ".spec.flag"),
      column("string", ".spec.list"),
      column("string", ".spec.empty"),
      column("boolean", ".spec.empty"),
      column("string", ".spec.nested"),
      column("integer", ".spec.large"),
      column("date", ".metadata.creationTimestamp"),
      column("date", ".metadata.name"),
    ],
  });
  const now = Date.parse("2024-01-03T01:00:00Z");
  assert.deepEqual(cells(OBJECT, now), [
    "a",
    3,
    "3",
    null,
    true,
    "[10,20,30,40]",
    "<no value>",
    null,
    '{"a":"\\u003c","b":1}',
    -(2n ** 63n),
    "2d1h",
    "<invalid>",
  ]);
  assert.equal(columns[2]?.priority, 1);
});

test("printerColumns() defaults to the age", () => {
  const { columns, cells } = printerColumns({});
  assert.deepEqual(columns.map(({ name }) => name), ["Name", "Age"]);
  const now = Date.parse("2024-01-01T00:00:59Z");
  assert.deepEqual(cells(OBJECT, now), ["a", "59s"]);
});
