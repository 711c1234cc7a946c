/**
 * Field of an object whose hash decides its shard. With `uid` an object may change
 * its shard when it is recreated; with `namespace` all objects of a namespace are
 * in one shard.
 */
export type ShardField = "uid" | "namespace";

/** Fields of an object that can decide its shard. */
export interface ShardedObject {
  readonly uid: string;
  /** Namespace of the object; empty if it has none. */
  readonly namespace: string;
}

/** An unsigned 64-bit number in two halves; `high` may be 2³². */
interface Hash {
  readonly high: number;
  readonly low: number;
}

/** A range of hashes, from `start` to below `end`. */
interface HashRange {
  readonly start: Hash;
  readonly end: Hash;
}

export interface ParsedShardSelector {
  readonly field: ShardField;
  readonly ranges: readonly HashRange[];
}

const HALF = 2 ** 32;

const RANGE =
  /^shardRange\(\s*object\.metadata\.(uid|namespace)\s*,\s*(['"])(0x\w+)\2\s*,\s*(['"])(0x\w+)\4\s*\)$/;
const BOUND = /^0x(?:[0-9a-f]{16}|10{16})$/;

/**
 * Parses a shard selector: `shardRange(field, start, end)`, or several ranges of
 * one field with `||` between them.
 *
 * @throws {SyntaxError} If the text is not a shard selector.
 */
export function parseShardSelector(text: string): ParsedShardSelector {
  const fail = (why: string): never => {
    throw new SyntaxError(
      `Cannot read a shard selector: ${why}: received ${JSON.stringify(text)}`,
    );
  };
  const ranges: HashRange[] = [];
  let field: string | undefined;
  for (const term of text.split("||")) {
    const found = RANGE.exec(term.trim()) ??
      fail("it must be shardRange(object.metadata.uid, '0x…', '0x…')");
    const [, named = "", , start = "", , end = ""] = found;
    if (!BOUND.test(start) || !BOUND.test(end)) {
      fail("bounds have 16 digits in lower case, or are 0x10000000000000000");
    }
    if (BigInt(start) >= BigInt(end)) fail("a range must not be empty");
    if (field !== undefined && field !== named) {
      fail("all ranges must be of the same field");
    }
    field = named;
    ranges.push({ start: halves(start), end: halves(end) });
  }
  return { field: field as ShardField, ranges };
}

/** Whether an object is in a shard. */
export function inShard(
  selector: ParsedShardSelector,
  object: ShardedObject,
): boolean {
  const hash = fnv1a64(object[selector.field]);
  return selector.ranges.some(({ start, end }) =>
    !isLess(hash, start) && isLess(hash, end)
  );
}

function halves(bound: string): Hash {
  const value = BigInt(bound);
  return { high: Number(value >> 32n), low: Number(value & 0xffffffffn) };
}

function isLess(a: Hash, b: Hash): boolean {
  return a.high < b.high || (a.high === b.high && a.low < b.low);
}

/**
 * 64-bit FNV-1a hash of an ASCII text, such as a UID or a namespace. It
 * multiplies by 2⁴⁰ + 0x1b3 in halves, because BigInt is ten times slower.
 */
function fnv1a64(text: string): Hash {
  let high = 0xcbf29ce4;
  let low = 0x84222325;
  for (let index = 0; index < text.length; index++) {
    low = (low ^ text.charCodeAt(index)) >>> 0;
    const product = low * 0x1b3;
    high = (high * 0x1b3 + Math.floor(product / HALF) + (low << 8 >>> 0)) %
      HALF;
    low = product % HALF;
  }
  return { high, low };
}
