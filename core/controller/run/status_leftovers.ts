import type { KubernetesObject } from "../../api/object.ts";
import { decodeOwners } from "../../patch/field_owner.ts";
import { FieldSet } from "../../patch/field_set.ts";
import { isJsonObject, jsonEquals } from "../../patch/json_value.ts";
import { diffMergePatch } from "../../patch/merge_patch.ts";
import type { PathElement } from "../../patch/path_element.ts";

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
  let written = FieldSet.empty;
  let kept = FieldSet.empty;
  for (const owner of decodeOwners(object.metadata.managedFields).values()) {
    const fields = owner.fields.nodes.get("f:status")?.children;
    if (fields === undefined) continue;
    if (owner.manager === manager && owner.operation === "Update") {
      written = written.union(fields);
    } else kept = kept.union(fields);
  }
  const { status = {} } = object as { readonly status?: unknown };
  const patch = diffMergePatch(
    status,
    without(status, written, kept),
  ) as object;
  return Object.keys(patch).length === 0 ? undefined : patch;
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
