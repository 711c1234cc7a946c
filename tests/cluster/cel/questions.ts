/**
 * Random questions about CEL expressions, which a seed determines: most have
 * fitting types, some do not.
 *
 * @module
 */
import type { OpenApiSchema } from "../../../core/patch/schema.ts";
import type { Question } from "./answers.ts";

/** Random numbers from a seed (mulberry32). */
export function randomNumbers(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Forms of expressions by type; `$type` stands for another expression. */
const FORMS: Readonly<Record<string, readonly string[]>> = {
  bool: [
    "true",
    "false",
    "$int == $int",
    "$int < $int",
    "$double >= $double",
    "$int != $double",
    "$string == $string",
    "$string <= $string",
    "$bool && $bool",
    "$bool || $bool",
    "!$bool",
    "$bool ? $bool : $bool",
    "$string.contains($string)",
    "$string.startsWith($string)",
    "$string.endsWith($string)",
    "$string.matches('^[a-z]+$')",
    "matches($string, 'a|b')",
    "$int in $ints",
    "$string in $map",
    "$ints.all(x, x > $int)",
    "$ints.exists(x, x == $int)",
    "$ints.exists_one(x, x % 2 == 0)",
    "$strings.all(i, s, size(s) > i)",
    "$map.exists(k, v, v > 1)",
    "$ints.isSorted()",
    "sets.contains($ints, $ints)",
    "sets.equivalent($strings, $strings)",
    "sets.intersects($ints, $ints)",
    "$bytes == $bytes",
    "$bytes < $bytes",
    "$duration < $duration",
    "$timestamp > $timestamp",
    "isQuantity($string)",
    "isURL($string)",
    "isIP($string)",
    "isCIDR($string)",
    "isSemver($string)",
    "quantity('1Ki').isGreaterThan(quantity('1k'))",
    "cidr('10.0.0.0/8').containsIP('10.1.2.3')",
    "cidr('10.0.0.0/8').containsCIDR(cidr('10.1.0.0/16'))",
    "ip.isCanonical('::1')",
    "ip('127.0.0.1').isLoopback()",
    "semver('1.2.3').isLessThan(semver('1.10.0'))",
    "$optional.hasValue()",
    "bool('true')",
    "dyn($int) == dyn($string)",
    "type($int) == int",
    "has({'a': $int}.a)",
    "$ints == $ints",
    "$map == $map",
    "format.dns1123Label().validate($string).hasValue()",
  ],
  int: [
    "0",
    "1",
    "-1",
    "7",
    "0x1F",
    "9223372036854775807",
    "$int + $int",
    "$int - $int",
    "$int * $int",
    "$int / $int",
    "$int % $int",
    "-($int)",
    "size($string)",
    "$ints.size()",
    "$map.size()",
    "size($bytes)",
    "$ints[0]",
    "$map['a']",
    "$ints.sum()",
    "$ints.max()",
    "$ints.min()",
    "$ints.indexOf($int)",
    "$ints.lastIndexOf($int)",
    "$string.indexOf($string)",
    "$string.lastIndexOf($string)",
    "$bool ? $int : $int",
    "int($double)",
    "int($string)",
    "int(3u)",
    "$duration.getSeconds()",
    "$timestamp.getFullYear()",
    "$timestamp.getDayOfWeek('+01:30')",
    "int($timestamp)",
    "$optional.orValue($int)",
    "$optional.value()",
    "quantity('3').compareTo(quantity('3000m'))",
    "quantity('2k').asInteger()",
    "semver('1.2.3').minor()",
    "ip('::1').family()",
    "cidr('10.0.0.0/8').prefixLength()",
    "{'a': $int}.a",
    "dyn($int)",
  ],
  double: [
    "0.5",
    ".25",
    "1e3",
    "2.0",
    "$double + $double",
    "$double * $double",
    "$double / $double",
    "-($double)",
    "double($int)",
    "double($string)",
    "[$double, $double].max()",
    "quantity('1.5').asApproximateFloat()",
  ],
  string: [
    "''",
    "'a'",
    "'b c'",
    "'😀é'",
    "'10'",
    "'http://a.b:80/c?d=e'",
    "r'\\d'",
    "$string + $string",
    "string($int)",
    "string($double)",
    "string($bool)",
    "string($duration)",
    "string($timestamp)",
    "string($bytes)",
    "$string.lowerAscii()",
    "$string.upperAscii()",
    "$string.trim()",
    "$string.replace($string, $string)",
    "$string.replace('a', 'bb', $int)",
    "$string.substring(0)",
    "$string.substring(0, 1)",
    "$string.charAt($int)",
    "$strings.join()",
    "$strings.join(', ')",
    "strings.quote($string)",
    "$string.find('[a-z]+')",
    "'%d %s %.2f %x'.format([$int, $strings, $double, $string])",
    "'%s'.format([$map])",
    "$bool ? $string : $string",
    "$strings[1]",
    "url('https://h:1/p?q=1#f').getHost()",
    "string(ip('::1'))",
  ],
  bytes: ["b''", "b'abc'", "b'\\xff'", "bytes($string)", "$bytes + $bytes"],
  ints: [
    "[]",
    "[1, 2, 3]",
    "[$int, $int]",
    "$ints + $ints",
    "$ints.map(x, x * $int)",
    "$ints.filter(x, x > $int)",
    "$ints.map(x, x > 1, x + 1)",
    "$ints.sort()",
    "$ints.reverse()",
    "$ints.distinct()",
    "$ints.slice(0, 1)",
    "[$ints, $ints].flatten()",
    "lists.range(3)",
    "$ints.sortBy(x, -x)",
    "$ints.transformList(i, v, i + v)",
    "$bool ? $ints : $ints",
    "[?$optional, 5]",
    "$strings.map(s, size(s))",
  ],
  strings: [
    "['a', 'b']",
    "[$string, $string]",
    "$string.split($string)",
    "$string.split(',', $int)",
    "$strings + $strings",
    "$map.map(k, k)",
    "$string.findAll('[a-c]')",
    "$string.findAll('[a-c]', $int)",
    "$strings.sort()",
    "$strings.filter(s, s != $string)",
  ],
  map: [
    "{'a': 1}",
    "{'a': $int, 'b': $int}",
    "{$string: $int}",
    "{?'a': $optional}",
    "$map.transformMap(k, v, v + 1)",
    "$ints.transformMapEntry(i, v, {string(i): v})",
  ],
  duration: [
    "duration('1h')",
    "duration('0')",
    "duration('1.5s')",
    "duration('-3m')",
    "$duration + $duration",
    "$timestamp - $timestamp",
    "[$duration].sum()",
  ],
  timestamp: [
    "timestamp('2024-02-29T12:34:56.789Z')",
    "timestamp('1969-12-31T23:59:59.5+02:00')",
    "timestamp($int)",
    "$timestamp + $duration",
    "$duration + $timestamp",
    "timestamp(timestamp('2020-01-01T00:00:00Z'))",
  ],
  optional: [
    "optional.of($int)",
    "optional.none()",
    "optional.ofNonZeroValue($int)",
    "$map[?'a']",
    "$map.?b",
    "$ints[?1]",
    "$ints.first()",
    "$optional.or($optional)",
    "$optional.optMap(v, v + 1)",
    "$optional.optFlatMap(v, optional.of(v))",
  ],
};

/** Expressions of a type that a schema or the request of a policy has. */
type Leaves = Readonly<Record<string, readonly string[]>>;

const TYPES = Object.keys(FORMS);

class Writer {
  readonly #random: () => number;
  readonly #leaves: Leaves;

  constructor(random: () => number, leaves: Leaves) {
    this.#random = random;
    this.#leaves = leaves;
  }

  pick<T>(list: readonly T[]): T {
    return list[Math.floor(this.#random() * list.length)] as T;
  }

  write(type: string, depth: number): string {
    // A wrong type now and then.
    const actual = this.#random() < 0.02 ? this.pick(TYPES) : type;
    const leaves = this.#leaves[actual] ?? [];
    if (leaves.length > 0 && this.#random() < 0.4) return this.pick(leaves);
    const forms = FORMS[actual] ?? [];
    const simple = forms.filter((form) => !form.includes("$"));
    const form = this.pick(depth <= 0 && simple.length > 0 ? simple : forms);
    return form.replaceAll(/\$(\w+)/g, (_, inner: string) => {
      const text = this.write(inner, depth - 1);
      return /^[\w.'"]*$/.test(text) ? text : `(${text})`;
    });
  }
}

const SCHEMA: OpenApiSchema = {
  type: "object",
  properties: {
    a: { type: "integer" },
    b: { type: "integer", nullable: true },
    s: { type: "string", maxLength: 40 },
    n: { type: "number" },
    on: { type: "boolean" },
    ints: { type: "array", maxItems: 5, items: { type: "integer" } },
    set: {
      type: "array",
      maxItems: 5,
      "x-kubernetes-list-type": "set",
      items: { type: "string", maxLength: 10 },
    },
    keyed: {
      type: "array",
      maxItems: 5,
      "x-kubernetes-list-type": "map",
      "x-kubernetes-list-map-keys": ["k"],
      items: {
        type: "object",
        required: ["k"],
        properties: { k: { type: "string" }, v: { type: "integer" } },
      },
    },
    m: { type: "object", additionalProperties: { type: "integer" } },
    o: { type: "object", properties: { x: { type: "integer" } } },
    d: { type: "string", format: "duration" },
    t: { type: "string", format: "date-time" },
    by: { type: "string", format: "byte", maxLength: 20 },
    either: { "x-kubernetes-int-or-string": true },
    namespace: { type: "string", maxLength: 9 },
    "a-b": { type: "string", maxLength: 9 },
  },
};

const VALUE = {
  a: 3,
  s: "hello",
  n: 2.5,
  on: true,
  ints: [3, 1, 2],
  set: ["p", "q"],
  keyed: [{ k: "one", v: 1 }, { k: "two" }],
  m: { k1: 1, "k.2": 2 },
  o: { x: 1 },
  d: "90s",
  t: "2024-01-02T03:04:05.678Z",
  by: "aGk=",
  either: "50%",
  namespace: "ns",
  "a-b": "dash",
};

const OLD = { ...VALUE, a: 2, set: ["q", "p"], m: { k1: 1 }, either: 5 };

const RULE_LEAVES: Leaves = {
  bool: [
    "self.on",
    "has(self.o)",
    "has(self.b)",
    "has(self.o.x)",
    "self.o != null",
    "self.t == null",
    "self == oldSelf",
    "self.set == oldSelf.set",
    "self.keyed == oldSelf.keyed",
    "self.m == oldSelf.m",
    "self.keyed.all(e, has(e.v))",
    "self.keyed.exists(e, e.k == 'one' && e.v == 1)",
    "self.m.all(k, self.m[k] > 0)",
    "type(self.either) == string",
    "self.either == 5",
    "!has(self.namespace) || self.namespace != ''",
    "self.missing == 1",
  ],
  int: ["self.a", "oldSelf.a", "self.b", "self.o.x", "self.?b.orValue(2)"],
  double: ["self.n"],
  string: [
    "self.s",
    "self.namespace",
    "self.__namespace__",
    "self.a__dash__b",
    "self.keyed[0].k",
    "self.set[0]",
  ],
  bytes: ["self.by"],
  ints: ["self.ints", "self.keyed.filter(e, has(e.v)).map(e, e.v)"],
  strings: ["self.set", "(self.set + oldSelf.set)"],
  map: ["self.m", "oldSelf.m"],
  duration: ["self.d", "duration(self.d)"],
  timestamp: ["self.t", "timestamp(self.t)"],
  optional: ["self.?a", "self.o.?x", "self.?b", "self.m[?'k1']"],
};

const VARIABLES = {
  object: {
    metadata: { name: "n", namespace: "ns", labels: { a: "b" } },
    spec: { replicas: 3, list: [1, 2], x: null, on: true },
  },
  oldObject: null,
  params: { max: 5, names: ["a"] },
  namespaceObject: {
    metadata: { name: "ns", labels: { team: "t" }, uid: "u" },
    status: { phase: "Active" },
  },
  request: {
    operation: "CREATE",
    name: "n",
    namespace: "ns",
    userInfo: { username: "u", groups: ["g", "h"] },
    resource: { group: "", version: "v1", resource: "pods" },
  },
};

const POLICY_LEAVES: Leaves = {
  bool: [
    "object.spec.on",
    "has(object.spec.replicas)",
    "object.spec.x == null",
    "oldObject == null",
    "request.operation == 'CREATE'",
    "'g' in request.userInfo.groups",
    "has(request.dryRun)",
    "namespaceObject.metadata.labels['team'] == 't'",
    "namespaceObject.metadata.uid == 'u'",
    "namespaceObject.metadata.UID == 'u'",
    "object.metadata.?labels.a.orValue('') == 'b'",
    "has(object.metadata.labels.c)",
    "request.__namespace__ == 'ns'",
    "has(params.max)",
  ],
  int: ["object.spec.replicas", "params.max", "object.spec.missing"],
  string: [
    "object.metadata.name",
    "request.namespace",
    "request.name",
    "request.userInfo.username",
    "namespaceObject.metadata.name",
    "namespaceObject.status.phase",
  ],
  ints: ["object.spec.list"],
  strings: ["request.userInfo.groups", "params.names"],
  map: ["object.metadata.labels"],
};

/**
 * Random questions.
 *
 * @param seed Seed that determines them.
 */
export function* questions(seed: number): Generator<Question> {
  const random = randomNumbers(seed);
  const alone = new Writer(random, {});
  const rules = new Writer(random, RULE_LEAVES);
  const policies = new Writer(random, POLICY_LEAVES);
  for (;;) {
    const depth = 1 + Math.floor(random() * 3);
    const type = random() < 0.4 ? "bool" : alone.pick(TYPES);
    yield { expression: alone.write(type, depth) };
    yield {
      mode: "rule",
      schema: SCHEMA,
      rule: { rule: rules.write("bool", depth) },
      value: VALUE,
      old: OLD,
    };
    yield {
      mode: "policy",
      expression: policies.write(type, depth),
      variables: VARIABLES,
    };
  }
}

/** Expressions of the public conformance data of CEL that use no protobuf. */
export async function publicExpressions(): Promise<Question[]> {
  const suites = await import("@bufbuild/cel-spec/testdata/tests.js");
  const found = new Set<string>();
  const collect = (suite: PublicSuite): void => {
    for (const { original } of suite.tests) found.add(original.expr);
    for (const inner of suite.suites) collect(inner);
  };
  for (const suite of Object.values(suites)) {
    collect((suite as () => PublicSuite)());
  }
  return [...found]
    .filter((one) => !/google\.|TestAllTypes|proto[23]|cel\.expr/.test(one))
    .map((expression) => ({ expression }));
}

interface PublicSuite {
  readonly tests: readonly {
    readonly original: { readonly expr: string };
  }[];
  readonly suites: readonly PublicSuite[];
}
