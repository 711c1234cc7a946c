/**
 * Questions about what published definitions and policies use, and about the edges
 * of numbers, times, texts and names.
 *
 * @module
 */
import type { OpenApiSchema } from "../../../core/patch/schema.ts";
import type { Question } from "./answers.ts";

const ALONE: readonly string[] = [
  // Texts of numbers and times.
  "string(1e20)",
  "string(123456789.0)",
  "[string(0.0001), string(0.00001), string(-0.0), string(100000.0)]",
  "string(timestamp('2020-01-01T00:00:00.120Z'))",
  "string(timestamp('2020-01-01T00:00:00+02:00'))",
  "string(duration('-1.5s'))",
  "bool('T')",
  "bool('yes')",
  "[double('inf'), double('0x1p3'), double('1_0')].size()",
  // Durations and times.
  "duration('0')",
  "duration(duration('1h'))",
  "timestamp(timestamp('2020-01-01T00:00:00Z'))",
  "duration('1s') + timestamp('2020-01-01T00:00:00Z')",
  "[duration('1s'), duration('2s')].sum()",
  "type(duration('1s'))",
  "duration(1)",
  "timestamp('2020-01-01T00:00:60Z')",
  "timestamp('0000-01-01T00:00:00Z')",
  "timestamp('2020-01-01T01:00:00Z').getHours('America/New_York')",
  "timestamp('2020-01-01T01:00:00Z').getHours('Nowhere/Else')",
  // Bytes, texts, literals.
  "size(b'😀')",
  "b'a' < b'b'",
  "b'\\xff'",
  "'\\ud800'",
  ".5 + 1.0",
  "9223372036854775807 + 1",
  "-9223372036854775808",
  "9223372036854775808",
  "18446744073709551615u",
  "'a'.matches('[')",
  "'a'.find('[')",
  "matches('v1.2', '^v1')",
  "'%d %s %e %.1f'.format([1, ['a'], 2.5, 0.25])",
  "'%d'.format(['a'])",
  "'%s'.format([1, 2])",
  // URLs and addresses.
  "isURL('http://a:80#frag')",
  "isURL('http://a b/')",
  "url('http://a b/')",
  "url('https://u@h:1/p q?a=1&a=2#f').getEscapedPath()",
  "url('https://h/?a=1&a=2&b').getQuery()",
  "url('relative')",
  "isURL('http://[::1]:80/')",
  "ip('::ffff:1.2.3.4')",
  "isCIDR('10.0.0.0/33')",
  // Optional values.
  "{'a': 1}.?a.optMap(v, v + 1).orValue(0)",
  "{'a': {'b': 1}}.?a.optFlatMap(v, v.?b).value()",
  "optional.ofNonZeroValue('')",
  "[?optional.none(), 1]",
  "{?'k': optional.of('v'), ?'n': optional.none()}",
  "optional.none().value()",
  "has({'a': {}}.?a.b)",
  // Errors and the operators that absorb them.
  "1/0 == 1 || int('a' + '') == 1",
  "int('a' + '') == 1 || 1/0 == 1",
  "[1, 0].exists(x, 1/x == 2)",
  "[0, 1].exists(x, 1/x == 1)",
  "dyn(1) + 'a' == 'b'",
  "[1][1]",
  "{'a': 1}['b']",
  "{'a': 1}.b",
  // Types.
  "[1, 'a']",
  "{1: 'a', 'b': 2}",
  "'a' + 1",
  "1 == '1'",
  "null == 1",
  "duration('1s') == null",
  "unknown(1)",
  "cel.bind(a, 1, a)",
  "cel",
  "[1, 2].map(x, y)",
  "has(a)",
  "1.all(x, true)",
  // Syntax.
  "a = 1",
  "a ==",
  "(1",
  "[1 2]",
  "f(1 2)",
  "if",
  "a.",
  "{1 2}",
  "'a\nb'",
  "\t1 +",
  "é",
];

