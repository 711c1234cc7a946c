import type { OpenApiSchema } from "@coracle/operator/internal";

/** JSON type of a schema. */
export type SchemaType =
  | "object"
  | "array"
  | "string"
  | "integer"
  | "number"
  | "boolean";

/** List type: replaced as a whole, merged by value, or merged by keys. */
export type ListType = "atomic" | "set" | "map";

/** Map type: fields are owned individually or as a whole. */
export type MapType = "granular" | "atomic";

/**
 * Function that resolves a `$ref`.
 *
 * @throws {ReferenceError} If the definition does not exist.
 */
export type ResolveReference = (reference: string) => Schema;

/** Format of the core types' fields that take integers or strings. */
const INT_OR_STRING_FORMAT = "int-or-string";

const NO_PROPERTIES: ReadonlyMap<string, Schema> = new Map();
const NO_NAMES: readonly string[] = Object.freeze([]);

/** Position of a {@linkcode Schema} node. */
export interface SchemaPosition {
  /** Parent node, if both belong to one definition. */
  readonly parent?: Schema | undefined;
  /** Name of the definition, if the node is a definition. */
  readonly definition?: string | undefined;
}

/**
 * Node of a schema: the type of a value and its treatment by patches and field
 * ownership. Built-in kinds and custom resources share this form.
 *
 * Children are created lazily, and all references to a definition share one
 * node. So a step costs one property read, recursive schemas are supported, and
 * unused parts cost nothing.
 */
export class Schema {
  /** Original keywords of the schema, for validators. */
  readonly source: OpenApiSchema;
  /** JSON type; `undefined` if any value is allowed. */
  readonly type: SchemaType | undefined;
  /** OpenAPI format, such as `int64` or `date-time`. */
  readonly format: string | undefined;
  /** Whether both integers and strings are allowed. */
  readonly intOrString: boolean;
  /** List type; `atomic` for values that are not lists. */
  readonly listType: ListType;
  /** Names of the key fields of a list of type `map`. */
  readonly listMapKeys: readonly string[];
  /** Map type: ownership of fields individually or as a whole. */
  readonly mapType: MapType;
  /** Strategies of strategic merge patches: `merge`, `replace`, `retainKeys`. */
  readonly patchStrategies: readonly string[];
  /** Key field of list items for strategic merge patches. */
  readonly patchMergeKey: string | undefined;
  /** Name of the definition that the node is or refers to. */
  readonly definition: string | undefined;

  readonly #resolve: ResolveReference | undefined;
  /** Node of the referenced definition, which contains the children. */
  readonly #target: Schema | undefined;
  #properties: ReadonlyMap<string, Schema> | undefined;
  #items: Schema | undefined;
  #additional: Schema | undefined;
  /** Whether this node or an ancestor preserves unknown fields. */
  readonly #open: boolean;

