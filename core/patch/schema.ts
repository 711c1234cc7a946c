/** The JSON types that a schema can ask for. */
export type SchemaType =
  | "object"
  | "array"
  | "string"
  | "integer"
  | "number"
  | "boolean";

/** How the items of a list relate: replaced whole, by value, or by keys. */
export type ListType = "atomic" | "set" | "map";

/** Whether the fields of a map or struct are owned one by one or as a whole. */
export type MapType = "granular" | "atomic";

/**
 * A schema as OpenAPI v3 writes it, with the `x-kubernetes-*` extensions; the
 * keywords not named here are kept as they are.
 */
export interface OpenApiSchema {
  /** Where the definition is; nothing beside it counts but a default and extensions. */
  readonly $ref?: string | undefined;
  /** Kubernetes puts a lone `$ref` in it to set words beside it. */
  readonly allOf?: readonly OpenApiSchema[] | undefined;
  /** The JSON type. */
  readonly type?: string | undefined;
  /** What the type does not tell, such as `int64`. */
  readonly format?: string | undefined;
  /** The fields that are named. */
  readonly properties?: Readonly<Record<string, OpenApiSchema>> | undefined;
  /** What fields that are not named may be. */
  readonly additionalProperties?: OpenApiSchema | boolean | undefined;
  /** What a list's items are. */
  readonly items?: OpenApiSchema | undefined;
  /** The fields that must be there. */
  readonly required?: readonly string[] | undefined;
  /** Whether null is a value. */
  readonly nullable?: boolean | undefined;
  /** The value when none is given. */
  readonly default?: unknown;
  /** The only values. */
  readonly enum?: readonly unknown[] | undefined;
  /** `atomic`, `set` or `map`. */
  readonly "x-kubernetes-list-type"?: string | undefined;
  /** The fields that identify an item of a list of type `map`. */
  readonly "x-kubernetes-list-map-keys"?: readonly string[] | undefined;
  /** `granular` or `atomic`. */
  readonly "x-kubernetes-map-type"?: string | undefined;
  /** What a strategic merge patch does, separated by commas. */
  readonly "x-kubernetes-patch-strategy"?: string | undefined;
  /** The field by which a strategic merge patch tells items apart. */
  readonly "x-kubernetes-patch-merge-key"?: string | undefined;
  /** Whether an integer or a string may stand here. */
  readonly "x-kubernetes-int-or-string"?: boolean | undefined;
  /** Whether fields that are not named are kept. */
  readonly "x-kubernetes-preserve-unknown-fields"?: boolean | undefined;
  /** Whether a whole object stands here. */
  readonly "x-kubernetes-embedded-resource"?: boolean | undefined;
  /** Any other keyword. */
  readonly [keyword: string]: unknown;
}

/**
 * Finds what a `$ref` names.
 *
 * @throws {ReferenceError} If there is no such definition.
 */
export type ResolveReference = (reference: string) => Schema;

/** The lists of the core types say `int-or-string` by this format. */
const INT_OR_STRING_FORMAT = "int-or-string";

const NO_PROPERTIES: ReadonlyMap<string, Schema> = new Map();
const NO_NAMES: readonly string[] = Object.freeze([]);

/** Where a {@linkcode Schema} stands. */
export interface SchemaPlace {
  /** The node above, when both are part of one definition. */
  readonly parent?: Schema | undefined;
  /** The name of the definition that the node is. */
  readonly definition?: string | undefined;
}

/**
 * One node of a schema: what a value at one place of an object may be, and how
 * patches and field ownership treat it. Built-in kinds and custom resources
 * share this form.
 *
 * Children are made when first asked for, and a definition that is referred to
 * from many places is one node. So walking costs a property read per step, a
 * recursive schema is no trouble, and the parts that no object reaches cost
 * nothing.
 *
 * @example Read a list's merge keys
 * ```ts
 * import { Schema } from "@coracle/operator/core";
 *
 * const schema = new Schema({
 *   type: "array",
 *   items: { type: "object", properties: { name: { type: "string" } } },
 *   "x-kubernetes-list-type": "map",
 *   "x-kubernetes-list-map-keys": ["name"],
 * });
 * if (schema.listMapKeys[0] !== "name") throw new Error("Unexpected key");
 * ```
 */
