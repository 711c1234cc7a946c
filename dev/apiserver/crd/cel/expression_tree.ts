import { isDuration, matchesFormat } from "../schema/formats.ts";
import { goRegExp } from "../schema/regular_expression.ts";
import type { CompileProblem } from "./compile_error_text.ts";
import { unionOf } from "./related_lists.ts";

/** Node of the CEL library's expression tree. */
export interface ExpressionNode {
  readonly op: string;
  readonly args: unknown;
  readonly start: number;
  readonly end: number;
  /** Type of a node that has been checked. */
  checkedType?: unknown;
}

/** Functions whose literal arguments are checked at compile time. */
const LITERALS: Readonly<Record<string, (text: string) => boolean>> = {
  matches: (text) => goRegExp(text) !== undefined,
  duration: isDuration,
  timestamp: (text) => matchesFormat("date-time", text),
};

/** Calls a function once for every node of a tree. */
function walk(tree: unknown, onNode: (node: ExpressionNode) => void): void {
  const seen = new Set<unknown>();
  const step = (value: unknown): void => {
    if (typeof value !== "object" || value === null || seen.has(value)) return;
    seen.add(value);
    if (Array.isArray(value)) {
      for (const item of value) step(item);
      return;
    }
    const node = value as ExpressionNode;
    if (typeof node.op !== "string") return;
    onNode(node);
    if (typeof node.args !== "object" || node.args === null) return;
    // A unary operator has one node, others have a list or named parts.
    if ("op" in node.args) step(node.args);
    else Object.values(node.args).forEach(step);
  };
  step(tree);
}

/** Macro `has()` of the CEL library. */
interface HasMacro {
  readonly args: readonly ExpressionNode[];
  /** Selections, from the last one on, and the expression that they begin with. */
  macroHasProps?: readonly unknown[];
  typeCheck(checker: HasChecker, macro: HasMacro, scope: unknown): unknown;
}

interface HasChecker {
  check(node: unknown, scope: unknown): unknown;
  getType(name: string): unknown;
}

/**
 * Lets `has()` select from any expression, such as `has(self.list[0].field)`;
 * the CEL library accepts only selections from a variable.
 */
export function widenHas(tree: unknown): void {
  walk(tree, (node) => {
    const { op, args, meta } = node as ExpressionNode & {
      readonly meta?: { readonly macro?: HasMacro };
    };
    const macro = meta?.macro;
    if (op !== "call" || (args as unknown[])[0] !== "has" || !macro) return;
    const selections: ExpressionNode[] = [];
    let base: ExpressionNode | undefined = macro.args[0];
    while (base?.op === "." || base?.op === ".?") {
      selections.push(base);
      base = (base.args as readonly ExpressionNode[])[0];
    }
    if (selections.length === 0 || base?.op === "id") return;
    macro.typeCheck = (checker, macro, scope) => {
      checker.check(base, scope);
      macro.macroHasProps = [...selections, base];
      return checker.getType("bool");
    };
  });
}

/** Function that evaluates a node of the CEL library's expression tree. */
type Evaluate = (...args: readonly unknown[]) => unknown;

/** Node whose evaluation can be replaced. */
interface Replaceable extends ExpressionNode {
  readonly meta: { readonly evaluate: Evaluate };
  setMeta(key: "evaluate", value: Evaluate): void;
}

/** Costs of nodes by operator; 1 for all other operators. */
const COSTS: Readonly<Record<string, number>> = {
  value: 0,
  "&&": 0,
  "||": 0,
  "?:": 0,
  list: 10,
  map: 30,
};

/** Cost of a step of a loop, without its expression. */
const STEP_COST = 3;

/**
 * Reports the cost of each node that is evaluated, in the units of Kubernetes.
 *
 * @param tree Type-checked expression tree; changed in place.
 */
export function chargeCosts(
  tree: unknown,
  charge: (cost: number) => void,
): void {
  const steps = new Set<unknown>();
  walk(tree, ({ op, args }) => {
    if (op !== "rcall") return;
    const [name, , rest] = args as [string, unknown, readonly unknown[]];
    if (LOOPS.has(name)) steps.add(rest.at(-1));
  });
  walk(tree, (node) => {
    const { meta: { evaluate } } = node as Replaceable;
    const cost = (COSTS[node.op] ?? 1) + (steps.has(node) ? STEP_COST : 0);
    if (cost === 0) return;
    (node as Replaceable).setMeta("evaluate", (...args) => {
      charge(cost);
      return evaluate(...args);
    });
  });
}

/** Comprehension macros. */
const LOOPS: ReadonlySet<string> = new Set([
  "all",
  "exists",
  "exists_one",
  "existsOne",
  "filter",
  "map",
  "sortBy",
  "transformList",
  "transformMap",
  "transformMapEntry",
]);

/** References to `cel`, which the CEL library accepts but Kubernetes rejects. */
export function reservedNames(
  tree: unknown,
): readonly (CompileProblem & { readonly node: ExpressionNode })[] {
  const problems: ReturnType<typeof reservedNames>[number][] = [];
  walk(tree, (node) => {
    if (node.op !== "id" || node.args !== "cel") return;
    const why = "undeclared reference to 'cel' (in container '')";
    problems.push({ why, start: node.start, node });
  });
  return problems;
}

/** Invalid literal arguments, which the CEL library accepts but Kubernetes rejects. */
export function literalProblems(tree: unknown): readonly CompileProblem[] {
  const problems: CompileProblem[] = [];
  walk(tree, ({ op, args }) => {
    if (op !== "call" && op !== "rcall") return;
    const [name, ...rest] = args as [string, ...unknown[]];
    const [literal] = rest.at(-1) as readonly ExpressionNode[];
    const fits = Object.hasOwn(LITERALS, name) ? LITERALS[name] : undefined;
    if (literal?.op !== "value" || typeof literal.args !== "string") return;
    if (fits && !fits(literal.args)) {
      problems.push({ why: `invalid ${name} argument`, start: literal.start });
    }
  });
  return problems;
}

/** Node of a binary operator with its evaluation function. */
interface Operator extends ExpressionNode {
  handle: (a: unknown, b: unknown, ...rest: readonly unknown[]) => unknown;
}

/**
 * Makes `+` unite lists of type `set` and `map`. This cannot be registered as
 * an operator, because it would overlap with the CEL library's operator for
 * lists.
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

/**
 * Makes `matches()` take Go's regular expressions; those of the CEL library are
 * JavaScript's.
 *
 * @param tree Type-checked expression tree; changed in place.
 */
export function matchAsGo(tree: unknown): void {
  walk(tree, (node) => {
    const { op, args } = node;
    if (op !== "rcall") return;
    const [name, receiver, [pattern]] = args as [string, unknown, unknown[]];
    if (name !== "matches") return;
    const { meta: { evaluate } } = node as Replaceable;
    (node as Replaceable).setMeta("evaluate", (evaluator, ast, scope) => {
      const { run } = evaluator as { run: Evaluate };
      const [a, b] = [receiver, pattern].map((part) =>
        run.call(evaluator, part, scope)
      );
      const regexp = typeof b === "string" ? goRegExp(b) : undefined;
      return regexp && typeof a === "string"
        ? regexp.test(a)
        : evaluate(evaluator, ast, scope);
    });
  });
}
