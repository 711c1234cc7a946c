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
 * A schema of any library that follows the Standard Schema convention and can
 * write itself as JSON Schema. zod does; the library needs nothing of zod.
 *
 * @typeParam Input What may be written: fields with a default may be absent.
 * @typeParam Output What is read: fields with a default are there.
 */
export interface StandardSchema<Input = unknown, Output = Input> {
  /** The properties of the convention. */
  readonly "~standard": {
    readonly version: 1;
    /** The name of the library. */
    readonly vendor: string;
    /** Validates a value: returns it with defaults, or the issues. */
    readonly validate: (value: unknown) =>
      | { readonly value: Output; readonly issues?: undefined }
      | { readonly issues: readonly StandardIssue[] }
      | Promise<
        | { readonly value: Output; readonly issues?: undefined }
        | { readonly issues: readonly StandardIssue[] }
      >;
    /** Converts the schema to JSON Schema. */
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
    /** Never set: it only carries the types. */
    readonly types?:
      | { readonly input: Input; readonly output: Output }
      | undefined;
  };
}

/** A type as it comes back from JSON: a `Date` is the text of a date-time. */
export type Stored<T> = T extends Date ? string
  : T extends object ? { [K in keyof T]: Stored<T[K]> }
  : T;
