import {
  type CallCost,
  choiceSize,
  functionCost,
  methodCost,
  type Operand,
  operatorCost,
  sizeOf,
} from "./call_costs.ts";
import { type CostType, type DeclaredType, KEY } from "./declared_type.ts";
import { ONE, type SizeRange, times, UNBOUNDED } from "./size_range.ts";

/** Type-checked node of the CEL library's expression tree. */
interface CheckedNode {
  readonly op: string;
  readonly args: unknown;
  readonly checkedType?: CheckedType | undefined;
}

/** Type of a node, as determined by the CEL library. */
interface CheckedType {
  readonly kind: string;
  readonly name: string;
  readonly valueType?: CheckedType | undefined;
}

/**
 * Schema node from which a value comes; the type is undefined where the schema
 * does not specify it.
 */
interface SchemaOrigin {
  readonly type: DeclaredType | undefined;
}

/** Estimated cost, type and size of an expression. */
interface Estimate {
  readonly cost: number;
  readonly type: CostType;
  /** Size, if the expression itself determines it. */
  readonly size?: SizeRange | undefined;
  readonly origin?: SchemaOrigin | undefined;
  readonly literal?: unknown;
}

/** Comprehension macros with their numbers of arguments. */
const LOOPS: ReadonlySet<string> = new Set([
  "all 2",
  "exists 2",
  "exists_one 2",
  "filter 2",
  "map 2",
  "map 3",
  "sortBy 2",
]);

/** Part of an entry that is the value of a comprehension's variable. */
type EntryPart = "item" | "key" | "value";

/** CEL names that only qualify functions and are no variables. */
const NAMESPACES: ReadonlySet<string> = new Set([
  "lists",
  "sets",
  "strings",
  "ip",
  "format",
  "optional",
]);

/** Cost of creating a list. */
const NEW_LIST = 10;
/** Cost of creating a map. */
const NEW_MAP = 30;

/** Costs of the start and of each step of a comprehension with two variables, without its expressions. */
const PAIR_COSTS: Readonly<Record<string, readonly [number, number]>> = {
  all: [1, 3],
  exists: [1, 4],
  exists_one: [2, 2],
  existsOne: [2, 2],
  transformList: [NEW_LIST + 1, NEW_LIST + 2],
  transformMap: [NEW_MAP + 1, 3],
  transformMapEntry: [NEW_MAP + 1, 2],
};

/** Whether a call is a comprehension whose first two arguments are variables. */
function isPairLoop(name: string, count: number): boolean {
  return Object.hasOwn(PAIR_COSTS, name) &&
    (count === 3 || (count === 4 && name.startsWith("transform")));
}

const SCALAR: CostType = { kind: "scalar", name: "" };
const OTHER: CostType = { kind: "other", name: "" };

/**
 * Estimates the maximum cost of an expression in the units of Kubernetes: about
 * one for each operation, each item and every ten characters.
 *
 * @param tree Type-checked expression tree of the CEL library.
 * @param root Declared type of `self` and `oldSelf`.
 */
export function costOf(tree: unknown, root: DeclaredType): number {
  return new Estimator(root).of(tree as CheckedNode).cost;
}

