import { apiVersionOf, type OpenApiSchema } from "@coracle/operator/internal";
import {
  builtinOpenApiDefinitions,
  referencedDefinitions,
} from "../builtin/go_types.ts";
import {
  adaptDefinitions,
  DEFAULT_RELEASE,
  type KubernetesRelease,
} from "../kubernetes_release.ts";
import { describedMetadata } from "../crd/published_schema.ts";
import type { ServedVersion } from "./discovery_documents.ts";
import { addPaths, addSchemas, definitionName, namesOf } from "./openapi_v2.ts";

const META = "io.k8s.apimachinery.pkg.apis.meta.v1";

/** Parameters of write operations; kubectl detects server-side validation by `fieldValidation`. */
const WRITE_PARAMETERS = [{
  name: "fieldValidation",
  in: "query",
  schema: { type: "string", uniqueItems: true },
}] as const;

/**
 * OpenAPI v3 document of a group and version, which `kubectl explain` and
 * client-side validation read.
 */
export function openApiV3(
  served: ServedVersion,
  release: KubernetesRelease = DEFAULT_RELEASE,
): unknown {
  const { group, version, resources } = served;
  const root = group === "" ? `/api/${version}` : `/apis/${group}/${version}`;
  const paths: Record<string, unknown> = {};
  for (const resource of resources) {
    addPaths(paths, root, {
      served,
      resource,
      operation: ({ action, id, parameters }, { resource, ...target }) => ({
        operationId: `${id}${namesOf(served).id}${target.id}`,
        ...parameters.includes("fieldValidation") &&
          { parameters: WRITE_PARAMETERS },
        responses: { "200": { description: "OK" } },
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": target.gvk ??
          { group, kind: resource.definition.kind, version },
      }),
    });
  }
  const builtin = builtinOpenApiDefinitions();
  adaptDefinitions(release, builtin);
  const custom = resources.filter(({ definition }) => definition.custom);
  const schemas: Record<string, OpenApiSchema> = {};
  let references: unknown = schemas;
  if (custom.length > 0) {
    for (const resource of custom) addSchemas(schemas, resource);
    const metadata = `${META}.ObjectMeta`;
    builtin[metadata] = describedMetadata(builtin[metadata] ?? {});
  } else {
    builtin["io.k8s.apimachinery.pkg.runtime.RawExtension"] = {
      type: "object",
    };
    const apiVersion = apiVersionOf(served);
    references = [
      `${META}.DeleteOptions`,
      `${META}.Status`,
      ...resources.flatMap(({ definition: { kind, listKind } }) =>
        [kind, listKind].map((kind) => definitionName(apiVersion, kind))
      ),
    ].map((name) => ({ $ref: name }));
  }
  return {
    openapi: "3.0.0",
    info: custom.length > 0
      ? { title: "Kubernetes CRD Swagger", version: "v0.1.0" }
      : { title: "Kubernetes", version: release.version.replace(/\.\d+$/, "") },
    paths,
    components: {
      schemas: { ...schemas, ...referencedDefinitions(references, builtin) },
    },
  };
}
