/** Result of a search that did not reach the end of the value. */
export const INCOMPLETE = -1;

/** Layout of the memory: three cells of state, then the window of text. */
const DEPTH_CELL = 0;
const IN_STRING_CELL = 4;
const ESCAPED_CELL = 8;
export const STATE_BYTES = 12;
export const WINDOW_START = 64;
/** Size of the window in whole blocks; one more block is read, but not used. */
export const WINDOW_BYTES: number = 64 * 1024 - 2 * 64;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
/** Bit in which braces differ from brackets. */
const BRACE_BIT = 0x20;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

/**
 * Bytes of a WebAssembly expression. It is written as nested calls: the code of
 * `op("i64.and", a, b)` is `a`, then `b`, then the opcode, as in a stack machine.
 * Types are not checked here: the runtime validates the module.
 */
type Code = readonly number[];

/** Opcodes by their names in the text format; `0xfd` precedes SIMD ones. */
const OPCODES = {
  "i32.eqz": [0x45],
  "i32.ge_s": [0x4e],
  "i32.add": [0x6a],
  "i32.or": [0x72],
  "i32.wrap_i64": [0xa7],
  "i64.eqz": [0x50],
  "i64.ctz": [0x7a],
  "i64.popcnt": [0x7b],
  "i64.sub": [0x7d],
  "i64.and": [0x83],
  "i64.or": [0x84],
  "i64.xor": [0x85],
  "i64.shl": [0x86],
  "i64.shr_s": [0x87],
  "i64.shr_u": [0x88],
  "i64.extend_i32_u": [0xad],
  "i8x16.eq": [0xfd, 35],
  "i8x16.bitmask": [0xfd, 100],
  "v128.or": [0xfd, 80],
  "v128.any_true": [0xfd, 83],
  return: [0x0f],
} as const;

const I32 = 0x7f;
const I64 = 0x7e;
const V128 = 0x7b;
const NO_RESULT = 0x40;
const END = 0x0b;

const op = (name: keyof typeof OPCODES, ...operands: readonly Code[]): Code => [
  ...operands.flat(),
  ...OPCODES[name],
];
const i32 = (value: number): Code => [0x41, ...signed(BigInt(value))];
const i64 = (value: bigint): Code => [0x42, ...signed(value)];
/** SIMD constant of 16 equal bytes. */
const i8x16 = (byte: number): Code => [0xfd, 12, ...Array(16).fill(byte)];
const get = (local: number): Code => [0x20, local];
const set = (local: number, value: Code): Code => [...value, 0x21, local];
const not = (value: Code): Code => op("i64.xor", value, i64(-1n));
const load = (cell: number): Code => [...i32(0), 0x28, 0, cell];
const store = (cell: number, value: Code): Code => [
  ...i32(0),
  ...value,
  ...[0x36, 0, cell],
];
const when = (condition: Code, ...then: readonly Code[]): Code => [
  ...condition,
  ...[0x04, NO_RESULT],
  ...then.flat(),
  END,
];
/** Loop that ends by a return or by a branch to an enclosing block. */
const loop = (...codes: readonly Code[]): Code => [
  ...[0x03, NO_RESULT],
  ...codes.flat(),
  ...[0x0c, 0, END],
];
/** Loop while a condition, checked first, is false. */
const until = (condition: Code, ...codes: readonly Code[]): Code => [
  ...[0x02, NO_RESULT],
  ...loop(condition, [0x0d, 1], ...codes),
  END,
];

/** Unsigned integer in variable-length encoding (LEB128). */
function unsigned(value: number): Code {
  return value < 128
    ? [value]
    : [value % 128 | 128, ...unsigned(Math.floor(value / 128))];
}

/** Signed integer in variable-length encoding (LEB128). */
function signed(value: bigint): Code {
  const low = Number(value & 127n);
  const rest = value >> 7n;
  return rest === (low < 64 ? 0n : -1n) ? [low] : [low | 128, ...signed(rest)];
}

