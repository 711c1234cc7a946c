import type { Problem } from "./cel_errors.ts";
import {
  BOOL,
  BYTES,
  type CelType,
  DOUBLE,
  DYN,
  ERROR,
  INT,
  listOf,
  mapOf,
  mostGeneral,
  NULL,
  optionalOf,
  optionalValue,
  sameType,
  STRING,
  TypeMapping,
  typeOfType,
  typeText,
  UINT,
} from "./cel_type.ts";
import {
  type CallNode,
  type ExpressionNode,
  type FoldNode,
  type IdentNode,
  type ListNode,
  type MapNode,
  qualifiedName,
  type SelectNode,
  type StructNode,
  walk,
} from "./expression.ts";
import type { FunctionTable, Overload } from "./function_declaration.ts";
import { typeNameOf, TypeValue } from "./values.ts";

/** Names that expressions can use. */
export interface Scope {
  /** Types of variables by name; names of qualified variables have dots. */
  readonly variables: ReadonlyMap<string, CelType>;
  readonly functions: FunctionTable;
  /** Type by its name; undefined if none exists. */
  type(name: string): CelType | undefined;
  /** Text of a type in messages; that of its name by default. */
  readonly typeText?: ((type: CelType) => string) | undefined;
}

/** Type of a literal value. */
const LITERALS: Readonly<Record<string, CelType>> = {
  bool: BOOL,
  bytes: BYTES,
  double: DOUBLE,
  int: INT,
  null_type: NULL,
  string: STRING,
  uint: UINT,
};

/**
 * Checks the types of an expression, and notes them at its nodes.
 *
 * @returns Problems, with cel-go's messages.
 */
export function check(root: ExpressionNode, scope: Scope): readonly Problem[] {
  const checker = new Checker(scope);
  checker.check(root);
  checker.finish(root);
  return checker.problems;
}

class Checker {
  readonly problems: Problem[] = [];
  readonly #scope: Scope;
  readonly #mapping: TypeMapping = new TypeMapping();
  /** Variables of the enclosing comprehensions, innermost last. */
  readonly #locals: (readonly [name: string, type: CelType])[] = [];
  #typeVariables = 0;

  constructor(scope: Scope) {
    this.#scope = scope;
  }

  /** Replaces type parameters in the types of all nodes. */
  finish(root: ExpressionNode): void {
    walk(root, (node) => {
      node.type = this.#mapping.resolve(node.type ?? DYN, DYN);
    });
  }

  check(node: ExpressionNode): void {
    node.type = this.#typeOf(node);
  }

