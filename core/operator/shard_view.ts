import { ownerAmong } from "../controller/shard.ts";

/** What a member of a shard group says about itself. */
export interface ShardMember {
  readonly identity: string;
  /**
   * The members among whom it shares the objects: it runs nothing that does not
   * fall to it among these. Empty for one that has only just come.
   */
  readonly view: readonly string[];
}

/** What this member goes by. */
export interface ShardState {
  readonly identity: string;
  /** The view that it has published. */
  readonly view: readonly string[];
  /** The view that it is changing to; undefined when it is not. */
  readonly next: readonly string[] | undefined;
  /** The other members that live, as they last said. */
  readonly others: readonly ShardMember[];
}

/**
 * Whether an object is ours, so that it is nobody else's.
 *
 * It must fall to us in our own view, and in the one that we are changing to; and
 * it must not fall to another member in the view which that one has published,
 * who may then still run it. Since each publishes its view before it looks at
 * those of the others, of two who want the same object one sees the other.
 */
export function isOurs(key: string, state: ShardState): boolean {
  const { identity, view, next, others } = state;
  if (!fallsTo(identity, key, view)) return false;
  if (next !== undefined && !fallsTo(identity, key, next)) return false;
  return !others.some((other) =>
    other.view !== view && fallsTo(other.identity, key, other.view)
  );
}

function fallsTo(
  member: string,
  key: string,
  view: readonly string[],
): boolean {
  return view.length > 0 && ownerAmong(key, view) === member;
}

/** Whether two views are the same. */
export function sameView(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length &&
    a.every((member, index) => member === b[index]);
}
