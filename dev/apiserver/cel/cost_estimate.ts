import { LIST_COST, MAP_COST, MESSAGE_COST } from "./actual_costs.ts";
import { type CelType, DYN, optionalValue } from "./cel_type.ts";
import { estimatedCost, type Operand } from "./estimated_costs.ts";
import type {
  CallNode,
  ExpressionNode,
  FoldNode,
  SelectNode,
} from "./expression.ts";
import { ACCUMULATOR } from "./macros.ts";
import {
  ANY_SIZE,
  exactly,
  ONE,
  plus,
  type SizeRange,
  sizeUnion,
  times,
  UNBOUNDED,
} from "./size_range.ts";
import { sizeOf } from "./values.ts";

/** Names of the steps to the value of an expression, from a variable on. */
export type ValuePath = readonly string[];

/** Size of the value at a path, as a schema limits it; undefined if it does not. */
export type SizeAt = (path: ValuePath) => SizeRange | undefined;

/**
 * Greatest cost of an expression in the units of Kubernetes: about one for each
 * operation, each item and every ten characters.
 */
export function costOf(root: ExpressionNode, sizeAt: SizeAt): number {
  return new Estimator(sizeAt).cost(root);
}

/** Sizes of the keys and values of a list or map. */
interface EntrySizes {
  readonly kind: "list" | "map";
  readonly keys: SizeRange;
  readonly values: SizeRange;
}

/** Variable of a comprehension. */
interface Local {
  readonly name: string;
  readonly path: ValuePath | undefined;
  readonly size: SizeRange | undefined;
  readonly entries: EntrySizes | undefined;
}

/** Size range of no value yet, to which others are added. */
const NO_SIZE: SizeRange = { min: UNBOUNDED, max: 0 };

class Estimator {
  readonly #sizeAt: SizeAt;
  readonly #paths: Map<ExpressionNode, ValuePath | undefined> = new Map();
  readonly #sizes: Map<ExpressionNode, SizeRange> = new Map();
  readonly #entries: Map<ExpressionNode, EntrySizes> = new Map();
  readonly #locals: Local[] = [];

  constructor(sizeAt: SizeAt) {
    this.#sizeAt = sizeAt;
  }

