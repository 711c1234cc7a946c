import type { KubernetesObject, ObjectMeta } from "../../api/object.ts";
import type { Kind } from "../../api/kind.ts";
import type { ByteRange } from "../../json/byte_range.ts";

/** Kind of what is read, and where its objects are. */
export interface ReadKind {
  readonly kind: Kind;
  /** Bytes of an object in a cache; undefined if none has them. */
  readonly bodyOf: (object: KubernetesObject) => ByteRange | undefined;
  /** Whether all objects are of one cache, which has one object for a version. */
  readonly isCached: boolean;
}

/** Number of the version of an object. */
interface Numbered {
  version: string;
  number: number;
}

/**
 * Numbers of the objects that a part of a recording has. Those of a cache are known
 * by UID and version, however often they are decoded; a weak map for all would take
 * longer than the rest, as garbage collections visit it.
 */
export class ObjectNumbers {
  readonly #cached: Map<ReadKind, Map<string, Numbered>> = new Map();
  readonly #others: WeakMap<object, number> = new WeakMap();

  /** Number of an object; undefined if it has none. */
  get(object: object, of: ReadKind | undefined): number | undefined {
    const { uid, resourceVersion } = versionOf(object, of);
    if (uid === undefined) return this.#others.get(object);
    const known = this.#cached.get(of as ReadKind)?.get(uid);
    return known?.version === resourceVersion ? known?.number : undefined;
  }

  set(object: object, of: ReadKind | undefined, number: number): void {
    const { uid, resourceVersion: version = "" } = versionOf(object, of);
    if (uid === undefined) {
      this.#others.set(object, number);
      return;
    }
    let numbers = this.#cached.get(of as ReadKind);
    if (numbers === undefined) {
      this.#cached.set(of as ReadKind, numbers = new Map());
    }
    const known = numbers.get(uid);
    if (known === undefined) numbers.set(uid, { version, number });
    else {
      known.version = version;
      known.number = number;
    }
  }
}

const NO_VERSION: Partial<ObjectMeta> = {};

/** UID and version by which an object is known; none if it is known by itself. */
function versionOf(
  object: object,
  of: ReadKind | undefined,
): Partial<Pick<ObjectMeta, "uid" | "resourceVersion">> {
  if (of?.isCached !== true) return NO_VERSION;
  const { metadata } = object as Partial<KubernetesObject>;
  return metadata?.resourceVersion ? metadata : NO_VERSION;
}
