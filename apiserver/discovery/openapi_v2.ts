import { Buffer } from "node:buffer";
import type { ServedVersion } from "./discovery_documents.ts";

/** Media type with which Go clients request OpenAPI v2 as protobuf. */
export const OPENAPI_V2_PROTOBUF =
  "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";

/**
 * Content type of that answer, since the requested name is not a valid media
 * type.
 */
export const OPENAPI_V2_CONTENT_TYPE: string = OPENAPI_V2_PROTOBUF.replace(
  "@",
  ".",
);

/** PATCH path of a kind, which is all that clients read in version 2. */
export interface PatchPath {
  readonly path: string;
  readonly group: string;
  readonly version: string;
  readonly kind: string;
}

/** PATCH paths of the kinds of a group and version. */
export function patchPaths(
  root: string,
  { group, version, resources }: ServedVersion,
): readonly PatchPath[] {
  return resources
    .filter(({ definition }) => definition.verbs.includes("patch"))
    .map(({ definition }) => {
      const { plural, kind, scope } = definition;
      const within = scope === "Namespaced" ? "/namespaces/{namespace}" : "";
      return {
        path: `/${root}${within}/${plural}/{name}`,
        group,
        version,
        kind,
      };
    });
}

const SWAGGER = "2.0";
const INFO = { title: "Kubernetes", version: "v1.32.13" } as const;
const GVK = "x-kubernetes-group-version-kind";
/** Parameter by which kubectl detects server-side field validation. */
const PARAMETER = {
  name: "fieldValidation",
  in: "query",
  type: "string",
} as const;

/**
 * OpenAPI v2 document without definitions, which are in version 3. kubectl
 * reads here how a `v1` `List` is validated, and nothing else.
 */
export function openApiV2(paths: readonly PatchPath[]): unknown {
  return {
    swagger: SWAGGER,
    info: INFO,
    paths: Object.fromEntries(
      paths.map(({ path, ...gvk }) => [path, {
        patch: {
          parameters: [PARAMETER],
          responses: { "200": { description: "OK" } },
          [GVK]: gvk,
        },
      }]),
    ),
    definitions: {},
  };
}

/**
 * OpenAPI v2 document as protobuf, with the field numbers of gnostic's
 * OpenAPIv2.
 */
export function openApiV2Protobuf(paths: readonly PatchPath[]): Uint8Array {
  const query = message([
    [2, PARAMETER.in],
    [4, PARAMETER.name],
    [6, PARAMETER.type],
  ]);
  // ParametersItem > Parameter > NonBodyParameter > QueryParameterSubSchema
  const parameter = [3, 2, 1].reduce(
    (inner, number) => message([[number, inner]]),
    query,
  );
  const items = paths.map(({ path, ...gvk }): Field => {
    const extension = message([[1, GVK], [
      2,
      message([[
        2,
        JSON.stringify(gvk),
      ]]),
    ]]);
    const operation = message([[8, parameter], [13, extension]]);
    return [2, message([[1, path], [2, message([[8, operation]])]])];
  });
  return message([
    [1, SWAGGER],
    [2, message([[1, INFO.title], [2, INFO.version]])],
    [8, message(items)],
  ]);
}

type Field = readonly [number: number, value: string | Uint8Array];

/** Encodes a protobuf message whose fields are strings or nested messages. */
function message(fields: readonly Field[]): Uint8Array {
  return Buffer.concat(fields.flatMap(([number, value]) => {
    const bytes = Buffer.from(value as string);
    return [varint(number * 8 + 2), varint(bytes.length), bytes];
  }));
}

function varint(value: number): Uint8Array {
  const bytes: number[] = [];
  for (; value > 0x7f; value = Math.floor(value / 128)) {
    bytes.push(value % 128 + 128);
  }
  return Uint8Array.from([...bytes, value]);
}
