import type { OpenApiSchema } from "../../core/patch/schema.ts";
import { GENERATED_HEADER, type KubernetesData } from "./kubernetes_data.ts";

/** Definitions that stand for any value, which OpenAPI calls an object. */
const ANY_VALUE: readonly string[] = [
  "io.k8s.apimachinery.pkg.runtime.RawExtension",
];

/** Writes the files of apiserver/builtin/data, by name. */
export function builtinFiles(data: KubernetesData): Map<string, string> {
  return new Map([
    ["field_numbers.ts", fieldNumbersFile(data)],
    ["openapi_definitions.ts", definitionsFile(data)],
    ["resource_table.ts", resourcesFile(data)],
  ]);
}

/** JSON as a text literal: parsing that is several times as fast as a program. */
function jsonLiteral(value: unknown): string {
  const text = JSON.stringify(value).replaceAll("\\", "\\\\")
    .replaceAll("'", "\\'");
  return `'${text}'`;
}

function definitionsFile(data: KubernetesData): string {
  const definitions: Record<string, OpenApiSchema> = {};
  for (const name of Object.keys(data.definitions).sort()) {
    const definition = data.definitions[name] ?? {};
    definitions[name] = ANY_VALUE.includes(name)
      ? { "x-kubernetes-map-type": "atomic" }
      : definition;
  }
  return `${GENERATED_HEADER}

/** OpenAPI definitions of all built-in kinds, as JSON. */
export const DEFINITIONS: string = ${jsonLiteral(definitions)};

/**
 * JSON presence of the fields of each definition that Go writes even when they
 * are empty, as JSON; fields that are omitted when empty are not listed.
 */
export const FIELD_PRESENCE: string = ${jsonLiteral(data.goFields)};
`;
}

function fieldNumbersFile(data: KubernetesData): string {
  return `${GENERATED_HEADER}

/**
 * JSON names of the fields of each definition by protobuf field number, as
 * JSON; an object instead of a name stands for a struct that Go embeds.
 */
export const FIELD_NUMBERS: string = ${jsonLiteral(data.fieldNumbers)};
`;
}

/** A group, its versions and resources, with what tables show. */
function resourcesFile(data: KubernetesData): string {
  const resources = data.groups.flatMap(({ metadata, versions }) =>
    versions.flatMap(({ version, resources }) =>
      resources.map((resource) => {
        const group = metadata.name ?? "";
        const path = group === "" ? version : `${group}/${version}`;
        const columns = data.columns[`${path}/${resource.resource}`] ?? [];
        return {
          group,
          version,
          plural: resource.resource,
          singular: resource.singularResource,
          kind: resource.responseKind.kind,
          scope: resource.scope,
          shortNames: resource.shortNames ?? [],
          categories: resource.categories ?? [],
          verbs: resource.verbs,
          subresources: (resource.subresources ?? []).map((subresource) => ({
            name: subresource.subresource,
            ...subresource.responseKind,
            verbs: subresource.verbs,
          })),
          columns: columns.map(({ name, type, format, priority }) => [
            name,
            type,
            format,
            priority,
          ]),
        };
      })
    )
  );
  return `${GENERATED_HEADER}
import type { Scope } from "../../../core/api/kind.ts";
import type { Verb } from "../../registry.ts";

/** Subresource in discovery; group and version are empty if they are the resource's. */
export interface SubresourceData {
  readonly name: string;
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly verbs: readonly Verb[];
}

/** Version of a resource, with its discovery data and table columns. */
export interface ResourceData {
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly singular: string;
  readonly kind: string;
  readonly scope: Scope;
  readonly shortNames: readonly string[];
  readonly categories: readonly string[];
  readonly verbs: readonly Verb[];
  readonly subresources: readonly SubresourceData[];
  readonly columns: readonly (readonly [name: string, type: string, format: string, priority: number])[];
}

/** All versions of all built-in resources, the preferred version of a group first. */
export const RESOURCES: readonly ResourceData[] = [
${resources.map((resource) => `  ${JSON.stringify(resource)},`).join("\n")}
];
`;
}
