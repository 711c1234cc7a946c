import type { StatusCause } from "../../../core/api/api_error.ts";
import { fieldError } from "../../status.ts";

/** Where a value stands in an object, and what is wrong with it and below. */
export class Place {
  /** Such as `spec.containers[0]`; empty for the object itself. */
  readonly path: string;
  readonly #causes: StatusCause[];

  /**
   * @param path Where; empty for the object itself.
   * @param causes Where to write what is wrong.
   */
  constructor(path: string, causes: StatusCause[]) {
    this.path = path;
    this.#causes = causes;
  }

  /** The place of something below: `name`, `ports[0].name`, `[key]`. */
  at(below: string): Place {
    return new Place(this.#join(below), this.#causes);
  }

  #join(below: string): string {
    if (below === "" || this.path === "") return this.path + below;
    return below.startsWith("[")
      ? `${this.path}${below}`
      : `${this.path}.${below}`;
  }

  /** Whether anything is wrong so far with what is below, or in it. */
  hasProblems(below: string): boolean {
    const path = this.#join(below);
    return this.#causes.some(({ field = "" }) =>
      field === path || field.startsWith(`${path}.`) ||
      field.startsWith(`${path}[`)
    );
  }

  /** Something has to be there. */
  required(below: string, why = ""): void {
    this.#causes.push(fieldError.required(this.#join(below), why));
  }

  /** A value is not right. */
  invalid(below: string, value: unknown, why: string): void {
    this.#causes.push(fieldError.invalid(this.#join(below), value, why));
  }

  /** A value is not right, which Go shows otherwise than its JSON tells. */
  invalidShown(below: string, shown: string, why: string): void {
    this.#causes.push({
      reason: "FieldValueInvalid",
      message: `Invalid value: ${shown}: ${why}`,
      field: this.#join(below),
    });
  }

  /** What is here is not right; its value is not shown. */
  invalidAs(why: string): void {
    this.#causes.push({
      reason: "FieldValueInvalid",
      message: `Invalid value: ${why}`,
      field: this.path,
    });
  }

  /** Every one of some problems with a value. */
  problems(below: string, value: unknown, problems: readonly string[]): void {
    for (const problem of problems) this.invalid(below, value, problem);
  }

  /** A value is none of those to choose from. */
  notSupported(
    below: string,
    value: unknown,
    supported: readonly string[],
  ): void {
    this.#causes.push(
      fieldError.notSupported(this.#join(below), value, supported),
    );
  }

  /** Something may not be there, or not so. */
  forbidden(below: string, why: string): void {
    this.#causes.push(fieldError.forbidden(this.#join(below), why));
  }

  /** A value is there twice. */
  duplicate(below: string, value: unknown): void {
    this.#causes.push(fieldError.duplicate(this.#join(below), value));
  }

  /** What is here is there twice, which Go shows otherwise than its JSON tells. */
  duplicateShown(shown: string): void {
    this.#causes.push({
      reason: "FieldValueDuplicate",
      message: `Duplicate value: ${shown}`,
      field: this.path,
    });
  }

  /** Something that is named is not there. */
  notFound(below: string, value: unknown): void {
    this.#causes.push(fieldError.notFound(this.#join(below), value));
  }

  /** A value has more bytes than it may. */
  tooLong(below: string, limit: number): void {
    this.#causes.push(fieldError.tooLong(this.#join(below), limit));
  }

  /** Each of some numbers must not be less than zero. */
  notNegative<T extends object>(
    value: T,
    ...fields: (keyof T & string)[]
  ): void {
    for (const field of fields) {
      const number: unknown = value[field];
      if (typeof number === "number" && number < 0) {
        this.invalid(field, number, "must be greater than or equal to 0");
      }
    }
  }
}

/** What is checked of a struct, where it stands. */
export type ValidationRule = (value: never, place: Place) => void;

/** A rule for a definition, and whether it waits for what is below. */
export type DefinitionRule = readonly [
  definition: string,
  rule: ValidationRule,
  when?: "after" | undefined,
];

/** Rules by the definition that they are for, without `io.k8s.`. */
export type ValidationRules = readonly DefinitionRule[];

/** One entry of {@linkcode ValidationRules}, whose function is checked. */
export function check<T>(
  definition: string,
  rule: (value: T, place: Place) => void,
  when?: "after",
): DefinitionRule {
  return [definition, rule as ValidationRule, when];
}
