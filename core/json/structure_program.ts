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
  sequence,
  set,
  V128,
  v128AnyTrue,
  v128Load,
  v128Or,
  when,
  whileNot,
} from "./wasm_assembler.ts";

/** Result of a search that did not reach the end of the value. */
export const INCOMPLETE = -1;

/** Layout of the memory: three cells of state, then the window of text. */
export const DEPTH_CELL = 0;
export const IN_STRING_CELL = 4;
export const ESCAPED_CELL = 8;
export const STATE_BYTES = 12;
export const WINDOW_START = 64;
/** Size of the window in whole blocks; one more is read, but not evaluated. */
export const WINDOW_BYTES: number = 64 * 1024 - 2 * 64;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
/** Bit in which braces differ from brackets. */
const BRACE_BIT = 0x20;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

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
const LOCAL_TYPES: readonly number[] = [
  I32,
  ...[V128, V128, V128, V128, V128, V128, V128, V128],
  ...[I64, I64, I64, I64, I64, I64, I64, I64, I64, I64],
];

/** Mask with a bit for each of 64 bytes, from tests of 16 bytes. */
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

/** Sets bit n to the parity of bits 0 to n: set from quote to quote. */
function prefixXor(local: number): Code {
  return sequence(
    ...[1n, 2n, 4n, 8n, 16n, 32n].map((shift) =>
      set(local, i64Xor(get(local), i64ShiftLeft(get(local), i64(shift))))
    ),
  );
}

/**
 * Removes escaped quotes from QUOTES. Within a run of backslashes every other one
 * escapes; subtracting the start of the run from the odd positions finds them in
 * constant time. ESCAPED is carried over to the next block. WORK contains the
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

/** Finds the strings of a block, and the brackets outside of them. */
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
  );
}

/** Change of depth over the positions of a mask. */
function growth(mask: Code): Code {
  const count = (brackets: number) => i64CountOnes(i64And(get(brackets), mask));
  return i32OfI64(i64Subtract(count(OPENING), count(CLOSING)));
}

/** Checks each closing bracket of a block in which the value may end. */
function findEnd(): Code {
  const lowerBits = i64Subtract(get(REST), i64(1n));
  const index = i32OfI64(i64TrailingZeros(get(REST)));
  return sequence(
    set(REST, get(CLOSING)),
    whileNot(
      i64IsZero(get(REST)),
      set(UP_TO, i64Xor(get(REST), lowerBits)),
      when(
        i32IsZero(i32Add(get(DEPTH), growth(get(UP_TO)))),
        give(i32Add(i32Add(get(POSITION), index), i32(1))),
      ),
      set(REST, i64And(get(REST), lowerBits)),
    ),
  );
}

const ALL = i64(-1n);
const saveState = sequence(
  i32Store(DEPTH_CELL, get(DEPTH)),
  i32Store(IN_STRING_CELL, i32OfI64(get(IN_STRING))),
  i32Store(ESCAPED_CELL, i32OfI64(get(ESCAPED))),
);

/**
 * WebAssembly module that finds the end of a JSON object or array, 64 bytes per
 * step, by the algorithms of simdjson (Langdale and Lemire, "Parsing gigabytes of
 * JSON per second").
 *
 * `skip(position, length)` reads the bytes of the window from a position to a
 * length. Between them must be whole blocks of 64, unless the text ends there;
 * after them must be 64 bytes that are neither quote, backslash nor bracket. It
 * returns the position after the bracket that closes the first one, or INCOMPLETE,
 * and continues there once the window contains the next bytes.
 */
export function structureProgram(): Uint8Array<ArrayBuffer> {
  return assemble({
    name: "skip",
    parameters: 2,
    locals: LOCAL_TYPES,
    pages: 1,
    body: sequence(
      set(DEPTH, i32Load(DEPTH_CELL)),
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
        set(DEPTH, i32Add(get(DEPTH), growth(ALL))),
        set(POSITION, i32Add(get(POSITION), i32(64))),
      ),
      [0x00], // unreachable
    ),
  });
}
