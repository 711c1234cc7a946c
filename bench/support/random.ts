/** Seeded pseudo-random numbers, equal on every runtime (mulberry32). */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** Integer below a limit. */
  below(limit: number): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let t = this.#state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return Math.floor(((t ^ (t >>> 14)) >>> 0) / 2 ** 32 * limit);
  }

  /** Text of random characters of an alphabet. */
  text(alphabet: string, length: number): string {
    let text = "";
    for (let i = 0; i < length; i++) {
      text += alphabet.charAt(this.below(alphabet.length));
    }
    return text;
  }
}
