import { ownerAmong } from "../controller/shard.ts";

/** What a member of a shard group says about itself. */
export interface ShardMember {
  readonly identity: string;
  /**
   * The members among whom it shares the objects: it claims what falls to it
   * among these, and runs nothing else. Empty for one that has only just come.
   */
  readonly view: readonly string[];
}

/** What a member goes by. */
export interface ShardState {
  readonly identity: string;
  /** The view that it had published before it last looked at the others. */
  readonly view: readonly string[];
  /** The view that it is changing to; undefined when it is not. */
  readonly next: readonly string[] | undefined;
  /** The other members that live, as they were when it last looked. */
  readonly others: readonly ShardMember[];
}

/**
 * Whether an object is ours, so that it is nobody else's: we claim it, go on to
 * claim it, and saw nobody else who did. `sharding.ts` says why that suffices.
 */
export function isOurs(key: string, state: ShardState): boolean {
  const { identity, view, next, others } = state;
  if (!fallsTo(identity, key, view)) return false;
  if (next !== undefined && !fallsTo(identity, key, next)) return false;
  return !others.some((other) =>
    other.view !== view && fallsTo(other.identity, key, other.view)
  );
}

/** Whether objects may be ours in one state that were not in another. */
export function mayGain(before: ShardState, after: ShardState): boolean {
  const { others } = before;
  return !sameView(before.view, after.view) ||
    before.next !== after.next ||
    others.length !== after.others.length ||
    after.others.some(({ identity, view }, index) =>
      others[index]?.identity !== identity ||
      !sameView(others[index].view, view)
    );
}

/** Whether two views are the same. */
export function sameView(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length &&
    a.every((member, index) => member === b[index]);
}

function fallsTo(
  member: string,
  key: string,
  view: readonly string[],
): boolean {
  return view.length > 0 && ownerAmong(key, view) === member;
}
