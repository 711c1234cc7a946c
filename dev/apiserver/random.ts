import { Buffer } from "node:buffer";

/** Generator of random values of one server; equal seeds give equal values. */
export interface Random {
  /** Random number from 0 (inclusive) to 1 (exclusive). */
  next(): number;
  /** Random UUID (version 4). */
  uid(): string;
  /**
   * Suffix of a generated name: five characters without vowels and look-alikes.
   */
  suffix(): string;
  /** Creates a generator that goes on from here, independently. */
  copy(): Random;
}

/** Alphabet of kube-apiserver's name suffixes. */
const SUFFIX_ALPHABET = "bcdfghjklmnpqrstvwxz2456789";

/**
 * Creates a generator of random values (sfc32, which passes the usual
 * statistical tests; not for secrets).
 *
 * @param seed Seed; random by default.
 */
export function seededRandom(seed?: number): Random {
  const state = new Uint32Array(4);
  if (seed === undefined) crypto.getRandomValues(state);
  else state.set([seed, seed / 2 ** 32, 0x9e3779b9, 1]);
  const random = randomFrom(state);
  for (let round = 0; round < 12; round++) random.next();
  return random;
}

function randomFrom(state: Uint32Array): Random {
  const next32 = (): number => {
    const [a = 0, b = 0, c = 0, d = 0] = state;
    const result = (a + b + d) | 0;
    state[3] = d + 1;
    state[0] = b ^ (b >>> 9);
    state[1] = c + (c << 3);
    state[2] = ((c << 21) | (c >>> 11)) + result;
    return result >>> 0;
  };
  const words = Buffer.alloc(16);
  return {
    next: () => next32() / 2 ** 32,
    uid() {
      for (let at = 0; at < 16; at += 4) words.writeUInt32BE(next32(), at);
      const digits = words.toString("hex");
      const variant = "89ab"[next32() & 3];
      return `${digits.slice(0, 8)}-${digits.slice(8, 12)}-4${
        digits.slice(13, 16)
      }-${variant}${digits.slice(17, 20)}-${digits.slice(20)}`;
    },
    suffix() {
      let text = "";
      for (let index = 0; index < 5; index++) {
        text += SUFFIX_ALPHABET[next32() % SUFFIX_ALPHABET.length];
      }
      return text;
    },
    copy: () => randomFrom(state.slice()),
  };
}
