import { callCost, LIST_COST, MAP_COST, MESSAGE_COST } from "./actual_costs.ts";
import { type Attribute, type Qualifier, resolver } from "./attribute.ts";
import {
  CelError,
  CelFailure,
  CostExceeded,
  NO_SUCH_OVERLOAD,
} from "./cel_errors.ts";
import { charge, type Run, type Step } from "./evaluation_step.ts";
import type {
  CallNode,
  ExpressionNode,
  FoldNode,
  IdentNode,
  ListNode,
  MapNode,
  SelectNode,
  StructNode,
} from "./expression.ts";
import { MAP_INSERT } from "./macros.ts";
import { called, invoke, isOne } from "./overload_call.ts";
import { pattern } from "./pattern.ts";
import { isComputedQuantity } from "./quantity_functions.ts";
import {
  equal,
  isMap,
  MessageValue,
  Optional,
  typeNameOf,
  Uint,
  ValueMap,
} from "./values.ts";

/** Result of an evaluation. */
export interface Evaluation {
  /** Value; an error if the evaluation failed. */
  readonly value: unknown;
  /** What the evaluation cost, in the units of Kubernetes. */
  readonly cost: number;
  /** Whether the evaluation ended because it cost too much. */
  readonly exceeded: boolean;
}

/** Expression that can be evaluated. */
export type Program = (
  variables: Readonly<Record<string, unknown>>,
  limit?: number,
) => Evaluation;

/**
 * Makes a checked expression ready for evaluation; constant parts are evaluated.
 *
 * @throws {CelFailure} If a constant part fails.
 */
export function plan(root: ExpressionNode): Program {
  const planner = new Planner();
  const { step } = planner.plan(root);
  const slots = planner.slotCount;
  return (variables, limit = Infinity) => {
    const run: Run = {
      variables,
      slots: new Array(slots).fill(UNSET),
      spent: 0,
      limit,
    };
    try {
      return { value: step(run), cost: run.spent, exceeded: false };
    } catch (error) {
      if (!(error instanceof CostExceeded)) throw error;
      const value = new CelError(error.message);
      return { value, cost: run.spent, exceeded: true };
    }
  };
}

/** Plan of a node. */
interface Plan {
  readonly step: Step;
  /** Value of a node that is constant. */
  readonly constant?: { readonly value: unknown };
  /** Variable or other value, with the selections from it. */
  readonly attribute?: Attribute;
}

/** Slot of a variable of a comprehension that is not yet set. */
const UNSET = Symbol("unset");

/** Variable of a comprehension. */
interface Local {
  readonly name: string;
  readonly slot: number;
  /** First value of an accumulator, which is computed when it is first read. */
  readonly initial?: Step;
  /** Whether the accumulator is a list or map of its own, to which steps add. */
  readonly own?: boolean;
}

/** Functions whose call with a constant is a constant. */
const CONVERSIONS: ReadonlySet<string> = new Set([
  "bool",
  "bytes",
  "double",
  "duration",
  "dyn",
  "int",
  "string",
  "timestamp",
  "type",
  "uint",
]);

/** Functions that compile a constant pattern once. */
const FINDS: ReadonlySet<string> = new Set(["find", "findAll", "matches"]);

class Planner {
  slotCount = 0;
  #locals: readonly Local[] = [];

  plan(node: ExpressionNode): Plan {
    switch (node.kind) {
      case "literal":
        return constant(node.value);
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

  #all(nodes: readonly ExpressionNode[]): Plan[] {
    return nodes.map((node) => this.plan(node));
  }

  #ident({ name, constant: value }: IdentNode): Plan {
    if (value !== undefined) return constant(value);
    const local = this.#local(name);
    const base: Step = local === undefined
      ? ({ variables }) => {
        const found = variables[name];
        return found === undefined
          ? new CelError(`no such attribute(s): ${name}`)
          : found;
      }
      : localStep(local);
    return attributePlan({ base, qualifiers: [], cost: 1 });
  }

