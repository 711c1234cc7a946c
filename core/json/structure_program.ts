import {
  assemble,
  type Code,
  forever,
  get,
  give,
  I32,
  i32,
  i32Add,
  i32AtLeast,
  i32IsZero,
  i32Load,
  i32OfI64,
  i32Or,
  i32Store,
  I64,
  i64,
  i64And,
  i64CountOnes,
  i64IsZero,
  i64OfI32,
  i64Or,
  i64ShiftLeft,
  i64ShiftRight,
  i64ShiftRightSigned,
  i64Subtract,
  i64TrailingZeros,
  i64Xor,
  i8x16,
  i8x16Bitmask,
  i8x16Equal,
  i8x16ShiftLeft,
  sequence,
  set,
  V128,
  v128AnyTrue,
  v128Load,
  v128Or,
  when,
  whileNot,
} from "./wasm_assembler.ts";
import { INCOMPLETE, MISMATCHED } from "./structure_engine.ts";

/** The memory: four cells of state, then the window of text. */
export const DEPTH_CELL = 0;
export const BRACE_DEPTH_CELL = 4;
export const IN_STRING_CELL = 8;
export const ESCAPED_CELL = 12;
export const STATE_BYTES = 16;
export const WINDOW_START = 64;
/** Whole blocks; one more behind them is read, but never looked at. */
export const WINDOW_BYTES: number = 64 * 1024 - 2 * 64;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
/** `{` and `[` differ in this bit alone, and so do `}` and `]`. */
const BRACE_BIT = 0x20;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

// The parameters, and the locals in the order of LOCAL_TYPES.
const POSITION = 0;
const LENGTH = 1;
const DEPTH = 2;
const BRACE_DEPTH = 3;
const BLOCKS = [4, 5, 6, 7] as const;
const WORK = [8, 9, 10, 11] as const;
const QUOTES = 12;
const BACKSLASHES = 13;
const ESCAPES = 14;
const ESCAPED = 15;
const STRINGS = 16;
const IN_STRING = 17;
const OPENING = 18;
const CLOSING = 19;
const BRACES = 20;
const OPENING_BRACES = 21;
const CLOSING_BRACES = 22;
const REST = 23;
const UP_TO = 24;
const LOCAL_TYPES: readonly number[] = [
  ...[I32, I32],
  ...[V128, V128, V128, V128, V128, V128, V128, V128],
  ...[I64, I64, I64, I64, I64, I64, I64, I64, I64, I64, I64, I64, I64],
];

/** One bit for each of 64 bytes, from a test of 16 bytes. */
function bits(test: (part: number) => Code): Code {
  const sixteen = (part: number) =>
    i64ShiftLeft(
      i64OfI32(i8x16Bitmask(test(part))),
      i64(BigInt(16 * part)),
    );
  return i64Or(
    i64Or(sixteen(0), sixteen(1)),
    i64Or(sixteen(2), sixteen(3)),
  );
}

function blocksEqual(blocks: readonly number[], byte: number): Code {
  return bits((part) => i8x16Equal(get(blocks[part] ?? 0), i8x16(byte)));
}

/** Bit n becomes the parity of bits 0 to n: set from quote to quote. */
function prefixXor(local: number): Code {
  return sequence(
    ...[1n, 2n, 4n, 8n, 16n, 32n].map((shift) =>
      set(local, i64Xor(get(local), i64ShiftLeft(get(local), i64(shift))))
    ),
  );
}

/**
 * Takes escaped quotes out of QUOTES. Within a run of backslashes every other
 * one escapes; subtracting the run's start from the odd positions finds out
 * which in constant time. ESCAPED carries over to the next block. WORK has the
 * backslashes.
 */
function dropEscapedQuotes(): Code {
  const odd = i64(-0x5555555555555556n);
  const escaping = i64And(
    get(BACKSLASHES),
    i64Xor(get(ESCAPED), i64(-1n)),
  );
  return sequence(
    set(BACKSLASHES, bits((part) => get(WORK[part] ?? 0))),
    set(
      ESCAPES,
      i64Xor(
        i64Subtract(i64Or(i64ShiftLeft(escaping, i64(1n)), odd), escaping),
        odd,
      ),
    ),
    set(
      QUOTES,
      i64And(
        get(QUOTES),
        i64Xor(
          i64Xor(get(ESCAPES), i64Or(get(BACKSLASHES), get(ESCAPED))),
          i64(-1n),
        ),
      ),
    ),
    set(
      ESCAPED,
      i64ShiftRight(i64And(get(ESCAPES), get(BACKSLASHES)), i64(63n)),
    ),
  );
}

