import type { ListMeta, UntypedObject } from "../../api/object.ts";
import type { Representation } from "../request/negotiation.ts";
import { StatusError } from "../status.ts";
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

/** Reads the `includeObject` parameter; unknown values count as absent. */
export function readIncludeObject(text: string | null): IncludeObject {
  return text === "None" || text === "Object" ? text : "Metadata";
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

/** Objects as a Table. */
export function table(
  objects: readonly UntypedObject[],
  metadata: ListMeta,
  view: View,
  how: TableOptions & { readonly version: Representation["version"] },
): Record<string, unknown> {
  const { include, now, columns, version } = how;
  return {
    kind: "Table",
    apiVersion: `meta.k8s.io/${version}`,
    metadata,
    columnDefinitions: columns ? view.version.columns : null,
    rows: objects.map((object) => ({
      cells: view.version.cells(object, now),
      conditions: view.version.rowConditions?.(object),
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
