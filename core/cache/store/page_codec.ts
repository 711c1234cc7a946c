import type { Buffer } from "node:buffer";
import * as zlib from "node:zlib";

/** Compression dictionary of the pages; undefined if absent. */
export type PageDictionary = Uint8Array | undefined;

/** Parameters for decompressing a page. */
export interface PageFormat {
  /** Size before compression, in bytes. */
  readonly length: number;
  readonly dictionary: PageDictionary;
}

/** Compression codec of pages of cold objects. */
export interface PageCodec {
  readonly name: "zstd" | "deflate";
  compress(bytes: Uint8Array, dictionary: PageDictionary): Buffer;
  decompress(bytes: Uint8Array, format: PageFormat): Buffer;
}

/** Compression level: the fastest, as higher ones gain little on JSON. */
const LEVEL = 1;
/** Minimum chunk size of zlib, in bytes. */
const MIN_CHUNK_BYTES = 64;

const ZSTD_PARAMS = { [zlib.constants.ZSTD_c_compressionLevel]: LEVEL };

/** Codec of this runtime: zstd in all current ones, otherwise deflate. */
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
 * The dictionary, or undefined if the runtime cannot decompress pages that were
 * compressed with it. Deno ignores dictionaries, which is harmless.
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
 * Frees the memory of a decompressed page immediately. A garbage collection would
 * free it, too, but it starts only when tens of megabytes outside the heap wait
 * for it, which a second of reads fills.
 */
export function discardPage({ buffer, length }: Uint8Array): void {
  // Otherwise the runtime has put the page into shared memory.
  const isOwn = buffer.byteLength === decompressedBytes(length);
  if (isOwn && buffer instanceof ArrayBuffer) buffer.transfer(0);
}

/** Options for zstd; a frame with its length needs less memory to be read. */
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
 * Options for compressing. By default zlib writes to chunks of 64 KiB, which only
 * a garbage collection frees; most pages compress to less than an eighth.
 */
function compressing(
  length: number,
  dictionary: PageDictionary,
): { readonly chunkSize: number; readonly dictionary?: Uint8Array } {
  const chunkSize = Math.max(MIN_CHUNK_BYTES, length >> 3);
  return { chunkSize, ...withDictionary(dictionary) };
}

/** Options for decompressing: one chunk for the page, and none to find its end. */
function decompressing(
  { length, dictionary }: PageFormat,
): { readonly chunkSize: number; readonly dictionary?: Uint8Array } {
  const chunkSize = decompressedBytes(length);
  return { chunkSize, ...withDictionary(dictionary) };
}

function decompressedBytes(length: number): number {
  return Math.max(MIN_CHUNK_BYTES, length + 1);
}

function withDictionary(
  dictionary: PageDictionary,
): { readonly dictionary?: Uint8Array } {
  return dictionary === undefined ? {} : { dictionary };
}
