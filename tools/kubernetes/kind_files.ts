import type { OpenApiSchema } from "../../core/patch/schema.ts";
import {
  fieldFacts,
  fileKey,
  fileOf,
  kebabOf,
  prefixOf,
  references,
} from "./definition_names.ts";
import { FIELD_DOCS } from "./field_docs.ts";
import {
  type DiscoveredResource,
  GENERATED_HEADER,
  type KubernetesData,
} from "./kubernetes_data.ts";
import { typeSchemasFile } from "./type_schemas_file.ts";

/** What any object may be. */
const JSON_OBJECT = "Record<string, unknown>";

/** Definitions that are plain types here, or stand in core/api already. */
const PLAIN_TYPES: Readonly<Record<string, string>> = {
  "io.k8s.apimachinery.pkg.api.resource.Quantity": "Quantity",
  "io.k8s.apimachinery.pkg.util.intstr.IntOrString": "IntOrString",
  "io.k8s.apimachinery.pkg.apis.meta.v1.Time": "Time",
  "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime": "MicroTime",
  "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1": JSON_OBJECT,
  "io.k8s.apimachinery.pkg.runtime.RawExtension": JSON_OBJECT,
  "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON": "JsonValue",
};
const OBJECT_TYPES: Readonly<Record<string, string>> = {
  "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta": "ObjectMeta",
  "io.k8s.apimachinery.pkg.apis.meta.v1.OwnerReference": "OwnerReference",
};

/** Definitions whose values OpenAPI does not describe. */
const ALIASES: Readonly<Record<string, string>> = {
  JSONSchemaPropsOrArray: "JSONSchemaProps | JSONSchemaProps[]",
  JSONSchemaPropsOrBool: "JSONSchemaProps | boolean",
  JSONSchemaPropsOrStringArray: "JSONSchemaProps | string[]",
  CustomResourceSubresourceStatus: "Record<string, never>",
  WorkloadPodGroupAllDisruptionMode: "Record<string, never>",
  WorkloadPodGroupBasicSchedulingPolicy: "Record<string, never>",
  WorkloadPodGroupSingleDisruptionMode: "Record<string, never>",
};

/** Types with all fields of another type, and few more. */
const BASES: Readonly<Record<string, string>> = {
  EphemeralContainer: "Container",
  MutatingWebhook: "ValidatingWebhook",
  NamedRuleWithOperations: "RuleWithOperations",
};

/** Fields of `ConditionFields` in core/kinds/values.ts; those of most conditions. */
const CONDITION_FIELDS: Readonly<Record<string, string>> = {
  lastTransitionTime: "Time?",
  message: "string?",
  reason: "string?",
  status: "string",
  type: "string",
};

/** Groups by precedence: of definitions of one name, the first keeps it. */
const PRECEDENCE = [
  "core/v1",
  "apps/v1",
  "batch/v1",
  "autoscaling/v2",
  "networking/v1",
  "rbac/v1",
];

const REFERENCE = "https://kubernetes.io/docs/reference/kubernetes-api/";
/** Groups and kinds without a page of their own in the reference. */
const WITHOUT_PAGE: ReadonlySet<string> = new Set([
  "authentication",
  "authorization",
  "autoscaling/v1",
  "core/v1.Binding",
]);

/** One kind that has a path of its own. */
interface KindEntry {
  readonly definition: string;
  readonly group: string;
  readonly version: string;
  readonly resource: DiscoveredResource;
}

/** Writes the files of core/kinds, by name. */
export function kindFiles(data: KubernetesData): Map<string, string> {
  return new KindFiles(data).write();
}

class KindFiles {
  readonly #data: KubernetesData;
  readonly #kinds: Map<string, KindEntry> = new Map();
  readonly #names: Map<string, string> = new Map();
  /** Fields by the definition of their values, as `PodSpec.volumes`. */
  readonly #users: Map<string, string[]> = new Map();

  constructor(data: KubernetesData) {
    this.#data = data;
    for (const { metadata, versions } of data.groups) {
      for (const { version, resources } of versions) {
        for (const resource of resources) {
          const entry = this.#entry(metadata.name ?? "", version, resource);
          this.#kinds.set(entry.definition, entry);
        }
      }
    }
    this.#nameAll();
    this.#checkDocs();
    for (const [definition, name] of this.#names) {
      const { properties = {} } = this.#schema(definition);
      for (const [field, property] of Object.entries(properties)) {
        for (const used of references(property)) {
          const users = this.#users.get(used) ?? [];
          this.#users.set(used, [...users, `${name}.${field}`]);
        }
      }
    }
  }

