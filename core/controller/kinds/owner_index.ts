import type { UntypedObject } from "../../api/object.ts";
import {
  type CacheEvent,
  CurrentEvent,
  storeAndSlot,
} from "../../cache/informer/cache_event.ts";
import type { MultiNamespaceInformer } from "../../cache/informer/multi_namespace_informer.ts";
import type { EventHeader } from "../../json/object_header.ts";

type Informer = MultiNamespaceInformer<UntypedObject>;

/**
 * Index of the objects of many informers by the UIDs of their owners. It keeps a
 * number for each owner reference, and verifies it against the cache when it is read.
 */
export class OwnerIndex {
  /** Place of the only object that an owner has, or the places of several. */
  readonly #places: Map<string, number | Set<number>> = new Map();
  /** Informers by the numbers of their stores. */
  readonly #informers: Map<number, Informer> = new Map();

  /** Number of owners. */
  get size(): number {
    return this.#places.size;
  }

  /** Handles a change of an object of an informer. */
  changed(event: CacheEvent<UntypedObject>, informer: Informer): void {
    if (event.type === "updated" && event.hasSameMetadata) return;
    const place = event instanceof CurrentEvent ? event.place : -1;
    if (place < 0) return;
    const isDeleted = event.type === "deleted";
    if (!isDeleted) this.#informers.set(storeAndSlot(place)[0], informer);
    const before = isDeleted ? event.header : event.previousHeader;
    for (const uid of uidsOf(before)) this.#delete(uid, place);
    if (isDeleted) return;
    for (const uid of uidsOf(event.header)) this.#add(uid, place);
  }

  /** Objects that an owner has, in any informer. */
  ownedBy(uid: string): readonly UntypedObject[] {
    const places = this.#places.get(uid);
    const all = typeof places === "number" ? [places] : [...places ?? []];
    return all.flatMap((place) => {
      const object = this.#informers.get(storeAndSlot(place)[0])?.getAt(place);
      const isOwned = object?.metadata.ownerReferences?.some((owner) =>
        owner.uid === uid
      );
      if (object !== undefined && isOwned) return [object];
      this.#delete(uid, place);
      return [];
    });
  }

  /** Forgets the objects of an informer. */
  forget(informer: Informer): void {
    const stores = new Set<number>();
    for (const [number, one] of this.#informers) {
      if (one !== informer) continue;
      stores.add(number);
      this.#informers.delete(number);
    }
    if (stores.size === 0) return;
    for (const [uid, places] of this.#places) {
      const all = typeof places === "number" ? [places] : places;
      for (const place of all) {
        if (stores.has(storeAndSlot(place)[0])) this.#delete(uid, place);
      }
    }
  }

  #add(uid: string, place: number): void {
    const places = this.#places.get(uid);
    if (places === undefined) this.#places.set(uid, place);
    else if (typeof places === "object") places.add(place);
    else if (places !== place) this.#places.set(uid, new Set([places, place]));
  }

  #delete(uid: string, place: number): void {
    const places = this.#places.get(uid);
    if (places === place) this.#places.delete(uid);
    else if (typeof places === "object") {
      places.delete(place);
      if (places.size === 0) this.#places.delete(uid);
    }
  }
}

function uidsOf(header: EventHeader | undefined): readonly string[] {
  return header?.ownerReferences.map(({ uid }) => uid) ?? [];
}
