/**
 * Validation that built-in and custom kinds share: field paths, names,
 * metadata, the language of rules and the formatting of values, with
 * kube-apiserver's messages. The rules of built-in kinds are in
 * `builtin/validation`, those of custom kinds in `crd`. Both import this
 * folder, which must not import them.
 *
 * @module
 */
import type { StatusCause } from "@coracle/operator/internal";
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

/** Arguments of a function of `fieldError` after the field. */
type Rest<F> = F extends (field: string, ...rest: infer R) => unknown ? R
  : never;

/**
 * Path of a value in an object (upstream's `field.Path`), together with the
 * list of violations to which checks append (upstream's `field.ErrorList`).
 */
export class FieldPath {
  /** Path such as `spec.containers[0]`; empty for the whole object. */
  readonly path: string;
  readonly #causes: StatusCause[];
  readonly #declared: StatusCause[];

  /**
   * Creates a path of a value.
   *
   * @param path Path of the value; empty for the whole object.
   * @param causes List to which violations are appended.
   * @param declared List of the violations of declared rules, if they follow the
   * others.
   */
  constructor(
    path: string,
    causes: StatusCause[],
    declared: StatusCause[] = causes,
  ) {
    this.path = path;
    this.#causes = causes;
    this.#declared = declared;
  }

  /** This path, for violations of rules that are declared in the schema. */
  get declared(): FieldPath {
    return this.#causes === this.#declared
      ? this
      : new FieldPath(this.path, this.#declared);
  }

  /** Field path relative to this one: `name`, `ports[0].name` or `[key]`; empty for this one. */
  child(below: string): FieldPath {
    if (below === "") return this;
    const path = below.startsWith("[")
      ? this.path + below
      : childPath(this.path, below);
    return new FieldPath(path, this.#causes, this.#declared);
  }

  /** Whether violations were reported for the field, or for a field in it. */
  hasProblems(): boolean {
    const { path } = this;
    return this.#causes.some(({ field = "" }) =>
      field === path || field.startsWith(`${path}.`) ||
      field.startsWith(`${path}[`)
    );
  }

  /** Reports a violation by its type, as in `add("required", why)`. */
  add<T extends keyof typeof fieldError>(
    type: T,
    ...rest: Rest<typeof fieldError[T]>
  ): void {
    const create = fieldError[type] as (
      field: string,
      ...rest: readonly unknown[]
    ) => StatusCause;
    this.report([create(this.path, ...rest)]);
  }

  /** Reports an invalid value once per reason. */
  problems(value: unknown, problems: readonly string[]): void {
    for (const problem of problems) this.add("invalid", value, problem);
  }

  /** Reports violations with any field. */
  report(causes: readonly StatusCause[]): void {
    this.#causes.push(...causes);
  }
}