export class Schema {
  /** The keywords as written, for validators that need more than is here. */
  readonly source: OpenApiSchema;
  /** The JSON type; undefined where any value may stand. */
  readonly type: SchemaType | undefined;
  /** The OpenAPI format, such as `int64` or `date-time`. */
  readonly format: string | undefined;
  /** Whether an integer or a string may stand here. */
  readonly intOrString: boolean;
  /** Whether fields that the schema does not name are kept. */
  readonly preserveUnknownFields: boolean;
  /** Whether a whole object with apiVersion, kind and metadata stands here. */
  readonly embeddedResource: boolean;
  /** Whether an explicit null is a value. */
  readonly nullable: boolean;
  /** How the items of a list are told apart; `atomic` for anything else. */
  readonly listType: ListType;
  /** The fields that identify an item of a list of type `map`. */
  readonly listMapKeys: readonly string[];
  /** Whether fields are owned one by one. */
  readonly mapType: MapType;
  /** What a strategic merge patch does here: `merge`, `replace`, `retainKeys`. */
  readonly patchStrategies: readonly string[];
  /** The field by which a strategic merge patch tells list items apart. */
  readonly patchMergeKey: string | undefined;
  /** The fields that must be there. */
  readonly required: readonly string[];
  /** The name of the definition that this is, or refers to. */
  readonly definition: string | undefined;

  readonly #resolve: ResolveReference | undefined;
  /** The node whose children are this one's too. */
  readonly #target: Schema | undefined;
  #properties: ReadonlyMap<string, Schema> | undefined;
  #items: Schema | undefined;
  #additional: Schema | undefined;
  /** Whether this node or one above it in the same definition is open. */
  readonly #open: boolean;

