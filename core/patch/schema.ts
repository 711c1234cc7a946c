/**
 * OpenAPI v3 schema with the `x-kubernetes-*` extensions. Other keywords are kept
 * unchanged.
 */
export interface OpenApiSchema {
  /** Reference to a definition; only a default and extensions may accompany it. */
  readonly $ref?: string | undefined;
  /** List with a single `$ref`, which allows other keywords beside it. */
  readonly allOf?: readonly OpenApiSchema[] | undefined;
  /** JSON type. */
  readonly type?: string | undefined;
  /** Format of the type, such as `int64`. */
  readonly format?: string | undefined;
  /** Schemas of named fields. */
  readonly properties?: Readonly<Record<string, OpenApiSchema>> | undefined;
  /** Schema of fields that are not named. */
  readonly additionalProperties?: OpenApiSchema | boolean | undefined;
  /** Schema of list items. */
  readonly items?: OpenApiSchema | undefined;
  /** Names of required fields. */
  readonly required?: readonly string[] | undefined;
  /** Whether null is allowed. */
  readonly nullable?: boolean | undefined;
  /** Default value. */
  readonly default?: unknown;
  /** Allowed values. */
  readonly enum?: readonly unknown[] | undefined;
  /** List type: `atomic`, `set` or `map`. */
  readonly "x-kubernetes-list-type"?: string | undefined;
  /** Names of the key fields of a list of type `map`. */
  readonly "x-kubernetes-list-map-keys"?: readonly string[] | undefined;
  /** Map type: `granular` or `atomic`. */
  readonly "x-kubernetes-map-type"?: string | undefined;
  /** Strategies of strategic merge patches, separated by commas. */
  readonly "x-kubernetes-patch-strategy"?: string | undefined;
  /** Key field of list items for strategic merge patches. */
  readonly "x-kubernetes-patch-merge-key"?: string | undefined;
  /** Whether both integers and strings are allowed. */
  readonly "x-kubernetes-int-or-string"?: boolean | undefined;
  /** Whether fields that the schema does not name are stored, not pruned. */
  readonly "x-kubernetes-preserve-unknown-fields"?: boolean | undefined;
  /** Whether the value is a complete Kubernetes object. */
  readonly "x-kubernetes-embedded-resource"?: boolean | undefined;
  /** Any other keyword. */
  readonly [keyword: string]: unknown;
}
