import { CelError, CelFailure, NO_SUCH_OVERLOAD } from "./cel_errors.ts";
import {
  type FunctionDefinitions,
  type FunctionTable,
  functionTable,
} from "./function_declaration.ts";
import {
  durationText,
  parseGoDuration,
  parseTime,
  secondsOf,
  type TimeParts,
  timeParts,
  timeText,
} from "./go_time.ts";
import { doubleText, parseDouble } from "./number_text.ts";
import { pattern } from "./pattern.ts";
import {
  type CelMap,
  compare,
  Duration,
  equal,
  isMap,
  joined,
  Optional,
  sizeOf,
  Timestamp,
  typeNameOf,
  TypeValue,
  Uint,
} from "./values.ts";

const INT_MAX = 2n ** 63n - 1n;
const INT_MIN = -(2n ** 63n);
const UINT_MAX = 2n ** 64n - 1n;
const SECOND = 1_000_000_000n;
/** First and last time that CEL has. */
const MIN_TIME = -62_135_596_800n * SECOND;
const MAX_TIME = 253_402_300_799n * SECOND + (SECOND - 1n);

function fail(message: string): never {
  throw new CelFailure(message);
}

function int(value: bigint): bigint {
  return value > INT_MAX || value < INT_MIN ? fail("integer overflow") : value;
}

function uint(value: bigint): Uint {
  return value < 0n || value > UINT_MAX
    ? fail("unsigned integer overflow")
    : new Uint(value);
}

function duration(nanos: bigint): Duration {
  return nanos > INT_MAX || nanos < INT_MIN
    ? fail("duration overflow")
    : new Duration(nanos);
}

function timestamp(nanos: bigint, offset = 0): Timestamp {
  return isTime(nanos)
    ? new Timestamp(nanos, offset)
    : fail("timestamp overflow");
}

/** Whether a time, in nanoseconds since 1970, is one that CEL has. */
export function isTime(nanos: bigint): boolean {
  return nanos >= MIN_TIME && nanos <= MAX_TIME;
}

type Operation = (a: bigint, b: bigint) => bigint;

function onInts(name: string, run: Operation): FunctionDefinitions {
  return {
    [`${name}(int, int): int`]: (a: bigint, b: bigint) => int(run(a, b)),
  };
}

function onUints(name: string, run: Operation): FunctionDefinitions {
  return {
    [`${name}(uint, uint): uint`]: (a: Uint, b: Uint) =>
      uint(run(a.value, b.value)),
  };
}

function notZero(name: string, run: Operation): Operation {
  return (a, b) => b === 0n ? fail(`${name} by zero`) : run(a, b);
}

const ARITHMETIC: FunctionDefinitions = {
  "_+_(bytes, bytes): bytes": (a: Uint8Array, b: Uint8Array) => {
    const sum = new Uint8Array(a.length + b.length);
    sum.set(a);
    sum.set(b, a.length);
    return sum;
  },
  "_+_(double, double): double": (a: number, b: number) => a + b,
  "_+_(duration, duration): duration": (a: Duration, b: Duration) =>
    duration(a.nanos + b.nanos),
  "_+_(duration, timestamp): timestamp": (a: Duration, b: Timestamp) =>
    timestamp(a.nanos + b.nanos, b.offset),
  "_+_(timestamp, duration): timestamp": (a: Timestamp, b: Duration) =>
    timestamp(a.nanos + b.nanos, a.offset),
  ...onInts("_+_", (a, b) => a + b),
  "_+_(list<A>, list<A>): list<A>": joined,
  "_+_(string, string): string": (a: string, b: string) => a + b,
  ...onUints("_+_", (a, b) => a + b),
  "_-_(double, double): double": (a: number, b: number) => a - b,
  "_-_(duration, duration): duration": (a: Duration, b: Duration) =>
    duration(a.nanos - b.nanos),
  ...onInts("_-_", (a, b) => a - b),
  "_-_(timestamp, duration): timestamp": (a: Timestamp, b: Duration) =>
    timestamp(a.nanos - b.nanos, a.offset),
  "_-_(timestamp, timestamp): duration": (a: Timestamp, b: Timestamp) =>
    new Duration(int(a.nanos - b.nanos)),
  ...onUints("_-_", (a, b) => a - b),
  "_*_(double, double): double": (a: number, b: number) => a * b,
  ...onInts("_*_", (a, b) => a * b),
  ...onUints("_*_", (a, b) => a * b),
  "_/_(double, double): double": (a: number, b: number) => a / b,
  ...onInts("_/_", notZero("division", (a, b) => a / b)),
  ...onUints("_/_", notZero("division", (a, b) => a / b)),
  // The quotient, too, must be an integer of 64 bits.
  ...onInts("_%_", notZero("modulus", (a, b) => (int(a / b), a % b))),
  ...onUints("_%_", notZero("modulus", (a, b) => a % b)),
  "-_(double): double": (a: number) => -a,
  "-_(int): int": (a: bigint) => int(-a),
};

