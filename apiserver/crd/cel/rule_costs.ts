import type { StatusCause } from "../../../core/api/api_error.ts";
import type { OpenApiSchema } from "../../../core/patch/schema.ts";
import { fieldError } from "../../status.ts";
import { times, UNBOUNDED } from "./size_range.ts";

/** The most that one expression may cost, in all places of an object. */
const EXPRESSION_LIMIT = 10_000_000;

/** The most that all expressions of a schema may cost together. */
const SCHEMA_LIMIT = 100_000_000;

/** Only so many of the dearest expressions are told. */
const TOLD = 4;

/** The costs of all rules of a schema, as they are met. */
export class RuleCosts {
  /** Whether expressions are held to their limit, each for itself. */
  readonly #limited: boolean;
  readonly #dearest: { readonly field: string; readonly cost: number }[] = [];
  #total = 0;

  /** @param limited Whether each expression is held to a limit. */
  constructor(limited: boolean) {
    this.#limited = limited;
  }

  /**
   * Adds an expression.
   *
   * @param name What it is, as the message calls it.
   */
  add(name: string, cost: number, field: string): StatusCause[] {
    this.#total = Math.min(this.#total + cost, UNBOUNDED);
    if (cost >= SCHEMA_LIMIT / 100) this.#dearest.push({ field, cost });
    return this.#limited && cost > EXPRESSION_LIMIT
      ? [excess(`estimated ${name} cost`, cost, {
        limit: EXPRESSION_LIMIT,
        field,
      })]
      : [];
  }

  /**
   * What is wrong with all of them together.
   *
   * @param field Where the schema stands.
   */
  totalCauses(field: string): StatusCause[] {
    if (this.#total <= SCHEMA_LIMIT) return [];
    const dearest = this.#dearest.toSorted((a, b) => b.cost - a.cost);
    return [
      ...dearest.slice(0, TOLD).map((one) =>
        fieldError.forbidden(
          one.field,
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
 * How many values there may be of what is right below a node, for each value of
 * the node; undefined where no limit is declared.
 */
export function mostBelow(schema: OpenApiSchema): number | undefined {
  const { type, additionalProperties } = schema;
  const limit = type === "array"
    ? schema["maxItems"]
    : type === "object" && additionalProperties !== undefined
    ? schema["maxProperties"]
    : 1;
  return typeof limit === "number" ? Math.max(0, limit) : undefined;
}

/** The cost of an expression that may run for so many values. */
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
