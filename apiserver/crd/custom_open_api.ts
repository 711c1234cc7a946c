import type { OpenApiSchema } from "../../core/patch/schema.ts";
import {
  builtinOpenApiDefinitions,
  referencedDefinitions,
} from "../builtin/go_types.ts";
import type { ResourceDefinition } from "../registry.ts";
import { describedMetadata, publishedList } from "./published_schema.ts";

/** Group and version of an OpenAPI document. */
interface GroupVersion {
  readonly group: string;
  readonly version: string;
}

type PathItem = Record<string, unknown>;

const METADATA = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/** HTTP methods of the collection path, with the prefixes of their operation ids. */
const COLLECTION: readonly (readonly [string, string])[] = [
  ["get", "list"],
  ["post", "create"],
  ["delete", "deleteCollection"],
];

const OBJECT: readonly (readonly [string, string])[] = [
  ["get", "read"],
  ["put", "replace"],
  ["delete", "delete"],
  ["patch", "patch"],
];

const SUBRESOURCE: readonly (readonly [string, string])[] = [
  ["get", "read"],
  ["put", "replace"],
  ["patch", "patch"],
];

/** Values of `x-kubernetes-action` by prefix of the operation id. */
const ACTIONS: Readonly<Record<string, string>> = {
  list: "list",
  create: "post",
  deleteCollection: "deletecollection",
  read: "get",
  replace: "put",
  delete: "delete",
  patch: "patch",
};

/**
 * OpenAPI v3 document of the custom resources of a group and version, which
 * `kubectl explain` and client-side validation read.
 */
export function customOpenApi(
  { group, version }: GroupVersion,
  definitions: readonly ResourceDefinition[],
): unknown {
  const schemas: Record<string, OpenApiSchema> = {};
  const paths: Record<string, PathItem> = {};
  for (const definition of definitions) {
    const served = definition.versions.find(({ name, served }) =>
      name === version && served
    );
    if (served === undefined) continue;
    const { kind, listKind, plural } = definition;
    const name = schemaName(group, version, kind);
    schemas[name] = {
      ...served.schema.source,
      ...groupVersionKind({ group, version, kind }),
      "x-kubernetes-selectable-fields": [...served.selectableFields.keys()]
        .map((fieldPath) => ({ fieldPath })),
    };
    schemas[schemaName(group, version, listKind)] = {
      ...publishedList(kind, plural, name),
      ...groupVersionKind({ group, version, kind: listKind }),
    };
    addPaths(paths, definition, version);
  }
  const builtin = builtinOpenApiDefinitions();
  builtin[METADATA] = describedMetadata(builtin[METADATA] ?? {});
  return {
    openapi: "3.0.0",
    info: { title: "Kubernetes CRD Swagger", version: "v0.1.0" },
    paths,
    components: {
      schemas: {
        ...schemas,
        ...referencedDefinitions(schemas, builtin),
      },
    },
  };
}

/** Name of a schema, such as `com.example.v1.Widget` for Widget of `example.com/v1`. */
export function schemaName(
  group: string,
  version: string,
  kind: string,
): string {
  return [...group.split(".").reverse(), version, kind].join(".");
}

function groupVersionKind(
  { group, version, kind }: GroupVersion & { readonly kind: string },
): OpenApiSchema {
  return {
    "x-kubernetes-group-version-kind": [{ group, kind, version }],
  };
}

function addPaths(
  paths: Record<string, PathItem>,
  definition: ResourceDefinition,
  version: string,
): void {
  const { group, plural, scope } = definition;
  const root = `/apis/${group}/${version}`;
  const namespaced = scope === "Namespaced";
  const base = namespaced
    ? `${root}/namespaces/{namespace}/${plural}`
    : `${root}/${plural}`;
  const of = (suffix = "") => ({ definition, version, namespaced, suffix });
  paths[base] = pathItem(COLLECTION, of());
  paths[`${base}/{name}`] = pathItem(OBJECT, of());
  for (const { name } of definition.subresources) {
    paths[`${base}/{name}/${name}`] = pathItem(SUBRESOURCE, of(capital(name)));
  }
  if (namespaced) {
    paths[`${root}/${plural}`] = pathItem([["get", "list"]], {
      ...of("ForAllNamespaces"),
      namespaced: false,
    });
  }
}

function pathItem(
  operations: readonly (readonly [string, string])[],
  { definition, version, namespaced, suffix }: {
    readonly definition: ResourceDefinition;
    readonly version: string;
    readonly namespaced: boolean;
    readonly suffix: string;
  },
): PathItem {
  const { group, kind } = definition;
  const where = `${group.split(".").map(capital).join("")}${capital(version)}`;
  const middle = namespaced ? "Namespaced" : "";
  const parameters = [{
    name: "fieldValidation",
    in: "query",
    schema: { type: "string", uniqueItems: true },
  }];
  return Object.fromEntries(operations.map(([method, word]) => {
    const [verb = word, collection] = word.split(/(?=Collection)/);
    const before = collection === undefined ? "" : collection;
    return [method, {
      operationId: `${verb}${where}${before}${middle}${kind}${suffix}`,
      ...(method === "get" || method === "delete" ? {} : { parameters }),
      responses: { "200": { description: "OK" } },
      "x-kubernetes-action": ACTIONS[word],
      "x-kubernetes-group-version-kind": { group, kind, version },
    }];
  }));
}

function capital(word: string): string {
  return word.slice(0, 1).toUpperCase() + word.slice(1);
}
