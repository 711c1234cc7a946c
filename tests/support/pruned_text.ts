import { Buffer } from "node:buffer";
import type { ByteRange } from "../../core/json/byte_range.ts";
import type { Pruner } from "../../core/json/prune.ts";

/** JSON of an object without the pruned paths. */
export function prunedText(pruner: Pruner, source: ByteRange): string {
  const target = Buffer.alloc(pruner.measure(source));
  pruner.copy(source, target, 0);
  return target.toString();
}
