/**
 * JSON patches and merge patches, as pure functions on JSON values. Arguments are
 * never modified. Functions for servers alone, such as strategic merge patches,
 * field ownership and the merge of server-side apply, are in `@coracle/dev`.
 * This folder imports only `api`.
 *
 * @module
 */

import { checkOptions, typeText } from "../api/options.ts";
import {
  isJsonObject,
  jsonEquals,
  type JsonObject,
  setOwn,
} from "./json_value.ts";

/**
 * Operation of a JSON Patch (RFC 6902). Paths are JSON pointers; `-` as the last
 * segment of an `add` is the end of a list. A `test` that fails rejects the whole
 * patch.
 */
export type JsonPatchOperation =
  | {
    /** Operation: `add`, `replace` or `test`. */
    readonly op: "add" | "replace" | "test";
    /** Path of the target. */
    readonly path: string;
    /** Value to add, to replace with, or to compare with. */
    readonly value: unknown;
  }
  | {
    /** Operation: `remove`. */
    readonly op: "remove";
    /** Path of the value to remove. */
    readonly path: string;
  }
  | {
    /** Operation: `move` or `copy`. */
    readonly op: "move" | "copy";
    /** Path of the source value. */
    readonly from: string;
    /** Path of the target. */
    readonly path: string;
  };

/** Error of a JSON Patch that does not fit the document, or whose test failed. */
export class JsonPatchError extends Error {
  /** Index of the failed operation in the patch. */
  readonly index: number;

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

/** Steps of a JSON pointer that is not empty. */
export function pointerSteps(pointer: string): string[] {
  return pointer.split("/").slice(1).map((step) =>
    step.replaceAll("~1", "/").replaceAll("~0", "~")
  );
}

/** Failure of an operation of a patch; the caller adds the index. */
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
  return pointerSteps(pointer);
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

/** Value that a test compares; an absent field is null, as in kube-apiserver. */
function tested(document: unknown, path: readonly string[]): unknown {
  const parent = read(document, path.slice(0, -1));
  const step = path.at(-1);
  if (step === undefined) return document;
  const isAbsent = isJsonObject(parent) && !Object.hasOwn(parent, step);
  return isAbsent ? null : child(parent, step);
}

/** State of the application of a patch. */
interface PatchState {
  /** Objects and arrays of the result alone, which may be changed. */
  readonly owned: WeakSet<object>;
  /** Number of characters that copies may still add. */
  mayCopy: number;
}

function own(value: unknown, { owned }: PatchState): unknown {
  if (typeof value !== "object" || value === null || owned.has(value)) {
    return value;
  }
  const copy = Array.isArray(value) ? [...value] : { ...value };
  owned.add(copy);
  return copy;
}

/**
 * Changes the parent of the value at a path; an object or array on the path is
 * copied by the first operation that changes it.
 */
function rewrite(
  document: unknown,
  path: readonly string[],
  state: PatchState,
  change: (parent: unknown, step: string) => void,
): unknown {
  const root = own(document, state);
  let parent = root;
  for (const step of path.slice(0, -1)) {
    const next = own(child(parent, step), state);
    setChild(parent, step, next);
    parent = next;
  }
  change(parent, path.at(-1) ?? "");
  return root;
}

function setChild(parent: unknown, step: string, value: unknown): void {
  if (Array.isArray(parent)) parent[indexOf(step, parent.length)] = value;
  else setOwn(parent as object, step, value);
}

function add(
  document: unknown,
  path: readonly string[],
  value: unknown,
  state: PatchState,
): unknown {
  if (path.length === 0) return value;
  return rewrite(document, path, state, (parent, step) => {
    if (Array.isArray(parent)) {
      // Insertion is possible at n + 1 positions of n items.
      const index = step === "-"
        ? parent.length
        : indexOf(step, parent.length + 1);
      parent.splice(index, 0, value);
    } else if (isJsonObject(parent)) setChild(parent, step, value);
    else {
      throw new OperationError(
        `the parent of "${step}" is neither an object nor a list`,
      );
    }
  });
}

function remove(
  document: unknown,
  path: readonly string[],
  state: PatchState,
): unknown {
  if (path.length === 0) {
    throw new OperationError("the document cannot be removed");
  }
  return rewrite(document, path, state, (parent, step) => {
    child(parent, step);
    if (Array.isArray(parent)) parent.splice(indexOf(step, parent.length), 1);
    else delete (parent as JsonObject)[step];
  });
}

function replace(
  document: unknown,
  path: readonly string[],
  value: unknown,
  state: PatchState,
): unknown {
  if (path.length === 0) return value;
  return rewrite(document, path, state, (parent, step) => {
    // An absent field is added, as in kube-apiserver.
    if (!isJsonObject(parent)) child(parent, step);
    setChild(parent, step, value);
  });
}

/** Copies a value of the result, within the total limit of copies. */
function copy(value: unknown, state: PatchState): unknown {
  const text = JSON.stringify(value ?? null);
  state.mayCopy -= text.length;
  if (state.mayCopy >= 0) return JSON.parse(text);
  throw new OperationError("the copies are too large");
}

function apply(
  document: unknown,
  operation: JsonPatchOperation,
  state: PatchState,
): unknown {
  const path = parsePointer(operation.path);
  switch (operation.op) {
    case "add":
      return add(document, path, operation.value ?? null, state);
    case "remove":
      return remove(document, path, state);
    case "replace":
      return replace(document, path, operation.value ?? null, state);
    case "copy": {
      const value = read(document, parsePointer(operation.from));
      return add(document, path, copy(value, state), state);
    }
    case "move": {
      const from = parsePointer(operation.from);
      const value = read(document, from);
      return operation.path === operation.from
        ? document
        : add(remove(document, from, state), path, value, state);
    }
    case "test": {
      const value = tested(document, path);
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
 * @throws {TypeError} If the patch is not a list.
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
  options: {
    /**
     * Maximum number of characters that `copy` operations may add, as JSON.
     *
     * @default {Infinity}
     */
    readonly maxCopied?: number;
  } = {},
): unknown {
  if (!Array.isArray(patch)) {
    throw new TypeError(
      `Cannot apply a JSON patch: it must be a list of operations: received ${
        typeText(patch)
      }`,
    );
  }
  checkOptions(options, { maxCopied: "number?" }, "applyJsonPatch()");
  const { maxCopied: mayCopy = Infinity } = options;
  const state: PatchState = { owned: new WeakSet(), mayCopy };
  let result = document;
  for (const [index, operation] of patch.entries()) {
    try {
      result = apply(result, operation, state);
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

/** Compares two lists: skips equal items at both ends, then compares by index. */
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
