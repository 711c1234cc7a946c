import assert from "node:assert/strict";
import { test } from "node:test";
import { parseYaml } from "../../../dev/apiserver/request/yaml_body.ts";

// What kube-apiserver 1.36 takes them for.
const VALUES: readonly (readonly [yaml: string, value: unknown])[] = [
  ["2020-01-01", "2020-01-01"],
  ["2020-01-01T10:00:00Z", "2020-01-01T10:00:00Z"],
  ["!!timestamp 2020-01-01", "2020-01-01"],
  ["1:30", "1:30"],
  ["190:20:30", "190:20:30"],
  ["!!binary aGk=", "hi"],
  ["yes", true],
  ["NO", false],
  ["n", false],
  ["~", null],
  ["Null", null],
  ["", null],
  ["''", ""],
  ["'1'", "1"],
  ["!!int '3'", 3],
  ["!!float 3", 3],
  ["!!str 3", "3"],
  ["!!bool 'true'", true],
  ["!!null ''", null],
  ["!foo bar", "bar"],
  ["0x1F", 31],
  ["0o17", 15],
  ["010", 8],
  ["08", 8],
  ["0b11", 3],
  ["-0b11", -3],
  ["+1", 1],
  ["1_000", 1_000],
  ["1.", 1],
  [".5", 0.5],
  ["1e3", 1_000],
  ["1e400", "1e400"],
  ["0o", "0o"],
  ["=", "="],
  ["|\n    1", "1\n"],
];

test("YAML values are those of Kubernetes, without dates and sexagesimal numbers", async () => {
  for (const [yaml, value] of VALUES) {
    const parsed = await parseYaml(`a: ${yaml}\n`);
    assert.deepEqual(parsed.value, { a: value }, yaml);
  }
});

const NAMES: readonly (readonly [yaml: string, name: string])[] = [
  ["1", "1"],
  ["0x10", "16"],
  ["9007199254740993", "9007199254740993"],
  ["-9223372036854775808", "-9223372036854775808"],
  ["1.50", "1.5"],
  ["123456.789", "123456.79"],
  ["1234567.0", "1.234567e+06"],
  ["1e7", "1e+07"],
  ["1.25e-5", "1.25e-05"],
  ["-0.0", "-0"],
  ["1.0", "1"],
  [".inf", ".inf"],
  ["-.inf", "-.inf"],
  [".nan", ".nan"],
  ["yes", "true"],
  ["2020-01-01", "2020-01-01"],
  ["'<<'", "<<"],
  ["!!binary aGk=", "hi"],
];

test("YAML names of fields that are no text become those of Kubernetes", async () => {
  for (const [yaml, name] of NAMES) {
    const { value } = await parseYaml(`${yaml}: a\n`);
    assert.deepEqual(Object.keys(value as object), [name], yaml);
  }
  const { value } = await parseYaml("x: &x {a: b}\nz:\n  <<: *x\n  1: d\n");
  assert.deepEqual(value, { x: { a: "b" }, z: { a: "b", 1: "d" } });
});

const REFUSED: readonly (readonly [yaml: string, message: string])[] = [
  [
    "~: a",
    'unsupported map key of type: %!s(<nil>), key: <nil>, value: "a"',
  ],
  [
    "~: {a: 1}",
    'unsupported map key of type: %!s(<nil>), key: <nil>, value: map[interface {}]interface {}{"a":1}',
  ],
  [
    "~: ~",
    "unsupported map key of type: %!s(<nil>), key: <nil>, value: <nil>",
  ],
  [
    "9223372036854775808: 1",
    "unsupported map key of type: uint64, key: 0x8000000000000000, value: 1",
  ],
  ["[a, 1]: b", 'yaml: invalid map key: []interface {}{"a", 1}'],
  [
    "? [1.5, true, ~]\n: d",
    "yaml: invalid map key: []interface {}{1.5, true, interface {}(nil)}",
  ],
  [
    "{b: x, a: 1}: c",
    'yaml: invalid map key: map[interface {}]interface {}{"a":1, "b":"x"}',
  ],
  ["a: .inf", "json: unsupported value: +Inf"],
  ["a: [-.inf]", "json: unsupported value: -Inf"],
  ["a: .nan", "json: unsupported value: NaN"],
];

test("YAML that cannot be JSON is refused with the messages of Kubernetes", async () => {
  for (const [yaml, message] of REFUSED) {
    await assert.rejects(parseYaml(`${yaml}\n`), { message }, yaml);
  }
});

test("YAML fields of one name are found by value and type", async () => {
  const problems = async (yaml: string) => (await parseYaml(yaml)).problems;
  const set = (key: string) => [`line 2: key ${key} already set in map`];
  assert.deepEqual(await problems("a: 1\na: 2\n"), set('"a"'));
  assert.deepEqual(await problems("1: a\n0x1: b\n"), set("1"));
  assert.deepEqual(await problems("1.5: a\n1.5: b\n"), set("1.5"));
  assert.deepEqual(await problems("true: a\nyes: b\n"), set("true"));
  assert.deepEqual(await problems("1: a\n1.0: b\n"), []);
  assert.deepEqual(await problems("'1': a\n1: b\n"), []);
});
