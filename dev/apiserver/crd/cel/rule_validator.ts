/**
 * CEL validation rules of custom resources: compilation of the rules of a schema,
 * evaluation within kube-apiserver's budget, and its estimate of costs. Must not
 * import storage, requests or HTTP.
 *
 * @module
 */
import {
  isJsonObject,
  type OpenApiSchema,
  ownValue,
  type StatusCause,
  type ValidationRule,
} from "@coracle/operator/internal";
import { fieldError } from "../../status.ts";

import { childPath, fieldOf, keyPath } from "../../validation/field_path.ts";
import { Correlation } from "../schema/correlation.ts";
import { CelError } from "../../cel/cel_errors.ts";
import type { Evaluation, Program } from "../../cel/evaluator.ts";
import { Optional } from "../../cel/values.ts";
import { hasRules } from "./has_rules.ts";
import {
  CALL_LIMIT,
  type CompiledRule,
  compileNodeRules,
  COST_BUDGET,
  OUT_OF_BUDGET,
  usableMessage,
} from "./rule_compiler.ts";
import { asWritten, SchemaTypes, type SchemaValues } from "./schema_values.ts";
import { isFloat } from "../../exact_json.ts";

/** Options of a validation. */
export interface RuleOptions {
  /** Path of the value in the object. */
  readonly path?: string | undefined;
  /**
   * Correlation of new and old value of an update. Values that did not change may
   * violate rules that do not use the old value.
   */
  readonly correlation?: Correlation | undefined;
  /** Function that receives the violations of unchanged values, as warnings. */
  readonly warn?: ((text: string) => void) | undefined;
}

/** Compiled rules of a schema node and its nested nodes. */
interface RuleNode {
  readonly schema: OpenApiSchema;
  readonly values: SchemaValues;
  readonly rules: readonly CompiledRule[];
  readonly items?: RuleNode | undefined;
  readonly others?: RuleNode | undefined;
  readonly properties: ReadonlyMap<string, RuleNode>;
}

/** Validator with the compiled CEL rules of a schema. */
export class RuleValidator {
  readonly #root: RuleNode;

  /** Creates a validator of compiled rules; see {@linkcode compileRules}. */
  constructor(root: RuleNode) {
    this.#root = root;
  }

  /**
   * Evaluates the rules; returns the violations.
   *
   * @param value New value, with its defaults.
   * @param old Old value of an update; undefined on create. Transition rules
   * run only with an old value.
   */
  validate(
    value: unknown,
    old: unknown,
    { path = "", correlation, warn }: RuleOptions = {},
  ): StatusCause[] {
    const run = new RuleRun(warn);
    run.node(this.#root, value, old, {
      path,
      correlation,
      ancestor: undefined,
      root: true,
    });
    return run.causes;
  }
}

/**
 * Compiles the CEL rules of a schema; returns undefined if it has none.
 *
 * @param root Whether the schema is that of a whole object.
 */
export function compileRules(
  schema: OpenApiSchema,
  root: boolean,
): RuleValidator | undefined {
  if (!hasRules(schema)) return undefined;
  const types = new SchemaTypes();
  types.of(schema, root);
  const node = ruleNode(schema, types);
  return node && new RuleValidator(node);
}

/** Compiles a node; returns undefined if neither it nor a nested node has rules. */
function ruleNode(
  schema: OpenApiSchema | undefined,
  types: SchemaTypes,
): RuleNode | undefined {
  const values = schema && types.of(schema);
  if (!values || !hasRules(schema)) return undefined;
  const { additionalProperties: others } = schema;
  const properties = new Map<string, RuleNode>();
  for (const [name, property] of Object.entries(schema.properties ?? {})) {
    const node = ruleNode(property, types);
    if (node) properties.set(name, node);
  }
  return {
    schema,
    values,
    rules: compileNodeRules(schema, values.type),
    items: ruleNode(schema.items, types),
    others: typeof others === "object" ? ruleNode(others, types) : undefined,
    properties,
  };
}

/** Variables of a rule. */
interface RuleVariables extends Readonly<Record<string, unknown>> {
  readonly self: unknown;
  readonly oldSelf: unknown;
}

/** Position of the value being validated. */
interface RulePosition {
  readonly path: string;
  readonly correlation: Correlation | undefined;
  /** Correlation of the nearest ancestor that has an old value. */
  readonly ancestor: Correlation | undefined;
  readonly root: boolean;
}

/** State of one validation by CEL rules. */
class RuleRun {
  readonly causes: StatusCause[] = [];
  readonly #warn: ((text: string) => void) | undefined;
  #budget = COST_BUDGET;

  constructor(warn: ((text: string) => void) | undefined) {
    this.#warn = warn;
  }

  node(
    node: RuleNode,
    value: unknown,
    old: unknown,
    position: RulePosition,
  ): void {
    if (value === null || value === undefined || this.#budget < 0) return;
    if (node.rules.length > 0) this.#rules(node, value, old, position);
    if (Array.isArray(value)) this.#list(node, value, old, position);
    else if (isJsonObject(value)) this.#fields(node, value, old, position);
  }

  #list(
    node: RuleNode,
    value: readonly unknown[],
    old: unknown,
    position: RulePosition,
  ): void {
    if (node.items === undefined) return;
    const pairs = Array.isArray(old)
      ? new Correlation(value, old, node.schema)
      : undefined;
    for (const [index, item] of value.entries()) {
      this.node(
        node.items,
        asWritten(value, index, item),
        pairs?.index(index)?.old,
        {
          ...below(position, position.correlation?.index(index)),
          path: keyPath(position.path, index),
        },
      );
    }
  }

