import type { UntypedObject } from "../../../core/api/object.ts";
import { jsonEquals } from "../../../core/patch/json_value.ts";
import type { ResourceDefinition } from "../../registry.ts";

/** What a kind does beside what all kinds do. */
export type Lifecycle = Pick<
  ResourceDefinition,
  | "prepareForCreate"
  | "prepareForUpdate"
  | "admit"
  | "gracePeriod"
  | "resetFields"
>;

/** Lifecycles by resource: `deployments.apps`, `pods`. */
export type Lifecycles = readonly (readonly [string, Lifecycle])[];

/**
 * A lifecycle that moves the generation when one of some fields changed, which
 * a path of dots names.
 */
export function countingChanges(
  ...fields: readonly string[]
): Pick<ResourceDefinition, "prepareForUpdate"> {
  return {
    prepareForUpdate(object, live, { subresource }): void {
      if (subresource === "status") return;
      const changed = fields.some((field) =>
        !jsonEquals(readField(object, field), readField(live, field))
      );
      if (changed) advanceGeneration(object, live);
    },
  };
}

/** Says that what a controller is to do has changed. */
export function advanceGeneration(
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
  // Nothing and an empty map are the same to a server.
  const isEmpty = typeof value === "object" && value !== null &&
    Object.keys(value).length === 0;
  return isEmpty ? undefined : value;
}

/**
 * A small number from a text, spread evenly: what a server draws at random is
 * drawn here from the object's uid, which is random already.
 */
export function hashOf(text: string): number {
  let hash = 2_166_136_261;
  for (let i = 0; i < text.length; i++) {
    hash = Math.imul(hash ^ text.charCodeAt(i), 16_777_619);
  }
  return hash >>> 0;
}

const SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789";

/** Five characters as a server adds them to a name. */
export function suffixOf(text: string): string {
  let rest = hashOf(text);
  let suffix = "";
  for (let i = 0; i < 5; i++) {
    suffix += SUFFIX_LETTERS[rest % SUFFIX_LETTERS.length];
    rest = Math.floor(rest / SUFFIX_LETTERS.length);
  }
  return suffix;
}
