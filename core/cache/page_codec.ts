import type { Buffer } from "node:buffer";
import * as zlib from "node:zlib";

/** Text that pages begin with as if it stood before them. */
export type PageDictionary = Uint8Array | undefined;

/** Compresses pages of cold objects. */
export interface PageCodec {
  readonly name: "zstd" | "deflate";
  compress(bytes: Uint8Array, dictionary: PageDictionary): Buffer;
  /** @param dictionary The one that the bytes were compressed with. */
  decompress(bytes: Uint8Array, dictionary: PageDictionary): Buffer;
}

/** The fastest level: higher ones gain little on pages of JSON. */
const LEVEL = 1;

const ZSTD_PARAMS = { [zlib.constants.ZSTD_c_compressionLevel]: LEVEL };

/** zstd where the runtime has it, which is in all current ones, else deflate. */
export const pageCodec: PageCodec = typeof zlib.zstdCompressSync === "function"
  ? {
    name: "zstd",
    compress: (bytes, dictionary) =>
      zlib.zstdCompressSync(bytes, options(dictionary, ZSTD_PARAMS)),
    decompress: (bytes, dictionary) =>
      zlib.zstdDecompressSync(bytes, options(dictionary)),
  }
  : {
    name: "deflate",
    compress: (bytes, dictionary) =>
      zlib.deflateRawSync(bytes, { level: LEVEL, ...options(dictionary) }),
    decompress: (bytes, dictionary) =>
      zlib.inflateRawSync(bytes, options(dictionary)),
  };

/**
 * A dictionary, unless the runtime would not give back what it compressed with
 * it. Deno ignores dictionaries, which does no harm.
 */
export function usableDictionary(dictionary: Uint8Array): PageDictionary {
  try {
    const page = pageCodec.compress(dictionary, dictionary);
    const same = pageCodec.decompress(page, dictionary).equals(dictionary);
    return same ? dictionary : undefined;
  } catch {
    return undefined;
  }
}

/** Options of zlib: types of Node know no dictionaries of zstd yet. */
function options(
  dictionary: PageDictionary,
  params?: Record<number, number>,
): { params?: Record<number, number>; dictionary?: Uint8Array } {
  return { ...(params && { params }), ...(dictionary && { dictionary }) };
}