  #fields(
    node: RuleNode,
    value: Record<string, unknown>,
    old: unknown,
    position: RulePosition,
  ): void {
    for (const [name, field] of Object.entries(value)) {
      const inner = node.properties.get(name) ?? node.others;
      if (inner === undefined) continue;
      const before = isJsonObject(old) ? ownValue(old, name) : undefined;
      this.node(inner, asWritten(value, name, field), before, {
        ...below(position, position.correlation?.key(name)),
        path: node.properties.has(name)
          ? childPath(position.path, name)
          : keyPath(position.path, name),
      });
    }
  }

  #rules(
    node: RuleNode,
    value: unknown,
    old: unknown,
    position: RulePosition,
  ): void {
    const type = node.schema.type ?? "";
    const field = fieldOf(position.path);
    const self = node.values.convert(value);
    const oldSelf = old === undefined || old === null
      ? undefined
      : node.values.convert(old);
    for (const compiled of node.rules) {
      const { rule, program, error, usesOldSelf } = compiled;
      if (program === undefined) {
        const why = `rule compile error: ${error ?? ""}`;
        this.causes.push(fieldError.invalid(field, type, why));
        continue;
      }
      const optional = rule.optionalOldSelf === true;
      if (usesOldSelf && oldSelf === undefined && !optional) continue;
      const variables = {
        self,
        oldSelf: optional ? optionalOf(oldSelf) : oldSelf,
      };
      const shown = isFloat(value) ? Number(value.description) : value;
      this.#evaluate(compiled, variables, { position, type, value: shown });
      if (this.#budget < 0) return;
    }
  }

  /** Evaluates an expression, and takes its cost from the budget. */
  #run(program: Program, variables: RuleVariables): Evaluation {
    const evaluation = program(variables, CALL_LIMIT);
    this.#budget -= evaluation.exceeded ? Infinity : evaluation.cost;
    return evaluation;
  }

  #evaluate(
    { rule, program, message, usesOldSelf, fieldPath }: CompiledRule,
    variables: RuleVariables,
    { position, type, value }: {
      readonly position: RulePosition;
      readonly type: string;
      readonly value: unknown;
    },
  ): void {
    if (program === undefined) return;
    const field = fieldOf(position.path);
    const { value: holds, exceeded } = this.#run(program, variables);
    if (holds instanceof CelError) {
      const { message: text } = holds;
      const why = exceeded
        ? `'${text}': no further validation rules will be run due to call cost exceeds limit for rule: ${
          shownRule(rule)
        }`
        : text.startsWith("no such overload")
        ? `'no such overload': call arguments did not match a supported operator, function or macro signature for rule: ${
          shownRule(rule)
        }`
        : `${text} evaluating rule: ${shownRule(rule)}`;
      this.causes.push(fieldError.invalid(field, type, why));
      return;
    }
    if (this.#budget < 0) {
      this.causes.push(fieldError.invalid(field, type, OUT_OF_BUDGET));
      return;
    }
    if (holds === true) return;
    const detail = message === undefined
      ? messageOf(rule)
      : usableMessage(this.#run(message, variables).value) ?? messageOf(rule);
    const at = fieldPath === ""
      ? position.path
      : fieldPath.startsWith("[")
      ? `${position.path}${fieldPath}`
      : childPath(position.path, fieldPath);
    const cause = causeFor(rule.reason, fieldOf(at), { value, detail });
    const known = position.correlation ?? position.ancestor;
    if (!usesOldSelf && known?.unchanged) {
      this.#warn?.(`${cause.field}: ${cause.message}`);
    } else this.causes.push(cause);
  }
}

function below(
  position: RulePosition,
  correlation: Correlation | undefined,
): Omit<RulePosition, "path"> {
  return {
    correlation,
    ancestor: position.correlation ?? position.ancestor,
    root: false,
  };
}

function optionalOf(value: unknown): Optional {
  return value === undefined ? Optional.NONE : Optional.of(value);
}

function shownRule({ rule, message }: ValidationRule): string {
  return (message || rule).trim();
}

function messageOf(rule: ValidationRule): string {
  return rule.message?.trim() || `failed rule: ${shownRule(rule)}`;
}

function causeFor(
  reason: ValidationRule["reason"],
  field: string,
  { value, detail }: { readonly value: unknown; readonly detail: string },
): StatusCause {
  switch (reason) {
    case "FieldValueForbidden":
      return fieldError.forbidden(field, detail);
    case "FieldValueRequired":
      return fieldError.required(field, detail);
    case "FieldValueDuplicate": {
      const cause = fieldError.duplicate(field, value);
      return isNested(value) ? { ...cause, message: "Duplicate value" } : cause;
    }
    default: {
      const cause = fieldError.invalid(field, value, detail);
      return isNested(value)
        ? { ...cause, message: `Invalid value: ${detail}` }
        : cause;
    }
  }
}

/** Whether a value is an object or a list; messages omit such values, as they may be long. */
function isNested(value: unknown): boolean {
  return typeof value === "object" && value !== null;
}
