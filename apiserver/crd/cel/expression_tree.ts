import { isDuration, matchesFormat } from "../schema/formats.ts";
import { goRegExp } from "../schema/regular_expression.ts";
import { unionOf } from "./related_lists.ts";

/** Bounds the work of a rule: `size` nodes, in loops nested `depth` deep. */
export interface RuleWeight {
  readonly size: number;
  readonly depth: number;
}

/** One node of the library's tree. */
interface Node {
  readonly op: string;
  readonly args: unknown;
  readonly start: number;
}

/** What is wrong with a literal, and where. */
export interface LiteralProblem {
  readonly why: string;
  readonly start: number;
}

/** Calls whose argument, if it is a literal, is checked before anything runs. */
const LITERALS: Readonly<Record<string, (text: string) => boolean>> = {
  matches: (text) => goRegExp(text) !== undefined,
  duration: isDuration,
  timestamp: (text) => matchesFormat("date-time", text),
};

/** The macros that go over a list or a map. */
const LOOPS: ReadonlySet<unknown> = new Set([
  "all",
  "exists",
  "exists_one",
  "filter",
  "map",
]);

function isLoop({ op, args }: Node): boolean {
  return op === "rcall" && LOOPS.has((args as readonly unknown[])[0]);
}

/** Visits every node once, told how many loops are around it. */
function walk(
  tree: unknown,
  visit: (node: Node, depth: number) => void,
): void {
  const seen = new Set<unknown>();
  const step = (value: unknown, depth: number): void => {
    if (typeof value !== "object" || value === null || seen.has(value)) return;
    seen.add(value);
    if (Array.isArray(value)) {
      for (const item of value) step(item, depth);
      return;
    }
    const node = value as Node;
    if (typeof node.op !== "string") return;
    const inner = isLoop(node) ? depth + 1 : depth;
    visit(node, inner);
    if (typeof node.args === "object" && node.args !== null) {
      for (const part of Object.values(node.args)) step(part, inner);
    }
  };
  step(tree, 0);
}

/** How much work an expression may be. */
export function weightOf(tree: unknown): RuleWeight {
  let size = 0;
  let deepest = 0;
  walk(tree, (_, depth) => {
    size++;
    deepest = Math.max(deepest, depth);
  });
  return { size, depth: deepest };
}

/**
 * The first thing that the library lets pass and Kubernetes does not: a literal
 * that can never be what its function wants, or a binding.
 */
export function literalProblem(tree: unknown): LiteralProblem | undefined {
  let problem: LiteralProblem | undefined;
  walk(tree, ({ op, args, start }) => {
    if (op === "id" && args === "cel") {
      const why = "undeclared reference to 'cel' (in container '')";
      problem ??= { why, start };
    }
    if (problem || (op !== "call" && op !== "rcall")) return;
    const [name, ...rest] = args as [string, ...unknown[]];
    const [literal] = rest.at(-1) as readonly Node[];
    const fits = Object.hasOwn(LITERALS, name) ? LITERALS[name] : undefined;
    if (literal?.op !== "value" || typeof literal.args !== "string") return;
    if (fits && !fits(literal.args)) {
      problem = { why: `invalid ${name} argument`, start: literal.start };
    }
  });
  return problem;
}

/** A node whose operands are known when it runs. */
interface Operator extends Node {
  handle: (a: unknown, b: unknown, ...rest: readonly unknown[]) => unknown;
}

/**
 * Lets `+` unite sets. The library cannot be told so: whatever is registered
 * for lists of one type overlaps with its own sum of any lists.
 *
 * @param tree The tree, after it was checked.
 */
export function uniteSets(tree: unknown): void {
  walk(tree, (node) => {
    if (node.op !== "+") return;
    const operator = node as Operator;
    const { handle } = operator;
    operator.handle = (a, b, ...rest) => unionOf(a, b) ?? handle(a, b, ...rest);
  });
}
