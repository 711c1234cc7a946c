/**
 * Expressions in CEL on the requests of the API server, as policies and the match
 * conditions of webhooks have them.
 *
 * @module
 */
import type { Kind } from "../api/kind.ts";
import { shown, typeText } from "../api/options.ts";
import { objectSchemaOf } from "./check_status.ts";
import { checkExpression, wholeObject } from "./rule_checks.ts";

/** Name of a match condition: a qualified name, as Kubernetes has it. */
const NAME_REGEXP =
  /^(?:[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?\/)?[A-Za-z0-9](?:[-\w.]{0,61}[A-Za-z0-9])?$/;

/** Expression in a list of Kubernetes. */
export interface NamedExpression {
  readonly name: string;
  readonly expression: string;
}

/** Owner of expressions: the kind of the objects, and names for errors. */
export interface ExpressionOwner {
  readonly kind: Kind;
  /** Owner of the expressions, such as `the policy sizes`. */
  readonly subject: string;
  /** Name of the option that has them. */
  readonly option: string;
}

/**
 * Expressions by their names, as the lists of Kubernetes have them.
 *
 * @throws {TypeError} If a name is invalid, an expression is not a string, is
 * broken, or names a field that a kind of `defineKind` lacks.
 */
export function namedExpressions(
  given: Readonly<Record<string, string>>,
  { kind, subject, option }: ExpressionOwner,
): readonly NamedExpression[] {
  const refusal =
    `Cannot read the options of ${subject}: "${option}" must have`;
  return Object.entries(given).map(([name, expression]) => {
    if (!NAME_REGEXP.test(name)) {
      throw new TypeError(
        `${refusal} names of letters, digits, "-", "_" and ".": received ${
          shown(name)
        }`,
      );
    }
    if (typeof expression !== "string" || expression.trim() === "") {
      throw new TypeError(
        `${refusal} a CEL expression as "${name}": received ${
          expression === "" ? "an empty text" : typeText(expression)
        }`,
      );
    }
    checkRequestExpression(kind, expression, subject);
    return { name, expression };
  });
}

/**
 * Checks an expression on a request, as far as that is possible without a compiler.
 *
 * @throws {TypeError} As {@linkcode namedExpressions}.
 */
export function checkRequestExpression(
  kind: Kind,
  expression: string,
  subject: string,
): void {
  const schema = objectSchemaOf(kind);
  // The whole metadata is there, unlike for rules of a definition.
  const object = schema && {
    ...wholeObject(schema),
    properties: { ...wholeObject(schema).properties, metadata: {} },
  };
  const roots = object === undefined ? {} : { object, oldObject: object };
  checkExpression(expression, roots, `${kind.kind}, ${subject}`);
}
