/** Reason why a value does not match a schema. */
export interface StandardIssue {
  /** Reason, for people. */
  readonly message: string;
  /** Path in the value; absent for the value itself. */
  readonly path?:
    | readonly (PropertyKey | { readonly key: PropertyKey })[]
    | undefined;
}

/**
 * A schema of any library that implements Standard Schema with a conversion to
 * JSON Schema, such as zod.
 *
 * @typeParam Input The type of written values: fields with a default are optional.
 * @typeParam Output The type of read values: fields with a default are present.
 */
export interface StandardSchema<Input = unknown, Output = Input> {
  /** Properties of Standard Schema. */
  readonly "~standard": {
    /** Version of the interface, which is to be 1. */
    readonly version: 1;
    /** Name of the library. */
    readonly vendor: string;
    /** Function that returns a value with defaults, or the issues. */
    readonly validate: (value: unknown) =>
      | { readonly value: Output; readonly issues?: undefined }
      | { readonly issues: readonly StandardIssue[] }
      | Promise<
        | { readonly value: Output; readonly issues?: undefined }
        | { readonly issues: readonly StandardIssue[] }
      >;
    /** Converters of the schema to JSON Schema. */
    readonly jsonSchema: {
      readonly input: (
        options: {
          /** Dialect of JSON Schema. */
          readonly target: "openapi-3.0";
          /** Options of the library itself. */
          readonly libraryOptions?: Record<string, unknown> | undefined;
        },
      ) => Record<string, unknown>;
    };
    /** Types of the values; never set. */
    readonly types?:
      | { readonly input: Input; readonly output: Output }
      | undefined;
  };
}

/**
 * Type of the values of a schema as the server stores them: without the
 * transformations of the library, which the server does not run.
 *
 * @typeParam S The schema; for `undefined` the result is `never`.
 * @typeParam Side Values that are written, where fields with a default are
 * optional, or read.
 */
export type Stored<
  S extends StandardSchema | undefined,
  Side extends "input" | "output" = "output",
> = S extends StandardSchema<infer Input, infer Output>
  ? Side extends "input" ? Input : Output extends Input ? Output : Input
  : never;