// The parameters, and the locals in the order of LOCAL_TYPES.
const POSITION = 0;
const LENGTH = 1;
const DEPTH = 2;
const BLOCKS = [3, 4, 5, 6] as const;
const WORK = [7, 8, 9, 10] as const;
const QUOTES = 11;
const BACKSLASHES = 12;
const ESCAPES = 13;
const ESCAPED = 14;
const STRINGS = 15;
const IN_STRING = 16;
const OPENING = 17;
const CLOSING = 18;
const REST = 19;
const UP_TO = 20;
const LOCAL_TYPES = [I32, ...Array(8).fill(V128), ...Array(10).fill(I64)];

/** Mask with a bit for each of 64 bytes, from four SIMD comparison results. */
function bits(tests: readonly Code[]): Code {
  return tests.map((test, part) =>
    op(
      "i64.shl",
      op("i64.extend_i32_u", op("i8x16.bitmask", test)),
      i64(BigInt(16 * part)),
    )
  ).reduce((mask, more) => op("i64.or", mask, more));
}

const areEqual = (blocks: readonly number[], byte: number): Code[] =>
  blocks.map((block) => op("i8x16.eq", get(block), i8x16(byte)));

/** Sets bit n to the parity of bits 0 to n, which marks bytes between quotes. */
const prefixXor = (local: number): Code =>
  [1n, 2n, 4n, 8n, 16n, 32n].flatMap((shift) =>
    set(local, op("i64.xor", get(local), op("i64.shl", get(local), i64(shift))))
  );

/**
 * Removes escaped quotes from QUOTES. Within a run of backslashes every other one
 * escapes; subtracting the start of the run from the odd positions finds them in
 * constant time. ESCAPED is carried over to the next block. WORK contains the
 * backslashes.
 */
function dropEscapedQuotes(): Code {
  const odd = i64(-0x5555555555555556n);
  const escaping = op("i64.and", get(BACKSLASHES), not(get(ESCAPED)));
  const shifted = op("i64.or", op("i64.shl", escaping, i64(1n)), odd);
  const affected = op("i64.or", get(BACKSLASHES), get(ESCAPED));
  return [
    set(BACKSLASHES, bits(WORK.map(get))),
    set(ESCAPES, op("i64.xor", op("i64.sub", shifted, escaping), odd)),
    set(
      QUOTES,
      op("i64.and", get(QUOTES), not(op("i64.xor", get(ESCAPES), affected))),
    ),
    set(
      ESCAPED,
      op("i64.shr_u", op("i64.and", get(ESCAPES), get(BACKSLASHES)), i64(63n)),
    ),
  ].flat();
}

/** Finds the strings in a block of JSON bytes, and the brackets outside of strings. */
function classifyBlock(): Code {
  const outside = not(get(STRINGS));
  const any = WORK.map(get).reduce((a, b) => op("v128.or", a, b));
  return [
    ...BLOCKS.map((local, part) =>
      set(local, [
        ...get(POSITION),
        ...[0xfd, 0, 0, ...unsigned(WINDOW_START + 16 * part)], // v128.load
      ])
    ),
    set(QUOTES, bits(areEqual(BLOCKS, QUOTE))),
    ...areEqual(BLOCKS, BACKSLASH).map((test, part) =>
      set(WORK[part] as number, test)
    ),
    when(
      op("i32.or", op("v128.any_true", any), op("i32.wrap_i64", get(ESCAPED))),
      dropEscapedQuotes(),
    ),
    set(STRINGS, get(QUOTES)),
    prefixXor(STRINGS),
    set(STRINGS, op("i64.xor", get(STRINGS), get(IN_STRING))),
    set(IN_STRING, op("i64.shr_s", get(STRINGS), i64(63n))),
    ...BLOCKS.map((block, part) =>
      set(WORK[part] as number, op("v128.or", get(block), i8x16(BRACE_BIT)))
    ),
    set(OPENING, op("i64.and", bits(areEqual(WORK, OPEN_BRACE)), outside)),
    set(CLOSING, op("i64.and", bits(areEqual(WORK, CLOSE_BRACE)), outside)),
  ].flat();
}

