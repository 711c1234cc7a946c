import {
  apiVersionOf,
  type OpenApiSchema,
  parseApiVersion,
} from "@coracle/operator/internal";
import {
  builtinOpenApiDefinitions,
  definitionOfKind,
  referencedDefinitions,
} from "../builtin/go_types.ts";
import {
  adaptDefinitions,
  type KubernetesRelease,
} from "../kubernetes_release.ts";
import { mapValues, publishedList } from "../crd/published_schema.ts";
import { subresourcesOf, type Verb } from "../registry.ts";
import type { ServedResource, ServedVersion } from "./discovery_documents.ts";

/** OpenAPI v2 document. */
export type SwaggerDocument = Readonly<Record<string, unknown>>;

type Json = Record<string, unknown>;

const META = "io.k8s.apimachinery.pkg.apis.meta.v1";
const JSON_TYPES = ["application/json", "application/yaml"];
const PATCH_TYPES = [
  "application/json-patch+json",
  "application/merge-patch+json",
  "application/strategic-merge-patch+json",
  "application/apply-patch+yaml",
];
const WATCH_TYPES = [
  "application/json;stream=watch",
  "application/vnd.kubernetes.protobuf;stream=watch",
];
const BUILTIN_TYPES = [...JSON_TYPES, "application/vnd.kubernetes.protobuf"];

/** Query parameters that operations refer to. */
const PARAMETERS: Readonly<Record<string, string>> = {
  allowWatchBookmarks: "boolean",
  continue: "string",
  fieldManager: "string",
  fieldSelector: "string",
  force: "boolean",
  gracePeriodSeconds: "integer",
  ignoreStoreReadErrorWithClusterBreakingPotential: "boolean",
  labelSelector: "string",
  limit: "integer",
  orphanDependents: "boolean",
  pretty: "string",
  propagationPolicy: "string",
  resourceVersion: "string",
  resourceVersionMatch: "string",
  sendInitialEvents: "boolean",
  timeoutSeconds: "integer",
  watch: "boolean",
};
const LIST = Object.keys(PARAMETERS).filter((name) =>
  /^(allow|cont|fieldS|lab|lim|res|send|time|watch)/.test(name)
);
const WATCH_ONLY = ["allowWatchBookmarks", "watch"];
const DELETE = [
  "dryRun",
  "gracePeriodSeconds",
  "ignoreStoreReadErrorWithClusterBreakingPotential",
  "orphanDependents",
  "propagationPolicy",
];
const WRITE = ["dryRun", "fieldManager", "fieldValidation"];

/** OpenAPI operation of a verb: method, action, prefix of the ID, and parameters. */
interface Operation {
  readonly method: string;
  readonly action: string;
  readonly id: string;
  readonly parameters: readonly string[];
  readonly codes: readonly string[];
  /** Definition of the request body; by default that of the response. */
  readonly body?: string;
  readonly answer?: string;
}

const OPERATIONS: Readonly<Record<Exclude<Verb, "watch">, Operation>> = {
  get: op("get", "get", "read", []),
  list: op("get", "list", "list", LIST),
  create: op("post", "post", "create", WRITE, ["200", "201", "202"]),
  update: op("put", "put", "replace", WRITE, ["200", "201"]),
  patch: {
    ...op("patch", "patch", "patch", [...WRITE, "force"], ["200", "201"]),
    body: `${META}.Patch`,
  },
  delete: {
    ...op("delete", "delete", "delete", DELETE, ["200", "202"]),
    body: `${META}.DeleteOptions`,
    answer: `${META}.Status`,
  },
  deletecollection: {
    ...op("delete", "deletecollection", "delete", [...DELETE, ...LIST]),
    body: `${META}.DeleteOptions`,
    answer: `${META}.Status`,
  },
};

function op(
  method: string,
  action: string,
  id: string,
  parameters: readonly string[],
  codes: readonly string[] = ["200"],
): Operation {
  return { method, action, id, parameters, codes };
}

const ANSWERS: Readonly<Record<string, string>> = {
  200: "OK",
  201: "Created",
  202: "Accepted",
  401: "Unauthorized",
};

/** Form of an operation in a version of OpenAPI. */
type OperationForm = (operation: Operation, target: OperationTarget) => Json;

