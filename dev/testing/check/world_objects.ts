import type { UntypedObject } from "@coracle/operator/client";
import type { Store } from "../../apiserver/storage/store.ts";

const decoder = new TextDecoder();

/** Objects by key: `apiVersion kind namespace/name`. */
export type WorldObjects = Readonly<Record<string, UntypedObject>>;

/** Objects of the server of a simulation. */
export class StoredObjects {
  readonly #store: Store;
  /** Revisions of the objects of a new server. */
  readonly #bootstrap: Map<string, number>;

  /**
   * @param store Store of the server.
   * @param earlier Objects of the server from which this one goes on.
   */
  constructor(store: Store, earlier?: StoredObjects) {
    this.#store = store;
    this.#bootstrap = earlier === undefined ? new Map() : earlier.#bootstrap;
  }

  /** Remembers the objects of a new server. */
  begin(): void {
    for (const collection of this.#store.collections()) {
      for (const stored of collection.values()) {
        this.#bootstrap.set(
          `${collection.resource.group}/${collection.resource.plural}/${stored.key}`,
          stored.revision,
        );
      }
    }
  }

  /** Returns all objects except Events and those of a new server. */
  now(): WorldObjects {
    const objects: [string, UntypedObject][] = [];
    for (const collection of this.#store.collections()) {
      const { group, plural } = collection.resource;
      if (plural === "events") continue;
      for (const stored of collection.values()) {
        const known = `${group}/${plural}/${stored.key}`;
        if (this.#bootstrap.get(known) === stored.revision) continue;
        // As a client reads it, with doubles as numbers.
        const object: UntypedObject = JSON.parse(decoder.decode(stored.bytes));
        const key = `${object.apiVersion} ${object.kind} ${stored.key}`;
        objects.push([key, object]);
      }
    }
    return Object.fromEntries(objects.sort(([a], [b]) => a < b ? -1 : 1));
  }
}
