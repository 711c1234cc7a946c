import type { OpenApiSchema } from "../../core/patch/schema.ts";
import { GENERATED_HEADER, type KubernetesData } from "./kubernetes_data.ts";

/** Definitions that stand for any value, which OpenAPI calls an object. */
const ANY_VALUE: readonly string[] = [
  "io.k8s.apimachinery.pkg.runtime.RawExtension",
];

/** Writes the files of apiserver/builtin/data, by name. */
export function builtinFiles(data: KubernetesData): Map<string, string> {
  return new Map([
    ["definitions.ts", definitionsFile(data)],
    ["field_numbers.ts", fieldNumbersFile(data)],
    ["resources.ts", resourcesFile(data)],
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

/** The OpenAPI definitions of all built-in kinds, as JSON. */
export const DEFINITIONS: string = ${jsonLiteral(definitions)};

/**
 * Of each definition the fields that are not simply left out when they are
 * empty, by how they are written, as JSON.
 */
export const FIELD_PRESENCE: string = ${jsonLiteral(data.goFields)};
`;
}

function fieldNumbersFile(data: KubernetesData): string {
  return `${GENERATED_HEADER}

/**
 * The names of fields in JSON by their numbers in protobuf, of each definition,
 * as JSON; an object in place of a name stands for a struct that Go embeds.
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
import type { Scope } from "../../../api/kind.ts";
import type { Verb } from "../../registry.ts";

/** A subresource as discovery tells it; group and version empty for the resource's. */
export interface SubresourceData {
  readonly name: string;
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly verbs: readonly Verb[];
}

/** A version of a resource as discovery and tables tell it. */
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

/** Every version of every built-in resource, the preferred version of a group first. */
export const RESOURCES: readonly ResourceData[] = [
${resources.map((resource) => `  ${JSON.stringify(resource)},`).join("\n")}
];
`;
}
