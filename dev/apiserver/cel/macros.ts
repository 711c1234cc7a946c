import type {
  CallNode,
  ExpressionNode,
  FoldNode,
  IdentNode,
} from "./expression.ts";
import type { Problem } from "./cel_errors.ts";

/** Variable in which macros collect their result; no source can spell it. */
export const ACCUMULATOR = "@result";

/** Name of the function that adds entries to the map of a macro. */
export const MAP_INSERT = "cel.@mapInsert";

/** Name of the function that sorts a list by keys. */
export const SORT_BY_KEYS = "@sortByAssociatedKeys";

/** Expansion of a macro, or what is wrong with its arguments. */
export type Expansion = ExpressionNode | Problem;

/**
 * Expands a macro.
 *
 * @param at Offset of the call, which its parts get.
 * @returns Expansion; undefined if the call is not one of a macro.
 */
export function expandMacro(
  at: number,
  name: string,
  target: ExpressionNode | undefined,
  args: readonly ExpressionNode[],
): Expansion | undefined {
  const nodes = new Nodes(at);
  if (target === undefined) {
    return name === "has" && args.length === 1
      ? has(nodes, args[0] as ExpressionNode)
      : undefined;
  }
  switch (`${name} ${args.length}`) {
    case "all 2":
    case "exists 2":
    case "exists_one 2":
    case "all 3":
    case "exists 3":
    case "exists_one 3":
    case "existsOne 3":
      return quantifier(nodes, name, target, args);
    case "map 2":
    case "map 3":
    case "filter 2":
      return listed(nodes, name, target, args);
    case "transformList 3":
    case "transformList 4":
    case "transformMap 3":
    case "transformMap 4":
    case "transformMapEntry 3":
    case "transformMapEntry 4":
      return transformed(nodes, name, target, args);
    case "optMap 2":
    case "optFlatMap 2":
      return optional(nodes, name, target, args);
    case "sortBy 2":
      return sorted(nodes, target, args);
    default:
      return undefined;
  }
}

/** Maker of the nodes of one macro. */
class Nodes {
  readonly at: number;

  constructor(at: number) {
    this.at = at;
  }

  literal(value: unknown): ExpressionNode {
    return { kind: "literal", value, at: this.at };
  }

  ident(name: string): IdentNode {
    return { kind: "ident", name, at: this.at };
  }

  call(name: string, ...args: ExpressionNode[]): CallNode {
    return { kind: "call", name, target: undefined, args, at: this.at };
  }

  method(
    target: ExpressionNode,
    name: string,
    ...args: ExpressionNode[]
  ): CallNode {
    return { kind: "call", name, target, args, at: this.at };
  }

  list(...items: ExpressionNode[]): ExpressionNode {
    return { kind: "list", items, optional: new Set(), at: this.at };
  }

  map(): ExpressionNode {
    return { kind: "map", entries: [], at: this.at };
  }

  /** Comprehension that collects its result in the accumulator. */
  fold(
    range: ExpressionNode,
    variables: readonly string[],
    parts: {
      readonly initial: ExpressionNode;
      readonly condition?: ExpressionNode;
      readonly step: ExpressionNode;
      readonly result?: ExpressionNode;
    },
  ): FoldNode {
    return {
      kind: "fold",
      range,
      variable: variables[0] ?? "",
      variable2: variables[1],
      accumulator: ACCUMULATOR,
      condition: this.literal(true),
      result: this.ident(ACCUMULATOR),
      ...parts,
      at: this.at,
    };
  }

  /** Expression in which a name stands for a value. */
  bind(name: string, value: ExpressionNode, body: ExpressionNode): FoldNode {
    return {
      kind: "fold",
      range: this.list(),
      variable: "#unused",
      variable2: undefined,
      accumulator: name,
      initial: value,
      condition: this.literal(false),
      step: this.ident(name),
      result: body,
      at: this.at,
    };
  }

  /** `condition ? yes : accumulator`, or `yes` without a condition. */
  onlyIf(
    condition: ExpressionNode | undefined,
    yes: ExpressionNode,
  ): ExpressionNode {
    return condition === undefined
      ? yes
      : this.call("_?_:_", condition, yes, this.ident(ACCUMULATOR));
  }
}

function has(nodes: Nodes, operand: ExpressionNode): Expansion {
  return operand.kind === "select" && !operand.test
    ? { ...operand, test: true, at: nodes.at }
    : { at: operand.at, message: "invalid argument to has() macro" };
}

/**
 * Names of the variables of a comprehension.
 *
 * @param why Message for an argument that is no name.
 */
function variablesOf(
  args: readonly ExpressionNode[],
  why: string,
): string[] | Problem {
  const names: string[] = [];
  for (const { at, ...arg } of args) {
    if (arg.kind !== "ident") return { at, message: why };
    if (names.includes(arg.name)) {
      return { at, message: `duplicate variable name: ${arg.name}` };
    }
    names.push(arg.name);
  }
  const reserved = args.find((arg) =>
    arg.kind === "ident" && arg.name === "__result__"
  );
  return reserved === undefined ? names : {
    at: reserved.at,
    message: "iteration variable overwrites accumulator variable",
  };
}

