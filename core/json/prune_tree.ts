import { parseFieldPath, type PathStep } from "./field_path.ts";

/** What the cache and the controllers decide on themselves. */
const NEEDED = [
  "apiVersion",
  "kind",
  "metadata.name",
  "metadata.namespace",
  "metadata.uid",
  "metadata.resourceVersion",
  "metadata.generation",
  "metadata.deletionTimestamp",
  "metadata.finalizers",
  "metadata.labels",
  "metadata.ownerReferences",
].map((path) => ({ path, steps: parseFieldPath(path) }));

/** What an element that stays is: an object whose field is one of the texts. */
export type KeepRule = Extract<PathStep, { readonly except: unknown }>;

/** All paths as a tree: what to do at one place of an object. */
export interface PruneNode {
  /** The path that ends here: the value is left out. */
  path?: string | undefined;
  /** Of a list: an element stays only if it meets all of these. */
  rules?: readonly KeepRule[] | undefined;
  /** The property of objects that lack the value, or a part of the list. */
  guard?: PropertyDescriptor | undefined;
  readonly members: Map<string, PruneNode>;
  /** For every element, and every member that is not named. */
  each?: PruneNode | undefined;
}

/**
 * Reads paths to prune as a tree.
 *
 * @throws {SyntaxError} If a path is malformed.
 * @throws {RangeError} If a path takes what the library decides on itself, or
 * has a step that cannot be where it is.
 */
export function pruneTree(paths: readonly string[]): PruneNode {
  const root: PruneNode = { members: new Map() };
  for (const path of paths) {
    const steps = parseFieldPath(path);
    checkNotNeeded(path, steps);
    const last = steps.at(-1);
    if (last !== undefined && "except" in last) {
      checkNamed(path, steps.at(-2));
      const node = steps.slice(0, -1).reduce(childOf, root);
      node.rules = [...node.rules ?? [], last];
    } else steps.reduce(childOf, root).path = path;
  }
  spreadEach(root);
  return root;
}

function checkNotNeeded(path: string, steps: readonly PathStep[]): void {
  const taken = NEEDED.find((needed) =>
    steps.length <= needed.steps.length &&
    steps.every((step, i) => matches(step, needed.steps[i]))
  );
  if (taken !== undefined) {
    throw new RangeError(
      `Cannot prune objects: "${taken.path}" is needed by the library itself: received "${path}"`,
    );
  }
}

/** Keeps the elements of a list of lists out of it: nobody could guard them. */
function checkNamed(path: string, before: PathStep | undefined): void {
  if (before !== undefined && "key" in before) return;
  throw new RangeError(
    `Cannot prune objects: a list of which some elements stay must have a name: received ${path}`,
  );
}

function matches(step: PathStep, needed: PathStep | undefined): boolean {
  return "each" in step ||
    ("key" in step && needed !== undefined && "key" in needed &&
      step.key === needed.key);
}

function childOf(node: PruneNode, step: PathStep): PruneNode {
  if ("each" in step) return node.each ??= { members: new Map() };
  if ("index" in step) {
    throw new RangeError(
      `Cannot prune objects: elements can only be named all together, by [*]: received [${step.index}]`,
    );
  }
  if ("except" in step) {
    throw new RangeError(
      `Cannot prune objects: nothing may follow a step that lets elements stay: received [${step.field}!=…]`,
    );
  }
  let child = node.members.get(step.key);
  if (child === undefined) {
    child = { members: new Map() };
    node.members.set(step.key, child);
  }
  return child;
}

/** Lets what holds for each member hold for the named ones, too. */
function spreadEach(node: PruneNode): void {
  const { each, members } = node;
  if (each !== undefined) {
    for (const member of members.values()) merge(member, each);
    spreadEach(each);
  }
  for (const member of members.values()) spreadEach(member);
}

function merge(target: PruneNode, source: PruneNode): void {
  target.path ??= source.path;
  if (source.rules !== undefined) {
    target.rules = [...target.rules ?? [], ...source.rules];
  }
  if (source.each !== undefined) {
    merge(target.each ??= { members: new Map() }, source.each);
  }
  for (const [key, node] of source.members) {
    merge(childOf(target, { key }), node);
  }
}