class Estimator {
  readonly #root: DeclaredType;
  /** Ranges of the enclosing comprehensions by variable, innermost last. */
  readonly #ranges: [
    name: string,
    range: Estimate,
    part: EntryPart,
  ][] = [];

  constructor(root: DeclaredType) {
    this.#root = root;
  }

  of(node: CheckedNode): Estimate {
    const { op, args } = node;
    switch (op) {
      case "value":
        return literal(args);
      case "id":
        return this.#name(args as string, node);
      case ".":
        return this.#field(args as [CheckedNode, string], node);
      case "[]":
        return this.#element(args as [CheckedNode, CheckedNode], node);
      case ".?":
      case "[?]":
        return this.#optional(
          args as [CheckedNode, CheckedNode | string],
          node,
        );
      case "!_":
      case "-_":
        return this.#unary(args as CheckedNode, node);
      case "&&":
      case "||": {
        const [a, b] = this.#all(args as readonly CheckedNode[]);
        return { cost: sum(a?.cost, b?.cost), type: SCALAR };
      }
      case "?:":
        return this.#choice(args as [CheckedNode, CheckedNode, CheckedNode]);
      case "list": {
        const items = this.#all(args as readonly CheckedNode[]);
        const size = exactly(items.length);
        return { cost: total(items) + NEW_LIST, type: typeOf(node), size };
      }
      case "map": {
        const entries =
          args as readonly (readonly [CheckedNode, CheckedNode])[];
        const parts = this.#all(entries.flat());
        const size = exactly(entries.length);
        return { cost: total(parts) + NEW_MAP, type: typeOf(node), size };
      }
      case "call": {
        const [name, rest] = args as [string, readonly CheckedNode[]];
        return this.#function(name, rest, node);
      }
      case "rcall":
        return this.#method(
          args as [string, CheckedNode, readonly CheckedNode[]],
          node,
        );
      default:
        return this.#operator(op, args as [CheckedNode, CheckedNode], node);
    }
  }

  #all(nodes: readonly CheckedNode[]): Estimate[] {
    return nodes.map((node) => this.of(node));
  }

  #name(name: string, node: CheckedNode): Estimate {
    const [, range, part] =
      this.#ranges.findLast(([variable]) => variable === name) ?? [];
    if (range === undefined) {
      const own = name === "self" ||
        (name === "oldSelf" && node.checkedType?.kind !== "optional");
      const type = own ? this.#root : typeOf(node);
      return { cost: 1, type, origin: { type: this.#root } };
    }
    const { kind } = range.type;
    if (kind === "list" && part === "key") return { cost: 1, type: SCALAR };
    switch (kind === "map" && part === "value" ? "list" : kind) {
      case "list":
        return {
          cost: 1,
          type: range.type.elements ?? typeOf(node),
          origin: this.#below(range.origin, (type) => type.elements),
        };
      case "map":
        return {
          cost: 1,
          type: KEY,
          origin: this.#below(
            range.origin,
            (type) => type.kind === "map" ? KEY : undefined,
          ),
        };
      default:
        return { cost: 1, type: typeOf(node) };
    }
  }

  /**
   * Schema path of a field or item of a value. As in kube-apiserver, a value
   * that does not come from the schema is treated as `self`.
   */
  #below(
    origin: SchemaOrigin | undefined,
    step: (type: DeclaredType) => DeclaredType | undefined,
  ): SchemaOrigin {
    if (origin === undefined) return { type: this.#root };
    return { type: origin.type && step(origin.type) };
  }

  #field([target, name]: [CheckedNode, string], node: CheckedNode): Estimate {
    const { cost, type, origin } = this.of(target);
    const step = type.kind === "map" || type.kind === "object" ? 1 : 0;
    const declared = type.kind === "map"
      ? type.elements
      : fieldsOf(type)?.get(name);
    return {
      cost: cost + step,
      type: declared ?? typeOf(node),
      origin: this.#below(origin, ({ fields }) => fields.get(name)),
    };
  }

  #element(
    [target, index]: [CheckedNode, CheckedNode],
    node: CheckedNode,
  ): Estimate {
    const list = this.of(target);
    const { cost } = this.of(index);
    return {
      cost: sum(list.cost, cost, 1),
      type: list.type.elements ?? typeOf(node),
      origin: this.#below(list.origin, (type) => type.elements),
    };
  }

  #optional(
    [target, part]: [CheckedNode, CheckedNode | string],
    node: CheckedNode,
  ): Estimate {
    const index = typeof part === "string" ? 0 : this.of(part).cost;
    return { cost: sum(this.of(target).cost, index, 1), type: typeOf(node) };
  }

  /**
   * Cost of a unary operator; a sign is part of a number literal, and two equal
   * operators cancel each other.
   */
  #unary(inner: CheckedNode, { op }: CheckedNode): Estimate {
    if (inner.op === op) return this.of(inner.args as CheckedNode);
    const { cost, type, literal: value } = this.of(inner);
    if (
      op === "-_" && (typeof value === "bigint" || typeof value === "number")
    ) {
      return literal(-value);
    }
    return { cost: sum(cost, 1), type };
  }

  #choice(
    [condition, yes, no]: [CheckedNode, CheckedNode, CheckedNode],
  ): Estimate {
    const a = this.of(yes);
    const b = this.of(no);
    return {
      cost: sum(this.of(condition).cost, Math.max(a.cost, b.cost)),
      type: a.type.kind === "dyn" ? b.type : a.type,
      size: choiceSize(this.#operand(a), this.#operand(b)),
    };
  }

  #operator(
    op: string,
    [left, right]: [CheckedNode, CheckedNode],
    node: CheckedNode,
  ): Estimate {
    const a = this.of(left);
    const b = this.of(right);
    const call = operatorCost(op, this.#operand(a), this.#operand(b));
    return called(call, [a, b], op === "+" ? a.type : typeOf(node));
  }

  #function(
    name: string,
    args: readonly CheckedNode[],
    node: CheckedNode,
  ): Estimate {
    const [argument] = args;
    if (name === "has" && argument !== undefined) {
      // `has(a.b)` costs no more than `a`.
      const [owner] = argument.args as readonly [CheckedNode, string];
      return { cost: this.of(owner).cost, type: SCALAR };
    }
    if (name === "dyn" && argument !== undefined) {
      // Only the type checks change: the size is that of the argument.
      const inner = this.of(argument);
      return { ...inner, cost: sum(inner.cost, 1) };
    }
    const operands = this.#all(args);
    const call = functionCost(
      name,
      operands.map((operand) => this.#operand(operand)),
    );
    return called(call, operands, typeOf(node));
  }

  #method(
    [name, target, args]: [string, CheckedNode, readonly CheckedNode[]],
    node: CheckedNode,
  ): Estimate {
    if (
      target.op === "id" && NAMESPACES.has(target.args as string) &&
      !this.#ranges.some(([variable]) => variable === target.args)
    ) return this.#function(`${target.args as string}.${name}`, args, node);
    const [variable] = args;
    if (variable?.op === "id" && LOOPS.has(`${name} ${args.length}`)) {
      const loop = this.#loop(name, this.of(target), args);
      return name === "sortBy" ? { ...loop, type: typeOf(node) } : loop;
    }
    if (isPairLoop(name, args.length)) {
      return this.#pairLoop(name, this.of(target), args, node);
    }
    const operands = this.#all([target, ...args]);
    const call = methodCost(
      name,
      operands.map((operand) => this.#operand(operand)),
    );
    return called(call, operands, typeOf(node));
  }

  /** Cost of a comprehension: initialization, one step for each element, and the result. */
  #loop(name: string, range: Estimate, args: readonly CheckedNode[]): Estimate {
    const [variable, first, second] = args as readonly [
      CheckedNode,
      CheckedNode,
      CheckedNode?,
    ];
    this.#ranges.push([variable.args as string, range, "item"]);
    const body = this.of(first);
    const other = second && this.of(second);
    const item = this.of(variable);
    this.#ranges.pop();
    const size = sizeOf(this.#operand(range));
    const looped = (start: number, step: number, type: CostType): Estimate => ({
      cost: sum(range.cost, start, times(size.max, Math.min(step, UNBOUNDED))),
      type,
      size: type === SCALAR ? undefined : size,
    });
    switch (name) {
      case "all":
        return looped(1, body.cost + 3, SCALAR);
      case "exists":
        return looped(1, body.cost + 4, SCALAR);
      case "exists_one":
        return looped(2, body.cost + 2, SCALAR);
      case "sortBy": {
        // The list is bound to a variable, and sorted by the list of its keys.
        const keys = this.#loop("map", { ...range, cost: 1 }, args);
        const call = methodCost("sort", [this.#operand(keys)]);
        const cost = sum(range.cost, keys.cost, call.cost, NEW_LIST + 1);
        return { cost, type: OTHER, size: call.size };
      }
      case "filter":
        return looped(
          NEW_LIST + 1,
          body.cost + NEW_LIST + 3,
          listOf(item.type),
        );
      default: {
        const result = other ?? body;
        const step = result.cost + NEW_LIST + 2;
        const condition = other === undefined ? 0 : body.cost;
        return looped(NEW_LIST + 1, step + condition, listOf(result.type));
      }
    }
  }

  /** Cost of a comprehension with variables for the index or key, and the value. */
  #pairLoop(
    name: string,
    range: Estimate,
    args: readonly CheckedNode[],
    node: CheckedNode,
  ): Estimate {
    const names = args.slice(0, 2).map(({ args }) => args as string);
    this.#ranges.push(
      [names[0] as string, range, "key"],
      [names[1] as string, range, "value"],
    );
    const parts = this.#all(args.slice(2));
    this.#ranges.pop();
    this.#ranges.pop();
    const body = total(parts);
    const size = sizeOf(this.#operand(range));
    const [start, step] = PAIR_COSTS[name] ?? [1, 0];
    const result = parts.at(-1);
    const collects = name.startsWith("transform");
    return {
      cost: sum(range.cost, start, times(size.max, body + step)),
      type: !collects
        ? SCALAR
        : name === "transformList"
        ? listOf(result?.type ?? OTHER)
        : typeOf(node),
      size: collects ? size : undefined,
    };
  }

  #operand({ type, size, origin, literal }: Estimate): Operand {
    const declared = origin?.type;
    const items = origin?.type?.elements;
    return {
      type,
      size: size ?? (declared && { min: 0, max: declared.maxElements }),
      itemSize: items && { min: 0, max: items.maxElements },
      computed: size !== undefined,
      literal,
    };
  }
}

