import type { KubernetesObject } from "../../api/object.ts";
import { keyText, type ObjectKey } from "../../api/object_key.ts";
import { wholeRange } from "../../json/byte_range.ts";
import { EventScanner } from "../../json/event_scanner.ts";
import type { FetchObject } from "./object_store_options.ts";
import type { StoredObjects } from "./stored_objects.ts";

/**
 * How often an object is asked for that the server shows older than it is known.
 * One that changes faster than it can be read is as rare as a server that has
 * lost its latest states; neither may be asked for ever.
 */
const MOST_FETCHES = 5;

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

  /**
   * The object, frozen; undefined if it is gone.
   *
   * @throws {Error} If the server shows it older than it is known, again and
   * again.
   */
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
    const { slots } = this.#objects;
    let version = "";
    for (let fetches = 0; fetches < MOST_FETCHES; fetches++) {
      const bytes = await this.#fetch(key);
      const slot = slots.find(key);
      if (bytes === undefined || slot < 0) return undefined;
      const header = this.#scanner.scanObject(wholeRange(bytes));
      if (slots.compareVersion(slot, header) <= 0) {
        return this.#objects.keepFetched(slot, header);
      }
      // An event came meanwhile and told more; it may be given up again.
      const object = this.#objects.find(slot);
      if (object !== undefined) return object;
      version = header.resourceVersion;
    }
    throw new Error(
      `Cannot read ${
        keyText(key)
      }: the server must show a state as new as its watch told: received version ${version}`,
    );
  }
}
