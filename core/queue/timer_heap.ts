/** Element of a heap that stores its own position. */
export interface HeapNode {
  /** Position in the heap; -1 if the node is not in it. Set by the heap. */
  heapIndex: number;
}

/**
 * Binary heap of nodes by due time. As each node knows its position, it can be
 * moved or removed in logarithmic time: cancelled nodes do not stay behind.
 */
export class TimerHeap<N extends HeapNode> {
  /** Nodes in heap order, the earliest first. */
  readonly #nodes: N[] = [];
  /** Due times of the nodes, in the same order. */
  readonly #dues: number[] = [];

  get size(): number {
    return this.#nodes.length;
  }

  get first(): N | undefined {
    return this.#nodes[0];
  }

  /** Due time of the first node; infinite if the heap is empty. */
  get firstDue(): number {
    return this.#dues[0] ?? Infinity;
  }

  /** Sets the due time of a node; an infinite time removes it. */
  set(node: N, due: number): void {
    const position = node.heapIndex;
    if (due === Infinity) {
      if (position >= 0) this.#remove(position);
    } else if (position < 0) {
      this.#nodes.push(node);
      this.#dues.push(due);
      this.#rise(node, due, this.#nodes.length - 1);
    } else if (due <= (this.#dues[position] as number)) {
      this.#rise(node, due, position);
    } else this.#descend(node, due, position);
  }

  #remove(position: number): void {
    (this.#nodes[position] as N).heapIndex = -1;
    const node = this.#nodes.pop() as N;
    const due = this.#dues.pop() as number;
    if (position === this.#nodes.length) return;
    this.#rise(node, due, position);
    if (node.heapIndex === position) this.#descend(node, due, position);
  }

  /** Moves a node up from a position until the heap is ordered. */
  #rise(node: N, due: number, from: number): void {
    let position = from;
    while (position > 0) {
      const parent = (position - 1) >> 1;
      if ((this.#dues[parent] as number) <= due) break;
      this.#move(parent, position);
      position = parent;
    }
    this.#place(node, due, position);
  }

  /** Moves a node down from a position until the heap is ordered. */
  #descend(node: N, due: number, from: number): void {
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
    this.#place(node, due, position);
  }

  #move(from: number, to: number): void {
    this.#place(this.#nodes[from] as N, this.#dues[from] as number, to);
  }

  #place(node: N, due: number, position: number): void {
    this.#nodes[position] = node;
    this.#dues[position] = due;
    node.heapIndex = position;
  }
}
