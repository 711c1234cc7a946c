import type { KubernetesObject } from "../api/object.ts";
import { keyText, type ObjectKey } from "../api/object_key.ts";
import { wholeRange } from "../json/byte_range.ts";
import { EventScanner } from "../json/event_scanner.ts";
import type { FetchObject } from "./object_store_options.ts";
import type { StoredObjects } from "./stored_objects.ts";

/**
 * Fetches objects of which only the key is kept, each once for all who want it
 * at the same time.
 *
 * @typeParam T The type of the objects.
 */
export class ObjectFetcher<T extends KubernetesObject> {
  readonly #objects: StoredObjects<T>;
  readonly #fetch: FetchObject;
  readonly #scanner: EventScanner = new EventScanner();
  /** Fetches under way, by key. */
  readonly #fetching: Map<string, Promise<T | undefined>> = new Map();

  constructor(objects: StoredObjects<T>, fetch: FetchObject) {
    this.#objects = objects;
    this.#fetch = fetch;
  }

  /** The object, frozen; undefined if it is gone. */
  async fetch(key: ObjectKey): Promise<T | undefined> {
    const text = keyText(key);
    let fetching = this.#fetching.get(text);
    if (fetching === undefined) {
      fetching = this.#fetchOne(key).finally(() => this.#fetching.delete(text));
      this.#fetching.set(text, fetching);
    }
    return await fetching;
  }

  async #fetchOne(key: ObjectKey): Promise<T | undefined> {
    const bytes = await this.#fetch(key);
    const { slots } = this.#objects;
    const slot = slots.find(key);
    if (bytes === undefined || slot < 0) return undefined;
    const header = this.#scanner.scanObject(wholeRange(bytes));
    if (slots.compareVersion(slot, header) > 0) {
      // An event came meanwhile and told more; it may be given up again.
      return this.#objects.find(slot) ?? await this.#fetchOne(key);
    }
    return this.#objects.keepFetched(slot, header);
  }
}