  cost(node: ExpressionNode): number {
    switch (node.kind) {
      case "literal":
        return 0;
      case "ident":
        this.#paths.set(node, this.#identPath(node.name));
        return 1;
      case "select":
        return this.#select(node);
      case "call":
        return this.#call(node);
      case "list": {
        const cost = plus(...node.items.map((item) => this.cost(item)));
        this.#entries.set(node, {
          kind: "list",
          keys: ONE,
          values: this.#union(node.items),
        });
        return plus(cost, LIST_COST);
      }
      case "map": {
        const costs = node.entries
          .map(({ key, value }) => plus(this.cost(key), this.cost(value)));
        this.#entries.set(node, {
          kind: "map",
          keys: this.#union(node.entries.map(({ key }) => key)),
          values: this.#union(node.entries.map(({ value }) => value)),
        });
        return plus(...costs, MAP_COST);
      }
      case "struct":
        return plus(
          ...node.fields.map(({ value }) => this.cost(value)),
          MESSAGE_COST,
        );
      case "fold":
        return node.accumulator === ACCUMULATOR
          ? this.#fold(node)
          : this.#bind(node);
    }
  }

  /** Size range of the elements of a literal. */
  #union(nodes: readonly ExpressionNode[]): SizeRange {
    return nodes.length === 0 ? exactly(0) : nodes
      .map((node) => this.#sizeOrAny(node))
      .reduce(sizeUnion, NO_SIZE);
  }

  #local(name: string): Local | undefined {
    return this.#locals.findLast((local) => local.name === name);
  }

  #identPath(name: string): ValuePath | undefined {
    const local = this.#local(name);
    return local === undefined ? [name] : local.path;
  }

  #path(node: ExpressionNode): ValuePath | undefined {
    if (node.kind === "ident") {
      const local = this.#local(node.name);
      if (local) return local.path;
    }
    return this.#paths.get(node);
  }

  #below(path: ValuePath | undefined, step: string): ValuePath {
    return [...path ?? [], step];
  }

  #select(node: SelectNode): number {
    const { operand, field, test, qualified } = node;
    if (qualified !== undefined) return this.cost(qualified);
    const cost = this.cost(operand);
    if (test) return cost;
    this.#paths.set(node, this.#below(this.#path(operand), field));
    const kind = operand.type?.kind;
    const steps = kind === "map" || kind === "struct" || kind === "param";
    return plus(cost, steps ? 1 : 0);
  }

  #call(node: CallNode): number {
    const { name, args, target, overloads = [] } = node;
    const costs = args.map((arg) => this.cost(arg));
    const [first, second, third] = args;
    switch (name) {
      case "dyn": {
        const [argument] = args as [ExpressionNode];
        const size = this.#size(argument);
        if (size) this.#sizes.set(node, size);
        const entries = this.#entriesOf(argument);
        if (entries) this.#entries.set(node, entries);
        return plus(1, ...costs);
      }
      case "_&&_":
      case "_||_":
        return plus(...costs);
      case "_?_:_": {
        const [condition = 0, yes = 0, no = 0] = costs;
        const [a, b] = [second, third] as [ExpressionNode, ExpressionNode];
        this.#sizes.set(
          node,
          sizeUnion(this.#sizeOrAny(a), this.#sizeOrAny(b)),
        );
        this.#join(node, a, b);
        return plus(condition, Math.max(yes, no));
      }
      case "_?._":
        return plus(1, ...costs);
    }
    const before = target ? this.cost(target) : 0;
    const operands = [...target ? [target] : [], ...args]
      .map((operand) => this.#operand(operand));
    let most = 0;
    let size: SizeRange | undefined;
    for (const { id } of overloads) {
      const call = estimatedCost(name, id, operands);
      most = Math.max(most, call.cost);
      if (call.size) size = size ? sizeUnion(size, call.size) : call.size;
      if (name === "_[_]" && first && !id.includes("optional<")) {
        size = this.#entriesOf(first)?.values;
        const step = id.includes("list<") ? "@items" : "@values";
        this.#paths.set(node, this.#below(this.#path(first), step));
      }
      if (name === "_+_" && first && second && call.size) {
        this.#join(node, first, second);
      }
      size ??= this.#size(node);
    }
    if (size) this.#sizes.set(node, size);
    return plus(before, most, ...costs);
  }

  /** Notes the sizes of the entries of one of two values. */
  #join(node: ExpressionNode, a: ExpressionNode, b: ExpressionNode): void {
    const left = this.#entriesOf(a);
    const right = this.#entriesOf(b);
    if (!left || !right) return;
    this.#entries.set(node, {
      kind: left.kind,
      keys: sizeUnion(left.keys, right.keys),
      values: sizeUnion(left.values, right.values),
    });
  }

  #operand(node: ExpressionNode): Operand {
    const path = this.#path(node);
    const known = path && path[0] !== ACCUMULATOR ? path : undefined;
    return {
      type: node.type ?? DYN,
      size: this.#size(node),
      itemSize: (known && this.#sizeAt([...known, "@items"])) ?? ANY_SIZE,
      literal: node.kind === "literal" ? node.value : undefined,
    };
  }

  #fold(node: FoldNode): number {
    const { range, initial, variable, variable2, condition, step } = node;
    const before = plus(this.cost(range), this.cost(initial));
    this.#locals.push(this.#bound(node.accumulator, initial));
    if (variable2 === undefined) this.#locals.push(this.#single(node));
    else {
      this.#locals.push(
        this.#part(variable, range, "keys"),
        this.#part(variable2, range, "values"),
      );
    }
    const each = plus(this.cost(condition), this.cost(step));
    this.#locals.length -= variable2 === undefined ? 1 : 2;
    const after = this.cost(node.result);
    this.#locals.pop();
    const count = this.#sizeOrAny(range);
    if (initial.kind === "literal") {
      const size = this.#size(initial);
      if (size) this.#sizes.set(node, size);
    } else if (initial.kind === "list" || initial.kind === "map") {
      this.#sizes.set(node, count);
      const entries = this.#entriesOf(step);
      if (entries) this.#entries.set(node, entries);
    }
    return plus(before, after, times(count.max, each));
  }

  #bind(node: FoldNode): number {
    const before = plus(this.cost(node.range), this.cost(node.initial));
    this.#locals.push(this.#bound(node.accumulator, node.initial));
    const cost = this.cost(node.result);
    this.#locals.pop();
    const size = this.#size(node.result);
    if (size) this.#sizes.set(node, size);
    const entries = this.#entriesOf(node.result);
    if (entries) this.#entries.set(node, entries);
    return plus(before, cost);
  }

  /** Variable that stands for the value of an expression. */
  #bound(name: string, node: ExpressionNode): Local {
    return {
      name,
      path: this.#path(node),
      size: this.#size(node),
      entries: this.#entriesOf(node),
    };
  }

  #kind(range: ExpressionNode): string | undefined {
    return this.#entriesOf(range)?.kind ?? range.type?.kind;
  }

  /** The one variable of a comprehension: an item of a list or a key of a map. */
  #single({ variable, range }: FoldNode): Local {
    const part = this.#kind(range) === "list" ? "values" : "keys";
    const step = part === "values" ? "@items" : "@keys";
    return {
      ...this.#part(variable, range, part),
      path: this.#below(this.#path(range), step),
    };
  }

  #part(name: string, range: ExpressionNode, part: "keys" | "values"): Local {
    const list = this.#kind(range) === "list";
    const step = part === "keys"
      ? list ? "@indices" : "@keys"
      : list
      ? "@items"
      : "@values";
    return {
      name,
      path: this.#below(this.#path(range), step),
      size: this.#entriesOf(range)?.[part],
      entries: undefined,
    };
  }

  #sizeOrAny(node: ExpressionNode): SizeRange {
    return this.#size(node) ?? ANY_SIZE;
  }

  #size(node: ExpressionNode): SizeRange | undefined {
    const known = this.#sizes.get(node) ?? ownSize(node);
    if (known) return known;
    const path = this.#path(node);
    const declared = path && path.length > 0 ? this.#sizeAt(path) : undefined;
    if (declared) {
      this.#sizes.set(node, declared);
      return declared;
    }
    if (isScalar(node.type ?? DYN)) return ONE;
    return node.kind === "ident" ? this.#local(node.name)?.size : undefined;
  }

  #entriesOf(node: ExpressionNode): EntrySizes | undefined {
    return this.#entries.get(node) ??
      (node.kind === "ident" ? this.#local(node.name)?.entries : undefined);
  }
}

/** Size that a literal has. */
function ownSize(node: ExpressionNode): SizeRange | undefined {
  switch (node.kind) {
    case "literal":
      return exactly(sizeOf(node.value) ?? 1);
    case "list":
      return exactly(node.items.length);
    case "map":
      return exactly(node.entries.length);
    default:
      return undefined;
  }
}

/** Kinds of types whose values have a constant size. */
const SCALARS: ReadonlySet<string> = new Set([
  "bool",
  "double",
  "duration",
  "int",
  "timestamp",
  "uint",
]);

function isScalar(type: CelType): boolean {
  const value = optionalValue(type);
  return SCALARS.has(type.kind) || (value !== undefined && isScalar(value));
}
