/** Where in a value something is wrong. */
export type StandardPath = ReadonlyArray<
  PropertyKey | { readonly key: PropertyKey }
>;

/** One reason why a value does not fit a schema. */
export interface StandardIssue {
  /** The reason, for people. */
  readonly message: string;
  /** Where in the value; the value itself if absent. */
  readonly path?: StandardPath | undefined;
}

/** What checking a value gives: the value with its defaults, or issues. */
export type StandardResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: ReadonlyArray<StandardIssue> };

/** What a library is asked for when it writes a schema as JSON Schema. */
export interface JsonSchemaOptions {
  /** The dialect. */
  readonly target: "openapi-3.0";
  /** What only the library itself understands. */
  readonly libraryOptions?: Record<string, unknown> | undefined;
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
    readonly validate: (
      value: unknown,
    ) => StandardResult<Output> | Promise<StandardResult<Output>>;
    readonly jsonSchema: {
      readonly input: (options: JsonSchemaOptions) => Record<string, unknown>;
    };
    /** Never set: it only carries the types. */
    readonly types?:
      | { readonly input: Input; readonly output: Output }
      | undefined;
  };
}

/** What may be written where a schema stands, as JSON carries it. */
export type SchemaInput<S extends StandardSchema> = Stored<
  NonNullable<S["~standard"]["types"]>["input"]
>;

/** What is read where a schema stands, as JSON carries it. */
export type SchemaOutput<S extends StandardSchema> = Stored<
  NonNullable<S["~standard"]["types"]>["output"]
>;

/** A type as it comes back from JSON: a `Date` is the text of a date-time. */
export type Stored<T> = T extends Date ? string
  : T extends object ? { [K in keyof T]: Stored<T[K]> }
  : T;
