/**
 * Validation that built-in and custom kinds share: field paths, names,
 * metadata, the language of rules and the formatting of values, with
 * kube-apiserver's messages. The rules of built-in kinds are in
 * `builtin/validation`, those of custom kinds in `crd`. Both import this
 * folder, which must not import them.
 *
 * @module
 */
import type { StatusCause } from "../../core/api/api_error.ts";
import { fieldError } from "../status.ts";

/**
 * Field of a cause that concerns the whole object. Other paths look like
 * `spec.list[0].map[key]`; the empty path is the whole object.
 */
export const ROOT_FIELD = "<nil>";

/** Path of a named field below another path. */
export function childPath(path: string, name: string): string {
  return path === "" ? name : `${path}.${name}`;
}

/** Path of an item of a list, or of an entry of a map. */
export function keyPath(path: string, key: string | number): string {
  return `${path}[${key}]`;
}

/** Field of a cause for a path; the empty path becomes {@linkcode ROOT_FIELD}. */
export function fieldOf(path: string): string {
  return path === "" ? ROOT_FIELD : path;
}

/**
 * Path of a value in an object (upstream's `field.Path`), together with the
 * list of violations to which checks append (upstream's `field.ErrorList`).
 * Each check names a field by its path relative to this one; the empty path is
 * the value itself.
 */
export class FieldPath {
  /** Path such as `spec.containers[0]`; empty for the whole object. */
  readonly path: string;
  readonly #causes: StatusCause[];

  /**
   * Creates a path of a value.
   *
   * @param path Path of the value; empty for the whole object.
   * @param causes List to which violations are appended.
   */
  constructor(path: string, causes: StatusCause[]) {
    this.path = path;
    this.#causes = causes;
  }

  /** Field path relative to this one: `name`, `ports[0].name` or `[key]`. */
  child(below: string): FieldPath {
    return new FieldPath(this.#join(below), this.#causes);
  }

  #join(below: string): string {
    return below === "" || below.startsWith("[")
      ? this.path + below
      : childPath(this.path, below);
  }

  /** Whether violations were reported for a field, or for a field in it. */
  hasProblems(below: string): boolean {
    const path = this.#join(below);
    return this.#causes.some(({ field = "" }) =>
      field === path || field.startsWith(`${path}.`) ||
      field.startsWith(`${path}[`)
    );
  }

  /** Reports a missing required field (`field.Required`). */
  required(below: string, why = ""): void {
    this.#causes.push(fieldError.required(this.#join(below), why));
  }

  /** Reports an invalid value (`field.Invalid`). */
  invalid(below: string, value: unknown, why: string): void {
    this.#causes.push(fieldError.invalid(this.#join(below), value, why));
  }

  /** Reports a violation with any reason and message. */
  violation(below: string, reason: string, message: string): void {
    this.#causes.push({ reason, message, field: this.#join(below) });
  }

  /** Reports an invalid value once per reason. */
  problems(below: string, value: unknown, problems: readonly string[]): void {
    for (const problem of problems) this.invalid(below, value, problem);
  }

  /** Reports a value that is not supported (`field.NotSupported`). */
  notSupported(
    below: string,
    value: unknown,
    supported: readonly string[],
  ): void {
    this.#causes.push(
      fieldError.notSupported(this.#join(below), value, supported),
    );
  }

  /** Reports a field that must not be set, or not with this value (`field.Forbidden`). */
  forbidden(below: string, why: string): void {
    this.#causes.push(fieldError.forbidden(this.#join(below), why));
  }

  /** Reports a duplicate value (`field.Duplicate`). */
  duplicate(below: string, value: unknown): void {
    this.#causes.push(fieldError.duplicate(this.#join(below), value));
  }

  /** Reports a reference to something that does not exist (`field.NotFound`). */
  notFound(below: string, value: unknown): void {
    this.#causes.push(fieldError.notFound(this.#join(below), value));
  }

  /** Reports a value that exceeds a limit in bytes (`field.TooLong`). */
  tooLong(below: string, limit: number): void {
    this.#causes.push(fieldError.tooLong(this.#join(below), limit));
  }

  /** Reports a list or map that has too many items (`field.TooMany`). */
  tooMany(below: string, count: number, limit: number): void {
    this.#causes.push(fieldError.tooMany(this.#join(below), count, limit));
  }

  /** Reports violations that were found without this path. */
  report(causes: readonly StatusCause[]): void {
    this.#causes.push(...causes);
  }

  /** Reports each of the named number fields that is less than zero. */
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
