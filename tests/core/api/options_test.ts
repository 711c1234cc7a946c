import assert from "node:assert/strict";
import { test } from "node:test";
import { noMetrics, silentLogger, systemClock } from "@coracle/operator/client";
import {
  checkOption,
  checkOptions,
  nearestName,
  type OptionRule,
  type OptionTable,
  resolveOptions,
  typeText,
} from "../../../core/api/options.ts";

const nothing = () => {};

/** For each rule: accepted values, rejected values and the error texts. */
const RULES: readonly (readonly [
  rule: OptionRule,
  good: readonly unknown[],
  bad: readonly (readonly [value: unknown, words: string])[],
])[] = [
  ["any", [0, "", {}], [[undefined, "given: received nothing"], [
    null,
    "null",
  ]]],
  ["boolean", [true, false], [["yes", "true or false: received a string"]]],
  ["string", ["", "a"], [[5, "a string: received a number"]]],
  ["name", ["a"], [["", 'a string that is not empty: received ""']]],
  ["manager", ["my operator", "x".repeat(128), "größe"], [
    ["", 'printable characters, 1 to 128 bytes of them: received ""'],
    ["a\nb", 'printable characters, 1 to 128 bytes of them: received "a\\nb"'],
    ["x".repeat(129), "128 bytes"],
    ["ä".repeat(65), "128 bytes"],
    [5, "received a number"],
  ]],
  ["strings", [[], ["a"]], [["a", "an array of strings"], [[1], "an array"]]],
  ["array", [[], [1]], [[{}, "an array: received an object"]]],
  ["function", [nothing], [["a", "a function: received a string"]]],
  ["functions", [[nothing]], [[[1], "an array of functions"]]],
  ["object", [{}, new Map()], [[[], "an object: received an array"]]],
  ["map", [new Map()], [[{}, "a Map: received an object"]]],
  ["clock", [systemClock], [[{}, "a clock, such as systemClock"]]],
  ["logger", [silentLogger], [[5, "a logger, such as jsonLogger() gives"]]],
  ["metrics", [noMetrics], [[{}, "metrics, such as a MetricsRegistry"]]],
  ["signal", [AbortSignal.abort()], [[true, "an AbortSignal"]]],
  ["selector", ["a=b", {}, []], [[5, "requirements: received a number"]]],
  ["number", [-1, Infinity], [[NaN, "a number: received NaN"]]],
  ["positive", [0.5, Infinity], [[0, "a number above 0: received 0"]]],
  ["count", [1], [[0, "a whole number from 1: received 0"], [1.5, "1.5"]]],
  ["size", [0], [[-1, "a whole number from 0: received -1"], ["1", "string"]]],
  ["bytes", [1, "96MiB", "1Gi"], [
    ["96MiBs", 'text like "96MiB", "1Gi", "500M": received "96MiBs"'],
    [0, "received 0"],
    ["0", 'received "0"'],
  ]],
  ["port", [0, 65_535], [[65_536, "a whole number from 0 to 65535"]]],
  ["duration", [0, "10s"], [
    [-1, "zero or more milliseconds"],
    [Infinity, "received Infinity"],
    ["soon", 'like "250ms", "10s", "5m", "1h30m", "7d": received "soon"'],
    [{}, "a duration: zero or more milliseconds"],
  ]],
  [["a", "b"], ["a", "b"], [["c", 'one of a, b: received "c"']]],
  [["a", undefined], [undefined], [[5, "one of a: received 5"]]],
];

const place = { name: "one", subject: "a thing" };

for (const [rule, good, bad] of RULES) {
  test(`checkOption applies the rule ${rule}`, () => {
    for (const value of good) checkOption(value, rule, place);
    for (const [value, words] of bad) {
      assert.throws(() => checkOption(value, rule, place), (error: Error) => {
        const start = 'Cannot read the options of a thing: "one" must be ';
        assert(error.message.startsWith(start), error.message);
        assert(error.message.includes(words), error.message);
        return true;
      });
    }
    if (typeof rule !== "string" || rule === "any") return;
    checkOption(undefined, `${rule}?` as OptionRule, place);
    assert.throws(
      () => checkOption(undefined, rule, place),
      /must be .*: received nothing/,
    );
  });
}