  /**
   * Creates a node; its children are created lazily.
   *
   * @param source OpenAPI v3 schema.
   * @param resolve Function that resolves references; required if the schema
   * has any.
   * @param position Position of the node; only used internally.
   * @throws {ReferenceError} If the schema is a reference that cannot be
   * resolved.
   */
  constructor(
    source: OpenApiSchema,
    resolve?: ResolveReference,
    position: SchemaPosition = {},
  ) {
    this.#resolve = resolve;
    const reference = source.$ref ?? source.allOf?.[0]?.$ref;
    if (reference !== undefined) this.#target = this.#lookUp(reference);
    const keywords: OpenApiSchema = this.#target
      ? { ...this.#target.source, ...source }
      : source;
    this.source = keywords;
    this.intOrString = keywords["x-kubernetes-int-or-string"] === true ||
      keywords.format === INT_OR_STRING_FORMAT;
    this.type = this.intOrString ? undefined : keywords.type as SchemaType;
    this.format = keywords.format;
    this.#open = keywords["x-kubernetes-preserve-unknown-fields"] === true ||
      (position.parent ? position.parent.#open : false);
    this.definition = position.definition ?? this.#target?.definition;
    this.patchStrategies =
      keywords["x-kubernetes-patch-strategy"]?.split(",") ?? NO_NAMES;
    this.patchMergeKey = keywords["x-kubernetes-patch-merge-key"];
    const list = listRelation(keywords);
    this.listType = list.type;
    this.listMapKeys = list.keys;
    this.mapType = keywords["x-kubernetes-map-type"] === "atomic"
      ? "atomic"
      : "granular";
  }

  #lookUp(reference: string): Schema {
    if (this.#resolve === undefined) {
      throw new ReferenceError(
        `Cannot read a schema: there are no definitions to resolve a reference: received "${reference}"`,
      );
    }
    return this.#resolve(reference);
  }

  /** Default value; `undefined` if absent. */
  get default(): unknown {
    return this.source.default;
  }

  /** Schemas of named fields. */
  get properties(): ReadonlyMap<string, Schema> {
    if (this.#target) return this.#target.properties;
    if (this.#properties === undefined) {
      const { properties } = this.source;
      this.#properties = properties === undefined ? NO_PROPERTIES : new Map(
        Object.entries(properties).map(([name, property]) =>
          [name, this.#child(property)] as const
        ),
      );
    }
    return this.#properties;
  }

  /** Schema of list items. */
  get items(): Schema | undefined {
    if (this.#target) return this.#target.items;
    const { items } = this.source;
    return items && (this.#items ??= this.#child(items));
  }

  /**
   * Schema of unnamed fields; `undefined` if they are not allowed or not
   * mentioned.
   */
  get additionalProperties(): Schema | undefined {
    if (this.#target) return this.#target.additionalProperties;
    const { additionalProperties } = this.source;
    if (!additionalProperties) return undefined;
    return this.#additional ??= this.#child(
      additionalProperties === true ? {} : additionalProperties,
    );
  }

  /**
   * Schema of unnamed fields, for field ownership: any value if the node or an
   * ancestor preserves unknown fields; `undefined` if such fields are not
   * allowed.
   */
  get unnamedFields(): Schema | undefined {
    if (this.source.additionalProperties !== undefined) {
      return this.additionalProperties;
    }
    return this.#open || this.properties.size === 0 ? ANYTHING : undefined;
  }

  /** Returns the schema of a field; `undefined` if the field is not allowed. */
  field(name: string): Schema | undefined {
    return this.properties.get(name) ?? this.additionalProperties;
  }

  /** Creates a child; a plain reference resolves to the node of its definition. */
  #child(source: OpenApiSchema): Schema {
    return source.$ref !== undefined && Object.keys(source).length === 1
      ? this.#lookUp(source.$ref)
      : new Schema(source, this.#resolve, { parent: this });
  }
}

/** Schema that allows any value, with granular ownership. */
const ANYTHING: Schema = new Schema({});

/**
 * Determines the list type and keys of a schema. Without a list type, the
 * keywords of strategic merge patches decide, as in kube-apiserver.
 */
function listRelation(
  keywords: OpenApiSchema,
): { type: ListType; keys: readonly string[] } {
  const type = keywords["x-kubernetes-list-type"];
  if (type === "map") {
    return { type, keys: keywords["x-kubernetes-list-map-keys"] ?? NO_NAMES };
  }
  if (type === "set") return { type, keys: NO_NAMES };
  const strategies = keywords["x-kubernetes-patch-strategy"]?.split(",");
  if (type === undefined && strategies?.includes("merge")) {
    const key = keywords["x-kubernetes-patch-merge-key"];
    return key === undefined
      ? { type: "set", keys: NO_NAMES }
      : { type: "map", keys: [key] };
  }
  return { type: "atomic", keys: NO_NAMES };
}

/**
 * Definitions of one or more OpenAPI documents; nodes are created lazily.
 */
export class SchemaDefinitions {
  readonly #sources: Readonly<Record<string, OpenApiSchema>>;
  readonly #nodes: Map<string, Schema> = new Map();

  /**
   * Creates the definitions.
   *
   * @param sources Schemas by name, the last segment of their references.
   */
  constructor(sources: Readonly<Record<string, OpenApiSchema>>) {
    this.#sources = sources;
  }

  /** Whether a definition exists. */
  has(name: string): boolean {
    return Object.hasOwn(this.#sources, name);
  }

  /**
   * Returns the node of a definition; the same one on each call.
   *
   * @param reference Name of the definition, or a `$ref` that ends in it.
   * @throws {ReferenceError} If the definition does not exist.
   */
  get(reference: string): Schema {
    const name = reference.slice(reference.lastIndexOf("/") + 1);
    const known = this.#nodes.get(name);
    if (known) return known;
    const source = this.has(name) ? this.#sources[name] : undefined;
    if (source === undefined) {
      throw new ReferenceError(
        `Cannot resolve a schema: the definition does not exist: received "${reference}"`,
      );
    }
    const node = new Schema(source, (reference) => this.get(reference), {
      definition: name,
    });
    this.#nodes.set(name, node);
    return node;
  }
}
