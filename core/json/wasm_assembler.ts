/**
 * Assembler for the part of WebAssembly's binary format that a small SIMD function
 * needs, written as nested expressions. There is no compiler, no generated file
 * and no binary in the repository.
 *
 * An expression is the list of its bytes; `i64And(a, b)` is `a`, then `b`, then
 * the opcode, as in a stack machine. Types are not checked here: the runtime
 * validates the module.
 *
 * @module
 */

/** Bytes of an instruction with its operands. */
export type Code = readonly number[];

/** Value type of 32-bit integers. */
export const I32 = 0x7f;
/** Value type of 64-bit integers. */
export const I64 = 0x7e;
/** Value type of SIMD registers of 16 bytes. */
export const V128 = 0x7b;

/** Type of blocks without a result. */
const NO_RESULT = 0x40;
const SIMD = 0xfd;
const END = 0x0b;

/** Unsigned integer in variable-length encoding (LEB128). */
function unsigned(value: number): number[] {
  const bytes: number[] = [];
  do {
    const rest = Math.floor(value / 128);
    bytes.push((value % 128) | (rest > 0 ? 0x80 : 0));
    value = rest;
  } while (value > 0);
  return bytes;
}

/** Signed integer in variable-length encoding (LEB128). */
function signed(value: bigint): number[] {
  const bytes: number[] = [];
  for (;;) {
    const low = Number(value & 0x7fn);
    value >>= 7n;
    const done = (value === 0n && low < 0x40) || (value === -1n && low >= 0x40);
    bytes.push(done ? low : low | 0x80);
    if (done) return bytes;
  }
}

function binary(opcode: number): (a: Code, b: Code) => Code {
  return (a, b) => [...a, ...b, opcode];
}

function unary(opcode: number): (a: Code) => Code {
  return (a) => [...a, opcode];
}

function simdUnary(opcode: number): (a: Code) => Code {
  return (a) => [...a, SIMD, ...unsigned(opcode)];
}

function simdBinary(opcode: number): (a: Code, b: Code) => Code {
  return (a, b) => [...a, ...b, SIMD, ...unsigned(opcode)];
}

/** Memory operand with a fixed offset and no alignment. */
function at(offset: number): Code {
  return [0, ...unsigned(offset)];
}

export const get = (local: number): Code => [0x20, ...unsigned(local)];
export const set = (local: number, value: Code): Code => [
  ...value,
  0x21,
  ...unsigned(local),
];

/** Sequence of instructions. */
export const sequence = (...codes: readonly Code[]): Code => codes.flat();
/** Loop until a return. */
export const forever = (...codes: readonly Code[]): Code => [
  0x03,
  NO_RESULT,
  ...codes.flat(),
  0x0c,
  0,
  END,
];
/** Loop while an expression, checked first, is not zero. */
export const whileNot = (zero: Code, ...codes: readonly Code[]): Code => [
  0x02,
  NO_RESULT,
  0x03,
  NO_RESULT,
  ...zero,
  0x0d,
  1,
  ...codes.flat(),
  0x0c,
  0,
  END,
  END,
];
export const when = (condition: Code, then: Code, otherwise?: Code): Code => [
  ...condition,
  0x04,
  NO_RESULT,
  ...then,
  ...(otherwise === undefined ? [] : [0x05, ...otherwise]),
  END,
];
export const give = (value: Code): Code => [...value, 0x0f];

export const i32 = (value: number): Code => [0x41, ...signed(BigInt(value))];
export const i32Load = (address: number): Code => [
  ...i32(0),
  0x28,
  ...at(address),
];
export const i32Store = (address: number, value: Code): Code => [
  ...i32(0),
  ...value,
  0x36,
  ...at(address),
];
export const i32IsZero: (a: Code) => Code = unary(0x45);
export const i32AtLeast: (a: Code, b: Code) => Code = binary(0x4e);
export const i32Add: (a: Code, b: Code) => Code = binary(0x6a);
export const i32Or: (a: Code, b: Code) => Code = binary(0x72);
export const i32OfI64: (a: Code) => Code = unary(0xa7);

export const i64 = (value: bigint): Code => [0x42, ...signed(value)];
export const i64IsZero: (a: Code) => Code = unary(0x50);
export const i64TrailingZeros: (a: Code) => Code = unary(0x7a);
export const i64CountOnes: (a: Code) => Code = unary(0x7b);
export const i64Subtract: (a: Code, b: Code) => Code = binary(0x7d);
export const i64And: (a: Code, b: Code) => Code = binary(0x83);
export const i64Or: (a: Code, b: Code) => Code = binary(0x84);
export const i64Xor: (a: Code, b: Code) => Code = binary(0x85);
export const i64ShiftLeft: (a: Code, b: Code) => Code = binary(0x86);
export const i64ShiftRightSigned: (a: Code, b: Code) => Code = binary(0x87);
export const i64ShiftRight: (a: Code, b: Code) => Code = binary(0x88);
export const i64OfI32: (a: Code) => Code = unary(0xad);

export const v128Load = (offset: number, index: Code): Code => [
  ...index,
  SIMD,
  0,
  ...at(offset),
];
/** SIMD constant of 16 equal bytes. */
export const i8x16 = (byte: number): Code => [
  SIMD,
  12,
  ...new Array<number>(16).fill(byte),
];
export const i8x16Equal: (a: Code, b: Code) => Code = simdBinary(35);
/** Highest bit of each byte, as an i32 of 16 bits. */
export const i8x16Bitmask: (a: Code) => Code = simdUnary(100);
export const v128Or: (a: Code, b: Code) => Code = simdBinary(80);
export const v128AnyTrue: (a: Code) => Code = simdUnary(83);

/** Module with one memory and one function, both exported. */
export interface WasmFunction {
  /** Name of the function; the memory is exported as `memory`. */
  readonly name: string;
  /** Number of i32 parameters; the result is an i32. */
  readonly parameters: number;
  /** Types of the locals that follow the parameters. */
  readonly locals: readonly number[];
  /** Instructions of the function. */
  readonly body: Code;
  /** Size of the memory, in pages of 64 KiB. */
  readonly pages: number;
}

/** Assembles the binary form of a module. */
export function assemble(wasm: WasmFunction): Uint8Array<ArrayBuffer> {
  const vector = (items: readonly Code[]): Code => [
    ...unsigned(items.length),
    ...items.flat(),
  ];
  const section = (id: number, items: readonly Code[]): Code => {
    const content = vector(items);
    return [id, ...unsigned(content.length), ...content];
  };
  const text = (name: string): Code =>
    vector([...new TextEncoder().encode(name)].map((byte) => [byte]));
  const parameters = new Array<Code>(wasm.parameters).fill([I32]);
  const content = [
    ...vector(wasm.locals.map((type) => [1, type])),
    ...wasm.body,
    END,
  ];
  return Uint8Array.from([
    ...[0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0], // "\0asm", version 1
    ...section(1, [[0x60, ...vector(parameters), ...vector([[I32]])]]),
    ...section(3, [[0]]),
    ...section(5, [[1, ...unsigned(wasm.pages), ...unsigned(wasm.pages)]]),
    ...section(7, [[...text(wasm.name), 0, 0], [...text("memory"), 2, 0]]),
    ...section(10, [[...unsigned(content.length), ...content]]),
  ]);
}