function literal(value: unknown): Estimate {
  const [type, size]: readonly [CostType, SizeRange] = typeof value === "string"
    ? [{ kind: "string", name: "string" }, exactly([...value].length)]
    : value instanceof Uint8Array
    ? [{ kind: "bytes", name: "bytes" }, exactly(value.length)]
    : [value === null ? OTHER : SCALAR, ONE];
  return { cost: 0, type, size, literal: value };
}

function called(
  { cost, size }: CallCost,
  operands: readonly Estimate[],
  type: CostType,
): Estimate {
  return { cost: sum(cost, total(operands)), type, size };
}

function total(parts: readonly Estimate[]): number {
  return sum(...parts.map(({ cost }) => cost));
}

function sum(...costs: readonly (number | undefined)[]): number {
  let all = 0;
  for (const cost of costs) all += cost ?? 0;
  return Math.min(all, UNBOUNDED);
}

function exactly(size: number): SizeRange {
  return { min: size, max: size };
}

function listOf(elements: CostType): CostType {
  return { kind: "list", name: "", elements };
}

function fieldsOf(
  type: CostType | DeclaredType,
): ReadonlyMap<string, DeclaredType> | undefined {
  return "fields" in type ? type.fields : undefined;
}

const SCALARS: ReadonlySet<string> = new Set([
  "bool",
  "int",
  "uint",
  "double",
  "google.protobuf.Duration",
  "google.protobuf.Timestamp",
]);

function typeOf({ checkedType }: CheckedNode): CostType {
  return checkedType === undefined ? OTHER : costType(checkedType);
}

function costType({ kind, name, valueType }: CheckedType): CostType {
  if (kind === "dyn") return { kind, name };
  if (kind === "list" || kind === "map") {
    return { kind, name, elements: valueType && costType(valueType) };
  }
  if (name === "string" || name === "bytes") return { kind: name, name };
  if (SCALARS.has(name)) return { kind: "scalar", name };
  // Object types of a schema are registered under these names.
  return { kind: /^Object\d+$/.test(name) ? "object" : "other", name };
}