/** OpenAPI v2 document of all served versions with their definitions. */
export function openApiV2(
  versions: Iterable<readonly [root: string, served: ServedVersion]>,
  release: KubernetesRelease,
): SwaggerDocument {
  const builtin = builtinOpenApiDefinitions();
  adaptDefinitions(release, builtin);
  builtin["io.k8s.apimachinery.pkg.runtime.RawExtension"] = { type: "object" };
  const custom: Record<string, OpenApiSchema> = {};
  const paths: Json = {
    "/api/": documentPath("core", "getCoreAPIVersions", "APIVersions"),
    "/apis/": documentPath("apis", "getAPIVersions", "APIGroupList"),
  };
  for (const [root, served] of versions) {
    if (!served.resources[0]?.definition.custom) {
      const { group } = served;
      const { tag, id } = namesOf(served);
      if (group !== "") {
        const { tag, id } = namesOf({ group, version: "" });
        paths[`/apis/${group}/`] = documentPath(
          tag,
          `get${id}APIGroup`,
          "APIGroup",
        );
      }
      paths[`/${root}/`] = documentPath(
        tag,
        `get${id}APIResources`,
        "APIResourceList",
      );
    }
    for (const resource of served.resources) {
      addPaths(paths, `/${root}`, { served, resource, operation });
      if (!resource.definition.custom) continue;
      // kubectl would refuse unknown fields beside properties.
      addSchemas(
        custom,
        resource,
        (schema) =>
          schema["x-kubernetes-preserve-unknown-fields"]
            ? { type: "object" }
            : prunedSchema(schema),
      );
    }
  }
  return {
    swagger: "2.0",
    info: { title: "Kubernetes", version: release.version },
    paths,
    definitions: mapValues({
      ...referencedDefinitions([paths, custom], builtin),
      ...custom,
    }, swaggerSchema),
    parameters: Object.fromEntries(
      Object.keys(PARAMETERS).map((name) => [name, parameter(name)]),
    ),
  };
}

interface Target {
  readonly served: ServedVersion;
  readonly resource: ServedResource;
}

interface OperationTarget extends Target {
  readonly id: string;
  /** Kind of the subresource, if it differs from that of the resource. */
  readonly gvk?: { group: string; kind: string; version: string };
}

/** Adds the paths of a resource, with operations in the form of an OpenAPI version. */
export function addPaths(
  paths: Json,
  root: string,
  target: Target & { readonly operation: OperationForm },
): void {
  const { definition } = target.resource;
  const { plural, scope, verbs, listKind, custom } = definition;
  const namespaced = scope === "Namespaced";
  const inside = namespaced ? "/namespaces/{namespace}" : "";
  const base = `${root}${inside}/${plural}`;
  const scoped = namespaced ? "Namespaced" : "";
  const add = (path: string, among: readonly Verb[], id: string, kind = "") =>
    addOperations(paths, path, { ...target, verbs, among, id, kind });
  const { kind } = definition;
  add(base, ["list"], `${scoped}${kind}`, listKind);
  add(base, ["create"], `${scoped}${kind}`);
  add(base, ["deletecollection"], `Collection${scoped}${kind}`);
  add(`${base}/{name}`, OBJECT_VERBS, `${scoped}${kind}`);
  if (namespaced) {
    add(`${root}/${plural}`, ["list"], `${kind}ForAllNamespaces`, listKind);
  }
  for (const one of subresourcesOf(target.resource)) {
    addOperations(paths, `${base}/{name}/${one.name}`, {
      ...target,
      verbs: one.verbs,
      among: [...OBJECT_VERBS, "create"],
      id: `${scoped}${kind}${capital(one.name)}`,
      kind: one.kind,
      apiVersion: apiVersionOf(
        one.group === "" && one.version === "" ? target.served : one,
      ),
    });
  }
  const { operation } = target;
  if (custom || !verbs.includes("watch")) return;
  const watch = (path: string, id: string) => {
    paths[path] = {
      get: operation(
        {
          ...op(
            "get",
            id.includes("List") ? "watchlist" : "watch",
            "watch",
            LIST,
          ),
          answer: `${META}.WatchEvent`,
        },
        { ...target, id },
      ),
      parameters: pathParameters(path),
    };
  };
  watch(`${root}/watch${inside}/${plural}`, `${scoped}${kind}List`);
  watch(`${root}/watch${inside}/${plural}/{name}`, `${scoped}${kind}`);
  if (namespaced) {
    watch(`${root}/watch/${plural}`, `${kind}ListForAllNamespaces`);
  }
}

const OBJECT_VERBS: readonly Verb[] = ["get", "update", "delete", "patch"];

