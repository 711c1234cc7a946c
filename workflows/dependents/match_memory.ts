import type { KubernetesObject } from "../../core/api/object.ts";
import type { JsonObject } from "../../core/patch/json_value.ts";
import { textHash } from "../../core/controller/run/apply_memory.ts";
import {
  firstDifference,
  type OwnedFields,
  ownedFieldsOf,
  ownedText,
} from "./field_match.ts";
import type { Form } from "./value_form.ts";

/** What is known of one object: that a wish led to a stored state. */
interface Learned {
  /** The incarnation of the object. */
  readonly uid: string;
  /** What was wished for. */
  readonly desired: string;
  /** What we owned of the stored one. */
  readonly owned: string;
  /** The newest resourceVersion that was found to be equal. */
  version: string;
}

/** An object and what it should be. */
export interface Match {
  /** Names the object in this memory. */
  readonly id: string;
  /** Names what is wished for: the same wish leads to the same intent. */
  readonly desired: string;
  /** What would be applied. */
  readonly intent: KubernetesObject;
  /** The object as it is stored. */
  readonly actual: KubernetesObject;
  /** Whose fields are ours. */
  readonly fieldManager: string;
}

/** Whether a stored object is what is asked for, and if not, where. */
export type MatchResult =
  | { readonly matches: true }
  | { readonly matches: false; readonly field: string };

const MATCHES: MatchResult = { matches: true };

/** Options of a {@linkcode MatchMemory}. */
export interface MatchMemoryOptions {
  /**
   * What is known of the values of the kind.
   *
   * @default {nothing}
   */
  readonly form?: Form | undefined;
  /**
   * How many objects are known at most; those that are known longest go first.
   *
   * @default {any number: whoever has the memory forgets them one by one}
   */
  readonly limit?: number | undefined;
}

/**
 * Knows whether applying an intent would change anything we own, without asking
 * the server.
 *
 * The first time it compares field by field. Whenever an apply has been
 * answered it learns what the server made of the wish, with all defaults and
 * spellings: from then on an object is equal while neither the wish nor our part
 * of the stored one changes, whatever the server does to values. An object that
 * nobody has touched is known by its resourceVersion alone.
 *
 * It keeps about 200 bytes for an object.
 */
export class MatchMemory {
  readonly #form: Form | undefined;
  readonly #limit: number;
  readonly #learned: Map<string, Learned> = new Map();

  /** @param options What is known beforehand. */
  constructor(options: MatchMemoryOptions = {}) {
    const { form, limit = Infinity } = options;
    this.#form = form;
    this.#limit = limit;
  }

  /** How many objects are known. */
  get size(): number {
    return this.#learned.size;
  }

  /** A short name for a text that describes a wish. */
  nameOf(wish: string): string {
    return textHash(wish);
  }

  /** Whether nothing has changed since an object was found to be as wished. */
  isUntouched(
    { id, desired, actual }: Pick<Match, "id" | "desired" | "actual">,
  ): boolean {
    const learned = this.#learned.get(id);
    const { uid, resourceVersion } = actual.metadata;
    return learned !== undefined && learned.desired === desired &&
      learned.version === resourceVersion && learned.uid === uid;
  }

  /** Whether a stored object is what is asked for. */
  match(match: Match): MatchResult {
    const { id, desired, intent, actual } = match;
    if (this.isUntouched(match)) return MATCHES;
    const { uid = "", resourceVersion = "" } = actual.metadata;
    const ours = ownedOf(match);
    const owned = ours ?? {};
    const learned = this.#learned.get(id);
    if (
      learned?.uid === uid && learned.desired === desired &&
      learned.owned === textHash(ownedText(actual, owned))
    ) {
      learned.version = resourceVersion;
      return MATCHES;
    }
    const field = firstDifference(asJson(intent), asJson(actual), {
      owned,
      form: this.#form,
    });
    if (field !== undefined) return { matches: false, field };
    // What was never applied by us is not ours yet, even if it is right.
    if (ours === undefined) return { matches: false, field: "" };
    this.#learn(match, owned);
    return MATCHES;
  }

  /** Learns from the answer to an apply of an intent. */
  applied(answered: Match): void {
    const owned = ownedOf(answered);
    if (owned !== undefined) this.#learn(answered, owned);
  }

  /** Forgets an object. */
  forget(id: string): void {
    this.#learned.delete(id);
  }

  /** Forgets everything. */
  clear(): void {
    this.#learned.clear();
  }

  #learn({ id, desired, actual }: Match, owned: OwnedFields): void {
    const { uid = "", resourceVersion = "" } = actual.metadata;
    this.#learned.set(id, {
      uid,
      desired,
      owned: textHash(ownedText(actual, owned)),
      version: resourceVersion,
    });
    if (this.#learned.size <= this.#limit) return;
    const [oldest] = this.#learned.keys();
    if (oldest !== undefined) this.#learned.delete(oldest);
  }
}

function ownedOf(
  { actual, fieldManager, intent }: Match,
): OwnedFields | undefined {
  return ownedFieldsOf(actual, fieldManager, intent.apiVersion);
}

function asJson(object: KubernetesObject): JsonObject {
  return object as unknown as JsonObject;
}
