import type { KubernetesObject } from "../../api/object.ts";
import { decodeOwners, type FieldOwner } from "../../patch/field_owner.ts";
import { FieldSet } from "../../patch/field_set.ts";
import { isJsonObject, jsonEquals } from "../../patch/json_value.ts";
import { applyMergePatch, diffMergePatch } from "../../patch/merge_patch.ts";
import type { PathElement } from "../../patch/path_element.ts";
import type { OpenApiSchema } from "../../patch/schema.ts";
import { mergeKeyedLists } from "./keyed_lists.ts";

/**
 * Merge patch that removes the status fields that a field manager wrote by patches
 * and that no other entry of the managed fields has; undefined if there are none.
 * After a server-side apply by the same manager these are the fields that its
 * intent lacks, because an apply removes only what was applied before.
 *
 * @param object Object with its managed fields.
 * @param manager Name of the field manager.
 */
export function statusLeftovers(
  object: KubernetesObject,
  manager: string,
): object | undefined {
  const { status = {} } = object as { readonly status?: unknown };
  const { own, kept } = statusFields(
    object,
    (owner) => owner.manager === manager && owner.operation === "Update",
  );
  const patch = diffMergePatch(status, without(status, own, kept)) as object;
  return Object.keys(patch).length === 0 ? undefined : patch;
}

/**
 * Merge patch that gives the status what an apply would have given it, without the
 * apply. An apply cannot remove the last field of an object or the last entry of a
 * list: it leaves null there, which the API server refuses in custom resources.
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
  const { own, kept } = statusFields(
    object,
    (owner) => owner.manager === manager,
  );
  const others = { status: without(status, own, kept) };
  const states = { given: others, current: others };
  const merged = mergeKeyedLists({ status: intent }, schema, states);
  return diffMergePatch({ status }, applyMergePatch(others, merged)) as object;
}

/** Status fields of the owners that a condition selects, and those of others. */
function statusFields(
  { metadata }: KubernetesObject,
  isOwn: (owner: FieldOwner) => boolean,
): { readonly own: FieldSet; readonly kept: FieldSet } {
  let own = FieldSet.empty;
  let kept = FieldSet.empty;
  for (const owner of decodeOwners(metadata.managedFields).values()) {
    const fields = owner.fields.nodes.get("f:status")?.children;
    if (fields === undefined) continue;
    if (isOwn(owner)) own = own.union(fields);
    else kept = kept.union(fields);
  }
  return { own, kept };
}

/** Value without the members of one field set that the other set does not have. */
function without(value: unknown, written: FieldSet, kept: FieldSet): unknown {
  if (written.isEmpty) return value;
  const remaining = (part: unknown, element: PathElement | undefined) => {
    const node = written.nodes.get(element ?? "");
    if (element === undefined || node === undefined) return part;
    const others = kept.nodes.get(element);
    if (others === undefined && node.member) return undefined;
    // As a whole it belongs to another manager.
    if (others?.member && others.children.isEmpty) return part;
    const rest = without(
      part,
      node.children,
      others?.children ?? FieldSet.empty,
    );
    const isGone = others === undefined && typeof rest === "object" &&
      rest !== null && Object.keys(rest).length === 0;
    return isGone ? undefined : rest;
  };
  if (Array.isArray(value)) {
    const elements = [...written.nodes.keys()];
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

/** Whether a path element is that of a list item. */
function identifies(element: PathElement, item: unknown): boolean {
  const content = element.slice(2);
  if (element.startsWith("v:")) return jsonEquals(JSON.parse(content), item);
  return element.startsWith("k:") && isJsonObject(item) &&
    Object.entries(JSON.parse(content) as object).every(([key, value]) =>
      jsonEquals(item[key], value)
    );
}