/** Adds the operations of a path whose verbs the resource supports. */
function addOperations(
  paths: Json,
  path: string,
  how: Target & {
    readonly operation: OperationForm;
    readonly verbs: readonly Verb[];
    readonly among: readonly Verb[];
    readonly id: string;
    readonly kind: string;
    readonly apiVersion?: string;
  },
): void {
  const { resource: { definition }, served, verbs, among, operation } = how;
  const apiVersion = how.apiVersion ?? apiVersionOf(served);
  const gvk = definition.custom || how.apiVersion === undefined
    ? {}
    : { gvk: { ...parseApiVersion(apiVersion), kind: how.kind } };
  const name = definitionName(apiVersion, how.kind || definition.kind);
  for (const verb of among) {
    if (!verbs.includes(verb) || verb === "watch") continue;
    const item = (paths[path] ??= { parameters: pathParameters(path) }) as Json;
    const found = OPERATIONS[verb];
    if (how.kind.endsWith("Options")) {
      const { method } = found;
      const id = `${capital(method)}${how.id}`;
      item[method] = operation(CONNECT, { ...how, id, ...gvk });
      continue;
    }
    const answer = definition.returnsDeletedObject && verb === "delete"
      ? name
      : found.answer ?? name;
    const body = found.body ?? (found.parameters === WRITE ? name : undefined);
    item[found.method] = operation({
      ...found,
      answer,
      ...(body === undefined ? {} : { body }),
    }, { ...how, ...gvk });
  }
}

/** Operation of a subresource that opens a connection. */
const CONNECT: Operation = op("", "connect", "connect", []);

/** Definition of a kind: a built-in definition, or else a custom one. */
export function definitionName(apiVersion: string, kind: string): string {
  const [version = "", group = ""] = apiVersion.split("/").reverse();
  return definitionOfKind(apiVersion, kind) ?? schemaName(group, version, kind);
}

/** Name of a schema, such as `com.example.v1.Widget` for Widget of `example.com/v1`. */
function schemaName(group: string, version: string, kind: string): string {
  return [...group.split(".").reverse(), version, kind].join(".");
}

function operation(
  { action, id, parameters, codes, body, answer = "" }: Operation,
  { served, resource: { definition }, ...target }: OperationTarget,
): Json {
  const { group, version } = served;
  const { custom, kind } = definition;
  const types = custom ? JSON_TYPES : BUILTIN_TYPES;
  const { tag, id: gv } = namesOf(served);
  const streams = !custom && (action === "list" || action.startsWith("watch"));
  return {
    consumes: action === "patch"
      ? PATCH_TYPES.filter((type) => !custom || !type.includes("strategic"))
      : custom
      ? JSON_TYPES
      : ["*/*"],
    produces: action === "connect"
      ? ["*/*"]
      : streams
      ? [...types, ...WATCH_TYPES]
      : types,
    schemes: ["https"],
    tags: [tag],
    operationId: `${id}${gv}${target.id}`,
    parameters: [
      ...(body === undefined ? [] : [{
        name: "body",
        in: "body",
        ...(action.startsWith("delete") ? {} : { required: true }),
        schema: ref(body),
      }]),
      ...parameters.filter((name) =>
        custom || action !== "deletecollection" || !WATCH_ONLY.includes(name)
      ).map((name) =>
        PARAMETERS[name] ? { $ref: `#/parameters/${name}` } : parameter(name)
      ),
    ],
    responses: Object.fromEntries([
      ...codes.map((code) => [code, {
        description: ANSWERS[code],
        schema: answer === "" ? { type: "string" } : ref(answer),
      }]),
      ["401", { description: ANSWERS[401] }],
    ]),
    "x-kubernetes-action": action,
    "x-kubernetes-group-version-kind": target.gvk ?? { group, kind, version },
  };
}

/** Group and version as a tag, and as a part of an operation ID. */
export function namesOf(
  { group, version }: Pick<ServedVersion, "group" | "version">,
): { readonly tag: string; readonly id: string } {
  // Only letters, digits but the first, and underscores are part of a name.
  const words = (group || "core").replace(/\.k8s\.io$/, "")
    .replace(/^\p{Nd}/u, "-").split(/[^\p{L}\p{Nd}_]+/u);
  const [first = "", ...more] = words;
  const name = [first, ...more.map(capital)].join("");
  return {
    tag: version === "" ? name : `${name}_${version}`,
    id: `${capital(name)}${capital(version)}`,
  };
}

