import { isJsonObject, type JsonObject } from "../../core/patch/json_value.ts";
import {
  type Form,
  formOfField,
  formOfKind,
  isEmptyValue,
  isFilled,
  isGranular,
  sameValue,
} from "./value_form.ts";
import type { KubernetesObject } from "../../core/api/object.ts";
import type { Kind } from "../../core/api/kind.ts";
import { LatestMap } from "../../core/controller/latest_map.ts";
import { textHash } from "../../core/controller/run/apply_memory.ts";

/** Metadata fields that a desired object can set. */
const ASKED_METADATA: ReadonlySet<string> = new Set([
  "annotations",
  "finalizers",
  "labels",
  "ownerReferences",
]);

/**
 * Finds the first owned field that applying a desired object would change.
 *
 * A field differs if it is desired and stored otherwise or not owned, or owned
 * and no longer desired. Whether a list is keyed, a set or atomic follows from
 * the owned fields, as the server has stored them. The order of keyed lists is
 * ignored.
 *
 * @returns The path of the field; undefined if nothing would change.
 */
export function firstDifference(
  desired: object,
  actual: object,
  { owned, form }: {
    readonly owned: OwnedFields;
    readonly form?: Form | undefined;
  },
): string | undefined {
  const { apiVersion: _apiVersion, kind: _kind, status: _status, ...asked } =
    desired as JsonObject;
  const metadata = Object.fromEntries(
    Object.entries(isJsonObject(asked["metadata"]) ? asked["metadata"] : {})
      .filter(([name]) => ASKED_METADATA.has(name)),
  );
  const position = { owned, path: "", form };
  return inObject({ ...asked, metadata }, actual as JsonObject, position);
}

interface Position {
  readonly owned: unknown;
  readonly path: string;
  readonly form: Form | undefined;
}

