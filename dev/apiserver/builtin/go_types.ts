import type { OpenApiSchema } from "@coracle/operator/internal";
import { type Schema, SchemaDefinitions } from "../merge/schema.ts";
import { DEFINITIONS, FIELD_PRESENCE } from "./data/openapi_definitions.ts";

/**
 * Presence of a field in JSON: `omitted` if empty (`omitempty`); `pointer` if it
 * was set, even to zero; `struct` always, as an object; `always` even if empty,
 * with null for lists and maps; `nullPointer` always, with null if it was not set.
 */
export type Presence =
  | "omitted"
  | "pointer"
  | "struct"
  | "always"
  | "nullPointer";

/** Type with its own JSON encoding, which does not follow from its schema. */
export type SpecialForm =
  | "quantity"
  | "intOrString"
  | "time"
  | "microTime"
  | "bytes"
  | "any";

/** Field of a {@linkcode GoType}. */
export interface GoField {
  readonly name: string;
  readonly schema: Schema;
  readonly presence: Presence;
}

const SPECIAL_DEFINITIONS: Readonly<Record<string, SpecialForm>> = {
  "io.k8s.apimachinery.pkg.api.resource.Quantity": "quantity",
  "io.k8s.apimachinery.pkg.util.intstr.IntOrString": "intOrString",
  "io.k8s.apimachinery.pkg.apis.meta.v1.Time": "time",
  "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime": "microTime",
  "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1": "any",
  "io.k8s.apimachinery.pkg.runtime.RawExtension": "any",
};

/** Special form of a schema; undefined if the schema determines the encoding. */
export function specialForm(schema: Schema): SpecialForm | undefined {
  if (schema.definition !== undefined) {
    const special = SPECIAL_DEFINITIONS[schema.definition];
    if (special !== undefined) return special;
  }
  if (schema.format === "byte") return "bytes";
  return schema.type === undefined ||
      schema.type === "object" && schema.properties.size === 0 &&
        schema.additionalProperties === undefined
    ? "any"
    : undefined;
}

/** Go struct of the Kubernetes API, with the presence of its fields in JSON. */
export class GoType {
  /** Name of the OpenAPI definition. */
  readonly definition: string;
  readonly schema: Schema;
  readonly fields: ReadonlyMap<string, GoField>;

  /**
   * Creates the struct of a definition.
   *
   * @param schema Schema of the definition.
   * @param presence Presence of the fields that are not `omitted`.
   */
  constructor(
    schema: Schema,
    presence: Readonly<Partial<Record<Presence, readonly string[]>>>,
  ) {
    this.definition = schema.definition ?? "";
    this.schema = schema;
    const presences = new Map<string, Presence>();
    for (const [how, names] of Object.entries(presence)) {
      for (const name of names) presences.set(name, how as Presence);
    }
    this.fields = new Map(
      [...schema.properties].map(([name, field]) => [name, {
        name,
        schema: field,
        presence: presences.get(name) ?? "omitted",
      }]),
    );
  }

  /** Name of the struct, such as `DeploymentSpec`. */
  get name(): string {
    return this.definition.slice(this.definition.lastIndexOf(".") + 1);
  }
}

/** Structs of all built-in kinds; loaded lazily. */
class GoTypes {
  readonly #types: Map<string, GoType> = new Map();
  #openApi: Readonly<Record<string, OpenApiSchema>> | undefined;
  #definitions: SchemaDefinitions | undefined;
  #presence: Record<string, Partial<Record<Presence, string[]>>> | undefined;

  /** Published OpenAPI definitions; read-only. */
  get openApi(): Readonly<Record<string, OpenApiSchema>> {
    return this.#openApi ??= builtinOpenApiDefinitions();
  }

  get definitions(): SchemaDefinitions {
    return this.#definitions ??= new SchemaDefinitions(this.openApi);
  }

  get(definition: string): GoType {
    let type = this.#types.get(definition);
    if (type === undefined) {
      const presence = this.#presence ??= JSON.parse(FIELD_PRESENCE);
      type = new GoType(
        this.definitions.get(definition),
        presence?.[definition] ?? {},
      );
      this.#types.set(definition, type);
    }
    return type;
  }
}

const TYPES: GoTypes = new GoTypes();

/** OpenAPI definitions of all built-in kinds by name; a new copy on each call. */
export function builtinOpenApiDefinitions(): Record<string, OpenApiSchema> {
  return JSON.parse(DEFINITIONS);
}

/**
 * Schema of a definition; the same object on each call.
 *
 * @throws {ReferenceError} If there is no such definition.
 */
export function builtinSchema(definition: string): Schema {
  return TYPES.definitions.get(definition);
}

/**
 * Go struct of a definition.
 *
 * @throws {ReferenceError} If there is no such definition.
 */
export function goType(definition: string): GoType {
  return TYPES.get(definition);
}

/** Struct that a field contains, directly or as item of a list; undefined if absent. */
export function structIn(schema: Schema): GoType | undefined {
  if (specialForm(schema) !== undefined) return undefined;
  if (schema.items) return structIn(schema.items);
  return schema.definition !== undefined && schema.properties.size > 0
    ? goType(schema.definition)
    : undefined;
}

/** Definitions to which a tree of schemas refers by `$ref`, directly or not. */
export function referencedDefinitions(
  schemas: unknown,
  definitions: Readonly<Record<string, OpenApiSchema>>,
): Record<string, OpenApiSchema> {
  const found: Record<string, OpenApiSchema> = {};
  const addReferences = (value: unknown): void => {
    if (typeof value !== "object" || value === null) return;
    const reference = (value as OpenApiSchema).$ref;
    if (typeof reference === "string") {
      const name = reference.slice(reference.lastIndexOf("/") + 1);
      const schema = definitions[name];
      if (schema !== undefined && found[name] === undefined) {
        found[name] = schema;
        addReferences(schema);
      }
    }
    for (const inner of Object.values(value)) addReferences(inner);
  };
  addReferences(schemas);
  return found;
}

let kinds: ReadonlyMap<string, string> | undefined;

/** Name of the definition of a kind, given as `apps/v1` and `Deployment`; undefined if unknown. */
export function definitionOfKind(
  apiVersion: string,
  kind: string,
): string | undefined {
  kinds ??= indexKinds();
  return kinds.get(`${apiVersion} ${kind}`);
}

function indexKinds(): Map<string, string> {
  const index = new Map<string, string>();
  for (const [name, schema] of Object.entries(TYPES.openApi)) {
    const found = schema["x-kubernetes-group-version-kind"];
    if (!Array.isArray(found)) continue;
    for (const { group, version, kind } of found) {
      const apiVersion = group === "" ? version : `${group}/${version}`;
      index.set(`${apiVersion} ${kind}`, name);
    }
  }
  return index;
}
