import type { CelType } from "./cel_type.ts";
import type { Overload } from "./function_declaration.ts";

/** What every node of an expression has. */
interface NodeBase {
  /** Offset in the source that errors name. */
  readonly at: number;
  /** Type, as the checker found it. */
  type?: CelType;
}

/** Literal value. */
export interface LiteralNode extends NodeBase {
  readonly kind: "literal";
  readonly value: unknown;
}

/** Name of a variable or type; qualified after the check. */
export interface IdentNode extends NodeBase {
  readonly kind: "ident";
  name: string;
  /** Value of a name that stands for a constant, such as a type. */
  constant?: unknown;
}

/** Selection of a field, or with `test` the check whether it is set. */
export interface SelectNode extends NodeBase {
  readonly kind: "select";
  readonly operand: ExpressionNode;
  readonly field: string;
  readonly test: boolean;
  /** Variable or constant that the checker found under the qualified name. */
  qualified?: IdentNode;
}

/** Call of a function, method or operator. */
export interface CallNode extends NodeBase {
  readonly kind: "call";
  name: string;
  /** Receiver of a method; undefined for functions. */
  target: ExpressionNode | undefined;
  readonly args: readonly ExpressionNode[];
  /** Overloads that the types of the arguments allow. */
  overloads?: readonly Overload[];
  /** All overloads of the function. */
  declared?: readonly Overload[];
}

/** List literal. */
export interface ListNode extends NodeBase {
  readonly kind: "list";
  readonly items: readonly ExpressionNode[];
  /** Indexes of optional items, such as `[?a]`. */
  readonly optional: ReadonlySet<number>;
}

/** Entry of a map literal or field of a message literal. */
export interface EntryNode {
  readonly at: number;
  readonly value: ExpressionNode;
  readonly optional: boolean;
}

/** Map literal. */
export interface MapNode extends NodeBase {
  readonly kind: "map";
  readonly entries: readonly (EntryNode & { readonly key: ExpressionNode })[];
}

/** Message literal, such as `Object.spec{replicas: 1}`. */
export interface StructNode extends NodeBase {
  readonly kind: "struct";
  readonly name: string;
  readonly fields: readonly (EntryNode & { readonly name: string })[];
}

/** Comprehension, into which macros such as `all()` are expanded. */
export interface FoldNode extends NodeBase {
  readonly kind: "fold";
  readonly range: ExpressionNode;
  readonly variable: string;
  readonly variable2: string | undefined;
  readonly accumulator: string;
  readonly initial: ExpressionNode;
  readonly condition: ExpressionNode;
  readonly step: ExpressionNode;
  readonly result: ExpressionNode;
}

/** Node of an expression. */
export type ExpressionNode =
  | LiteralNode
  | IdentNode
  | SelectNode
  | CallNode
  | ListNode
  | MapNode
  | StructNode
  | FoldNode;

/** Parts of a node. */
export function partsOf(node: ExpressionNode): readonly ExpressionNode[] {
  switch (node.kind) {
    case "literal":
    case "ident":
      return [];
    case "select":
      return [node.operand];
    case "call":
      return node.target ? [node.target, ...node.args] : node.args;
    case "list":
      return node.items;
    case "map":
      return node.entries.flatMap(({ key, value }) => [key, value]);
    case "struct":
      return node.fields.map(({ value }) => value);
    case "fold": {
      const { range, initial, condition, step, result } = node;
      return [range, initial, condition, step, result];
    }
  }
}

/** Calls a function once for every node of an expression, parts first. */
export function walk(
  node: ExpressionNode,
  onNode: (node: ExpressionNode) => void,
): void {
  const seen = new Set<ExpressionNode>();
  const step = (node: ExpressionNode): void => {
    if (seen.has(node)) return;
    seen.add(node);
    for (const part of partsOf(node)) step(part);
    onNode(node);
  };
  step(node);
}

/** Qualified name that selections spell, such as `a.b.c`; undefined for others. */
export function qualifiedName(node: ExpressionNode): string | undefined {
  if (node.kind === "ident") return node.name;
  if (node.kind !== "select" || node.test) return undefined;
  const prefix = qualifiedName(node.operand);
  return prefix === undefined ? undefined : `${prefix}.${node.field}`;
}
