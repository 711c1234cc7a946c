import type { Cluster, ClusterSet } from "@coracle/operator/sources";

/** Set of clusters that a test changes, or lets fail. */
export class ClusterList {
  #clusters: readonly Cluster[];
  #error: Error | undefined;
  #changed: PromiseWithResolvers<void> = Promise.withResolvers();

  constructor(clusters: readonly Cluster[] = []) {
    this.#clusters = clusters;
  }

  /** Source of the set, for the option `clusters`. */
  get source(): ClusterSet {
    return () => this.#follow();
  }

  /** Gives a new set. */
  set(clusters: readonly Cluster[]): void {
    this.#clusters = clusters;
    this.#wake();
  }

  /** Lets the iteration in progress fail. */
  fail(error: Error): void {
    this.#error = error;
    this.#wake();
  }

  #wake(): void {
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  }

  async *#follow(): AsyncGenerator<readonly Cluster[], void, undefined> {
    while (true) {
      const { promise } = this.#changed;
      const error = this.#error;
      this.#error = undefined;
      if (error !== undefined) throw error;
      yield this.#clusters;
      await promise;
    }
  }
}