  #typeOf(node: ExpressionNode): CelType {
    switch (node.kind) {
      case "literal":
        return LITERALS[typeNameOf(node.value)] ?? DYN;
      case "ident":
        return this.#ident(node);
      case "select":
        return this.#select(node);
      case "call":
        return this.#call(node);
      case "list":
        return this.#list(node);
      case "map":
        return this.#map(node);
      case "struct":
        return this.#struct(node);
      case "fold":
        return this.#fold(node);
    }
  }

  #problem(at: number, message: string): void {
    this.problems.push({ at, message });
  }

  #text(type: CelType): string {
    const text = this.#scope.typeText ?? typeText;
    return text(type);
  }

  #undeclared(at: number, name: string): CelType {
    this.#problem(at, `undeclared reference to '${name}' (in container '')`);
    return ERROR;
  }

  #mismatch(at: number, expected: CelType, found: CelType): void {
    this.#problem(
      at,
      `expected type '${this.#text(expected)}' but found '${
        this.#text(found)
      }'`,
    );
  }

  /** Variable or type of a name; undefined if none exists. */
  #lookUp(
    name: string,
  ): { readonly type: CelType; readonly constant?: unknown } | undefined {
    const plain = name.replace(/^\./, "");
    if (plain === name) {
      const local = this.#locals.findLast(([known]) => known === name);
      if (local) return { type: local[1] };
    }
    const variable = this.#scope.variables.get(plain);
    if (variable) return { type: variable };
    const type = this.#scope.type(plain);
    return type && {
      type: typeOfType(type),
      constant: new TypeValue(type.name),
    };
  }

  #ident(node: IdentNode): CelType {
    const found = this.#lookUp(node.name);
    if (found === undefined) return this.#undeclared(node.at, node.name);
    node.name = node.name.replace(/^\./, "");
    if (found.constant !== undefined) node.constant = found.constant;
    return found.type;
  }

  #select(node: SelectNode): CelType {
    const name = qualifiedName(node);
    const found = name === undefined ? undefined : this.#lookUp(name);
    if (name !== undefined && found !== undefined) {
      node.qualified = {
        kind: "ident",
        name: name.replace(/^\./, ""),
        at: node.at,
        ...found,
      };
      return found.type;
    }
    this.check(node.operand);
    const type = this.#field(node.at, node.operand, node.field, false);
    return node.test ? BOOL : this.#mapping.resolve(type);
  }

  #field(
    at: number,
    operand: ExpressionNode,
    field: string,
    optional: boolean,
  ): CelType {
    const type = this.#mapping.resolve(operand.type ?? DYN);
    const inner = optionalValue(type);
    const result = this.#fieldOf(at, inner ?? type, field);
    return inner !== undefined || optional ? optionalOf(result) : result;
  }

  #fieldOf(at: number, type: CelType, field: string): CelType {
    switch (type.kind) {
      case "map":
        return type.params[1] ?? DYN;
      case "struct": {
        if (type.field === undefined) {
          this.#problem(at, `unexpected failed resolution of '${type.name}'`);
          return ERROR;
        }
        const found = type.field(field);
        if (found) return found;
        this.#problem(at, `undefined field '${field}'`);
        return ERROR;
      }
      case "param":
        this.#mapping.assign(DYN, type);
        return DYN;
      case "dyn":
      case "error":
        return DYN;
      default:
        this.#problem(
          at,
          `type '${this.#text(type)}' does not support field selection`,
        );
        return DYN;
    }
  }

  #call(node: CallNode): CelType {
    const { name, args, target, at } = node;
    if (name === "_?._") {
      const [operand, field] = args as [ExpressionNode, ExpressionNode];
      this.check(operand);
      field.type = STRING;
      const text = field.kind === "literal" ? String(field.value) : "";
      return this.#mapping.resolve(this.#field(at, operand, text, true));
    }
    for (const arg of args) this.check(arg);
    const { functions } = this.#scope;
    if (target === undefined) {
      const plain = name.replace(/^\./, "");
      const overloads = functions.get(plain);
      if (overloads === undefined) return this.#undeclared(at, name);
      node.name = plain;
      return this.#resolve(node, overloads);
    }
    const prefix = qualifiedName(target)?.replace(/^\./, "");
    const qualified = prefix === undefined
      ? undefined
      : functions.get(`${prefix}.${name}`);
    if (qualified) {
      node.name = `${prefix}.${name}`;
      node.target = undefined;
      return this.#resolve(node, qualified);
    }
    this.check(target);
    const overloads = functions.get(name);
    return overloads === undefined
      ? this.#undeclared(at, name)
      : this.#resolve(node, overloads);
  }

  /** Type of a call by the overloads that fit its arguments, which it notes. */
  #resolve(node: CallNode, overloads: readonly Overload[]): CelType {
    const { name, target, args, at } = node;
    if (name === "_&&_" || name === "_||_") {
      const wrong = args.filter((arg) =>
        !this.#mapping.assign(arg.type ?? DYN, BOOL)
      );
      for (const arg of wrong) this.#mismatch(arg.at, BOOL, arg.type ?? DYN);
      node.overloads = overloads;
      return wrong.length > 0 ? ERROR : BOOL;
    }
    const types = [...target ? [target] : [], ...args]
      .map(({ type }) => type ?? DYN);
    let result: CelType | undefined;
    const fitting: Overload[] = [];
    for (const overload of overloads) {
      if (overload.method !== (target !== undefined)) continue;
      const fresh = this.#instance(overload);
      if (!this.#mapping.assignAll(types, fresh.params)) continue;
      fitting.push(overload);
      const type = this.#mapping.resolve(fresh.result);
      if (result === undefined) result = type;
      else if (result.kind !== "dyn" && !sameType(type, result)) result = DYN;
    }
    if (result !== undefined) {
      node.overloads = fitting;
      node.declared = overloads;
      return result;
    }
    const texts = types.map((type) =>
      this.#text(this.#mapping.resolve(type, DYN))
    );
    const receiver = target === undefined ? "" : `${texts.shift()}.`;
    this.#problem(
      at,
      `found no matching overload for '${name}' applied to '${receiver}(${
        texts.join(", ")
      })'`,
    );
    return ERROR;
  }

  /** Types of an overload with type parameters of its own. */
  #instance({ params, result, typeParams }: Overload): {
    readonly params: readonly CelType[];
    readonly result: CelType;
  } {
    if (typeParams.length === 0) return { params, result };
    const own = new Map(
      typeParams.map((name) => [name, this.#typeVariable()] as const),
    );
    const replaced = (type: CelType): CelType =>
      type.kind === "param"
        ? own.get(type.name) ?? type
        : { ...type, params: type.params.map(replaced) };
    return { params: params.map(replaced), result: replaced(result) };
  }

  #typeVariable(): CelType {
    return { kind: "param", name: `_var${this.#typeVariables++}`, params: [] };
  }

  /** Type of an element of a literal; that of the value of an optional one. */
  #element(node: ExpressionNode, optional: boolean): CelType {
    const type = node.type ?? DYN;
    if (!optional) return type;
    const value = optionalValue(type);
    if (value === undefined && type.kind !== "dyn") {
      this.#mismatch(node.at, optionalOf(type), type);
    }
    return value ?? type;
  }

  /** Common type of the elements of a literal. */
  #join(before: CelType | undefined, type: CelType): CelType {
    if (before === undefined) return type;
    return this.#mapping.assign(before, type) ? mostGeneral(before, type) : DYN;
  }

  #list({ items, optional }: ListNode): CelType {
    let type: CelType | undefined;
    for (const [index, item] of items.entries()) {
      this.check(item);
      type = this.#join(type, this.#element(item, optional.has(index)));
    }
    return listOf(type ?? this.#typeVariable());
  }

  #map({ entries }: MapNode): CelType {
    let keys: CelType | undefined;
    let values: CelType | undefined;
    for (const { key, value, optional } of entries) {
      this.check(key);
      keys = this.#join(keys, key.type ?? DYN);
      this.check(value);
      values = this.#join(values, this.#element(value, optional));
    }
    return mapOf(
      keys ?? this.#typeVariable(),
      values ?? this.#typeVariable(),
    );
  }

  #struct({ name, fields, at }: StructNode): CelType {
    const found = this.#lookUp(name);
    if (found === undefined) {
      this.#undeclared(at, name);
      return ERROR;
    }
    const type = found.type.kind === "type" ? found.type.params[0] : undefined;
    const result = type?.kind === "struct" ? type : ERROR;
    if (type === undefined) this.#problem(at, `'${name}' is not a type`);
    else if (result === ERROR) {
      this.#problem(at, `'${type.name}' is not a message type`);
    }
    for (const { name: field, value, optional, at } of fields) {
      this.check(value);
      const expected = this.#fieldOf(at, result, field);
      const given = this.#element(value, optional);
      if (!this.#mapping.assign(expected, given)) {
        this.#problem(
          at,
          `expected type of field '${field}' is '${
            this.#text(expected)
          }' but provided type is '${this.#text(given)}'`,
        );
      }
    }
    return result;
  }

  #fold(node: FoldNode): CelType {
    this.check(node.range);
    this.check(node.initial);
    const range = this.#mapping.resolve(node.range.type ?? DYN);
    const initial = node.initial.type ?? DYN;
    const outer = this.#locals.length;
    this.#locals.push([node.accumulator, initial]);
    const inner = this.#locals.length;
    const [first, second] = this.#variables(node, range);
    this.#locals.push([node.variable, first]);
    if (node.variable2 !== undefined) {
      this.#locals.push([node.variable2, second]);
    }
    this.check(node.condition);
    this.#assert(node.condition, BOOL);
    this.check(node.step);
    this.#assert(node.step, initial);
    this.#locals.length = inner;
    this.check(node.result);
    this.#locals.length = outer;
    return this.#mapping.resolve(node.result.type ?? DYN);
  }

  /** Types of the variables of a comprehension over a range. */
  #variables(
    { range, variable2 }: FoldNode,
    type: CelType,
  ): readonly [CelType, CelType] {
    const two = variable2 !== undefined;
    switch (type.kind) {
      case "list": {
        const [item = DYN] = type.params;
        return two ? [INT, item] : [item, DYN];
      }
      case "map":
        return [type.params[0] ?? DYN, type.params[1] ?? DYN];
      case "dyn":
      case "error":
      case "param":
        this.#mapping.assign(DYN, type);
        return [DYN, DYN];
      default:
        this.#problem(
          range.at,
          `expression of type '${
            this.#text(type)
          }' cannot be range of a comprehension (must be list, map, or dynamic)`,
        );
        return [ERROR, ERROR];
    }
  }

  #assert(node: ExpressionNode, type: CelType): void {
    const found = node.type ?? DYN;
    if (!this.#mapping.assign(type, found)) {
      this.#mismatch(node.at, type, found);
    }
  }
}
