import type { ListMeta, UntypedObject } from "@coracle/operator/client";
import type { Representation } from "../request/negotiation.ts";
import { badRequest, serverError, StatusError } from "../status.ts";
import { internalType, type ResourceVersion } from "../registry.ts";
import type { View } from "../storage/object_view.ts";

/** Object included in each row of a Table (`includeObject`). */
export type IncludeObject = "None" | "Metadata" | "Object";

/** Options of a Table. */
export interface TableOptions {
  readonly include: IncludeObject;
  /** Current time for ages, in milliseconds since the Unix epoch. */
  readonly now: number;
  /**
   * Whether to include column definitions; a watch sends them with its first
   * event only.
   */
  readonly columns: boolean;
}

/**
 * Parses the `includeObject` parameter.
 *
 * @throws {StatusError} 400 if the value is invalid.
 */
export function readIncludeObject(text: string | null): IncludeObject {
  if (text === null || text === "" || text === "Metadata") return "Metadata";
  if (text === "None" || text === "Object") return text;
  throw badRequest(
    `Unable to convert to Table as requested: includeObject: Invalid value: ${
      JSON.stringify(text)
    }: must be 'Metadata', 'Object', 'None', or empty`,
  );
}

/** PartialObjectMetadata of an object. */
export function partialObject(
  object: UntypedObject,
  version: Representation["version"],
): Record<string, unknown> {
  return {
    kind: "PartialObjectMetadata",
    apiVersion: `meta.k8s.io/${version}`,
    metadata: object.metadata,
  };
}

/** Columns of a Table and functions that compute its cells. */
export type TableShape = Pick<
  ResourceVersion,
  "columns" | "cells" | "rowConditions" | "nullRows"
>;

/** Table of objects. */
export function table(
  objects: readonly UntypedObject[],
  metadata: ListMeta,
  shape: TableShape,
  how: TableOptions & { readonly version: Representation["version"] },
): Record<string, unknown> {
  const { include, now, columns, version } = how;
  return {
    kind: "Table",
    apiVersion: `meta.k8s.io/${version}`,
    metadata,
    columnDefinitions: columns ? shape.columns : null,
    rows: objects.length === 0 && shape.nullRows
      ? null
      : objects.map((object) => ({
        cells: shape.cells(object, now),
        conditions: shape.rowConditions?.(object),
        object: include === "None"
          ? null
          : include === "Object"
          ? object
          : partialObject(object, version),
      })),
  };
}

/** Error 406: a list cannot be converted to PartialObjectMetadata. */
export function listIsNoObject(view: View): StatusError {
  const type = view.definition.custom
    ? "*unstructured.UnstructuredList"
    : `*${view.version.name}.${view.definition.listKind}`;
  return new StatusError({
    code: 406,
    reason: "NotAcceptable",
    message:
      `you requested PartialObjectMetadata, but the requested object is a list (${type})`,
  });
}

/**
 * Error 406: an object cannot be converted to PartialObjectMetadataList; 500 for a
 * custom object, as in kube-apiserver.
 */
export function objectIsNoList(
  { definition }: View,
  { apiVersion, kind }: UntypedObject,
): StatusError {
  const isScale = kind === "Scale" && apiVersion?.startsWith("autoscaling/");
  if (definition.custom && !isScale) {
    return serverError("content is not a list");
  }
  const type = !isScale
    ? internalType(definition)
    : definition.custom
    ? "v1.Scale"
    : "autoscaling.Scale";
  return new StatusError({
    code: 406,
    reason: "NotAcceptable",
    message:
      `you requested PartialObjectMetadataList, but the requested object is not a list (*${type})`,
  });
}
