import { type KeyRows, NONE } from "./key_rows.ts";

/**
 * Maximum number of times that each priority is passed over by more urgent ones
 * before its first key is taken.
 */
const MAX_PASSED_OVER: readonly number[] = [Infinity, 15, 63];
const LAST = MAX_PASSED_OVER.length - 1;

/** Doubly linked list, from which a row can be removed in constant time. */
interface List {
  head: number;
  tail: number;
  /** Number of keys taken from more urgent lists while this one had some. */
  passedOver: number;
}

/**
 * Waiting keys, first in, first out within a priority. More urgent priorities go
 * first, but a priority that was passed over too often is served next. The last
 * priority may have others beside those of its list, which are served in turn.
 */
export class ReadyLists {
  readonly #rows: Pick<KeyRows, "next" | "previous">;
  readonly #lists: readonly List[] = MAX_PASSED_OVER.map(() => ({
    head: NONE,
    tail: NONE,
    passedOver: 0,
  }));
  /** Whether the last priority has served its list last. */
  #hasServedList = false;

  /** @param rows Table with the neighbours of its rows. */
  constructor(rows: Pick<KeyRows, "next" | "previous">) {
    this.#rows = rows;
  }

  /** Appends a row that is in no list. */
  push(priority: number, row: number): void {
    const { next, previous } = this.#rows;
    const list = this.#lists[priority] as List;
    previous[row] = list.tail;
    next[row] = NONE;
    if (list.tail === NONE) list.head = row;
    else next[list.tail] = row;
    list.tail = row;
  }

  remove(priority: number, row: number): void {
    const { next, previous } = this.#rows;
    const list = this.#lists[priority] as List;
    const before = previous[row] as number;
    const after = next[row] as number;
    if (before === NONE) list.head = after;
    else next[before] = after;
    if (after === NONE) list.tail = before;
    else previous[after] = before;
  }

  /**
   * Removes and returns the next row; there must be one, or others.
   *
   * @param hasOthers Whether the last priority has others beside its list.
   * @returns -1 if it is the turn of the others.
   */
  shift(hasOthers: boolean): number {
    const chosen = this.#choose(hasOthers);
    const { head } = this.#lists[chosen] as List;
    if (hasOthers && chosen === LAST) {
      this.#hasServedList = head !== NONE && !this.#hasServedList;
      if (!this.#hasServedList) return NONE;
    }
    this.remove(chosen, head);
    return head;
  }

  /** Priority that is served next. */
  #choose(hasOthers: boolean): number {
    let chosen = NONE;
    for (let i = 0; i <= LAST; i++) {
      const { head, passedOver } = this.#lists[i] as List;
      if (head === NONE && !(hasOthers && i === LAST)) continue;
      const isDue = passedOver >= (MAX_PASSED_OVER[i] as number);
      if (chosen === NONE || isDue) chosen = i;
    }
    for (let i = chosen + 1; i <= LAST; i++) {
      const list = this.#lists[i] as List;
      if (list.head !== NONE || (hasOthers && i === LAST)) list.passedOver++;
    }
    (this.#lists[chosen] as List).passedOver = 0;
    return chosen;
  }
}