  /** Refuses docs of fields that no type has; types may share a set of docs. */
  #checkDocs(): void {
    const definitions = new Map(
      [...this.#names].map(([key, name]) => [name, key]),
    );
    const useless = new Set<string>();
    const useful = new Set<string>();
    for (const [name, docs] of Object.entries(FIELD_DOCS)) {
      if (name === "*") continue;
      const { properties = {} } = this.#schema(definitions.get(name) ?? name);
      for (const [field, doc] of Object.entries(docs)) {
        (properties[field] ? useful : useless).add(doc);
      }
    }
    const [doc] = [...useless].filter((one) => !useful.has(one));
    if (doc === undefined) return;
    throw new Error(`Cannot find the field of a doc: received ${doc}`);
  }

  #entry(
    group: string,
    version: string,
    resource: DiscoveredResource,
  ): KindEntry {
    const { kind } = resource.responseKind;
    const definition = Object.keys(this.#data.definitions).find((name) =>
      name.endsWith(`.${kind}`) &&
      this.#groupVersionKinds(name).some((gvk) =>
        gvk.group === group && gvk.version === version && gvk.kind === kind
      )
    );
    if (definition === undefined) {
      throw new Error(
        `Cannot find the definition of a kind: received ${group}/${version} ${kind}`,
      );
    }
    return { definition, group, version, resource };
  }

  #groupVersionKinds(
    definition: string,
  ): { group: string; version: string; kind: string }[] {
    const found = this.#schema(definition)["x-kubernetes-group-version-kind"];
    return (found ?? []) as { group: string; version: string; kind: string }[];
  }

  #schema(definition: string): OpenApiSchema {
    const schema = this.#data.definitions[definition];
    if (schema) return schema;
    throw new Error(`Cannot find a definition: received ${definition}`);
  }

  /** The definitions that kinds reach and that become interfaces. */
  #reached(): string[] {
    const reached = new Set<string>();
    const visit = (name: string): void => {
      if (reached.has(name) || name in PLAIN_TYPES || name in OBJECT_TYPES) {
        return;
      }
      reached.add(name);
      for (const next of references(this.#schema(name))) visit(next);
    };
    for (const { definition, resource } of this.#kinds.values()) {
      visit(definition);
      for (const { responseKind } of resource.subresources ?? []) {
        const name = Object.keys(this.#data.definitions).find((name) =>
          this.#groupVersionKinds(name).some((gvk) =>
            gvk.kind === responseKind.kind &&
            gvk.group === responseKind.group &&
            gvk.version === responseKind.version
          )
        );
        if (name) visit(name);
      }
    }
    return [...reached];
  }

  #nameAll(): void {
    const rank = (definition: string): number => {
      const found = PRECEDENCE.indexOf(fileKey(definition));
      return found < 0 ? PRECEDENCE.length : found;
    };
    const taken = new Set(["Quantity", "IntOrString", "Time", "MicroTime"]);
    const sorted = this.#reached().sort((a, b) =>
      rank(a) - rank(b) || (a < b ? -1 : 1)
    );
    for (const definition of sorted) {
      const plain = definition.slice(definition.lastIndexOf(".") + 1);
      const name = taken.has(plain) ? `${prefixOf(definition)}${plain}` : plain;
      if (taken.has(name)) {
        throw new Error(`Cannot name two definitions alike: received ${name}`);
      }
      taken.add(name);
      this.#names.set(definition, name);
    }
  }

  write(): Map<string, string> {
    const byFile = new Map<string, string[]>();
    for (const definition of this.#names.keys()) {
      const file = fileOf(definition);
      byFile.set(file, [...byFile.get(file) ?? [], definition]);
    }
    const files = new Map<string, string>();
    for (const file of [...byFile.keys()].sort()) {
      const definitions = (byFile.get(file) ?? []).sort((a, b) =>
        (this.#names.get(a) ?? "") < (this.#names.get(b) ?? "") ? -1 : 1
      );
      files.set(file, this.#file(file, definitions));
    }
    files.set("mod.ts", modFile([...files.keys()]));
    files.set(
      "type_schemas.ts",
      typeSchemasFile(
        this.#data,
        this.#names,
        (definition, field) => this.#isRequired(definition, field),
      ),
    );
    return files;
  }

  #file(file: string, definitions: readonly string[]): string {
    const imports = new Map<string, Set<string>>();
    const need = (from: string, name: string): void => {
      if (from !== file) {
        imports.set(from, (imports.get(from) ?? new Set()).add(name));
      }
    };
    const bodies = definitions.map((definition) =>
      this.#interface(definition, need)
    );
    const lines = [...imports].sort(([a], [b]) => a < b ? -1 : 1).map(
      ([from, names]) => {
        const path = from.startsWith("../") ? from : `./${from}`;
        return `import type { ${
          [...names].sort().join(", ")
        } } from "${path}";`;
      },
    );
    return [GENERATED_HEADER, ...lines, "", bodies.join("\n\n"), ""].join("\n");
  }

  #interface(definition: string, need: Need): string {
    const schema = this.#schema(definition);
    const name = this.#names.get(definition) ?? "";
    const alias = ALIASES[name];
    if (alias !== undefined) {
      const doc = this.#interfaceDoc(definition);
      return `/** ${doc} */\nexport type ${name} = ${alias};`;
    }
    const kind = this.#kinds.get(definition);
    const [base, inherited] = this.#base(definition, need);
    const fields = Object.entries(schema.properties ?? {})
      .filter(([field]) => !inherited.includes(field))
      .map(([field, property]) =>
        this.#field(definition, field, { property, need })
      );
    const lines = [
      `/** ${this.#interfaceDoc(definition)} */`,
      `export interface ${name}${base ? ` extends ${base}` : ""} {`,
      ...fields,
      "}",
    ];
    if (kind) lines.push(this.#constant(name, kind, need));
    return lines.join("\n");
  }

  /** The type that a type extends, and the fields that it has from it. */
  #base(
    definition: string,
    need: Need,
  ): readonly [base: string | undefined, fields: readonly string[]] {
    if (this.#isObject(definition)) {
      need("../api/object.ts", "KubernetesObject");
      return ["KubernetesObject", ["apiVersion", "kind", "metadata"]];
    }
    if (this.#isCondition(definition)) {
      need("values.ts", "ConditionFields");
      return ["ConditionFields", Object.keys(CONDITION_FIELDS)];
    }
    const base = BASES[this.#names.get(definition) ?? ""];
    return [base, this.#inherited(definition, base)];
  }

  /** Whether a type has all fields of `ConditionFields`. */
  #isCondition(definition: string): boolean {
    const { properties = {} } = this.#schema(definition);
    return Object.entries(CONDITION_FIELDS).every(([field, type]) => {
      const property = properties[field];
      if (property === undefined) return false;
      const mark = this.#isRequired(definition, field) ? "" : "?";
      return this.#type(property, () => {}) + mark === type;
    });
  }

  /** Fields that a type has from its base in the same file, without a doc of its own. */
  #inherited(definition: string, base: string | undefined): string[] {
    if (base === undefined) return [];
    const [from = ""] = [...this.#names].find(([, name]) => name === base) ??
      [];
    const need = () => {};
    return Object.entries(this.#schema(from).properties ?? {}).map(
      ([field, property]) => {
        const { [field]: own = {} } = this.#schema(definition).properties ?? {};
        if (
          this.#type(own, need) === this.#type(property, need) &&
          this.#isRequired(from, field) === this.#isRequired(definition, field)
        ) return field;
        throw new Error(`Cannot extend ${base}: received another ${field}`);
      },
    );
  }

  #isObject(definition: string): boolean {
    const metadata = this.#schema(definition).properties?.metadata;
    return this.#groupVersionKinds(definition).length > 0 &&
      metadata !== undefined &&
      references(metadata).some((name) => name in OBJECT_TYPES);
  }

  #interfaceDoc(definition: string): string {
    const plain = definition.slice(definition.lastIndexOf(".") + 1);
    const key = fileKey(definition);
    const [group = "", version = ""] = key.split("/");
    if (this.#kinds.has(definition)) {
      const page = [group, key, `${key}.${plain}`].some((one) =>
          WITHOUT_PAGE.has(one)
        )
        ? REFERENCE
        : `${REFERENCE}${group}/${kebabOf(plain)}-${version}/`;
      return `Object of the kind ${plain} (${key}), see ${page}`;
    }
    const [first, second, ...more] = this.#users.get(definition) ?? [];
    if (first === undefined) return `Object of the kind ${plain} (${key}).`;
    const users = second === undefined
      ? `\`${first}\``
      : more.length === 0
      ? `\`${first}\` and \`${second}\``
      : `\`${first}\`, \`${second}\` and ${more.length} more`;
    return `Type of ${users} (${key}).`;
  }

  #constant(name: string, kind: KindEntry, need: Need): string {
    need("../api/kind.ts", "ResolvedKind");
    const { group, version, resource } = kind;
    const names = JSON.stringify({
      group,
      version,
      kind: resource.responseKind.kind,
      plural: resource.resource,
      scope: resource.scope,
    });
    const text = names.replaceAll('":', ": ").replaceAll(',"', ", ")
      .replace('{"', "{ ").replace("}", " }");
    return `export const ${name}: ResolvedKind<${name}> = ${text};`;
  }

  #field(
    definition: string,
    field: string,
    { property, need }: { property: OpenApiSchema; need: Need },
  ): string {
    const name = /^[A-Za-z_$][\w$]*$/.test(field)
      ? field
      : JSON.stringify(field);
    const type = this.#type(property, need);
    const own = FIELD_DOCS[this.#names.get(definition) ?? ""]?.[field] ??
      FIELD_DOCS["*"]?.[field];
    const doc = own === undefined ? fieldFacts(property).join(" ") : own;
    return [
      ...(doc === "" ? [] : [`  /** ${doc} */`]),
      this.#isRequired(definition, field)
        ? `  ${name}: ${type};`
        : `  ${name}?: ${type} | undefined;`,
    ].join("\n");
  }

  /** Whether a field must be there: also a struct that requires something. */
  #isRequired(definition: string, field: string): boolean {
    const schema = this.#schema(definition);
    if (schema.required?.includes(field)) return true;
    // Those of a condition, which controllers write and others read.
    if (definition.endsWith("Condition")) {
      return this.#data.goFields[definition]?.always?.includes(field) === true;
    }
    const property = schema.properties?.[field] ?? {};
    const [name] = property.default === undefined ? [] : references(property);
    return name !== undefined && !(name in OBJECT_TYPES) &&
      !(name in PLAIN_TYPES) &&
      (this.#schema(name).required?.length ?? 0) > 0 &&
      !name.endsWith("Status");
  }

  #type(schema: OpenApiSchema, need: Need): string {
    const [reference] = schema.$ref || schema.allOf ? references(schema) : [];
    if (reference !== undefined) return this.#referenceType(reference, need);
    if (schema.enum) {
      return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
    }
    switch (schema.type) {
      case "string":
        return "string";
      case "boolean":
        return "boolean";
      case "integer":
      case "number":
        return "number";
      case "array": {
        const item = this.#type(schema.items ?? {}, need);
        return /[ |]/.test(item) ? `(${item})[]` : `${item}[]`;
      }
      case "object": {
        const { additionalProperties } = schema;
        if (typeof additionalProperties === "object") {
          return `Record<string, ${this.#type(additionalProperties, need)}>`;
        }
        break;
      }
    }
    return JSON_OBJECT;
  }

  #referenceType(reference: string, need: Need): string {
    const plain = PLAIN_TYPES[reference];
    if (plain === "JsonValue") return "unknown";
    if (plain !== undefined) {
      if (plain !== JSON_OBJECT) need("values.ts", plain);
      return plain;
    }
    const object = OBJECT_TYPES[reference];
    if (object !== undefined) {
      need("../api/object.ts", object);
      return object === "ObjectMeta" ? `Partial<${object}>` : object;
    }
    const name = this.#names.get(reference) ?? "unknown";
    need(fileOf(reference), name);
    return name;
  }
}

type Need = (file: string, name: string) => void;

function modFile(files: readonly string[]): string {
  return `${GENERATED_HEADER}
/**
 * The kinds of a Kubernetes cluster: for each its type, and a constant of the
 * same name that tells a client where its objects live.
 *
 * Names that several API groups share go to the most used: \`Event\` is that of
 * the core group and \`EventsEvent\` that of events.k8s.io;
 * \`HorizontalPodAutoscaler\` is that of autoscaling/v2.
 *
 * @example A typed object
 * \`\`\`ts
 * import { ConfigMap } from "@coracle/operator/kinds";
 *
 * const config: ConfigMap = {
 *   metadata: { name: "settings", namespace: "default" },
 *   data: { color: "blue" },
 * };
 * \`\`\`
 *
 * @module
 */
export type { ConditionFields, IntOrString, MicroTime, Quantity, Time } from "./values.ts";
export type { KubernetesObject, ObjectMeta, OwnerReference } from "../api/object.ts";
export type { ResolvedKind } from "../api/kind.ts";
export { schemaOf } from "./schema_of.ts";
export type { TypeName } from "./type_schemas.ts";
${files.map((file) => `export * from "./${file}";`).join("\n")}
`;
}
