/**
 * JSON patches, merge patches and field ownership, as pure functions on JSON
 * values. Arguments are never modified. What only a server needs, such as
 * strategic merge patches and the merge of server-side apply, is in
 * `apiserver/merge`. This folder imports only `api`.
 *
 * @module
 */

import { isJsonObject, jsonEquals, type JsonObject } from "./json_value.ts";

/**
 * Operation of a JSON Patch (RFC 6902). Paths are JSON pointers; `-` as the last
 * segment of an `add` is the end of a list. A `test` that fails rejects the whole
 * patch.
 */
export type JsonPatchOperation =
  | {
    /** Adds a value, replaces one, or compares with one. */
    readonly op: "add" | "replace" | "test";
    /** Target of the operation. */
    readonly path: string;
    /** Value to add, to replace with, or to compare with. */
    readonly value: unknown;
  }
  | {
    /** Removes a value. */
    readonly op: "remove";
    /** Value to remove. */
    readonly path: string;
  }
  | {
    /** Moves or copies a value. */
    readonly op: "move" | "copy";
    /** Source of the value. */
    readonly from: string;
    /** Target of the value. */
    readonly path: string;
  };

/** Error of a JSON Patch that does not fit the document, or whose test failed. */
export class JsonPatchError extends Error {
  /** Index of the operation. */
  readonly index: number;

  /**
   * Creates the error.
   *
   * @param message Message.
   * @param index Index of the operation.
   */
  constructor(message: string, index: number) {
    super(message);
    this.name = "JsonPatchError";
    this.index = index;
  }
}

/** Encodes a path as a JSON pointer. */
export function jsonPointer(path: readonly (string | number)[]): string {
  return path.map((step) =>
    `/${String(step).replaceAll("~", "~0").replaceAll("/", "~1")}`
  ).join("");
}

/** Failure of an operation; the index is added by the caller. */
class OperationError extends Error {}

function parsePointer(pointer: unknown): string[] {
  if (pointer === "") return [];
  if (typeof pointer !== "string" || !pointer.startsWith("/")) {
    throw new OperationError(
      `a path must be empty or start with "/": received ${
        JSON.stringify(pointer)
      }`,
    );
  }
  return pointer.slice(1).split("/").map((step) =>
    step.replaceAll("~1", "/").replaceAll("~0", "~")
  );
}

function indexOf(step: string, limit: number): number {
  // A negative index counts from the end, as in kube-apiserver.
  const index = /^(0|-?[1-9]\d*)$/.test(step) ? Number(step) : NaN;
  const position = index < 0 ? limit + index : index;
  if (position >= 0 && position < limit) return position;
  throw new OperationError(`there is no index "${step}"`);
}

function child(parent: unknown, step: string): unknown {
  if (Array.isArray(parent)) return parent[indexOf(step, parent.length)];
  if (isJsonObject(parent) && Object.hasOwn(parent, step)) return parent[step];
  throw new OperationError(`there is nothing at "${step}"`);
}

function read(document: unknown, path: readonly string[]): unknown {
  return path.reduce(child, document);
}

/**
 * Copies a document with a change at a path; only the containers on the path are
 * copied.
 */
function rewrite(
  document: unknown,
  path: readonly string[],
  change: (parent: unknown, step: string) => unknown,
): unknown {
  const [step, ...rest] = path;
  if (step === undefined) return document;
  if (rest.length === 0) return change(document, step);
  const replaced = rewrite(child(document, step), rest, change);
  return withChild(document, step, replaced);
}

function withChild(parent: unknown, step: string, value: unknown): unknown {
  if (Array.isArray(parent)) {
    return parent.with(indexOf(step, parent.length), value);
  }
  // Spreading and a computed name never call the setter of __proto__.
  return { ...parent as JsonObject, [step]: value };
}

function add(
  document: unknown,
  path: readonly string[],
  value: unknown,
): unknown {
  if (path.length === 0) return value;
  return rewrite(document, path, (parent, step) => {
    if (Array.isArray(parent)) {
      // Insertion is possible at n + 1 positions of n items.
      const index = step === "-"
        ? parent.length
        : indexOf(step, parent.length + 1);
      return parent.toSpliced(index, 0, value);
    }
    if (isJsonObject(parent)) return withChild(parent, step, value);
    throw new OperationError(
      `the parent of "${step}" is neither an object nor a list`,
    );
  });
}

function remove(document: unknown, path: readonly string[]): unknown {
  if (path.length === 0) {
    throw new OperationError("the document cannot be removed");
  }
  return rewrite(document, path, (parent, step) => {
    child(parent, step);
    if (Array.isArray(parent)) {
      return parent.toSpliced(indexOf(step, parent.length), 1);
    }
    const { [step]: _, ...rest } = parent as JsonObject;
    return rest;
  });
}