  #local(name: string): Local | undefined {
    return this.#locals.findLast((local) => local.name === name);
  }

  #select({ operand, field, test, qualified }: SelectNode): Plan {
    if (qualified !== undefined) return this.#ident(qualified);
    const key = () => field;
    return this.#qualified(this.plan(operand), {
      key,
      optional: false,
      test,
    });
  }

  /** Value of a plan with a further selection. */
  #qualified(of: Plan, qualifier: Qualifier): Plan {
    const attribute: Attribute = of.attribute ??
      { base: of.step, qualifiers: [], cost: 1 };
    const qualifiers = [...attribute.qualifiers, qualifier];
    if (!qualifier.test) return attributePlan({ ...attribute, qualifiers });
    const resolve = resolver({ ...attribute, qualifiers });
    return {
      // The check for a field costs what leads to it.
      step: (run) => {
        const found = resolve(run);
        return found instanceof Optional ? found.value !== undefined : found;
      },
    };
  }

  #index([operand, index]: readonly ExpressionNode[], optional: boolean): Plan {
    const key = this.plan(index as ExpressionNode);
    if (key.constant) checkKey(key.constant.value);
    return this.#qualified(this.plan(operand as ExpressionNode), {
      key: key.constant === undefined && key.attribute
        ? resolver(key.attribute)
        : key.step,
      optional,
      test: false,
    });
  }

  #call(node: CallNode): Plan {
    const { name, args, target, overloads = [], declared = [] } = node;
    switch (name) {
      case "_&&_":
        return { step: logical(this.#all(args), false) };
      case "_||_":
        return { step: logical(this.#all(args), true) };
      case "_?_:_":
        return conditional(this.#all(args));
      case "_[_]":
        return this.#index(args, false);
      case "_[?_]":
      case "_?._":
        return this.#index(args, true);
      case "_==_":
      case "_!=_":
        return { step: equality(this.#all(args), name === "_==_") };
      case "@not_strictly_false": {
        const { step } = this.plan(args[0] as ExpressionNode);
        return {
          step: (run) => {
            const value = step(run);
            charge(run, 1);
            return value !== false;
          },
        };
      }
      case "or":
      case "orValue":
        if (target) return { step: orElse(this.#all([target, ...args]), name) };
        break;
      case "_+_":
      case MAP_INSERT: {
        const added = this.#addition(node);
        if (added) return { step: added };
      }
    }
    const plans = this.#all(target ? [target, ...args] : args);
    const [first, second] = plans;
    if (name === "@in" && overloads.length === 1 && second?.constant) {
      const member = membership(first as Plan, second.constant.value);
      if (member) return member;
    }
    if (FINDS.has(name)) checkPattern(second?.constant?.value);
    const step = called(
      name,
      overloads,
      plans.map(({ step }) => step),
      // Some functions are one for all types, whatever the checker knows.
      (args) => invoke(name, isOne(name) ? declared : overloads, args),
      plans.length > 2 || FINDS.has(name) && second?.constant !== undefined,
    );
    return CONVERSIONS.has(name) && plans.length === 1 && first?.constant
      ? folded(step)
      : { step };
  }

  /** Step that adds to an accumulator in place; undefined for other calls. */
  #addition({ name, args, overloads = [] }: CallNode): Step | undefined {
    const [accumulator, ...rest] = args;
    if (accumulator?.kind !== "ident") return undefined;
    const local = this.#local(accumulator.name);
    if (local?.own !== true) return undefined;
    const read = this.plan(accumulator).step;
    const values = this.#all(rest).map(({ step }) => step);
    return called(
      name,
      overloads,
      [read, ...values],
      ([before, ...given]) =>
        name === "_+_"
          ? appended(before as unknown[], given[0])
          : inserted(before as ValueMap, given),
    );
  }

  #list({ items, optional }: ListNode): Plan {
    const plans = this.#all(items);
    const steps = plans.map(({ step }) => step);
    const step: Step = (run) => {
      const values: unknown[] = [];
      for (const [index, one] of steps.entries()) {
        const value = one(run);
        if (value instanceof CelError) return value;
        if (!optional.has(index)) values.push(value);
        else if (!(value instanceof Optional)) {
          return new CelError(
            `cannot initialize optional list element from non-optional value ${
              String(value)
            }`,
          );
        } else if (value.value !== undefined) values.push(value.value);
      }
      return values;
    };
    return aggregate(plans, step, LIST_COST);
  }

  #map({ entries }: MapNode): Plan {
    const plans = entries.map(({ key, value, optional }) => ({
      key: this.plan(key),
      value: this.plan(value),
      optional,
    }));
    const step: Step = (run) => {
      const map = new ValueMap();
      for (const { key, value, optional } of plans) {
        const name = key.step(run);
        if (name instanceof CelError) return name;
        const given = value.step(run);
        const wrong = entry(
          given,
          optional,
          String(name),
          (one) => map.set(name, one),
          () => map.delete(name),
        );
        if (wrong) return wrong;
      }
      return map;
    };
    return aggregate(
      plans.flatMap(({ key, value }) => [key, value]),
      step,
      MAP_COST,
    );
  }

  #struct({ name, fields }: StructNode): Plan {
    const plans = fields.map((field) => ({
      ...field,
      step: this.plan(field.value).step,
    }));
    const typeName = name.replace(/^\./, "");
    return {
      step: (run) => {
        const values = new Map<string, unknown>();
        for (const { name, step, optional } of plans) {
          const wrong = entry(
            step(run),
            optional,
            name,
            (one) => values.set(name, one),
            () => values.delete(name),
          );
          if (wrong) return wrong;
        }
        charge(run, MESSAGE_COST);
        return new MessageValue(typeName, values);
      },
    };
  }

  #fold(node: FoldNode): Plan {
    const range = this.plan(node.range).step;
    const initial = this.plan(node.initial).step;
    const outer = this.#locals;
    const own =
      node.initial.kind === "list" && node.initial.items.length === 0 ||
      node.initial.kind === "map" && node.initial.entries.length === 0;
    const accumulator: Local = {
      name: node.accumulator,
      slot: this.slotCount++,
      initial,
      own,
    };
    const first: Local = { name: node.variable, slot: this.slotCount++ };
    const second: Local = {
      name: node.variable2 ?? "",
      slot: this.slotCount++,
    };
    this.#locals = [...outer, accumulator, first, second];
    const condition = this.plan(node.condition).step;
    const step = this.plan(node.step).step;
    this.#locals = [...outer, accumulator];
    const result = this.plan(node.result).step;
    this.#locals = outer;
    const two = node.variable2 !== undefined;
    return {
      step: (run) => {
        const { slots } = run;
        const over = range(run);
        if (over instanceof CelError) return over;
        const items = itemsOf(over, two);
        if (items instanceof CelError) return items;
        slots[accumulator.slot] = UNSET;
        for (const [index, item] of items.entries()) {
          if (two) {
            [slots[first.slot], slots[second.slot]] = isMap(over)
              ? [item, over.find(item)]
              : [BigInt(index), item];
          } else slots[first.slot] = item;
          if (condition(run) === false) break;
          slots[accumulator.slot] = step(run);
        }
        return result(run);
      },
    };
  }
}

/** @throws {CelFailure} If a constant cannot be a key. */
function checkKey(key: unknown): void {
  if (key === null || (typeof key === "object" && !(key instanceof Uint))) {
    throw new CelFailure(`invalid qualifier type: ${goType(key)}`);
  }
}

/** @throws {CelFailure} If a constant pattern is invalid. */
function checkPattern(source: unknown): void {
  const problem = typeof source === "string"
    ? pattern(source).problem
    : undefined;
  if (problem !== undefined) throw new CelFailure(problem);
}

function constant(value: unknown): Plan {
  return { step: () => value, constant: { value } };
}

/**
 * Plan of a call with constants.
 *
 * @throws {CelFailure} If the call fails.
 */
function folded(step: Step): Plan {
  const value = step({
    variables: {},
    slots: [],
    spent: 0,
    limit: Infinity,
  });
  if (value instanceof CelError) throw new CelFailure(value.message);
  return constant(value);
}

/** Plan of a list or map, which is constant if its parts are. */
function aggregate(parts: readonly Plan[], step: Step, cost: number): Plan {
  return parts.every(({ constant }) => constant !== undefined)
    ? folded(step)
    : {
      step: (run) => {
        const value = step(run);
        charge(run, cost);
        return value;
      },
    };
}

/** Sets an entry, or leaves an absent optional one out; returns what is wrong. */
function entry(
  value: unknown,
  optional: boolean,
  name: string,
  set: (value: unknown) => void,
  remove: () => void,
): CelError | undefined {
  if (value instanceof CelError) return value;
  if (!optional) set(value);
  else if (!(value instanceof Optional)) {
    return new CelError(
      `cannot initialize optional entry '${name}' from non-optional value ${
        String(value)
      }`,
    );
  } else if (value.value === undefined) remove();
  else set(value.value);
  return undefined;
}

function localStep({ slot, initial, own }: Local): Step {
  if (initial === undefined) return ({ slots }) => slots[slot];
  return (run) => {
    const { slots } = run;
    if (slots[slot] === UNSET) {
      const value = initial(run);
      slots[slot] = own !== true
        ? value
        : Array.isArray(value)
        ? []
        : new ValueMap();
    }
    return slots[slot];
  };
}

function attributePlan(attribute: Attribute): Plan {
  const resolve = resolver(attribute);
  const { cost } = attribute;
  return {
    attribute,
    step: cost === 0 ? resolve : (run) => {
      const value = resolve(run);
      charge(run, cost);
      return value;
    },
  };
}

/** Operands of a logical operator; `decisive` is the value that ends it. */
function logical(plans: readonly Plan[], decisive: boolean): Step {
  const steps = plans.map(({ step }) => step);
  return (run) => {
    let error: CelError | undefined;
    for (const step of steps) {
      const value = step(run);
      if (value === decisive) return decisive;
      if (value === !decisive) continue;
      error ??= value instanceof CelError ? value : NO_SUCH_OVERLOAD;
    }
    return error ?? !decisive;
  };
}

function conditional(plans: readonly Plan[]): Plan {
  const [condition, yes, no] = plans as [Plan, Plan, Plan];
  const branch = ({ attribute, step }: Plan) =>
    attribute ? resolver(attribute) : step;
  const [then, otherwise] = [branch(yes), branch(no)];
  return attributePlan({
    base: (run) => {
      const value = condition.step(run);
      if (value === true) return then(run);
      if (value === false) return otherwise(run);
      return value instanceof CelError ? value : NO_SUCH_OVERLOAD;
    },
    qualifiers: [],
    cost: 0,
  });
}

function equality(plans: readonly Plan[], positive: boolean): Step {
  const [left, right] = plans as [Plan, Plan];
  const name = positive ? "_==_" : "_!=_";
  return (run) => {
    const a = left.step(run);
    const b = right.step(run);
    const result = a instanceof CelError
      ? a
      : b instanceof CelError
      ? b
      : isComputedQuantity(b)
      ? NO_SUCH_OVERLOAD
      : equal(a, b) === positive;
    charge(run, callCost(name, [], [a, b], result));
    return result;
  };
}

/** `or()` and `orValue()`, whose argument is evaluated only if it is needed. */
function orElse(plans: readonly Plan[], name: string): Step {
  const [left, right] = plans as [Plan, Plan];
  return (run) => {
    const value = left.step(run);
    if (value instanceof CelError) return value;
    if (!(value instanceof Optional)) return NO_SUCH_OVERLOAD;
    if (value.value !== undefined) return name === "or" ? value : value.value;
    return right.step(run);
  };
}

function appended(list: unknown[], more: unknown): unknown {
  if (!Array.isArray(more)) return NO_SUCH_OVERLOAD;
  list.push(...more);
  return list;
}

function inserted(map: ValueMap, given: readonly unknown[]): unknown {
  const [more, value] = given;
  const entries = given.length === 2
    ? [[more, value] as const]
    : isMap(more)
    ? more.keys().map((key) => [key, more.find(key)] as const)
    : undefined;
  if (entries === undefined) return NO_SUCH_OVERLOAD;
  for (const [key, one] of entries) {
    if (map.find(key) !== undefined) {
      return new CelError(`insert failed: key ${String(key)} already exists`);
    }
    map.set(key, one);
  }
  return map;
}

/** Plan of `in` with a constant list, which costs nothing of its own. */
function membership(item: Plan, list: unknown): Plan | undefined {
  if (!Array.isArray(list)) return undefined;
  if (list.length === 0) return constant(false);
  const simple = list.every((one) =>
    typeof one !== "object" || one instanceof Uint
  );
  if (!simple) return undefined;
  const { step } = item;
  return {
    step: (run) => {
      const value = step(run);
      return value instanceof CelError
        ? value
        : list.some((one) => equal(one, value));
    },
  };
}

/** Items of a list or keys of a map, over which a comprehension goes. */
function itemsOf(range: unknown, two: boolean): readonly unknown[] | CelError {
  if (Array.isArray(range)) return range;
  if (isMap(range)) return range.keys();
  return new CelError(
    two
      ? `unsupported comprehension range type: ${goType(range)}`
      : `got '${goType(range)}', expected iterable type`,
  );
}

/** Name of the type of a value in cel-go, which some errors show. */
function goType(value: unknown): string {
  const name = typeNameOf(value).replace(/^google\.protobuf\./, "");
  return `types.${name.charAt(0).toUpperCase()}${name.slice(1)}`;
}
