import { isDuration, matchesFormat } from "../schema/formats.ts";
import { goRegExp } from "../schema/regular_expression.ts";
import { unionOf } from "./related_lists.ts";

/** Bound of the work of a rule: number of nodes and nesting depth of loops. */
export interface RuleWeight {
  readonly size: number;
  readonly depth: number;
}

/** Node of the library's expression tree. */
interface ExpressionNode {
  readonly op: string;
  readonly args: unknown;
  readonly start: number;
}

/** Violation at a literal, with its offset in the source. */
export interface LiteralProblem {
  readonly why: string;
  readonly start: number;
}

/** Functions whose literal arguments are checked at compile time. */
const LITERALS: Readonly<Record<string, (text: string) => boolean>> = {
  matches: (text) => goRegExp(text) !== undefined,
  duration: isDuration,
  timestamp: (text) => matchesFormat("date-time", text),
};

/** Comprehension macros. */
const LOOPS: ReadonlySet<unknown> = new Set([
  "all",
  "exists",
  "exists_one",
  "filter",
  "map",
]);

function isLoop({ op, args }: ExpressionNode): boolean {
  return op === "rcall" && LOOPS.has((args as readonly unknown[])[0]);
}

/** Calls a function once for every node, with the number of enclosing loops. */
function walk(
  tree: unknown,
  onNode: (node: ExpressionNode, depth: number) => void,
): void {
  const seen = new Set<unknown>();
  const step = (value: unknown, depth: number): void => {
    if (typeof value !== "object" || value === null || seen.has(value)) return;
    seen.add(value);
    if (Array.isArray(value)) {
      for (const item of value) step(item, depth);
      return;
    }
    const node = value as ExpressionNode;
    if (typeof node.op !== "string") return;
    const inner = isLoop(node) ? depth + 1 : depth;
    onNode(node, inner);
    if (typeof node.args === "object" && node.args !== null) {
      for (const part of Object.values(node.args)) step(part, inner);
    }
  };
  step(tree, 0);
}

/** Weight of an expression. */
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
 * First construct that the library accepts and Kubernetes rejects: an invalid
 * literal argument, or a reference to `cel`.
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
    const [literal] = rest.at(-1) as readonly ExpressionNode[];
    const fits = Object.hasOwn(LITERALS, name) ? LITERALS[name] : undefined;
    if (literal?.op !== "value" || typeof literal.args !== "string") return;
    if (fits && !fits(literal.args)) {
      problem = { why: `invalid ${name} argument`, start: literal.start };
    }
  });
  return problem;
}

/** Node of a binary operator with its evaluation function. */
interface Operator extends ExpressionNode {
  handle: (a: unknown, b: unknown, ...rest: readonly unknown[]) => unknown;
}

/**
 * Makes `+` unite lists of type `set` and `map`. This cannot be registered as an
 * operator, because it would overlap with the library's operator for lists.
 *
 * @param tree Type-checked expression tree; changed in place.
 */
export function uniteSets(tree: unknown): void {
  walk(tree, (node) => {
    if (node.op !== "+") return;
    const operator = node as Operator;
    const { handle } = operator;
    operator.handle = (a, b, ...rest) => unionOf(a, b) ?? handle(a, b, ...rest);
  });
}
