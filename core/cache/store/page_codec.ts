import type { Buffer } from "node:buffer";
import * as zlib from "node:zlib";

/** Text that pages begin with as if it stood before them. */
export type PageDictionary = Uint8Array | undefined;

/** How a page was made. */
export interface PageFormat {
  /** How many bytes it had before. */
  readonly length: number;
  readonly dictionary: PageDictionary;
}

/** Compresses pages of cold objects. */
export interface PageCodec {
  readonly name: "zstd" | "deflate";
  compress(bytes: Uint8Array, dictionary: PageDictionary): Buffer;
  decompress(bytes: Uint8Array, format: PageFormat): Buffer;
}

/** The fastest level: higher ones gain little on pages of JSON. */
const LEVEL = 1;
/** The least that zlib takes at once. */
const LEAST_CHUNK = 64;

const ZSTD_PARAMS = { [zlib.constants.ZSTD_c_compressionLevel]: LEVEL };

/** zstd where the runtime has it, which is in all current ones, else deflate. */
export const pageCodec: PageCodec = typeof zlib.zstdCompressSync === "function"
  ? {
    name: "zstd",
    compress: (bytes, dictionary) =>
      zlib.zstdCompressSync(bytes, zstdOptions(bytes.length, dictionary)),
    decompress: (bytes, format) =>
      zlib.zstdDecompressSync(bytes, decompressing(format)),
  }
  : {
    name: "deflate",
    compress: (bytes, dictionary) =>
      zlib.deflateRawSync(bytes, {
        level: LEVEL,
        ...compressing(bytes.length, dictionary),
      }),
    decompress: (bytes, format) =>
      zlib.inflateRawSync(bytes, decompressing(format)),
  };

/**
 * A dictionary, unless the runtime would not give back what it compressed with
 * it. Deno ignores dictionaries, which does no harm.
 */
export function usableDictionary(dictionary: Uint8Array): PageDictionary {
  try {
    const page = pageCodec.compress(dictionary, dictionary);
    const { length } = dictionary;
    const read = pageCodec.decompress(page, { length, dictionary });
    return read.equals(dictionary) ? dictionary : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Gives the memory of a decompressed page back at once. A collection would do
 * so, too, but none comes before tens of megabytes outside the JavaScript heap
 * wait for it, which the reads of a second are.
 */
export function discardPage({ buffer, length }: Uint8Array): void {
  // Else the runtime has put the page into memory that is not its alone.
  const isOwn = buffer.byteLength === decompressedBytes(length);
  if (isOwn && buffer instanceof ArrayBuffer) buffer.transfer(0);
}

/** A frame that tells its length needs less memory to be read. */
function zstdOptions(
  pledgedSrcSize: number,
  dictionary: PageDictionary,
): zlib.ZstdOptions & { readonly pledgedSrcSize: number } {
  return {
    params: ZSTD_PARAMS,
    pledgedSrcSize,
    ...compressing(pledgedSrcSize, dictionary),
  };
}

/**
 * By default zlib writes to 64 KiB at a time, which only a collection gives back;
 * pages of neighbours become much smaller than an eighth.
 */
function compressing(
  length: number,
  dictionary: PageDictionary,
): { readonly chunkSize: number; readonly dictionary?: Uint8Array } {
  const chunkSize = Math.max(LEAST_CHUNK, length >> 3);
  return { chunkSize, ...withDictionary(dictionary) };
}

/** One piece of memory for the whole page, and no second one to find its end. */
function decompressing(
  { length, dictionary }: PageFormat,
): { readonly chunkSize: number; readonly dictionary?: Uint8Array } {
  const chunkSize = decompressedBytes(length);
  return { chunkSize, ...withDictionary(dictionary) };
}

function decompressedBytes(length: number): number {
  return Math.max(LEAST_CHUNK, length + 1);
}

function withDictionary(
  dictionary: PageDictionary,
): { readonly dictionary?: Uint8Array } {
  return dictionary === undefined ? {} : { dictionary };
}
