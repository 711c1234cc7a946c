/** One operation of a JSON Patch (RFC 6902). */
export type JsonPatchOperation =
  | {
    readonly op: "add" | "replace" | "test";
    /** A JSON Pointer, such as `/metadata/finalizers/0`. */
    readonly path: string;
    readonly value: unknown;
  }
  | { readonly op: "remove"; readonly path: string }
  | {
    readonly op: "move" | "copy";
    readonly from: string;
    readonly path: string;
  };

/** A JSON Patch: operations that all happen, or none. */
export type JsonPatch = readonly JsonPatchOperation[];