function ref(name: string): Json {
  return { $ref: `#/definitions/${name}` };
}

/** Path of a discovery document. */
function documentPath(tag: string, operationId: string, kind: string): Json {
  const schema = ref(`${META}.${kind}`);
  return {
    get: {
      consumes: BUILTIN_TYPES,
      produces: BUILTIN_TYPES,
      schemes: ["https"],
      tags: [tag],
      operationId,
      responses: {
        200: { description: ANSWERS[200], schema },
        401: { description: ANSWERS[401] },
      },
    },
  };
}

function parameter(name: string): Json {
  const type = PARAMETERS[name] ?? "string";
  return { uniqueItems: true, type, name, in: "query" };
}

function pathParameters(path: string): unknown[] {
  const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
  return [
    ...names.sort().map((name) => ({
      uniqueItems: true,
      type: "string",
      name,
      in: "path",
      required: true,
    })),
    { $ref: "#/parameters/pretty" },
  ];
}

/** Adds the schemas of a custom resource and of its list. */
export function addSchemas(
  schemas: Record<string, OpenApiSchema>,
  { definition, version }: ServedResource,
  form: (schema: OpenApiSchema) => OpenApiSchema = (schema) => schema,
): void {
  const { group, kind, listKind, plural } = definition;
  const name = schemaName(group, version.name, kind);
  const gvk = (kind: string) => ({
    "x-kubernetes-group-version-kind": [{ group, kind, version: version.name }],
  });
  const fields = [...version.selectableFields.keys()];
  const selectable = fields.length === 0 ? {} : {
    "x-kubernetes-selectable-fields": fields.map((fieldPath) => ({
      fieldPath,
    })),
  };
  schemas[name] = {
    ...form(version.schema.source),
    ...gvk(kind),
    ...selectable,
  };
  schemas[schemaName(group, version.name, listKind)] = {
    ...publishedList(kind, plural, name),
    ...gvk(listKind),
    ...selectable,
  };
}

/** Keywords that the schema of a custom resource loses in version 2. */
const DROPPED = [
  "allOf",
  "anyOf",
  "default",
  "example",
  "externalDocs",
  "not",
  "nullable",
  "oneOf",
];

/**
 * Schema of a custom resource as kube-apiserver publishes it in version 2:
 * without unions, and without structure for nullable or unknown values, which
 * readers of version 2 reject.
 */
function prunedSchema(schema: OpenApiSchema): OpenApiSchema {
  // Metadata refers to its definition.
  if (schema.allOf?.[0]?.$ref !== undefined) return schema;
  const result: Json = { ...schema };
  for (const keyword of DROPPED) delete result[keyword];
  const keeps = schema["x-kubernetes-preserve-unknown-fields"] === true;
  if (keeps || schema.nullable) {
    delete result.items;
    delete result.properties;
    if (schema["x-kubernetes-embedded-resource"]) delete result.required;
    if (schema.nullable || schema.type !== "string") delete result.type;
  }
  const { items, properties, additionalProperties: values } =
    result as OpenApiSchema;
  if (items) result.items = prunedSchema(items);
  if (properties) {
    result.properties = mapValues(properties, prunedSchema);
    const required = schema.required?.filter((name) =>
      !properties[name]?.nullable
    );
    if (required?.length === 0) delete result.required;
    else if (required) result.required = required;
  }
  if (typeof values === "object") {
    result.additionalProperties = prunedSchema(values);
    if (values.nullable) delete result.required;
  }
  return result as OpenApiSchema;
}

/** OpenAPI v3 schema converted to v2, which has no unions. */
function swaggerSchema(schema: OpenApiSchema): OpenApiSchema {
  const { allOf, oneOf, default: _, enum: values, ...result } = schema as Json;
  const reference = schema.$ref ?? (allOf as OpenApiSchema[])?.[0]?.$ref;
  if (reference !== undefined) {
    result.$ref = reference.replace("#/components/schemas/", "#/definitions/");
  }
  if (oneOf !== undefined && result.type === undefined) result.type = "string";
  if (values !== undefined) result.enum = values;
  const { items, properties, additionalProperties } = schema;
  if (items) result.items = swaggerSchema(items);
  if (properties) result.properties = mapValues(properties, swaggerSchema);
  if (typeof additionalProperties === "object") {
    result.additionalProperties = swaggerSchema(additionalProperties);
  }
  return result as OpenApiSchema;
}

function capital(word: string): string {
  return word.slice(0, 1).toUpperCase() + word.slice(1);
}
