import type { ApiError } from "../../api/api_error.ts";
import type { KubernetesObject, ManagedFieldsEntry } from "../../api/object.ts";
import { isJsonObject, jsonEquals } from "../../patch/json_value.ts";
import type { JsonPatchOperation } from "../../patch/json_patch.ts";
import { applyMergePatch, diffMergePatch } from "../../patch/merge_patch.ts";
import type { OpenApiSchema } from "../../patch/schema.ts";
import { mergeKeyedLists } from "./keyed_lists.ts";

/**
 * Merge patch that removes the status fields that a field manager wrote by
 * patches and that no other entry of the managed fields has; undefined if there
 * are none. After a server-side apply by the same manager these are the fields
 * that the apply lacks, because it removes only fields that were applied
 * before.
 *
 * @param object Object with its managed fields.
 * @param manager Name of the field manager.
 */
export function statusLeftovers(
  object: KubernetesObject,
  manager: string,
): object | undefined {
  const { status = {} } = object as { readonly status?: unknown };
  const { own, kept } = fieldsOf(
    object,
    (entry) => entry.manager === manager && entry.operation === "Update",
  );
  const patch = diffMergePatch(status, without(status, own, kept)) as object;
  return Object.keys(patch).length === 0 ? undefined : patch;
}

/**
 * Merge patch with the effect that an apply of the status would have. An apply
 * itself cannot remove the last field of an object or the last entry of a list:
 * it leaves null there, which the API server refuses in custom resources.
 *
 * @param object Object with its managed fields.
 * @param intent The whole status of the field manager.
 * @param schema Schema of the object.
 */
export function statusPatch(
  object: KubernetesObject,
  { manager, intent, schema }: {
    readonly manager: string;
    readonly intent: object;
    readonly schema: OpenApiSchema | undefined;
  },
): object {
  const { status = {} } = object as { readonly status?: unknown };
  const { own, kept } = fieldsOf(object, (entry) => entry.manager === manager);
  const others = { status: without(status, own, kept) };
  const states = { given: others, current: others };
  const merged = mergeKeyedLists({ status: intent }, schema, states);
  return diffMergePatch({ status }, applyMergePatch(others, merged)) as object;
}

/** JSON Patch that removes the fields which an apply leaves null, as above. */
export function emptiedFields(
  object: KubernetesObject,
  manager: string,
  { error, intent }: { readonly error: ApiError; readonly intent: object },
): readonly JsonPatchOperation[] | undefined {
  const at = (from: unknown, path: readonly string[], prefix = "") =>
    path.reduce((part, name) => Object(part)[prefix + name], from);
  const isOwn = (entry: ManagedFieldsEntry) => entry.manager === manager;
  const emptied = (error.details?.causes ?? [])
    .map(({ field = "" }) => field.split(".")).filter((path) => {
      const { kept } = fieldsOf(object, isOwn, `f:${path[0]}`);
      return ["{}", "[]"].includes(JSON.stringify(at(intent, path))) &&
        at(kept, path.slice(1), "f:") === undefined;
    }).map((path) => ({ op: "remove", path: `/${path.join("/")}` }) as const);
  const path = "/metadata/resourceVersion";
  const value = object.metadata.resourceVersion;
  return emptied.length === 0
    ? undefined
    : [{ op: "test", path, value }, ...emptied];
}

/**
 * Fields of an object in the format of `fieldsV1`, by path element: `f:NAME` for a
 * field, `k:{…}` and `v:…` for an item of a list. A field itself has the element `.`.
 */
interface Fields {
  [element: string]: Fields;
}

/** Fields of a part of selected entries of the managed fields, and of others. */
function fieldsOf(
  { metadata: { managedFields = [] } }: KubernetesObject,
  isOwn: (entry: ManagedFieldsEntry) => boolean,
  part = "f:status",
): { readonly own: Fields; readonly kept: Fields } {
  const [own, kept]: [Fields, Fields] = [{}, {}];
  for (const entry of managedFields) {
    const { [part]: fields } = (entry.fieldsV1 ?? {}) as Fields;
    if (fields !== undefined) addFields(isOwn(entry) ? own : kept, fields);
  }
  return { own, kept };
}

function addFields(to: Fields, fields: Fields): void {
  for (const [element, below] of Object.entries(fields)) {
    const node = to[element] ??= {};
    if (element === ".") continue;
    if (Object.keys(below).length === 0) node["."] = {};
    addFields(node, below);
  }
}

/** Value without the fields that only the first of two sets contains. */
function without(value: unknown, written: Fields, kept: Fields): unknown {
  const remaining = (part: unknown, element: string | undefined) => {
    const node = written[element ?? ""];
    if (element === undefined || node === undefined) return part;
    const others = kept[element];
    if (others === undefined && "." in node) return undefined;
    const rest = without(part, node, others ?? {});
    const isGone = others === undefined && typeof rest === "object" &&
      rest !== null && Object.keys(rest).length === 0;
    return isGone ? undefined : rest;
  };
  if (Array.isArray(value)) {
    const elements = Object.keys(written);
    return value.map((item) =>
      remaining(item, elements.find((element) => identifies(element, item)))
    ).filter((item) => item !== undefined);
  }
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value)
      .map(([name, field]) => [name, remaining(field, `f:${name}`)])
      .filter(([, rest]) => rest !== undefined),
  );
}

/** Whether a path element identifies an item of a list. */
function identifies(element: string, item: unknown): boolean {
  const content = element.slice(2);
  if (element.startsWith("v:")) return jsonEquals(JSON.parse(content), item);
  return element.startsWith("k:") && isJsonObject(item) &&
    Object.entries(JSON.parse(content) as object).every(([key, value]) =>
      jsonEquals(item[key], value)
    );
}
