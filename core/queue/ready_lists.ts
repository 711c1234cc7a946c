import { SlotLists } from "./slot_lists.ts";

/**
 * How often a priority may be passed over by more urgent ones before its first
 * key is taken all the same.
 */
const PATIENCE: readonly number[] = [Infinity, 15, 63];

const PRIORITIES = PATIENCE.length;

/**
 * The slots that wait to be taken, by priority. The more urgent go first, but a
 * priority that was passed over too often is given its turn.
 */
export class ReadyLists {
  readonly #lists: SlotLists = new SlotLists(PRIORITIES, 0);
  /** How often each priority was passed over since one of it was taken. */
  readonly #passedOver: number[] = [0, 0, 0];

  /** Makes room for another number of slots. */
  resize(capacity: number): void {
    this.#lists.resize(capacity);
  }

  /** Appends a slot that does not wait. */
  push(priority: number, slot: number): void {
    this.#lists.push(priority, slot);
  }

  /** Takes a slot out of the list of its priority. */
  remove(priority: number, slot: number): void {
    this.#lists.remove(priority, slot);
  }

  /** Takes the slot whose turn it is; -1 if none waits. */
  shift(): number {
    const chosen = this.#choose();
    return chosen < 0 ? -1 : this.#lists.shift(chosen);
  }

  #choose(): number {
    const passedOver = this.#passedOver;
    let chosen = -1;
    for (let list = 0; list < PRIORITIES; list++) {
      if (this.#lists.size(list) === 0) continue;
      if (
        chosen < 0 || (passedOver[list] as number) >= (PATIENCE[list] as number)
      ) chosen = list;
    }
    if (chosen < 0) return chosen;
    for (let list = chosen + 1; list < PRIORITIES; list++) {
      if (this.#lists.size(list) > 0) {
        passedOver[list] = (passedOver[list] as number) + 1;
      }
    }
    passedOver[chosen] = 0;
    return chosen;
  }
}