function inValue(
  desired: unknown,
  actual: unknown,
  position: Position,
): string | undefined {
  const { owned, form, path } = position;
  const [first] = ownedChildren(owned);
  switch (first?.[0][0]) {
    case "f":
      if (!isJsonObject(desired)) break;
      return inObject(desired, isJsonObject(actual) ? actual : {}, position);
    case "k":
      if (!Array.isArray(desired)) break;
      return inKeyedList(desired, listOf(actual), position);
    case "v":
      if (!Array.isArray(desired)) break;
      return inSet(desired, listOf(actual), position);
    case undefined:
      // A list or map without owned entries.
      if (isContainerAlone(owned) && isEmptyValue(desired, form)) {
        return undefined;
      }
      // An object that was applied empty; others own its fields.
      if (
        isOwnedWhole(owned) && isGranular(form) && isJsonObject(actual) &&
        isJsonObject(desired) && Object.keys(desired).length === 0
      ) return undefined;
  }
  return sameValue(desired, actual, form) ? undefined : path;
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function inObject(
  desired: JsonObject,
  actual: JsonObject,
  { owned, path, form }: Position,
): string | undefined {
  const children = new Map(ownedChildren(owned));
  for (const [name, value] of Object.entries(desired)) {
    const below = children.get(`f:${name}`);
    const position = {
      owned: below,
      path: `${path}.${name}`,
      form: formOfField(form, name),
    };
    if (below === undefined) {
      // The server does not store empty values.
      if (isEmptyValue(value, position.form)) continue;
      return changedLeaf(value, actual[name], position);
    }
    const stored = actual[name];
    if (isFilled(form, name, { desired: value, actual: stored })) continue;
    const found = inValue(value, stored, position);
    if (found !== undefined) return found;
  }
  for (const [element] of children) {
    const name = element.slice(2);
    if (!Object.hasOwn(desired, name)) return `${path}.${name}`;
  }
  return undefined;
}

/** Finds the first field below a value that differs, or the value itself. */
function changedLeaf(
  desired: unknown,
  actual: unknown,
  { path, form }: Pick<Position, "path" | "form">,
): string {
  if (!isJsonObject(desired) || !isJsonObject(actual)) return path;
  const name = Object.keys(desired).find((key) =>
    !sameValue(desired[key], actual[key], formOfField(form, key))
  );
  return name === undefined ? path : changedLeaf(desired[name], actual[name], {
    path: `${path}.${name}`,
    form: formOfField(form, name),
  });
}

function inKeyedList(
  desired: readonly unknown[],
  actual: readonly unknown[],
  { owned, path, form }: Position,
): string | undefined {
  const open = new Map(ownedChildren(owned));
  for (const item of desired) {
    // The server sets missing keys to defaults.
    const match = [...open].find(([element]) =>
      isJsonObject(item) &&
      Object.entries(keysOf(element)).every(([name, value]) =>
        item[name] === value || item[name] === undefined
      )
    );
    if (match === undefined) return `${path}[]`;
    const [element, below] = match;
    open.delete(element);
    const position = {
      owned: withoutKeys(below, element),
      path: `${path}[${element.slice(2)}]`,
      form,
    };
    const wanted = withoutFields(item as JsonObject, element);
    const stored = (findKeyed(actual, element) ?? {}) as JsonObject;
    // An item whose fields are not owned individually is owned as a whole.
    if (!isOwnedWhole(below)) {
      const found = inObject(wanted, stored, position);
      if (found !== undefined) return found;
      continue;
    }
    const whole = withoutFields(stored, element);
    if (!sameValue(wanted, whole, form)) {
      return changedLeaf(wanted, whole, position);
    }
  }
  const [left] = open.keys();
  return left === undefined ? undefined : `${path}[${left.slice(2)}]`;
}

/** Removes the keys of a list item, which are equal or defaulted. */
function withoutFields(item: JsonObject, element: string): JsonObject {
  const keys = keysOf(element);
  return Object.fromEntries(
    Object.entries(item).filter(([name]) => !Object.hasOwn(keys, name)),
  );
}

function withoutKeys(owned: unknown, element: string): OwnedFields {
  const keys = keysOf(element);
  return Object.fromEntries(
    ownedChildren(owned)
      .filter(([name]) => !Object.hasOwn(keys, name.slice(2))),
  );
}

function inSet(
  desired: readonly unknown[],
  actual: readonly unknown[],
  { owned, path }: Position,
): string | undefined {
  const asked = new Set(desired.map((item) => JSON.stringify(item)));
  const stored = new Set(actual.map((item) => JSON.stringify(item)));
  const ours = new Set(ownedChildren(owned).map(([name]) => valueOf(name)));
  const differing =
    [...asked].find((item) => !stored.has(item) || !ours.has(item)) ??
      [...ours].find((item) => !asked.has(item));
  return differing === undefined ? undefined : `${path}[${differing}]`;
}

/** Tree of owned fields, as in `managedFields`. */
export type OwnedFields = JsonObject;

/**
 * Finds the fields that a manager has applied in a version of the kind. Field
 * names are those of the version, and an apply in another version replaces the
 * earlier fields.
 *
 * @returns The owned fields; undefined if absent.
 */
function ownedFieldsOf(
  object: KubernetesObject,
  fieldManager: string,
  apiVersion: string | undefined,
): OwnedFields | undefined {
  const entry = object.metadata.managedFields?.find((entry) =>
    entry.manager === fieldManager && entry.operation === "Apply" &&
    !entry.subresource && entry.apiVersion === apiVersion
  );
  return isJsonObject(entry?.fieldsV1) ? entry.fieldsV1 : undefined;
}

/** Entries below an owned field, without `.` for the field itself. */
function ownedChildren(owned: unknown): readonly [string, unknown][] {
  return isJsonObject(owned)
    ? Object.entries(owned).filter(([name]) => name !== ".")
    : [];
}

function isOwnedWhole(owned: unknown): boolean {
  return isJsonObject(owned) && Object.keys(owned).length === 0;
}

/** Whether only a list or map itself is owned, without entries. */
function isContainerAlone(owned: unknown): boolean {
  return isJsonObject(owned) && "." in owned && Object.keys(owned).length === 1;
}

/** Finds the item of a keyed list for a `managedFields` element `k:{…}`. */
function findKeyed(
  list: readonly unknown[],
  element: string,
): unknown {
  const keys = Object.entries(keysOf(element));
  return list.find((item) =>
    isJsonObject(item) && keys.every(([name, value]) => item[name] === value)
  );
}

/** JSON of a `managedFields` element `v:…`, where Go escapes `&`, `<` and `>`. */
function valueOf(element: string): string {
  return JSON.stringify(JSON.parse(element.slice(2)));
}

/** Parses the keys of a `managedFields` element `k:{…}`. */
function keysOf(element: string): JsonObject {
  const keys: unknown = JSON.parse(element.slice(2));
  return isJsonObject(keys) ? keys : {};
}

/**
 * Serializes the owned part of an object: two states with the same text differ
 * only in fields of other owners.
 */
function ownedText(value: unknown, owned: unknown): string {
  const children = ownedChildren(owned);
  if (children.length === 0) return JSON.stringify(value) ?? "";
  const parts = children.map(([element, below]) => {
    const content = element.slice(2);
    switch (element[0]) {
      case "f":
        return isJsonObject(value) && Object.hasOwn(value, content)
          ? ownedText(value[content], below)
          : "";
      case "k":
        return ownedText(findKeyed(listOf(value), element), below);
      case "v": {
        const text = valueOf(element);
        return String(
          listOf(value).some((item) => JSON.stringify(item) === text),
        );
      }
      default:
        return JSON.stringify(value) ?? "";
    }
  });
  // The lengths make the text unambiguous.
  return parts.map((part) => `${part.length}:${part}`).join("");
}

/** Stored state of an object that was found to match a desired state. */
interface Learned {
  readonly uid: string;
  readonly desired: string;
  /** Hash of the owned fields of the stored object. */
  readonly owned: string;
  /** Newest resourceVersion that was found to match. */
  version: string;
}

/** Comparison of a stored object with its desired state. */
export interface Match {
  readonly id: string;
  /** Hash of the desired state; equal hashes mean equal objects to apply. */
  readonly desired: string;
  readonly intent: KubernetesObject;
  readonly actual: KubernetesObject;
  readonly fieldManager: string;
}

/**
 * Memory that decides without a request whether applying an object would change
 * any owned field.
 *
 * The first comparison is field by field. From the response to each apply it
 * learns the stored state of the desired one, with all defaults and normalized
 * values. From then on an object matches while neither the desired state nor
 * the owned fields of the stored one change. An object that nobody has changed
 * is recognized by its resourceVersion.
 *
 * It takes about 200 bytes for each object.
 */
export class MatchMemory {
  readonly #form: Form | undefined;
  readonly #learned: LatestMap<Learned>;

  /**
   * Creates a memory for objects of one kind.
   *
   * @param form The form of the kind's values, for comparing them.
   * @param limit The minimum number of objects that are kept: those learned
   * last. By default all are kept, and the caller removes each object.
   */
  constructor(form?: Form, limit: number = Infinity) {
    this.#form = form;
    this.#learned = new LatestMap(limit);
  }

  static ofKind(kind: Kind, limit?: number): MatchMemory {
    return new MatchMemory(formOfKind(kind), limit);
  }

  get size(): number {
    return this.#learned.size;
  }

  /** Whether nothing has changed since the object was found to match. */
  isUntouched(
    { id, desired, actual }: Pick<Match, "id" | "desired" | "actual">,
  ): boolean {
    const learned = this.#learned.get(id);
    const { uid, resourceVersion } = actual.metadata;
    return learned !== undefined && learned.desired === desired &&
      learned.version === resourceVersion && learned.uid === uid;
  }

  /**
   * Compares a stored object with its desired state.
   *
   * @returns The path of the first field that differs, empty for an object that
   * matches but is not owned; undefined if it matches.
   */
  difference(match: Match): string | undefined {
    const { id, desired, intent, actual } = match;
    if (this.isUntouched(match)) return undefined;
    const { uid = "", resourceVersion = "" } = actual.metadata;
    const ours = ownedOf(match);
    const owned = ours ?? {};
    const learned = this.#learned.get(id);
    if (
      learned?.uid === uid && learned.desired === desired &&
      learned.owned === textHash(ownedText(actual, owned))
    ) {
      learned.version = resourceVersion;
      return undefined;
    }
    const field = firstDifference(intent, actual, { owned, form: this.#form });
    if (field !== undefined) return field;
    // An object that was never applied is not owned, even if it matches.
    if (ours === undefined) return "";
    this.#learn(match, owned);
    return undefined;
  }

  /** Learns the stored state from the response to an apply. */
  applied(answered: Match): void {
    const owned = ownedOf(answered);
    if (owned !== undefined) this.#learn(answered, owned);
  }

  /** Removes an object, or all if no id is given. */
  forget(id: string | undefined): void {
    if (id === undefined) this.#learned.clear();
    else this.#learned.delete(id);
  }

  #learn({ id, desired, actual }: Match, owned: OwnedFields): void {
    const { uid = "", resourceVersion: version = "" } = actual.metadata;
    const ownedHash = textHash(ownedText(actual, owned));
    this.#learned.set(id, { uid, desired, owned: ownedHash, version });
  }
}

function ownedOf(
  { actual, fieldManager, intent }: Match,
): OwnedFields | undefined {
  return ownedFieldsOf(actual, fieldManager, intent.apiVersion);
}
