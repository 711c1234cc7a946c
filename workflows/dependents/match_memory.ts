import type { Kind } from "../../core/api/kind.ts";
import type { KubernetesObject } from "../../core/api/object.ts";
import { LatestMap } from "../../core/controller/latest_map.ts";
import { textHash } from "../../core/controller/run/apply_memory.ts";
import {
  firstDifference,
  type OwnedFields,
  ownedFieldsOf,
  ownedText,
} from "./field_match.ts";
import { type Form, formOfKind } from "./value_form.ts";

/** Stored state of an object that was found to match a desired state. */
interface Learned {
  readonly uid: string;
  readonly desired: string;
  /** Hash of the owned fields of the stored object. */
  readonly owned: string;
  /** Newest resourceVersion that was found to match. */
  version: string;
}

/** Comparison of a stored object with its desired state. */
export interface Match {
  readonly id: string;
  /** Hash of the desired state; equal hashes lead to equal intents. */
  readonly desired: string;
  readonly intent: KubernetesObject;
  readonly actual: KubernetesObject;
  readonly fieldManager: string;
}

/**
 * Memory that decides without a request whether applying an object would change
 * any owned field.
 *
 * The first comparison is field by field. From the response to each apply it
 * learns the stored state of the desired one, with all defaults and normalized
 * values. From then on an object matches while neither the desired state nor
 * the owned fields of the stored one change. An object that nobody has changed
 * is recognized by its resourceVersion.
 *
 * It takes about 200 bytes for each object.
 */
export class MatchMemory {
  readonly #form: Form | undefined;
  readonly #learned: LatestMap<Learned>;

  /**
   * @param form The form of the kind's values.
   * @param limit The number of objects that are kept at least, those learned last.
   * By default all are kept, and the caller removes each object.
   */
  constructor(form?: Form, limit: number = Infinity) {
    this.#form = form;
    this.#learned = new LatestMap(limit);
  }

  static ofKind(kind: Kind, limit?: number): MatchMemory {
    return new MatchMemory(formOfKind(kind), limit);
  }

  get size(): number {
    return this.#learned.size;
  }

  /** Whether nothing has changed since the object was found to match. */
  isUntouched(
    { id, desired, actual }: Pick<Match, "id" | "desired" | "actual">,
  ): boolean {
    const learned = this.#learned.get(id);
    const { uid, resourceVersion } = actual.metadata;
    return learned !== undefined && learned.desired === desired &&
      learned.version === resourceVersion && learned.uid === uid;
  }

  /**
   * Compares a stored object with its desired state.
   *
   * @returns The path of the first field that differs, empty for an object that
   * matches but is not owned; undefined if it matches.
   */
  difference(match: Match): string | undefined {
    const { id, desired, intent, actual } = match;
    if (this.isUntouched(match)) return undefined;
    const { uid = "", resourceVersion = "" } = actual.metadata;
    const ours = ownedOf(match);
    const owned = ours ?? {};
    const learned = this.#learned.get(id);
    if (
      learned?.uid === uid && learned.desired === desired &&
      learned.owned === textHash(ownedText(actual, owned))
    ) {
      learned.version = resourceVersion;
      return undefined;
    }
    const field = firstDifference(intent, actual, { owned, form: this.#form });
    if (field !== undefined) return field;
    // An object that was never applied is not owned, even if it matches.
    if (ours === undefined) return "";
    this.#learn(match, owned);
    return undefined;
  }

  /** Learns from the response to an apply. */
  applied(answered: Match): void {
    const owned = ownedOf(answered);
    if (owned !== undefined) this.#learn(answered, owned);
  }

  /** Removes an object, or all if no id is given. */
  forget(id: string | undefined): void {
    if (id === undefined) this.#learned.clear();
    else this.#learned.delete(id);
  }

  #learn({ id, desired, actual }: Match, owned: OwnedFields): void {
    const { uid = "", resourceVersion: version = "" } = actual.metadata;
    const ownedHash = textHash(ownedText(actual, owned));
    this.#learned.set(id, { uid, desired, owned: ownedHash, version });
  }
}

function ownedOf(
  { actual, fieldManager, intent }: Match,
): OwnedFields | undefined {
  return ownedFieldsOf(actual, fieldManager, intent.apiVersion);
}