function replace(
  document: unknown,
  path: readonly string[],
  value: unknown,
): unknown {
  if (path.length === 0) return value;
  return rewrite(document, path, (parent, step) => {
    // An absent field is added, as in kube-apiserver.
    if (!isJsonObject(parent)) child(parent, step);
    return withChild(parent, step, value);
  });
}

function apply(document: unknown, operation: JsonPatchOperation): unknown {
  const path = parsePointer(operation.path);
  switch (operation.op) {
    case "add":
      return add(document, path, operation.value ?? null);
    case "remove":
      return remove(document, path);
    case "replace":
      return replace(document, path, operation.value ?? null);
    case "copy":
      return add(document, path, read(document, parsePointer(operation.from)));
    case "move": {
      const from = parsePointer(operation.from);
      const value = read(document, from);
      return operation.path === operation.from
        ? document
        : add(remove(document, from), path, value);
    }
    case "test": {
      const value = read(document, path);
      if (jsonEquals(value, operation.value ?? null)) return document;
      throw new OperationError(
        `the value differs from ${JSON.stringify(operation.value)}`,
      );
    }
    default: {
      const { op } = operation as { op?: unknown };
      throw new OperationError(`unknown operation ${JSON.stringify(op)}`);
    }
  }
}

/**
 * Applies a JSON Patch (RFC 6902), completely or not at all. The document is not
 * modified; the result shares the parts that did not change.
 *
 * @throws {JsonPatchError} If an operation does not fit or a test fails.
 *
 * @example Test and replace a value
 * ```ts
 * import { applyJsonPatch } from "@coracle/operator/core";
 *
 * const patched = applyJsonPatch({ spec: { replicas: 1 } }, [
 *   { op: "test", path: "/spec/replicas", value: 1 },
 *   { op: "replace", path: "/spec/replicas", value: 2 },
 * ]);
 * if (JSON.stringify(patched) !== '{"spec":{"replicas":2}}') {
 *   throw new Error("Unexpected");
 * }
 * ```
 */
export function applyJsonPatch(
  document: unknown,
  patch: readonly JsonPatchOperation[],
): unknown {
  let result = document;
  for (const [index, operation] of patch.entries()) {
    try {
      result = apply(result, operation);
    } catch (error) {
      if (!(error instanceof OperationError)) throw error;
      throw new JsonPatchError(
        `Cannot apply operation ${index} of a JSON patch at "${operation.path}": ${error.message}`,
        index,
      );
    }
  }
  return result;
}

/**
 * Creates the JSON Patch that turns one document into another, with operations on
 * the deepest differing parts; empty if they are equal.
 */
export function diffJsonPatch(
  before: unknown,
  after: unknown,
): JsonPatchOperation[] {
  const patch: JsonPatchOperation[] = [];
  diff(before, after, { path: "", patch });
  return patch;
}

interface DiffState {
  readonly path: string;
  readonly patch: JsonPatchOperation[];
}

function diff(before: unknown, after: unknown, state: DiffState): void {
  if (jsonEquals(before, after)) return;
  if (isJsonObject(before) && isJsonObject(after)) {
    diffFields(before, after, state);
  } else if (Array.isArray(before) && Array.isArray(after)) {
    diffItems(before, after, state);
  } else {
    state.patch.push({ op: "replace", path: state.path, value: after });
  }
}

function diffFields(
  before: JsonObject,
  after: JsonObject,
  { path, patch }: DiffState,
): void {
  for (const name of Object.keys(before)) {
    if (Object.hasOwn(after, name)) continue;
    patch.push({ op: "remove", path: path + jsonPointer([name]) });
  }
  for (const [name, value] of Object.entries(after)) {
    const fieldPath = path + jsonPointer([name]);
    if (Object.hasOwn(before, name)) {
      diff(before[name], value, { path: fieldPath, patch });
    } else patch.push({ op: "add", path: fieldPath, value });
  }
}

/** Skips equal items at both ends and compares the others by index. */
function diffItems(
  before: readonly unknown[],
  after: readonly unknown[],
  { path, patch }: DiffState,
): void {
  const shorter = Math.min(before.length, after.length);
  let start = 0;
  while (start < shorter && jsonEquals(before[start], after[start])) start++;
  let end = 0;
  while (
    end < shorter - start &&
    jsonEquals(before[before.length - 1 - end], after[after.length - 1 - end])
  ) end++;
  const oldEnd = before.length - end;
  const newEnd = after.length - end;
  const common = Math.min(oldEnd, newEnd);
  for (let i = start; i < common; i++) {
    diff(before[i], after[i], { path: `${path}/${i}`, patch });
  }
  for (let i = oldEnd - 1; i >= common; i--) {
    patch.push({ op: "remove", path: `${path}/${i}` });
  }
  for (let i = common; i < newEnd; i++) {
    patch.push({ op: "add", path: `${path}/${i}`, value: after[i] });
  }
}
