import { PAGE_MASK } from "./slot_page.ts";
import type { ObjectTable } from "./object_table.ts";

/** Marks go from 1 to this, and then begin anew. */
const LAST_MARK = 255;

/**
 * Which objects were seen in the current relist: mark and sweep, so that a
 * relist needs no second copy of anything.
 */
export class RelistMarks {
  readonly #slots: ObjectTable;
  #mark = 1;
  #begun = false;

  constructor(slots: ObjectTable) {
    this.#slots = slots;
  }

  /** Begins a relist: nothing is seen yet. */
  begin(): void {
    this.#begun = true;
    this.#mark = this.#mark % LAST_MARK + 1;
    if (this.#mark > 1) return;
    // Marks of former rounds must not be taken for those of this one.
    for (
      let slot = this.#slots.nextUsed(0);
      slot >= 0;
      slot = this.#slots.nextUsed(slot + 1)
    ) this.#slots.page(slot).mark[slot & PAGE_MASK] = 0;
  }

  /** Marks an object as seen. */
  see(slot: number): void {
    this.#slots.page(slot).mark[slot & PAGE_MASK] = this.#mark;
  }

  /**
   * Ends a relist.
   *
   * @param resourceVersion What is newer stays, for the list could not show it.
   * @param remove Removes the object of a slot that was not seen.
   * @returns How many were removed.
   * @throws {Error} If no relist was begun.
   */
  sweep(resourceVersion: string, remove: (slot: number) => void): number {
    if (!this.#begun) {
      throw new Error(
        `Cannot sweep a store: a relist must have begun: received resourceVersion "${resourceVersion}"`,
      );
    }
    this.#begun = false;
    let removed = 0;
    for (const slot of this.unseen(resourceVersion)) {
      remove(slot);
      removed++;
    }
    return removed;
  }

  /**
   * The slots of the objects that were not seen, one after the other; each may
   * be removed when it is reached.
   *
   * @param resourceVersion What is newer counts as seen.
   */
  *unseen(resourceVersion: string): Generator<number, void, undefined> {
    const slots = this.#slots;
    for (
      let slot = slots.nextUsed(0);
      slot >= 0;
      slot = slots.nextUsed(slot + 1)
    ) {
      if (slots.page(slot).mark[slot & PAGE_MASK] === this.#mark) continue;
      if (resourceVersion !== "" && slots.isNewer(slot, resourceVersion)) {
        this.see(slot);
      } else yield slot;
    }
  }
}