/** Schema whose fields have names that rules escape, and objects and times. */
const NAMES: OpenApiSchema = {
  type: "object",
  properties: {
    namespace: { type: "string" },
    "true": { type: "string" },
    a__b: { type: "string" },
    "a-b.c/d": { type: "string" },
    affinity: { type: "object", properties: { x: { type: "string" } } },
    at: { type: "string", format: "date-time" },
    wait: { type: "string", format: "duration" },
    none: { type: "string", nullable: true },
    big: { type: "integer", format: "int64" },
    any: { "x-kubernetes-int-or-string": true },
  },
};

const NAMED = {
  namespace: "n",
  "true": "t",
  a__b: "u",
  "a-b.c/d": "d",
  at: "2024-01-02T03:04:05+02:00",
  wait: "2 days",
  none: null,
  any: 5,
};

const RULES: readonly string[] = [
  "self.affinity != null",
  "self.at != null && self.wait != null",
  "self.namespace == 'n'",
  "self.__namespace__ == 'n'",
  "has(self.namespace)",
  "self.__true__ == 't'",
  "self.a__underscores__b == 'u'",
  "self.a__b == 'u'",
  "self.a__dash__b__dot__c__slash__d == 'd'",
  "self.?affinity.x.orValue('none') == 'none'",
  "has(self.none)",
  "timestamp(self.at) > timestamp('2020-01-01T00:00:00Z')",
  "duration(self.wait) > duration('1s')",
  "duration('0') <= self.wait",
  "string(self.at) == '2024-01-02T03:04:05+02:00'",
  "self.any == 5 && type(self.any) == int",
  "matches(self.namespace, '^n')",
  "self.namespace.optMap(v, true)",
  "self.affinity == 1",
  "self.affinity.y == 'a'",
  "self.none == null",
  "self == oldSelf",
  "self.namespace",
  "request.name == 'a'",
];

const POLICIES: readonly string[] = [
  "request.namespace == 'a'",
  "request.__namespace__ == 'a'",
  "request.kind.kind == 'Pod'",
  "request.object == null",
  "request.userInfo.groups.all(g, g != '')",
  "namespaceObject.metadata.name == 'a'",
  "namespaceObject.metadata.uid == 'a'",
  "namespaceObject.metadata.managedFields.size() == 0",
  "namespaceObject.metadata.ownerReferences == []",
  "namespaceObject.status.phase == 'Active'",
  "object.metadata.namespace == params.namespace",
  "authorizer.requestResource.check('get').allowed()",
  "authorizer.group('apps').resource('deployments').namespace('a').check('get').reason()",
  "authorizer.path('/healthz').check('get').errored()",
  "authorizer.group('').resource('pods').fieldSelector('a=b').labelSelector('c').check('list').allowed()",
  "self.a == 1",
];

const MUTATIONS: readonly string[] = [
  "Object{spec: Object.spec{replicas: 1}}",
  "Object{metadata: Object.metadata{labels: {'a': 'b'}}}",
  'Object.metadata.labels{"a": "b"}',
  "Object{spec: Object.spec{?a: object.?spec.?a}}",
  "[JSONPatch{op: 'add', path: '/a/' + jsonpatch.escapeKey('b/c'), value: 1}]",
  "JSONPatch{op: 1}",
  "JSONPatch{other: 1}",
  "Other{}",
];

/** All of them. */
export function writtenQuestions(): Question[] {
  return [
    ...ALONE.map((expression) => ({ expression })),
    ...RULES.map((rule): Question => ({
      mode: "rule",
      schema: NAMES,
      rule: { rule },
      value: NAMED,
      old: { namespace: "o" },
    })),
    ...POLICIES.map((expression): Question => ({ mode: "policy", expression })),
    ...MUTATIONS.map((expression): Question => ({
      mode: "policy",
      expression,
      mutation: true,
    })),
  ];
}
