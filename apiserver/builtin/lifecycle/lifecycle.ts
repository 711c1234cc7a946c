/**
 * Lifecycles of the built-in kinds: the fields that the registry strategies of
 * kube-apiserver set, keep and allocate on create, update and delete.
 * They see other objects only through the `HookContext` and must not import
 * storage, requests or HTTP.
 *
 * @module
 */
import type { UntypedObject } from "../../../core/api/object.ts";
import { jsonEquals } from "../../../core/patch/json_value.ts";
import type { ResourceDefinition } from "../../registry.ts";

/** Lifecycle hooks of one kind, besides those of all kinds (upstream's registry strategy). */
export type Lifecycle = Pick<
  ResourceDefinition,
  "prepareForCreate" | "prepareForUpdate" | "gracePeriod" | "resetFields"
>;

/** Lifecycles with the resources they apply to, named like `deployments.apps` or `pods`. */
export type Lifecycles = readonly (readonly [string, Lifecycle])[];

/**
 * Lifecycle that increments `metadata.generation` when one of the fields
 * changes, each given as a dotted path.
 */
export function generationLifecycle(
  ...fields: readonly string[]
): Pick<ResourceDefinition, "prepareForUpdate"> {
  return {
    prepareForUpdate(object, live, { subresource }): void {
      if (subresource === "status") return;
      const changed = fields.some((field) =>
        !jsonEquals(readField(object, field), readField(live, field))
      );
      if (changed) incrementGeneration(object, live);
    },
  };
}

/** Increments `metadata.generation`. */
export function incrementGeneration(
  object: UntypedObject,
  live: UntypedObject,
): void {
  object.metadata.generation = (live.metadata.generation ?? 0) + 1;
}

function readField(object: UntypedObject, path: string): unknown {
  let value: unknown = object;
  for (const name of path.split(".")) {
    value = (value as Record<string, unknown> | undefined)?.[name];
  }
  // The server treats an absent and an empty map as equal.
  const isEmpty = typeof value === "object" && value !== null &&
    Object.keys(value).length === 0;
  return isEmpty ? undefined : value;
}

/**
 * Hash of a text (32-bit FNV-1a). Stands for the random numbers of
 * kube-apiserver; the UID of the object, which is random, is the seed.
 */
export function hashOf(text: string): number {
  let hash = 2_166_136_261;
  for (let i = 0; i < text.length; i++) {
    hash = Math.imul(hash ^ text.charCodeAt(i), 16_777_619);
  }
  return hash >>> 0;
}
