import { hash } from "node:crypto";
import type { KubernetesObject } from "../../api/object.ts";
import { LruCache } from "../../cache/store/lru_cache.ts";

/** What is remembered of the last apply to an object. */
interface Applied {
  /** What was applied. */
  readonly intent: string;
  /**
   * The part of the object that an apply can change, as it was answered;
   * undefined where the cache leaves some of it out.
   */
  readonly part: string | undefined;
  /** The newest resourceVersion that is known to be the same. */
  version: string;
}

/**
 * Hash of a text; equal hashes are taken for equal texts.
 *
 * SHA-1 is used for its speed, not against deliberate collisions: a person who
 * can choose the texts could as well choose the objects.
 */
export function textHash(text: string): string {
  return hash("sha1", text, "base64");
}

/** Of how many objects the last apply is remembered; some 250 bytes each. */
const MOST_OBJECTS = 50_000;

/** One apply, and the object that it is about. */
export interface RememberedApply {
  /** Which object: unique among those that are applied. */
  readonly id: string;
  /** What is applied. */
  readonly intent: object;
  /** Whether it goes to the status alone. */
  readonly subresource: boolean;
  /** The object as the cache has it. */
  readonly cached: KubernetesObject;
}

/**
 * Knows whether applying the same again would change anything, without asking
 * the server and without managed fields: it would not while the object is the
 * one that the last apply was answered with. Of that, what the apply did not
 * concern may have changed: the status of an object whose spec was applied, and
 * the other way round.
 *
 * A cache that leaves out fields cannot tell whether these have changed: then
 * only an object that nobody has touched counts as the same.
 */
export class ApplyMemory {
  readonly #applied: LruCache<string, Applied> = new LruCache({
    maxSize: MOST_OBJECTS,
  });

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
   * Learns from the answer to an apply.
   *
   * @param apply What was applied, and the cache after the answer.
   * @param stored The answer.
   */
  learn(apply: RememberedApply, stored: KubernetesObject): void {
    const part = partHash(stored, apply);
    this.#applied.set(nameOf(apply), {
      intent: textHash(JSON.stringify(apply.intent)),
      part: part === partHash(apply.cached, apply) ? part : undefined,
      version: stored.metadata.resourceVersion ?? "",
    }, 1);
  }
}

function nameOf({ id, subresource }: RememberedApply): string {
  return subresource ? `${id} status` : id;
}

/** What changes with every write, whoever did it. */
const BOOKKEEPING: ReadonlySet<string> = new Set([
  "generation",
  "managedFields",
  "resourceVersion",
]);

/**
 * Names the part of an object that an apply can change. Fields that a cache
 * leaves out are not among the entries of its objects.
 */
function partHash(
  object: KubernetesObject,
  { intent, subresource }: RememberedApply,
): string {
  const metadata = Object.entries(object.metadata);
  // The order is that of the server, but for items of a list, which lack some.
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
