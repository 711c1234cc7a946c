/** Which objects a controller runs, of those that it sees. */
export interface ShardAssignment {
  /** Whether an object is ours, by its key as `namespace/name` or `name`. */
  owns(key: string): boolean;
}

/** One of a fixed number of equal parts. */
export interface StaticShard {
  /** Which part, from 0. */
  readonly index: number;
  /** How many parts there are. */
  readonly count: number;
}

/**
 * The objects of one of a fixed number of parts. Names decide, so that an object
 * that is made anew stays where it was.
 *
 * @throws {RangeError} If there is no such part.
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
 * Gives each object to one of several members, such that a member that comes or
 * goes moves no more objects than it must (rendezvous hashing).
 *
 * @param key The object.
 * @param members Their names, at least one.
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

/** A well-mixed hash of a text, from 0 to below 2³² (FNV-1a, then murmur's end). */
function shardHash(text: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index++) {
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  }
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
