import type { Buffer } from "node:buffer";
import * as zlib from "node:zlib";

/** Compresses pages of cold objects. */
export interface PageCodec {
  readonly name: "zstd" | "deflate";
  compress(bytes: Uint8Array): Buffer;
  decompress(bytes: Uint8Array): Buffer;
}

/** The fastest level: higher ones gain little on pages of JSON. */
const LEVEL = 1;

/** zstd where the runtime has it, which is in all current ones, else deflate. */
export const pageCodec: PageCodec = typeof zlib.zstdCompressSync === "function"
  ? {
    name: "zstd",
    compress: (bytes) =>
      zlib.zstdCompressSync(bytes, {
        params: { [zlib.constants.ZSTD_c_compressionLevel]: LEVEL },
      }),
    decompress: (bytes) => zlib.zstdDecompressSync(bytes),
  }
  : {
    name: "deflate",
    compress: (bytes) => zlib.deflateRawSync(bytes, { level: LEVEL }),
    decompress: (bytes) => zlib.inflateRawSync(bytes),
  };
