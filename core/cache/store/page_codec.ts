import type { Buffer } from "node:buffer";
import { promisify } from "node:util";
import * as zlib from "node:zlib";

export type PageDictionary = Uint8Array | undefined;

export interface PageFormat {
  /** Size of the page before compression, in bytes. */
  readonly length: number;
  readonly dictionary: PageDictionary;
}

type Codec = (bytes: Uint8Array, options: object) => Buffer;
type AsyncCodec = (bytes: Uint8Array, options: object) => Promise<Buffer>;

/** Codec of this runtime: zstd where available, otherwise deflate. */
const [compress, decompress, compressBeside]: readonly [
  Codec,
  Codec,
  AsyncCodec,
] = typeof zlib.zstdCompressSync === "function"
  ? [
    zlib.zstdCompressSync,
    zlib.zstdDecompressSync,
    promisify<Uint8Array, object, Buffer>(zlib.zstdCompress),
  ]
  : [
    zlib.deflateRawSync,
    zlib.inflateRawSync,
    promisify<Uint8Array, object, Buffer>(zlib.deflateRaw),
  ];

/** Compression level: the fastest, as higher ones gain little on JSON. */
const LEVEL = 1;
/** Compression level as an option of each codec; each ignores the other one. */
const LEVEL_OPTIONS = {
  level: LEVEL,
  params: { [zlib.constants.ZSTD_c_compressionLevel]: LEVEL },
};
const MIN_CHUNK_BYTES = 64;

/**
 * Compresses a page. By default zlib writes to chunks of 64 KiB, which only a
 * garbage collection frees; most pages compress to less than an eighth. The frame
 * contains the length of the page, so that it needs less memory to be read.
 */
export function compressPage(
  bytes: Uint8Array,
  dictionary: PageDictionary,
): Buffer {
  return compress(bytes, compression(bytes, dictionary));
}

/** Compresses a page beside the event loop. */
export function compressPageBeside(
  bytes: Uint8Array,
  dictionary: PageDictionary,
): Promise<Buffer> {
  return compressBeside(bytes, compression(bytes, dictionary));
}

function compression(
  { length }: Uint8Array,
  dictionary: PageDictionary,
): object {
  return {
    ...LEVEL_OPTIONS,
    ...withDictionary(dictionary),
    pledgedSrcSize: length,
    chunkSize: Math.max(MIN_CHUNK_BYTES, length >> 3),
  };
}

/**
 * Decompresses a page into a single chunk, with space to find its end.
 *
 * @throws {Error} If it is not a page of this length: a snapshot may have had it.
 */
export function decompressPage(
  frame: Uint8Array,
  { length, dictionary }: PageFormat,
): Buffer {
  const chunkSize = decompressedBytes(length);
  const page = decompress(frame, {
    ...withDictionary(dictionary),
    chunkSize,
    maxOutputLength: chunkSize,
  });
  if (page.length === length) return page;
  throw new RangeError(
    `Cannot read a page of a cache: it must have ${length} bytes: received ${page.length}`,
  );
}

/**
 * The dictionary, or undefined if the runtime cannot decompress pages that were
 * compressed with it. Deno ignores dictionaries, which is harmless.
 */
export function usableDictionary(dictionary: Uint8Array): PageDictionary {
  try {
    const page = compressPage(dictionary, dictionary);
    const { length } = dictionary;
    const read = decompressPage(page, { length, dictionary });
    return read.equals(dictionary) ? dictionary : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Frees the memory of a decompressed page immediately. A garbage collection would
 * free it, too, but it starts only at tens of megabytes outside the heap, which
 * reads fill within a second.
 */
export function discardPage({ buffer, length }: Uint8Array): void {
  // Otherwise the runtime has put the page into shared memory.
  const isOwn = buffer.byteLength === decompressedBytes(length);
  if (isOwn && buffer instanceof ArrayBuffer) buffer.transfer(0);
}

function decompressedBytes(length: number): number {
  return Math.max(MIN_CHUNK_BYTES, length + 1);
}

function withDictionary(dictionary: PageDictionary): object {
  return dictionary === undefined ? {} : { dictionary };
}
