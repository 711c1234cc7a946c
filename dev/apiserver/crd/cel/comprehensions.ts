import type { Environment } from "@marcbachmann/cel-js";
import { CelFailure } from "./cel_failure.ts";
import { compare, ORDERED } from "./list_functions.ts";

/** Node of the CEL library's expression tree. */
interface Node {
  readonly op: string;
  readonly args: unknown;
}

/** Type in the CEL library. */
interface Type {
  readonly kind: string;
  readonly name: string;
  readonly keyType?: Type;
  readonly valueType?: Type;
}

/** Variables of the CEL library, with their types or values. */
interface Scope {
  forkWithVariable(name: string, type: Type): Scope;
  reuse(parent: Scope): Scope;
  setIterValue(value: unknown, evaluator: Evaluator): Scope;
}

interface Checker {
  readonly registry: {
    getListType(items: Type): Type;
    getMapType(keys: Type, values: Type): Type;
  };
  check(node: Node, scope: Scope): Type;
  getType(name: string): Type;
  createError(code: string, message: string, node: Node): Error;
}

interface Evaluator {
  run(node: Node, scope: Scope): unknown;
  tryEval(node: Node, scope: Scope): unknown;
}

/** Function that evaluates the last argument for an entry. */
type Body = (key: unknown, value: unknown) => unknown;

/** Loop over the entries of a list or map. */
interface Loop {
  readonly name: string;
  /** Whether the loop has only a variable for the item, not for index or key and value. */
  readonly single?: boolean;
  /** Whether the loop continues after an error of an entry. */
  readonly tolerant?: boolean;
  /** Whether the body of the loop is a condition. */
  readonly condition?: boolean;
  /** Type of the result, if it differs from the type of the body. */
  typeOf?(
    checker: Checker,
    body: Type,
    key: Type,
    range: Type,
    call: Node,
  ): Type;
  run(entries: readonly Entry[], body: Body, bodyType: Type): unknown;
}

type Entry = readonly [key: unknown, value: unknown];

/** Result of a filter for an entry that it excludes. */
const LEFT_OUT = Symbol();

const LOOPS: readonly Loop[] = [
  quantifier("all", false),
  quantifier("exists", true),
  existsOne("existsOne"),
  existsOne("exists_one"),
  {
    name: "transformList",
    typeOf: ({ registry }, body) => registry.getListType(body),
    run: (entries, body) =>
      entries.map(([key, value]) => body(key, value))
        .filter((result) => result !== LEFT_OUT),
  },
  {
    name: "transformMap",
    typeOf: ({ registry }, body, key) => registry.getMapType(key, body),
    run: (entries, body) =>
      inserted(entries.map(([key, value]) => [[key, body(key, value)]])),
  },
  {
    name: "transformMapEntry",
    typeOf(checker, body, _key, _range, call) {
      if (body.kind === "map" || body.kind === "dyn") return body;
      throw checker.createError(
        "no_matching_overload",
        `found no matching overload for '@mapInsert(map, ${body.name})'`,
        call,
      );
    },
    run: (entries, body, { keyType }) =>
      inserted(
        entries.map(([key, value]) => {
          const map = body(key, value);
          return map === LEFT_OUT ? [[key, map]] : entriesOf(map, keyType);
        }),
      ),
  },
  {
    name: "sortBy",
    single: true,
    typeOf(checker, body, _key, range, call) {
      const sorts = (range.kind === "list" || range.kind === "dyn") &&
        (body.kind === "dyn" || ORDERED.includes(body.name));
      if (sorts) return range;
      throw checker.createError(
        "no_matching_overload",
        `found no matching overload for '${range.name}.@sortByAssociatedKeys(list<${body.name}>)'`,
        call,
      );
    },
    run: (entries, body) =>
      entries.map(([, item]) => ({ item, order: body(item, undefined) }))
        .sort((a, b) => compare(a.order, b.order))
        .map(({ item }) => item),
  },
];

/** Operators of expressions that `sortBy()` accepts. */
const SORTED: readonly string[] = ["list", ".", "id", "call", "rcall"];

/** Registers CEL loops with two variables, and `sortBy()`. */
export function registerComprehensions(environment: Environment): void {
  for (const loop of LOOPS) {
    const counts = loop.single
      ? [2]
      : loop.name.startsWith("transform")
      ? [3, 4]
      : [3];
    for (const count of counts) {
      const asts = Array(count).fill("ast").join(", ");
      environment.registerFunction(
        `list.${loop.name}(${asts}): dyn`,
        (call: Call) => expansion(loop, call),
      );
    }
  }
}

/** Parsed call of a loop. */
interface Call {
  readonly ast: Node;
  readonly args: readonly Node[];
  readonly receiver: Node;
}