/** Sums the changes of the JSON nesting depth at the positions of a bit mask. */
function growth(mask: Code): Code {
  const count = (brackets: number) =>
    op("i64.popcnt", op("i64.and", get(brackets), mask));
  return op("i32.wrap_i64", op("i64.sub", count(OPENING), count(CLOSING)));
}

/** Checks each closing bracket of a block in which the value may end. */
function findEnd(): Code {
  const lowerBits = op("i64.sub", get(REST), i64(1n));
  const index = op("i32.wrap_i64", op("i64.ctz", get(REST)));
  return [
    ...set(REST, get(CLOSING)),
    ...until(
      op("i64.eqz", get(REST)),
      set(UP_TO, op("i64.xor", get(REST), lowerBits)),
      when(
        op("i32.eqz", op("i32.add", get(DEPTH), growth(get(UP_TO)))),
        op(
          "return",
          op("i32.add", op("i32.add", get(POSITION), index), i32(1)),
        ),
      ),
      set(REST, op("i64.and", get(REST), lowerBits)),
    ),
  ];
}

/** Instructions of `skip`, without the end of the function. */
function skip(): Code {
  const inString = op(
    "i64.and",
    op("i64.extend_i32_u", load(IN_STRING_CELL)),
    i64(1n),
  );
  const closing = op("i32.wrap_i64", op("i64.popcnt", get(CLOSING)));
  return [
    set(DEPTH, load(DEPTH_CELL)),
    set(IN_STRING, op("i64.sub", i64(0n), inString)),
    set(ESCAPED, op("i64.extend_i32_u", load(ESCAPED_CELL))),
    loop(
      when(
        op("i32.ge_s", get(POSITION), get(LENGTH)),
        store(DEPTH_CELL, get(DEPTH)),
        store(IN_STRING_CELL, op("i32.wrap_i64", get(IN_STRING))),
        store(ESCAPED_CELL, op("i32.wrap_i64", get(ESCAPED))),
        op("return", i32(INCOMPLETE)),
      ),
      classifyBlock(),
      when(op("i32.ge_s", closing, get(DEPTH)), findEnd()),
      set(DEPTH, op("i32.add", get(DEPTH), growth(i64(-1n)))),
      set(POSITION, op("i32.add", get(POSITION), i32(64))),
    ),
    [0x00], // unreachable
  ].flat();
}

/**
 * WebAssembly module that finds the end of a JSON object or array, 64 bytes per
 * step, by the algorithms of simdjson (Langdale and Lemire, "Parsing gigabytes of
 * JSON per second"). It is assembled here: there is no compiler, no generated file
 * and no binary in the repository.
 *
 * `skip(position, length)` reads the bytes of the window from a position to a
 * length. Between them must be whole blocks of 64, unless the text ends there;
 * after them must be 64 bytes that are neither quote, backslash nor bracket. It
 * returns the position after the bracket that closes the first one, or INCOMPLETE,
 * and continues there once the window contains the next bytes.
 */
export function structureProgram(): Uint8Array<ArrayBuffer> {
  const vector = (items: readonly Code[]): Code => [
    ...unsigned(items.length),
    ...items.flat(),
  ];
  const sized = (code: Code): Code => [...unsigned(code.length), ...code];
  const section = (id: number, ...items: readonly Code[]): Code => [
    id,
    ...sized(vector(items)),
  ];
  const text = (name: string): Code =>
    sized([...new TextEncoder().encode(name)]);
  const locals = vector(LOCAL_TYPES.map((type) => [1, type]));
  return Uint8Array.from([
    ...[0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0], // "\0asm", version 1
    ...section(1, [0x60, ...vector([[I32], [I32]]), ...vector([[I32]])]),
    ...section(3, [0]),
    ...section(5, [1, 1, 1]), // a memory of one page of 64 KiB
    ...section(7, [...text("skip"), 0, 0], [...text("memory"), 2, 0]),
    ...section(10, sized([...locals, ...skip(), END])),
  ]);
}
