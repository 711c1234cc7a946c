import type { ByteRange } from "./byte_range.ts";

/**
 * Leaves declared paths out of an object while its bytes are copied, without
 * parsing it: the result equals the parsed object with these paths deleted.
 *
 * A path is written as in `metadata.managedFields`,
 * `status.conditions[*].lastProbeTime` or
 * `metadata.annotations["kubectl.kubernetes.io/last-applied-configuration"]`.
 */
export declare class Pruner {
  /**
   * @param paths What to leave out.
   * @throws {SyntaxError} If a path is malformed.
   * @throws {RangeError} If a path would take what the cache needs itself:
   * `metadata` with its name, namespace, uid or resourceVersion.
   */
  constructor(paths: readonly string[]);

  /** The paths as they were given. */
  readonly paths: readonly string[];

  /**
   * Copies an object without the pruned paths.
   *
   * @param source The object; it was scanned before and is well-formed.
   * @param target Where to write; as long as the source at least.
   * @returns How many bytes were written, from the start of `target`.
   */
  prune(source: ByteRange, target: Uint8Array): number;

  /**
   * Makes reads of pruned paths of a decoded object throw an error that names
   * the path. Copies, spreads and `JSON.stringify` are not affected.
   */
  guard(object: object): void;
}