function quantifier(
  nodes: Nodes,
  name: string,
  target: ExpressionNode,
  args: readonly ExpressionNode[],
): Expansion {
  const variables = variablesOf(
    args.slice(0, -1),
    "argument must be a simple name",
  );
  if (!Array.isArray(variables)) return variables;
  const predicate = args.at(-1) as ExpressionNode;
  const accumulator = () => nodes.ident(ACCUMULATOR);
  switch (name) {
    case "all":
      return nodes.fold(target, variables, {
        initial: nodes.literal(true),
        condition: nodes.call("@not_strictly_false", accumulator()),
        step: nodes.call("_&&_", accumulator(), predicate),
      });
    case "exists":
      return nodes.fold(target, variables, {
        initial: nodes.literal(false),
        condition: nodes.call(
          "@not_strictly_false",
          nodes.call("!_", accumulator()),
        ),
        step: nodes.call("_||_", accumulator(), predicate),
      });
    default:
      return nodes.fold(target, variables, {
        initial: nodes.literal(0n),
        step: nodes.onlyIf(
          predicate,
          nodes.call("_+_", accumulator(), nodes.literal(1n)),
        ),
        result: nodes.call("_==_", accumulator(), nodes.literal(1n)),
      });
  }
}

/** Step that appends an item to the accumulator. */
function append(nodes: Nodes, item: ExpressionNode): ExpressionNode {
  return nodes.call("_+_", nodes.ident(ACCUMULATOR), nodes.list(item));
}

/** List of the items of `filter`, or of what `map` gives for them. */
function listed(
  nodes: Nodes,
  name: string,
  target: ExpressionNode,
  args: readonly ExpressionNode[],
): Expansion {
  const variables = variablesOf(
    args.slice(0, 1),
    "argument is not an identifier",
  );
  if (!Array.isArray(variables)) return variables;
  const isFilter = name === "filter";
  const predicate = isFilter || args.length === 3 ? args[1] : undefined;
  const item = (isFilter ? args[0] : args.at(-1)) as ExpressionNode;
  return nodes.fold(target, variables, {
    initial: nodes.list(),
    step: nodes.onlyIf(predicate, append(nodes, item)),
  });
}

function transformed(
  nodes: Nodes,
  name: string,
  target: ExpressionNode,
  args: readonly ExpressionNode[],
): Expansion {
  const variables = variablesOf(
    args.slice(0, 2),
    "argument must be a simple name",
  );
  if (!Array.isArray(variables)) return variables;
  const filter = args.length === 4 ? args[2] : undefined;
  const result = args.at(-1) as ExpressionNode;
  const accumulator = nodes.ident(ACCUMULATOR);
  const step = name === "transformList"
    ? append(nodes, result)
    : name === "transformMap"
    ? nodes.call(
      MAP_INSERT,
      accumulator,
      nodes.ident(variables[0] ?? ""),
      result,
    )
    : nodes.call(MAP_INSERT, accumulator, result);
  return nodes.fold(target, variables, {
    initial: name === "transformList" ? nodes.list() : nodes.map(),
    step: nodes.onlyIf(filter, step),
  });
}

function optional(
  nodes: Nodes,
  name: string,
  target: ExpressionNode,
  args: readonly ExpressionNode[],
): Expansion {
  const [variable, body] = args as [ExpressionNode, ExpressionNode];
  if (variable.kind !== "ident") {
    return {
      at: variable.at,
      message: `${name}() variable name must be a simple identifier`,
    };
  }
  const bound = nodes.bind(
    variable.name,
    nodes.method(structuredCopy(target), "value"),
    body,
  );
  return nodes.call(
    "_?_:_",
    nodes.method(target, "hasValue"),
    name === "optMap" ? nodes.call("optional.of", bound) : bound,
    nodes.call("optional.none"),
  );
}

/** Copy of an expression, whose types are found on their own. */
function structuredCopy<T>(value: T): T {
  if (Array.isArray(value)) return value.map(structuredCopy) as T;
  const isNode = typeof value === "object" && value !== null &&
    Object.getPrototypeOf(value) === Object.prototype;
  return isNode
    ? Object.fromEntries(
      Object.entries(value as object)
        .map(([name, part]) => [name, structuredCopy(part)]),
    ) as T
    : value;
}

const SORT_INPUT = "@__sortBy_input__";

function sorted(
  nodes: Nodes,
  target: ExpressionNode,
  args: readonly ExpressionNode[],
): Expansion {
  if (target.kind === "literal" || target.kind === "map") {
    return {
      at: target.at,
      message:
        "sortBy can only be applied to a list, identifier, comprehension, call or select expression",
    };
  }
  const keys = listed(nodes, "map", nodes.ident(SORT_INPUT), args);
  return "message" in keys ? keys : nodes.bind(
    SORT_INPUT,
    target,
    nodes.method(nodes.ident(SORT_INPUT), SORT_BY_KEYS, keys),
  );
}
