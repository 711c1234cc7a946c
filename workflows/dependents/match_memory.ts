import type { KubernetesObject } from "../../core/api/object.ts";
import type { JsonObject } from "../../core/patch/json_value.ts";
import { firstDifference } from "./field_match.ts";
import { type OwnedFields, ownedFieldsOf, ownedText } from "./owned_fields.ts";
import { textHash } from "../../core/text_hash.ts";

/** What is known of one object: that a desired state led to a stored one. */
interface Learned {
  /** The incarnation of the object. */
  readonly uid: string;
  /** The desired state. */
  readonly desired: string;
  /** What we owned of the stored one. */
  readonly owned: string;
  /** The newest resourceVersion that was found to be equal. */
  version: string;
}

/** Whether a stored object is what is asked for, and if not, where. */
export type MatchResult =
  | { readonly matches: true }
  | { readonly matches: false; readonly field: string };

const MATCHES: MatchResult = { matches: true };

/**
 * Knows whether applying a desired object would change anything we own, without
 * asking the server.
 *
 * The first time it compares field by field. Whenever an apply has been
 * answered it learns what the server made of the desired state, with all
 * defaults and spellings: from then on an object is equal while neither the
 * desired state nor our part of the stored one changes, whatever the server does
 * to values. An object that nobody has touched is known by its resourceVersion
 * alone.
 *
 * It keeps about 150 bytes for an object and must be told when one is gone.
 */
export class MatchMemory {
  readonly #learned: Map<string, Learned> = new Map();

  /** How many objects are known. */
  get size(): number {
    return this.#learned.size;
  }

  /**
   * Whether a stored object is what is asked for.
   *
   * @param key Names the object in this memory.
   * @param objects What is asked for and stored, and whose fields are ours.
   */
  match(
    key: string,
    { desired, actual, fieldManager }: {
      readonly desired: KubernetesObject;
      readonly actual: KubernetesObject;
      readonly fieldManager: string;
    },
  ): MatchResult {
    const { uid = "", resourceVersion = "" } = actual.metadata;
    const desiredHash = textHash(JSON.stringify(desired));
    const learned = this.#learned.get(key);
    const known = learned?.uid === uid && learned.desired === desiredHash
      ? learned
      : undefined;
    if (known?.version === resourceVersion && resourceVersion !== "") {
      return MATCHES;
    }
    const owned = ownedFieldsOf(actual, fieldManager, desired.apiVersion);
    if (owned === undefined) return { matches: false, field: "" };
    if (known?.owned === textHash(ownedText(actual, owned))) {
      known.version = resourceVersion;
      return MATCHES;
    }
    const field = firstDifference(asJson(desired), asJson(actual), owned);
    if (field !== undefined) return { matches: false, field };
    this.#learn(key, { desiredHash, actual, owned });
    return MATCHES;
  }

  /** Learns from the answer to an apply of a desired object. */
  applied(
    key: string,
    { desired, stored, fieldManager }: {
      readonly desired: KubernetesObject;
      readonly stored: KubernetesObject;
      readonly fieldManager: string;
    },
  ): void {
    const owned = ownedFieldsOf(stored, fieldManager, desired.apiVersion);
    if (owned === undefined) return;
    const desiredHash = textHash(JSON.stringify(desired));
    this.#learn(key, { desiredHash, actual: stored, owned });
  }

  /** Forgets an object. */
  forget(key: string): void {
    this.#learned.delete(key);
  }

  #learn(
    key: string,
    { desiredHash, actual, owned }: {
      readonly desiredHash: string;
      readonly actual: KubernetesObject;
      readonly owned: OwnedFields;
    },
  ): void {
    this.#learned.set(key, {
      uid: actual.metadata.uid ?? "",
      desired: desiredHash,
      owned: textHash(ownedText(actual, owned)),
      version: actual.metadata.resourceVersion ?? "",
    });
  }
}

function asJson(object: KubernetesObject): JsonObject {
  return object as unknown as JsonObject;
}
