/**
 * Maximum number of times that each priority is passed over by more urgent ones
 * before its first key is taken.
 */
const MAX_PASSED_OVER: readonly number[] = [Infinity, 15, 63];

/** Node of a doubly linked list, with its neighbours. */
export interface ListNode<N> {
  previous: N | undefined;
  next: N | undefined;
}

/** Doubly linked list, from which a node can be removed in constant time. */
interface List<N> {
  head: N | undefined;
  tail: N | undefined;
  /** Number of nodes taken from more urgent lists while this one had nodes. */
  passedOver: number;
}

/**
 * Waiting keys, first in, first out within a priority. More urgent priorities go
 * first, but a priority that was passed over too often is served next. The last
 * priority may have others beside those of its list, which are served in turn.
 */
export class ReadyLists<N extends ListNode<N>> {
  readonly #lists: readonly List<N>[] = MAX_PASSED_OVER.map(() => ({
    head: undefined,
    tail: undefined,
    passedOver: 0,
  }));

  /** Whether the last priority serves its list next. */
  #isListsTurn = true;

  /** Appends a node that is in no list. */
  push(priority: number, node: N): void {
    const list = this.#lists[priority] as List<N>;
    node.previous = list.tail;
    node.next = undefined;
    if (list.tail === undefined) list.head = node;
    else list.tail.next = node;
    list.tail = node;
  }

  remove(priority: number, node: N): void {
    const list = this.#lists[priority] as List<N>;
    const { previous, next } = node;
    if (previous === undefined) list.head = next;
    else previous.next = next;
    if (next === undefined) list.tail = previous;
    else next.previous = previous;
    node.previous = node.next = undefined;
  }

  /**
   * Removes and returns the next node; there must be one, or others.
   *
   * @param hasOthers Whether the last priority has others beside its list.
   * @returns Undefined if it is the turn of the others.
   */
  shift(hasOthers: boolean): N | undefined {
    const lists = this.#lists;
    const last = lists.length - 1;
    const isEmpty = (i: number) =>
      lists[i]?.head === undefined && !(hasOthers && i === last);
    let chosen = -1;
    for (let i = 0; i <= last; i++) {
      const { passedOver } = lists[i] as List<N>;
      const isDue = passedOver >= (MAX_PASSED_OVER[i] as number);
      if (!isEmpty(i) && (chosen < 0 || isDue)) chosen = i;
    }
    for (let i = chosen + 1; i <= last; i++) {
      if (!isEmpty(i)) (lists[i] as List<N>).passedOver++;
    }
    const list = lists[chosen] as List<N>;
    list.passedOver = 0;
    const node = list.head;
    if (hasOthers && chosen === last) {
      const isListsTurn = this.#isListsTurn && node !== undefined;
      this.#isListsTurn = !isListsTurn;
      if (!isListsTurn) return undefined;
    }
    this.remove(chosen, node as N);
    return node;
  }
}
