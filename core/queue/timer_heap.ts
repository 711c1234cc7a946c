import { type KeyRows, NONE } from "./key_rows.ts";

/**
 * Binary heap of rows by due time. As each row knows its position, it can be moved
 * or removed in logarithmic time: cancelled deadlines do not stay behind.
 */
export class TimerHeap {
  readonly #table: Pick<KeyRows, "heapIndex">;
  /** Rows in heap order, the earliest first. */
  readonly #rows: number[] = [];
  /** Due times of the rows, in the same order. */
  readonly #dues: number[] = [];

  /** @param table Table with the positions of its rows. */
  constructor(table: Pick<KeyRows, "heapIndex">) {
    this.#table = table;
  }

  get size(): number {
    return this.#rows.length;
  }

  /** Row that is due first; -1 if none exists. */
  get first(): number {
    return this.#rows[0] ?? NONE;
  }

  /** Due time of the first row; infinite if the heap is empty. */
  get firstDue(): number {
    return this.#dues[0] ?? Infinity;
  }

  /** Sets the due time of a row; an infinite time removes it. */
  set(row: number, due: number): void {
    const position = this.#table.heapIndex[row] as number;
    if (due === Infinity) {
      if (position >= 0) this.#remove(position);
    } else if (position < 0) {
      this.#rows.push(row);
      this.#dues.push(due);
      this.#rise(row, due, this.#rows.length - 1);
    } else if (due <= (this.#dues[position] as number)) {
      this.#rise(row, due, position);
    } else this.#descend(row, due, position);
  }

  #remove(position: number): void {
    const { heapIndex } = this.#table;
    heapIndex[this.#rows[position] as number] = NONE;
    const row = this.#rows.pop() as number;
    const due = this.#dues.pop() as number;
    if (position === this.#rows.length) return;
    this.#rise(row, due, position);
    if (heapIndex[row] === position) this.#descend(row, due, position);
  }

  /** Moves a row up from a position until the heap is ordered. */
  #rise(row: number, due: number, from: number): void {
    let position = from;
    while (position > 0) {
      const parent = (position - 1) >> 1;
      if ((this.#dues[parent] as number) <= due) break;
      this.#move(parent, position);
      position = parent;
    }
    this.#place(row, due, position);
  }

  /** Moves a row down from a position until the heap is ordered. */
  #descend(row: number, due: number, from: number): void {
    const dues = this.#dues;
    let position = from;
    for (;;) {
      let child = 2 * position + 1;
      if (child >= dues.length) break;
      if ((dues[child + 1] ?? Infinity) < (dues[child] as number)) child++;
      if ((dues[child] as number) >= due) break;
      this.#move(child, position);
      position = child;
    }
    this.#place(row, due, position);
  }

  #move(from: number, to: number): void {
    this.#place(this.#rows[from] as number, this.#dues[from] as number, to);
  }

  #place(row: number, due: number, position: number): void {
    this.#rows[position] = row;
    this.#dues[position] = due;
    this.#table.heapIndex[row] = position;
  }
}