/** Types that an ordering operator compares, by pairs. */
const ORDERED: readonly (readonly [string, string])[] = [
  ["bool", "bool"],
  ["int", "int"],
  ["int", "double"],
  ["int", "uint"],
  ["uint", "uint"],
  ["uint", "double"],
  ["uint", "int"],
  ["double", "double"],
  ["double", "int"],
  ["double", "uint"],
  ["string", "string"],
  ["bytes", "bytes"],
  ["timestamp", "timestamp"],
  ["duration", "duration"],
];

function ordering(
  name: string,
  holds: (order: number) => boolean,
): FunctionDefinitions {
  const run = (a: unknown, b: unknown) => {
    const order = compare(a, b);
    return order instanceof CelError ? order : holds(order);
  };
  return Object.fromEntries(
    ORDERED.map(([a, b]) => [`${name}(${a}, ${b}): bool`, run]),
  );
}

/** Operators whose operands the evaluator takes itself. */
const SPECIAL: FunctionDefinitions = {
  "_?_:_(bool, A, A): A": () => NO_SUCH_OVERLOAD,
  "_&&_(bool, bool): bool": () => NO_SUCH_OVERLOAD,
  "_||_(bool, bool): bool": () => NO_SUCH_OVERLOAD,
  "_==_(A, A): bool": equal,
  "_!=_(A, A): bool": (a: unknown, b: unknown) => !equal(a, b),
  "_[_](list<A>, int): A": () => NO_SUCH_OVERLOAD,
  "_[_](map<A, B>, A): B": () => NO_SUCH_OVERLOAD,
  "_[?_](list<V>, int): optional<V>": () => NO_SUCH_OVERLOAD,
  "_[?_](optional<list<V>>, int): optional<V>": () => NO_SUCH_OVERLOAD,
  "_[?_](map<K, V>, K): optional<V>": () => NO_SUCH_OVERLOAD,
  "_[?_](optional<map<K, V>>, K): optional<V>": () => NO_SUCH_OVERLOAD,
  "_[_](optional<list<V>>, int): optional<V>": () => NO_SUCH_OVERLOAD,
  "_[_](optional<map<K, V>>, K): optional<V>": () => NO_SUCH_OVERLOAD,
  "@not_strictly_false(bool): bool": () => NO_SUCH_OVERLOAD,
};

const MEMBERSHIP: FunctionDefinitions = {
  "@in(A, list<A>): bool": (item: unknown, list: readonly unknown[]) =>
    list.some((one) => equal(one, item)),
  "@in(A, map<A, B>): bool": (key: unknown, map: CelMap) => {
    const found = map.find(key);
    return found instanceof CelError ? found : found !== undefined;
  },
};

function size(value: unknown): bigint {
  return BigInt(sizeOf(value) ?? 0);
}

const SIZES: FunctionDefinitions = Object.fromEntries(
  ["bytes", "list<A>", "map<A, B>", "string"].flatMap((type) => [
    [`size(${type}): int`, size],
    [`size(this ${type}): int`, size],
  ]),
);

function conversion(value: unknown, type: string): never {
  return fail(`type conversion error from '${typeNameOf(value)}' to '${type}'`);
}

const TRUE: ReadonlySet<string> = new Set([
  "1",
  "t",
  "T",
  "TRUE",
  "true",
  "True",
]);
const FALSE: ReadonlySet<string> = new Set([
  "0",
  "f",
  "F",
  "FALSE",
  "false",
  "False",
]);

