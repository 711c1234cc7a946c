const SIZE_REGEXP = /^(\d+(?:\.\d+)?)\s*([kKMGT]?)(i?)B?$/;
const POWERS = ["", "K", "M", "G", "T"];

/**
 * Parses a size such as `96MiB`, `1Gi`, `500M` or `65536` into bytes. Prefixes
 * with `i` are powers of 1024, those without are powers of 1000, as in
 * Kubernetes.
 *
 * @throws {TypeError} If the size is neither a number nor a text.
 * @throws {SyntaxError} If the text is not a size.
 * @throws {RangeError} If it is not a positive, finite number of bytes.
 */
export function parseByteSize(size: number | string): number {
  if (typeof size !== "number" && typeof size !== "string") {
    throw new TypeError(
      `Cannot read a size: it must be a number of bytes, or text such as 96MiB: received ${typeof size}`,
    );
  }
  const match = SIZE_REGEXP.exec(String(size));
  if (typeof size === "string" && match === null) {
    throw new SyntaxError(
      `Cannot read a size: it must look like 96MiB, 1Gi or 500M: received ${
        JSON.stringify(size)
      }`,
    );
  }
  const [, number = size, prefix = "", binary = ""] = match ?? [];
  const base = binary === "" ? 1000 : 1024;
  const bytes = Math.floor(
    Number(number) * base ** POWERS.indexOf(prefix.toUpperCase()),
  );
  if (!Number.isSafeInteger(bytes) || bytes < 1) {
    throw new RangeError(
      `Cannot read a size: it must be a positive number of bytes: received ${size}`,
    );
  }
  return bytes;
}