/** Type check and evaluation of the call of a loop. */
function expansion(loop: Loop, { ast, args, receiver: range }: Call): object {
  let scopes: readonly Scope[] = [];
  let bodyType: Type;
  let rangeKey: Type | undefined;
  const bodyNode = args.at(-1) as Node;
  const filter = args.length === 4 ? args[2] : undefined;
  return {
    async: false,
    typeCheck(checker: Checker, _: unknown, scope: Scope): Type {
      const type = checker.check(range, scope);
      const dyn = checker.getType("dyn");
      if (loop.single && !SORTED.includes(range.op)) {
        throw checker.createError(
          "invalid_macro_argument",
          "sortBy can only be applied to a list, identifier, comprehension, call or select expression",
          range,
        );
      }
      if (!["dyn", "list", "map"].includes(type.kind)) {
        throw checker.createError(
          "invalid_comprehension_range",
          `Expression of type '${type.name}' cannot be range of a comprehension (must be list, map, or dynamic)`,
          range,
        );
      }
      const key = type.kind === "list"
        ? checker.getType("int")
        : type.keyType ?? dyn;
      rangeKey = type.keyType;
      const item = type.valueType ?? dyn;
      const types = !loop.single
        ? [key, item]
        : [type.kind === "map" ? key : item];
      const names = new Set<string>();
      let inner = scope;
      scopes = types.map((type, index) => {
        const node = args[index] as Node;
        const why = node.op !== "id"
          ? "argument must be a simple name"
          : names.has(node.args as string)
          ? `duplicate variable name: ${node.args}`
          : undefined;
        if (why !== undefined) {
          throw checker.createError("invalid_macro_argument", why, node);
        }
        names.add(node.args as string);
        return inner = inner.forkWithVariable(node.args as string, type);
      });
      const conditionOf = (node: Node) => {
        const found = checker.check(node, inner);
        if (found.kind === "dyn" || found.name === "bool") return found;
        throw checker.createError(
          "invalid_condition_type",
          `expected type 'bool' but found '${found.name}'`,
          node,
        );
      };
      if (filter) conditionOf(filter);
      bodyType = loop.condition
        ? conditionOf(bodyNode)
        : checker.check(bodyNode, inner);
      return loop.typeOf?.(checker, bodyType, key, type, ast) ??
        (loop.condition ? checker.getType("bool") : bodyType);
    },
    evaluate(evaluator: Evaluator, _: unknown, scope: Scope): unknown {
      const entries = entriesOf(evaluator.run(range, scope), rangeKey);
      const body: Body = (...values) => {
        let inner = scope;
        for (const [index, fork] of scopes.entries()) {
          inner = fork.reuse(inner).setIterValue(values[index], evaluator);
        }
        if (filter && !evaluator.run(filter, inner)) return LEFT_OUT;
        return loop.tolerant
          ? evaluator.tryEval(bodyNode, inner)
          : evaluator.run(bodyNode, inner);
      };
      return loop.run(entries, body, bodyType);
    },
  };
}

/** Entries of a list by index, or entries of a map by key. */
function entriesOf(range: unknown, keyType: Type | undefined): Entry[] {
  if (Array.isArray(range) || range instanceof Set) {
    return [...range].map((item, index) => [BigInt(index), item]);
  }
  if (range instanceof Map) return [...range];
  // The library evaluates a literal to an object, whose keys are texts.
  const keyOf = keyType?.name === "int"
    ? BigInt
    : keyType?.name === "bool"
    ? (key: string) => key === "true"
    : String;
  return Object.entries(range as object).map(([key, value]) =>
    [keyOf(key), value] as const
  );
}

function inserted(groups: readonly (readonly Entry[])[]): unknown {
  const map = new Map<unknown, unknown>();
  for (const [key, value] of groups.flat()) {
    if (value === LEFT_OUT) continue;
    if (map.has(key)) {
      throw new CelFailure(`insert failed: key ${key} already exists`);
    }
    map.set(key, value);
  }
  return map;
}

function quantifier(name: string, decisive: boolean): Loop {
  return {
    name,
    condition: true,
    tolerant: true,
    run(entries, body) {
      let failure: Error | undefined;
      for (const [key, value] of entries) {
        const holds = body(key, value);
        if (holds === decisive) return decisive;
        if (holds instanceof Error) failure ??= holds;
      }
      if (failure) throw failure;
      return !decisive;
    },
  };
}

function existsOne(name: string): Loop {
  return {
    name,
    condition: true,
    run: (entries, body) =>
      entries.filter(([key, value]) => body(key, value)).length === 1,
  };
}