/** Finds what is in strings, and the brackets that are not. */
function classifyBlock(): Code {
  const outside = i64Xor(get(STRINGS), i64(-1n));
  const [a, b, c, d] = WORK;
  return sequence(
    ...BLOCKS.map((local, part) =>
      set(local, v128Load(WINDOW_START + 16 * part, get(POSITION)))
    ),
    set(QUOTES, blocksEqual(BLOCKS, QUOTE)),
    ...WORK.map((local, part) =>
      set(local, i8x16Equal(get(BLOCKS[part] ?? 0), i8x16(BACKSLASH)))
    ),
    when(
      i32Or(
        v128AnyTrue(v128Or(v128Or(get(a), get(b)), v128Or(get(c), get(d)))),
        i32OfI64(get(ESCAPED)),
      ),
      dropEscapedQuotes(),
    ),
    set(STRINGS, get(QUOTES)),
    prefixXor(STRINGS),
    set(STRINGS, i64Xor(get(STRINGS), get(IN_STRING))),
    set(IN_STRING, i64ShiftRightSigned(get(STRINGS), i64(63n))),
    ...WORK.map((local, part) =>
      set(local, v128Or(get(BLOCKS[part] ?? 0), i8x16(BRACE_BIT)))
    ),
    set(OPENING, i64And(blocksEqual(WORK, OPEN_BRACE), outside)),
    set(CLOSING, i64And(blocksEqual(WORK, CLOSE_BRACE), outside)),
    // Two steps to the left bring the brace bit to the sign of each byte.
    set(BRACES, bits((part) => i8x16ShiftLeft(get(BLOCKS[part] ?? 0), i32(2)))),
    set(OPENING_BRACES, i64And(get(OPENING), get(BRACES))),
    set(CLOSING_BRACES, i64And(get(CLOSING), get(BRACES))),
  );
}

/** By how much a depth grows over the positions of a mask. */
function growth(opening: number, closing: number, mask: Code): Code {
  const count = (brackets: number) => i64CountOnes(i64And(get(brackets), mask));
  return i32OfI64(i64Subtract(count(opening), count(closing)));
}

/** Looks at each closing bracket of a block in which the value may end. */
function findEnd(): Code {
  const lowerBits = i64Subtract(get(REST), i64(1n));
  return sequence(
    set(REST, get(CLOSING)),
    whileNot(
      i64IsZero(get(REST)),
      set(UP_TO, i64Xor(get(REST), lowerBits)),
      when(
        i32IsZero(i32Add(get(DEPTH), growth(OPENING, CLOSING, get(UP_TO)))),
        endHere(),
      ),
      set(REST, i64And(get(REST), lowerBits)),
    ),
  );
}

/** The value ends at the lowest bit of REST, if its braces match, too. */
function endHere(): Code {
  const index = i32OfI64(i64TrailingZeros(get(REST)));
  return sequence(
    when(
      i32Add(
        get(BRACE_DEPTH),
        growth(OPENING_BRACES, CLOSING_BRACES, get(UP_TO)),
      ),
      give(i32(MISMATCHED)),
    ),
    give(i32Add(i32Add(get(POSITION), index), i32(1))),
  );
}

const ALL = i64(-1n);
const saveState = sequence(
  i32Store(DEPTH_CELL, get(DEPTH)),
  i32Store(BRACE_DEPTH_CELL, get(BRACE_DEPTH)),
  i32Store(IN_STRING_CELL, i32OfI64(get(IN_STRING))),
  i32Store(ESCAPED_CELL, i32OfI64(get(ESCAPED))),
);

/**
 * The module that finds where a JSON object or array ends: 64 bytes a step, by
 * the bit tricks that Langdale and Lemire found for simdjson.
 *
 * `skip(position, length)` reads the window's bytes from a position to a
 * length; between them must be whole blocks of 64, unless the text ends there;
 * behind must stand 64 bytes
 * that are neither quote, backslash nor bracket. It gives the position after
 * the closing bracket, or one of the negative constants above, and goes on
 * where it stopped once the window holds the next bytes.
 */
export function structureProgram(): Uint8Array<ArrayBuffer> {
  return assemble({
    name: "skip",
    parameters: 2,
    locals: LOCAL_TYPES,
    pages: 1,
    body: sequence(
      set(DEPTH, i32Load(DEPTH_CELL)),
      set(BRACE_DEPTH, i32Load(BRACE_DEPTH_CELL)),
      set(
        IN_STRING,
        i64Subtract(
          i64(0n),
          i64And(i64OfI32(i32Load(IN_STRING_CELL)), i64(1n)),
        ),
      ),
      set(ESCAPED, i64OfI32(i32Load(ESCAPED_CELL))),
      forever(
        when(
          i32AtLeast(get(POSITION), get(LENGTH)),
          sequence(saveState, give(i32(INCOMPLETE))),
        ),
        classifyBlock(),
        when(
          i32AtLeast(i32OfI64(i64CountOnes(get(CLOSING))), get(DEPTH)),
          findEnd(),
        ),
        set(DEPTH, i32Add(get(DEPTH), growth(OPENING, CLOSING, ALL))),
        set(
          BRACE_DEPTH,
          i32Add(
            get(BRACE_DEPTH),
            growth(OPENING_BRACES, CLOSING_BRACES, ALL),
          ),
        ),
        set(POSITION, i32Add(get(POSITION), i32(64))),
      ),
      [0x00], // unreachable
    ),
  });
}
