import type { ListMeta, UntypedObject } from "../../core/api/object.ts";
import type { Representation } from "../request/negotiation.ts";
import { badRequest, StatusError } from "../status.ts";
import type { ResourceVersion } from "../registry.ts";
import type { View } from "./object_view.ts";

/** What a row of a Table carries beside its cells. */
export type IncludeObject = "None" | "Metadata" | "Object";

/** How a Table is made. */
export interface TableOptions {
  readonly include: IncludeObject;
  /** The time for ages, in epoch milliseconds. */
  readonly now: number;
  /** Whether the columns are described: not after a watch's first event. */
  readonly columns: boolean;
}

/**
 * Reads the `includeObject` parameter.
 *
 * @throws {StatusError} 400 if it is not one of the three.
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

/** An object's metadata as a PartialObjectMetadata. */
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

/** What makes a Table's columns and the cells of its rows. */
export type TableShape = Pick<
  ResourceVersion,
  "columns" | "cells" | "rowConditions" | "nullRows"
>;

/** Objects as a Table. */
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

/** 406: a list cannot be one PartialObjectMetadata. */
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

/** 500: an object is no list; kube-apiserver answers no better. */
export function objectIsNoList(): StatusError {
  return new StatusError({ code: 500, message: "content is not a list" });
}