test("checkOptions distinguishes a wrong type from a value out of range", () => {
  const check = (value: unknown) =>
    checkOptions({ size: value }, { size: "size" }, "a thing");
  assert.throws(() => check("1"), TypeError);
  assert.throws(() => check(-1), RangeError);
});

test("checkOptions rejects unknown options and values that are no objects", () => {
  const check = (options: unknown) =>
    checkOptions(options as object, { size: "size?" }, "a thing");
  check({});
  assert.throws(() => check({ sizes: 1 }), /did you mean "size"\?/);
  for (const value of [undefined, null, 3, "x"]) {
    assert.throws(() => check(value), /of a thing: they must be an object/);
  }
  // Such as the answer of loadOperatorConfig() without await.
  assert.throws(() => check(Promise.resolve({})), /received a promise$/);
});

test("checkOptions checks each item of an array by its table", () => {
  const check = (rights: unknown) =>
    checkOptions(
      { rights },
      { rights: { type: "array?", options: { verb: "name" } } },
      "a thing",
    );
  check(undefined);
  check([{ verb: "get" }, { verb: "list" }]);
  assert.throws(
    () => check([{ verb: "get" }, { verb: "" }]),
    /of a thing, rights: "verb" must be a string that is not empty/,
  );
  assert.throws(
    () => check(["get"]),
    /a thing, rights: they must be an object/,
  );
  assert.throws(() => check({}), /"rights" must be an array/);
});

test("checkOptions shows no string that may be a secret", () => {
  const secret = "s3cret";
  for (const rule of ["object", "function", "boolean", "count"] as const) {
    assert.throws(
      () => checkOptions({ token: secret }, { token: rule }, "a thing"),
      (error: Error) => !error.message.includes(secret),
    );
  }
});

test("typeText names the type of any value", () => {
  const texts = [undefined, null, [], {}, 1, "a", nothing, 1n].map(typeText);
  assert.deepEqual(texts, [
    "nothing",
    "null",
    "an array",
    "an object",
    "a number",
    "a string",
    "a function",
    "a bigint",
  ]);
});

test("checkOptions rejects an unknown option and suggests the nearest", () => {
  const table = { retry: "any?", maxInterval: "any?" } as const;
  const checked = (options: object) => () =>
    checkOptions(options, table, "a controller");
  checked({ retry: false })();
  checked({})();
  assert.throws(
    checked({ maxIntervall: 1 }),
    /no option "maxIntervall": did you mean "maxInterval"\?/,
  );
  assert.throws(
    checked({ zebra: 1 }),
    /no option "zebra", only retry, maxInterval/,
  );
  assert.throws(checked(null as unknown as object), /object: received null$/);
});

test("nearestName finds the name that was probably intended", () => {
  const known = ["labelSelector", "fieldSelector", "retry"];
  assert.equal(nearestName("labelselector", known), "labelSelector");
  assert.equal(nearestName("retries", known), "retry");
  assert.equal(nearestName("field", known), "fieldSelector", "a beginning");
  assert.equal(nearestName("x", known), undefined);
});

test("resolveOptions gives numbers for durations and sizes, and defaults for the rest", () => {
  interface Options {
    readonly pause?: string | number;
    readonly limit?: string | number | false;
    readonly size?: string | number;
    readonly name?: string;
    readonly inner?: { readonly wait?: string | number };
  }
  const table: OptionTable<Options, "name" | "size"> = {
    pause: { type: "duration", default: "1m" },
    limit: { type: "duration", default: Infinity, off: Infinity },
    size: "bytes?",
    name: "name?",
    inner: {
      type: "object",
      default: {},
      options: { wait: { type: "duration", default: "2s" } },
    },
  };
  const plain = {
    pause: 60_000,
    limit: Infinity,
    size: undefined,
    name: undefined,
    inner: { wait: 2_000 },
  };
  assert.deepEqual(resolveOptions<Options, "name" | "size">({}, table), plain);
  assert.deepEqual(
    resolveOptions<Options, "name" | "size">({ limit: false }, table),
    plain,
  );
  assert.deepEqual(
    resolveOptions<Options, "name" | "size">({
      pause: "1.5s",
      limit: 10,
      size: "2KiB",
      name: "a",
      inner: { wait: "1s" },
    }, table),
    { pause: 1_500, limit: 10, size: 2_048, name: "a", inner: { wait: 1_000 } },
  );
});
