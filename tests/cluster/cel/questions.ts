/**
 * Random questions about CEL expressions, which a seed determines: most have
 * fitting types, some do not.
 *
 * @module
 */
import type { OpenApiSchema } from "@coracle/operator/core";
import type { Question } from "./answers.ts";
import { FORMS } from "./forms.ts";

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
