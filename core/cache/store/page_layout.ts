import { Buffer } from "node:buffer";
import type { ByteRange } from "../../json/byte_range.ts";
import type { Carry } from "../../json/carry.ts";

/** Size of the number of bodies in a page, and of the length of each. */
const NUMBER_BYTES = 4;
/** Mark in the length of a body without its UID. */
const WITHOUT_UID = 0x80000000;
const LENGTH_MASK = WITHOUT_UID - 1;
/** What stands for the UID in a body without it. */
const NO_UID = Buffer.from("00000000-0000-0000-0000-000000000000");

/** UID of an object as text, if it is a UUID, in memory that the next call reuses. */
export type UidOf = (slot: number) => Buffer | undefined;

/**
 * Composes a page of bodies: their number, their lengths, and their bytes. UIDs are
 * left out if they are given: they do not compress, and the table has them.
 *
 * @param target Memory for it.
 * @param bodyAt Body of a number, which is copied.
 * @param uidAt UID of the body of a number.
 * @returns The page, within the memory.
 */
export function composePage(
  target: Carry,
  count: number,
  bodyAt: (index: number) => ByteRange,
  uidAt?: UidOf,
): Buffer {
  target.length = 0;
  target.append(Buffer.alloc(NUMBER_BYTES * (1 + count)));
  let head = target.bytes.writeUInt32LE(count, 0);
  for (let i = 0; i < count; i++) {
    const { bytes, start, end } = bodyAt(i);
    const at = target.length;
    target.append(bytes.subarray(start, end));
    const body = target.bytes.subarray(at, target.length);
    const mark = leaveOut(body, uidAt?.(i)) ? WITHOUT_UID : 0;
    head = target.bytes.writeUInt32LE(mark + end - start, head);
  }
  return target.bytes.subarray(0, target.length);
}

/** Leaves the UID out of a body, unless its place would not be found. */
function leaveOut(body: Buffer, uid: Buffer | undefined): boolean {
  const at = uid === undefined ? -1 : body.indexOf(uid);
  if (uid === undefined || at < 0) return false;
  NO_UID.copy(body, at);
  if (body.indexOf(NO_UID) === at) return true;
  uid.copy(body, at);
  return false;
}

/**
 * Body with an ordinal in a decompressed page, into which its UID is written.
 *
 * @param uid Returns the UID of the body.
 * @throws {RangeError} If the page has no such body.
 */
export function bodyIn(
  page: Buffer,
  ordinal: number,
  uid: () => Buffer | undefined,
): ByteRange {
  const lengthAt = (i: number) =>
    page.readUInt32LE(NUMBER_BYTES * (1 + i)) & LENGTH_MASK;
  const count = page.readUInt32LE(0);
  const head = NUMBER_BYTES * (1 + ordinal);
  let start = NUMBER_BYTES * (1 + count);
  for (let i = 0; i < ordinal; i++) start += lengthAt(i);
  const end = start + lengthAt(ordinal);
  if (ordinal < count && end <= page.length) {
    if (page.readUInt32LE(head) > LENGTH_MASK) {
      putBack(page.subarray(start, end), uid());
      page.writeUInt32LE(end - start, head);
    }
    return { bytes: page, start, end };
  }
  // Pages of snapshots are taken over unread.
  throw new RangeError(
    `Cannot read a page of a cache: its bodies must be within it: received ${count} of them, and an end at ${end} of ${page.length} bytes`,
  );
}

/** Puts the UID of a body back. */
function putBack(body: Buffer, uid: Buffer | undefined): void {
  const at = body.indexOf(NO_UID);
  if (uid === undefined || at < 0) {
    throw new RangeError(
      `Cannot read a page of a cache: the UID of a body must have a place: received ${
        uid === undefined ? "no UID" : "no place"
      }`,
    );
  }
  uid.copy(body, at);
}