/** Whole number of a text in decimal notation, in a range. */
function parsedWhole(
  text: string,
  min: bigint,
  max: bigint,
): bigint | undefined {
  if (!/^[+-]?\d+$/.test(text)) return undefined;
  const value = BigInt(text.replace("+", ""));
  return value < min || value > max ? undefined : value;
}

const CONVERSIONS: FunctionDefinitions = {
  "type(A): type<A>": (value: unknown) => new TypeValue(typeNameOf(value)),
  "bool(bool): bool": (value: boolean) => value,
  "bool(string): bool": (text: string) =>
    TRUE.has(text) ? true : FALSE.has(text) ? false : conversion(text, "bool"),
  "bytes(bytes): bytes": (value: Uint8Array) => value,
  "bytes(string): bytes": (text: string) => new TextEncoder().encode(text),
  "double(double): double": (value: number) => value,
  "double(int): double": Number,
  "double(string): double": (text: string) =>
    parseDouble(text) ?? conversion(text, "double"),
  "double(uint): double": ({ value }: Uint) => Number(value),
  "duration(duration): duration": (value: Duration) => value,
  "duration(string): duration": (text: string) => {
    const nanos = parseGoDuration(text);
    return nanos === undefined
      ? conversion(text, "google.protobuf.Duration")
      : new Duration(nanos);
  },
  "dyn(A): dyn": (value: unknown) => value,
  "int(int): int": (value: bigint) => value,
  "int(double): int": (value: number) =>
    value > -9223372036854775808 && value < 9223372036854775808
      ? BigInt(Math.trunc(value))
      : fail("integer overflow"),
  "int(duration): int": ({ nanos }: Duration) => nanos,
  "int(string): int": (text: string) =>
    parsedWhole(text, INT_MIN, INT_MAX) ?? conversion(text, "int"),
  "int(timestamp): int": ({ nanos }: Timestamp) => secondsOf(nanos),
  "int(uint): int": ({ value }: Uint) => int(value),
  "string(string): string": (text: string) => text,
  "string(bool): string": String,
  "string(bytes): string": (bytes: Uint8Array) => {
    try {
      return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })
        .decode(bytes);
    } catch {
      return fail("invalid UTF-8 in bytes, cannot convert to string");
    }
  },
  "string(double): string": doubleText,
  "string(duration): string": ({ nanos }: Duration) => durationText(nanos),
  "string(int): string": String,
  "string(timestamp): string": timeText,
  "string(uint): string": ({ value }: Uint) => String(value),
  "timestamp(timestamp): timestamp": (value: Timestamp) => value,
  "timestamp(int): timestamp": (seconds: bigint) => timestamp(seconds * SECOND),
  "timestamp(string): timestamp": (text: string) => {
    const time = parseTime(text);
    return time === undefined
      ? conversion(text, "google.protobuf.Timestamp")
      : timestamp(time.nanos, time.offset);
  },
  "uint(uint): uint": (value: Uint) => value,
  "uint(double): uint": (value: number) =>
    value >= 0 && value < 18446744073709551616
      ? new Uint(BigInt(Math.trunc(value)))
      : fail("unsigned integer overflow"),
  "uint(int): uint": (value: bigint) => uint(value),
  "uint(string): uint": (text: string) =>
    /^\d+$/.test(text) && BigInt(text) <= UINT_MAX
      ? new Uint(BigInt(text))
      : conversion(text, "uint"),
};

const TEXTS: FunctionDefinitions = {
  "contains(this string, string): bool": (text: string, part: string) =>
    text.includes(part),
  "endsWith(this string, string): bool": (text: string, part: string) =>
    text.endsWith(part),
  "startsWith(this string, string): bool": (text: string, part: string) =>
    text.startsWith(part),
  "matches(string, string): bool": matches,
  "matches(this string, string): bool": matches,
};

function matches(text: string, source: string): boolean {
  const { test, problem } = pattern(source);
  return problem === undefined ? test(text) : fail(problem);
}

/** Methods that yield a part of a time. */
const PARTS: Readonly<Record<string, (parts: TimeParts) => number>> = {
  getFullYear: ({ year }) => year,
  getMonth: ({ month }) => month,
  getDayOfYear: ({ dayOfYear }) => dayOfYear,
  getDayOfMonth: ({ day }) => day - 1,
  getDate: ({ day }) => day,
  getDayOfWeek: ({ dayOfWeek }) => dayOfWeek,
  getHours: ({ hours }) => hours,
  getMinutes: ({ minutes }) => minutes,
  getSeconds: ({ seconds }) => seconds,
  getMilliseconds: ({ milliseconds }) => milliseconds,
};

