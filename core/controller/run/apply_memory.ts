import { hash } from "node:crypto";
import type { KubernetesObject } from "../../api/object.ts";
import { LruCache } from "../../cache/store/lru_cache.ts";
import { BOOKKEEPING } from "./write_changes.ts";

/** Record of the last apply to an object. */
interface Applied {
  /** Hash of the apply configuration. */
  readonly intent: string;
  /** Hash of the part of the server's answer that an apply can change. */
  readonly part: string;
  /** Newest resourceVersion with an unchanged `part`. */
  version: string;
}

/**
 * Hash of a text; equal hashes count as equal texts.
 *
 * SHA-1 is used for its speed, not against deliberate collisions: a person who
 * can choose the texts could as well choose the objects.
 */
export function textHash(text: string): string {
  return hash("sha1", text, "base64");
}

/** Maximum number of objects whose last apply is kept, about 250 bytes each. */
const MAX_OBJECTS = 50_000;

/** Apply of an object, as the memory compares and stores it. */
export interface RememberedApply {
  /** Kind and key of the object as text. */
  readonly id: string;
  /** Apply configuration. */
  readonly intent: object;
  /** Whether only the status is applied. */
  readonly subresource: boolean;
  readonly cached: KubernetesObject;
}

/**
 * Memory of applies. It decides without the server and without managed fields
 * whether an apply would change nothing: the same apply was sent before, and
 * the object is still the server's answer to it. Parts that the apply cannot
 * change may differ, such as the status if the object was applied.
 *
 * If a cache does not keep all fields, only an object with the same
 * resourceVersion counts as unchanged.
 */
export class ApplyMemory {
  readonly #applied: LruCache<string, Applied> = new LruCache(MAX_OBJECTS);

  /** Whether an apply would change nothing. */
  isNeedless(apply: RememberedApply): boolean {
    const { intent, cached } = apply;
    const known = this.#applied.get(nameOf(apply));
    if (known?.intent !== textHash(JSON.stringify(intent))) return false;
    const { resourceVersion = "" } = cached.metadata;
    if (known.version === resourceVersion) return resourceVersion !== "";
    if (known.part !== partHash(cached, apply)) return false;
    known.version = resourceVersion;
    return true;
  }

  /**
   * Stores the answer to an apply.
   *
   * @param stored Object that the server answered with.
   */
  learn(
    apply: Omit<RememberedApply, "cached">,
    stored: KubernetesObject,
  ): void {
    this.#applied.set(nameOf(apply), {
      intent: textHash(JSON.stringify(apply.intent)),
      part: partHash(stored, apply),
      version: stored.metadata.resourceVersion ?? "",
    }, 1);
  }

  /** Hash of the last apply of an object. */
  intentOf(apply: Pick<RememberedApply, "id" | "subresource">): string {
    return this.#applied.get(nameOf(apply))?.intent ?? "";
  }

  /** Removes the answer to the last apply of an object. */
  forget(apply: Pick<RememberedApply, "id" | "subresource">): void {
    this.#applied.delete(nameOf(apply));
  }
}

function nameOf(
  { id, subresource }: Pick<RememberedApply, "id" | "subresource">,
): string {
  return subresource ? `${id} status` : id;
}

/**
 * Hash of the part of an object that an apply can change, without fields that a
 * cache has pruned.
 */
function partHash(
  object: KubernetesObject,
  { intent, subresource }: Omit<RememberedApply, "cached">,
): string {
  const metadata = Object.entries(object.metadata);
  // Sorted, since the items of a list have another order than single objects.
  const fields = Object.entries(object).sort(([a], [b]) => a < b ? -1 : 1);
  const named = (names: readonly string[]) => ([name]: [string, unknown]) =>
    names.includes(name);
  const part = subresource
    ? [
      metadata.filter(named(["uid", "deletionTimestamp"])),
      fields.filter(named(["status"])),
    ]
    : [
      metadata.filter(([name]) => !BOOKKEEPING.has(name)),
      fields.filter(([name]) =>
        name !== "metadata" && (name !== "status" || "status" in intent)
      ),
    ];
  return textHash(JSON.stringify(part));
}
