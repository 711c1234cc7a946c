import type { ShardField } from "../../core/api/shard_selector.ts";

/** Text that selects one of a number of equal shards. */
export function shardSelector(
  { index, count, field = "uid" }: {
    readonly index: number;
    readonly count: number;
    readonly field?: ShardField;
  },
): string {
  const bound = (part: number) => {
    const value = (BigInt(part) << 64n) / BigInt(count);
    return `'0x${value.toString(16).padStart(16, "0")}'`;
  };
  return `shardRange(object.metadata.${field}, ${bound(index)}, ${
    bound(index + 1)
  })`;
}