  /**
   * Makes a node; its children are made when asked for.
   *
   * @param source The schema as OpenAPI v3 writes it.
   * @param resolve Finds what a `$ref` names; needed only where there are some.
   * @param place Where the node stands; only nodes that make others say so.
   * @throws {ReferenceError} If the schema itself is a reference that cannot be
   * resolved.
   */
  constructor(
    source: OpenApiSchema,
    resolve?: ResolveReference,
    place: SchemaPlace = {},
  ) {
    this.#resolve = resolve;
    const reference = source.$ref ?? source.allOf?.[0]?.$ref;
    if (reference !== undefined) this.#target = this.#lookUp(reference);
    const words: OpenApiSchema = this.#target
      ? { ...this.#target.source, ...source }
      : source;
    this.source = words;
    this.intOrString = words["x-kubernetes-int-or-string"] === true ||
      words.format === INT_OR_STRING_FORMAT;
    this.type = this.intOrString ? undefined : words.type as SchemaType;
    this.format = words.format;
    this.preserveUnknownFields =
      words["x-kubernetes-preserve-unknown-fields"] === true;
    this.#open = this.preserveUnknownFields ||
      (place.parent ? place.parent.#open : false);
    this.definition = place.definition ?? this.#target?.definition;
    this.embeddedResource = words["x-kubernetes-embedded-resource"] === true;
    this.nullable = words.nullable === true;
    this.required = words.required ?? NO_NAMES;
    this.patchStrategies = words["x-kubernetes-patch-strategy"]?.split(",") ??
      NO_NAMES;
    this.patchMergeKey = words["x-kubernetes-patch-merge-key"];
    const list = listRelation(words);
    this.listType = list.type;
    this.listMapKeys = list.keys;
    this.mapType = words["x-kubernetes-map-type"] === "atomic"
      ? "atomic"
      : "granular";
  }

  #lookUp(reference: string): Schema {
    if (this.#resolve === undefined) {
      throw new ReferenceError(
        `Cannot read a schema: it refers to a definition and there are none: received "${reference}"`,
      );
    }
    return this.#resolve(reference);
  }

  /** The value that stands here when none is given; undefined for none. */
  get default(): unknown {
    return this.source.default;
  }

  /** The fields that the schema names. */
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

  /** The schema of a list's items. */
  get items(): Schema | undefined {
    if (this.#target) return this.#target.items;
    const { items } = this.source;
    return items && (this.#items ??= this.#child(items));
  }

  /**
   * The schema of the fields not named; undefined where there may be none or
   * where the schema says nothing of them.
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
   * What a field that the schema does not name may be when field ownership
   * looks at it: anything, where the schema is open, be it by an ancestor that
   * keeps unknown fields; undefined where there may be no such field.
   */
  get unnamedFields(): Schema | undefined {
    if (this.source.additionalProperties !== undefined) {
      return this.additionalProperties;
    }
    return this.#open || this.properties.size === 0 ? ANYTHING : undefined;
  }

  /** The schema of one field, named or not; undefined if there can be none. */
  field(name: string): Schema | undefined {
    return this.properties.get(name) ?? this.additionalProperties;
  }

  /** A plain reference is the definition itself, so that it is one node. */
  #child(source: OpenApiSchema): Schema {
    return source.$ref !== undefined && Object.keys(source).length === 1
      ? this.#lookUp(source.$ref)
      : new Schema(source, this.#resolve, { parent: this });
  }
}

/** A node that says nothing: any value, its fields owned one by one. */
const ANYTHING: Schema = new Schema({});

/**
 * Without a list type, the strategic merge keys decide, as they do in
 * kube-apiserver: the two descriptions grew one after the other.
 */
function listRelation(
  words: OpenApiSchema,
): { type: ListType; keys: readonly string[] } {
  const type = words["x-kubernetes-list-type"];
  if (type === "map") {
    return { type, keys: words["x-kubernetes-list-map-keys"] ?? NO_NAMES };
  }
  if (type === "set") return { type, keys: NO_NAMES };
  const strategies = words["x-kubernetes-patch-strategy"]?.split(",");
  if (type === undefined && strategies?.includes("merge")) {
    const key = words["x-kubernetes-patch-merge-key"];
    return key === undefined
      ? { type: "set", keys: NO_NAMES }
      : { type: "map", keys: [key] };
  }
  return { type: "atomic", keys: NO_NAMES };
}

/**
 * The definitions of one or more OpenAPI documents; each becomes a node when it
 * is first referred to.
 *
 * @example Look a definition up
 * ```ts
 * import { SchemaDefinitions } from "@coracle/operator/core";
 *
 * const definitions = new SchemaDefinitions({
 *   Tree: {
 *     type: "object",
 *     properties: { left: { $ref: "#/components/schemas/Tree" } },
 *   },
 * });
 * const tree = definitions.get("Tree");
 * if (tree.field("left") !== tree) throw new Error("Expected one node");
 * ```
 */
export class SchemaDefinitions {
  readonly #sources: Readonly<Record<string, OpenApiSchema>>;
  readonly #nodes: Map<string, Schema> = new Map();

  /**
   * Takes definitions; none is looked at yet.
   *
   * @param sources The definitions, by the last part of their reference.
   */
  constructor(sources: Readonly<Record<string, OpenApiSchema>>) {
    this.#sources = sources;
  }

  /** Whether there is a definition of that name. */
  has(name: string): boolean {
    return Object.hasOwn(this.#sources, name);
  }

  /**
   * The node of a definition, always the same.
   *
   * @param reference Its name, or a `$ref` that ends in it.
   * @throws {ReferenceError} If there is no such definition.
   */
  get(reference: string): Schema {
    const name = reference.slice(reference.lastIndexOf("/") + 1);
    const known = this.#nodes.get(name);
    if (known) return known;
    const source = this.has(name) ? this.#sources[name] : undefined;
    if (source === undefined) {
      throw new ReferenceError(
        `Cannot resolve a schema: no such definition: received "${reference}"`,
      );
    }
    const node = new Schema(source, (reference) => this.get(reference), {
      definition: name,
    });
    this.#nodes.set(name, node);
    return node;
  }
}
