import {
  builtinOpenApiDefinitions,
  referencedDefinitions,
} from "./go_types.ts";
import type { OpenApiSchema } from "../../core/patch/schema.ts";
import { type ResourceData, RESOURCES } from "./data/resource_table.ts";
import type { Verb } from "../registry.ts";

const RAW_EXTENSION = "io.k8s.apimachinery.pkg.runtime.RawExtension";
const META = "io.k8s.apimachinery.pkg.apis.meta.v1";

/** HTTP method and `x-kubernetes-action` of each verb. */
const OPERATIONS: Readonly<
  Partial<Record<Verb, readonly [method: string, action: string]>>
> = {
  get: ["get", "get"],
  list: ["get", "list"],
  create: ["post", "post"],
  update: ["put", "put"],
  patch: ["patch", "patch"],
  delete: ["delete", "delete"],
  deletecollection: ["delete", "deletecollection"],
};

const ON_COLLECTION: readonly Verb[] = ["list", "create", "deletecollection"];
const ON_OBJECT: readonly Verb[] = ["get", "update", "patch", "delete"];

/** Parameters of write operations; by `fieldValidation` kubectl detects server-side validation. */
const WRITE_PARAMETERS = [{
  name: "fieldValidation",
  in: "query",
  schema: { type: "string", uniqueItems: true },
}] as const;

function isRead(verb: Verb): boolean {
  return verb !== "create" && verb !== "update" && verb !== "patch";
}

type Paths = Record<string, Record<string, unknown>>;

/** OpenAPI v3 document of a path such as `api/v1` or `apis/apps/v1`. */
export function builtinOpenApi(path: string): unknown {
  const definitions = builtinOpenApiDefinitions();
  definitions[RAW_EXTENSION] = { type: "object" };
  const paths: Paths = {};
  const roots = new Set<string>([`${META}.DeleteOptions`, `${META}.Status`]);
  for (const resource of RESOURCES) {
    const { group, version, kind } = resource;
    const prefix = group === "" ? `api/${version}` : `apis/${group}/${version}`;
    if (prefix !== path) continue;
    addPaths(paths, `/${path}`, resource);
    for (const [name, schema] of Object.entries(definitions)) {
      const isRoot = groupVersionKinds(schema).some((gvk) =>
        gvk.group === group && gvk.version === version &&
        (gvk.kind === kind || gvk.kind === `${kind}List`)
      );
      if (isRoot) roots.add(name);
    }
  }
  return {
    openapi: "3.0.0",
    info: { title: "Kubernetes", version: "v1.36" },
    paths,
    components: {
      schemas: referencedDefinitions(
        [...roots].map((name) => ({ $ref: name })),
        definitions,
      ),
    },
  };
}

function groupVersionKinds(
  schema: OpenApiSchema,
): { group: string; version: string; kind: string }[] {
  const found = schema["x-kubernetes-group-version-kind"];
  return Array.isArray(found) ? found : [];
}

function addPaths(paths: Paths, root: string, resource: ResourceData): void {
  const { plural, scope, verbs } = resource;
  const base = scope === "Namespaced"
    ? `${root}/namespaces/{namespace}/${plural}`
    : `${root}/${plural}`;
  addOperations(paths, base, { resource, verbs, among: ON_COLLECTION });
  addOperations(paths, `${base}/{name}`, { resource, verbs, among: ON_OBJECT });
  for (const { name, verbs } of resource.subresources) {
    const among = [...ON_OBJECT, "create" as const];
    addOperations(paths, `${base}/{name}/${name}`, { resource, verbs, among });
  }
}

function addOperations(
  paths: Paths,
  path: string,
  { resource, verbs, among }: {
    readonly resource: ResourceData;
    readonly verbs: readonly Verb[];
    readonly among: readonly Verb[];
  },
): void {
  const { group, version, kind } = resource;
  const item: Record<string, unknown> = {};
  for (const verb of verbs) {
    const operation = OPERATIONS[verb];
    if (!among.includes(verb) || operation === undefined) continue;
    const [method, action] = operation;
    item[method] = {
      ...(isRead(verb) ? {} : { parameters: WRITE_PARAMETERS }),
      responses: { "200": { description: "OK" } },
      "x-kubernetes-action": action,
      "x-kubernetes-group-version-kind": { group, version, kind },
    };
  }
  if (Object.keys(item).length > 0) paths[path] = item;
}
