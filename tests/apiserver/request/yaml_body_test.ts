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

/** Texts that are no YAML, with the errors of a kube-apiserver 1.36. */
const MALFORMED: readonly (readonly [yaml: string, message: string])[] = [
  ["a: b: c", "yaml: mapping values are not allowed in this context"],
  ["a: [1, 2", "yaml: line 1: did not find expected ',' or ']'"],
  ["a: {b: 1", "yaml: line 1: did not find expected ',' or '}'"],
  ["a: 'x", "yaml: found unexpected end of stream"],
  ['a: "x', "yaml: found unexpected end of stream"],
  ['a: "\\q"', "yaml: found unknown escape character"],
  ["\ta: 1", "yaml: found character that cannot start any token"],
  ["a:\n\t- b", "yaml: line 2: found character that cannot start any token"],
  ["- a\nb: c", "yaml: line 1: did not find expected '-' indicator"],
  [
    "a: b\n c: d",
    "yaml: line 2: mapping values are not allowed in this context",
  ],
  ["a: *x", "yaml: unknown anchor 'x' referenced"],
  ["a: &x 1\nb: *y", "yaml: unknown anchor 'y' referenced"],
  ["a: @x", "yaml: found character that cannot start any token"],
  ["a: `x", "yaml: found character that cannot start any token"],
  ["a: !<x", "yaml: did not find the expected '>'"],
  ["a: |\n  x\n y\nz", "yaml: line 2: did not find expected key"],
  ["a: >x\n  b", "yaml: did not find expected comment or line break"],
  ["a: 1\n- b", "yaml: line 1: did not find expected key"],
  [
    "key: value\n  bad indent: x",
    "yaml: line 2: mapping values are not allowed in this context",
  ],
  [
    "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  a: b\n c: d",
    "yaml: line 6: did not find expected key",
  ],
  [
    "apiVersion: v1\nkind: ConfigMap\nmetadata:\n name: a\n  labels: {}",
    "yaml: line 5: mapping values are not allowed in this context",
  ],
  ["a: \u0000", "yaml: control characters are not allowed"],
  ["a: \u0007", "yaml: control characters are not allowed"],
  ["!!int abc", "yaml: cannot decode !!str `abc` as a !!int"],
  ["a: !!int abc", "yaml: cannot decode !!str `abc` as a !!int"],
  ["a: !!bool x", "yaml: cannot decode !!str `x` as a !!bool"],
  ["a: !!float x", "yaml: cannot decode !!str `x` as a !!float"],
  ['a: !!binary "@"', "yaml: !!binary value contains invalid base64 data"],
  ["<<: 5", "yaml: map merge requires map or sequence of maps as the value"],
  ["<<: [1]", "yaml: map merge requires map or sequence of maps as the value"],
  ["a: 'b'c", "yaml: did not find expected key"],
  ['a: "b" c', "yaml: did not find expected key"],
  ["- - a\n - b", "yaml: line 1: did not find expected '-' indicator"],
  ["{a, b", "yaml: line 1: did not find expected ',' or '}'"],
  ["[a: b, c", "yaml: line 1: did not find expected ',' or ']'"],
  ["a: |3\n  x", "yaml: line 1: did not find expected key"],
  ["a: |x", "yaml: did not find expected comment or line break"],
  ["'a", "yaml: found unexpected end of stream"],
  ['"a', "yaml: found unexpected end of stream"],
  ["a: ,", "yaml: did not find expected node content"],
  ["a: ]", "yaml: did not find expected node content"],
  ["a: }", "yaml: did not find expected node content"],
  ["a: %x", "yaml: found character that cannot start any token"],
  ["*a", "yaml: unknown anchor 'a' referenced"],
  ["? - a\n  - b\n: c", 'yaml: invalid map key: []interface {}{"a", "b"}'],
  ["a: b # c\n  d: e", "yaml: line 1: did not find expected key"],
  ["%FOO bar\na: 1", "yaml: found unknown directive name"],
  ["a\nb: c", "yaml: line 2: mapping values are not allowed in this context"],
  ["a: - b", "yaml: block sequence entries are not allowed in this context"],
  ["a: ? b", "yaml: mapping keys are not allowed in this context"],
  ["\u0080: a", "yaml: control characters are not allowed"],
  ["{a: b, a: c", "yaml: line 1: did not find expected ',' or '}'"],
  ["a: &", "yaml: did not find expected alphabetic or numeric character"],
  ["a: *", "yaml: did not find expected alphabetic or numeric character"],
  ["a: !!", "yaml: did not find expected tag URI"],
  ['x: "\\x4"', "yaml: did not find expected hexdecimal number"],
  ['x: "\\u12"', "yaml: did not find expected hexdecimal number"],
  ['x: "\\U0011FFFF"', "yaml: found invalid Unicode character escape code"],
  ["x: 'a\n\n", "yaml: line 3: found unexpected end of stream"],
  ["a: &a\n  b: *a", "yaml: anchor 'a' value contains itself"],
  [
    "kind: ConfigMap\nkind: ConfigMap\nfoo",
    "yaml: line 4: could not find expected ':'",
  ],
  ["a:b\nc: d", "yaml: line 2: mapping values are not allowed in this context"],
  ["- a\n-b\n- c", "yaml: line 3: could not find expected ':'"],
];

test("YAML that cannot be read is refused with the messages of Kubernetes", async () => {
  for (const [yaml, message] of MALFORMED) {
    await assert.rejects(parseYaml(yaml), { message }, yaml);
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
