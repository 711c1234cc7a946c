import type { OpenApiSchema, StatusCause } from "@coracle/operator/internal";
import { fieldError } from "../../status.ts";
import { times, UNBOUNDED } from "../../cel/size_range.ts";

/** Maximum cost of one expression, over all values of an object. */
const EXPRESSION_LIMIT = 10_000_000;

/** Maximum total cost of the expressions of a schema. */
const SCHEMA_LIMIT = 100_000_000;

/** Maximum number of expensive expressions that are reported. */
const MAX_REPORTED = 4;

/** Accumulated costs of the rules of a schema. */
export class RuleCosts {
  /** Whether the limit for a single expression applies. */
  readonly #limited: boolean;
  readonly #mostExpensive: { readonly field: string; readonly cost: number }[] =
    [];
  #total = 0;

  /**
   * Creates an empty accumulator.
   *
   * @param limited Whether the limit for a single expression applies.
   */
  constructor(limited: boolean) {
    this.#limited = limited;
  }

  /**
   * Adds the cost of an expression; returns the violation of its limit.
   *
   * @param name Name of the expression in the message.
   */
  add(name: string, cost: number, field: string): StatusCause[] {
    this.#total = Math.min(this.#total + cost, UNBOUNDED);
    if (cost >= SCHEMA_LIMIT / 100) this.#mostExpensive.push({ field, cost });
    return this.#limited && cost > EXPRESSION_LIMIT
      ? [excess(`estimated ${name} cost`, cost, {
        limit: EXPRESSION_LIMIT,
        field,
      })]
      : [];
  }

  /**
   * Checks the total cost; returns the violations.
   *
   * @param field Path of the schema.
   */
  totalCauses(field: string): StatusCause[] {
    if (this.#total <= SCHEMA_LIMIT) return [];
    const mostExpensive = this.#mostExpensive.toSorted((a, b) =>
      b.cost - a.cost
    );
    return [
      ...mostExpensive.slice(0, MAX_REPORTED).map((expression) =>
        fieldError.forbidden(
          expression.field,
          "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema",
        )
      ),
      excess(
        "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema",
        this.#total,
        { limit: SCHEMA_LIMIT, field },
      ),
    ];
  }
}

/**
 * Maximum number of child values of each value of a node; undefined if no limit is
 * declared.
 */
export function maxValuesBelow(schema: OpenApiSchema): number | undefined {
  const { type, additionalProperties } = schema;
  const limit = type === "array"
    ? schema["maxItems"]
    : type === "object" && additionalProperties !== undefined
    ? schema["maxProperties"]
    : 1;
  return typeof limit === "number" ? Math.max(0, limit) : undefined;
}

/** Cost of an expression that is evaluated for several values. */
export function costOfAll(cost: number, values: number): number {
  return times(cost, values);
}

function excess(
  name: string,
  cost: number,
  { limit, field }: { readonly limit: number; readonly field: string },
): StatusCause {
  const ratio = cost / limit;
  const factor = ratio > 100
    ? "more than 100x"
    : `${ratio.toFixed(ratio < 1.5 ? 6 : 1)}x`;
  return fieldError.forbidden(
    field,
    `${name} exceeds budget by factor of ${factor} (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)`,
  );
}