/** Methods that yield a whole duration in a unit. */
const UNITS: Readonly<Record<string, bigint>> = {
  getHours: 3_600n * SECOND,
  getMinutes: 60n * SECOND,
  getSeconds: SECOND,
  getMilliseconds: 1_000_000n,
};

const TIMES: FunctionDefinitions = Object.fromEntries(
  Object.entries(PARTS).flatMap(([name, part]) => {
    const run = ({ nanos }: Timestamp, zone?: string) =>
      BigInt(part(timeParts(nanos, zone)));
    const unit = UNITS[name];
    const methods: [string, (...args: never[]) => unknown][] = [
      [`${name}(this timestamp): int`, run],
      [`${name}(this timestamp, string): int`, run],
    ];
    if (unit !== undefined) {
      methods.push([
        `${name}(this duration): int`,
        ({ nanos }: Duration) => nanos / unit,
      ]);
    }
    return methods;
  }),
);

/** Whether a value is the zero or empty one of its type. */
function isZero(value: unknown): boolean {
  if (value === null || value === false || value === 0 || value === 0n) {
    return true;
  }
  if (value instanceof Uint) return value.value === 0n;
  if (value instanceof Duration) return value.nanos === 0n;
  if (value instanceof Timestamp) return value.nanos === MIN_TIME;
  if (value instanceof Optional) {
    return value.value === undefined || isZero(value.value);
  }
  if (isMap(value)) return value.size === 0;
  return sizeOf(value) === 0;
}

function unwrapped(list: readonly unknown[]): unknown[] {
  return list.flatMap((one) => {
    if (!(one instanceof Optional)) {
      return fail(`value ${String(one)} is not optional`);
    }
    return one.value === undefined ? [] : [one.value];
  });
}

function optionalAt(list: readonly unknown[], index: number): Optional {
  const item = list.at(index);
  return item === undefined ? Optional.NONE : Optional.of(item);
}

const OPTIONALS: FunctionDefinitions = {
  "optional.of(V): optional<V>": (value: unknown) => Optional.of(value),
  "optional.ofNonZeroValue(V): optional<V>": (value: unknown) =>
    isZero(value) ? Optional.NONE : Optional.of(value),
  "optional.none(): optional<V>": () => Optional.NONE,
  "optional.unwrap(list<optional<V>>): list<V>": unwrapped,
  "unwrapOpt(this list<optional<V>>): list<V>": unwrapped,
  "value(this optional<V>): V": ({ value }: Optional) =>
    value === undefined ? fail("optional.none() dereference") : value,
  "hasValue(this optional<V>): bool": ({ value }: Optional) =>
    value !== undefined,
  "or(this optional<V>, optional<V>): optional<V>": () => NO_SUCH_OVERLOAD,
  "orValue(this optional<V>, V): V": () => NO_SUCH_OVERLOAD,
  "first(this list<V>): optional<V>": (list: readonly unknown[]) =>
    optionalAt(list, 0),
  "last(this list<V>): optional<V>": (list: readonly unknown[]) =>
    optionalAt(list, -1),
};

const MAP_INSERTS: FunctionDefinitions = {
  "cel.@mapInsert(map<K, V>, K, V): map<K, V>": () => NO_SUCH_OVERLOAD,
  "cel.@mapInsert(map<K, V>, map<K, V>): map<K, V>": () => NO_SUCH_OVERLOAD,
};

let table: FunctionTable | undefined;

/** Functions of CEL itself. */
export function standardFunctions(): FunctionTable {
  return table ??= functionTable({
    "!_(bool): bool": (value: boolean) => !value,
    ...ARITHMETIC,
    ...ordering("_<_", (order) => order < 0),
    ...ordering("_<=_", (order) => order <= 0),
    ...ordering("_>_", (order) => order > 0),
    ...ordering("_>=_", (order) => order >= 0),
    ...SPECIAL,
    ...MEMBERSHIP,
    ...SIZES,
    ...CONVERSIONS,
    ...TEXTS,
    ...TIMES,
    ...OPTIONALS,
    ...MAP_INSERTS,
  });
}
