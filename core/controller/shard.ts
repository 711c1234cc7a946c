import { hashEnd, hashNext } from "../cache/store/key_table.ts";

/** Assignment of objects to this replica. */
export interface ShardAssignment {
  /** Whether this replica runs an object, given its key `namespace/name` or `name`. */
  owns(key: string): boolean;
}

/** Static shard: one of a fixed number of shards. */
export interface StaticShard {
  /** Index of this shard, from 0. */
  readonly index: number;
  /** Number of shards. */
  readonly count: number;
}

/**
 * Assignment of the objects of a fixed shard. It depends on names only, so that an
 * object that is deleted and created again stays in its shard.
 *
 * @throws {RangeError} If the index is not below the count.
 */
export function staticShard({ index, count }: StaticShard): ShardAssignment {
  if (
    !Number.isInteger(index) || !Number.isInteger(count) || index < 0 ||
    index >= count
  ) {
    throw new RangeError(
      `Cannot use a shard: "index" must be a whole number from 0 and below "count": received ${index} of ${count}`,
    );
  }
  return { owns: (key) => shardHash(key) % count === index };
}

/**
 * Member that an object is assigned to by rendezvous hashing: when a member joins
 * or leaves, only the objects that it gains or had are reassigned.
 *
 * @param members Names of the members, at least one.
 */
export function ownerAmong(key: string, members: readonly string[]): string {
  let owner = "";
  let highest = -1;
  for (const member of members) {
    const weight = shardHash(`${member}\n${key}`);
    if (weight > highest || (weight === highest && member < owner)) {
      [owner, highest] = [member, weight];
    }
  }
  return owner;
}

/** FNV-1a hash of a text. */
export function textHash(text: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index++) {
    hash = hashNext(hash, text.charCodeAt(index));
  }
  return hash;
}

/** Hash of a text, from 0 to below 2³²: FNV-1a with the finalizer of MurmurHash3. */
function shardHash(text: string): number {
  return hashEnd(textHash(text));
}
