/**
 * Frames of HTTP/2 byte by byte, for peers that break its rules.
 *
 * @module
 */
import { Buffer } from "node:buffer";

/** Types of frames, by their names in RFC 9113. */
const TYPES = {
  DATA: 0,
  HEADERS: 1,
  PRIORITY: 2,
  RST_STREAM: 3,
  SETTINGS: 4,
  PUSH_PROMISE: 5,
  PING: 6,
  GOAWAY: 7,
  WINDOW_UPDATE: 8,
  CONTINUATION: 9,
} as const;

/** Flag of DATA and HEADERS: the stream ends. */
export const END_STREAM = 1;
/** Flag of HEADERS and CONTINUATION: the header block ends. */
export const END_HEADERS = 4;

/** What a client sends first, before its settings. */
export const PREFACE: Buffer = Buffer.from(
  "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
);

/**
 * Writes a frame.
 *
 * @param length Length in the frame's head, if it is to lie.
 */
export function frame(
  type: keyof typeof TYPES,
  flags: number,
  stream: number,
  payload: Uint8Array | string = "",
  length?: number,
): Buffer {
  const body = Buffer.from(payload as string, "latin1");
  const head = Buffer.alloc(9);
  head.writeUIntBE(length ?? body.byteLength, 0, 3);
  head[3] = TYPES[type];
  head[4] = flags;
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, body]);
}

/** Writes a number of 32 bits, as payloads have it. */
export function uint32(...values: readonly number[]): Buffer {
  const bytes = Buffer.alloc(4 * values.length);
  values.forEach((value, index) => bytes.writeUInt32BE(value, 4 * index));
  return bytes;
}

/** Encodes headers as literals that no table keeps and no code compresses. */
export function headerBlock(
  headers: readonly (readonly [name: string, value: string])[],
): Buffer {
  return Buffer.concat(
    headers.flatMap((pair) => [
      Buffer.from([0]),
      ...pair.flatMap((text) => {
        const bytes = Buffer.from(text, "latin1");
        return [hpackLength(bytes.byteLength), bytes];
      }),
    ]),
  );
}

/** Length of a literal text: seven bits, and more where they are not enough. */
function hpackLength(length: number): Buffer {
  if (length < 127) return Buffer.from([length]);
  const bytes = [127];
  let rest = length - 127;
  for (; rest >= 128; rest >>= 7) bytes.push((rest & 127) | 128);
  return Buffer.from([...bytes, rest]);
}
