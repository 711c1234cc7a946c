import { isResolved, type Kind } from "../api/kind.ts";
import type { ObjectKey } from "../api/object_key.ts";
import type { ResourceClient } from "./resource_client.ts";

/** A key as its kind has it: without namespace where objects live in none. */
export async function scopedKey(
  client: Pick<ResourceClient, "resolve">,
  kind: Kind,
  key: ObjectKey,
): Promise<ObjectKey> {
  const { scope } = isResolved(kind) ? kind : await client.resolve(kind);
  return scope === "Cluster" ? { name: key.name } : key;
}
