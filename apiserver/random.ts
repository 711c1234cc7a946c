/** Random values of one server; the same seed gives the same ones again. */
export interface Random {
  /** A number from 0 up to and without 1. */
  next(): number;
  /** A random UUID (version 4). */
  uid(): string;
  /** Five characters for a generated name, without vowels and look-alikes. */
  suffix(): string;
}

/** What kube-apiserver makes name suffixes of. */
const SUFFIX_ALPHABET = "bcdfghjklmnpqrstvwxz2456789";

/**
 * Makes a source of random values (the sfc32 generator, which passes the usual
 * statistical tests; it is not for secrets).
 *
 * @param seed Where it starts; a random place by default.
 */
export function seededRandom(seed?: number): Random {
  const state = new Uint32Array(4);
  if (seed === undefined) crypto.getRandomValues(state);
  else state.set([seed, seed / 2 ** 32, 0x9e3779b9, 1]);
  const next32 = (): number => {
    const [a = 0, b = 0, c = 0, d = 0] = state;
    const result = (a + b + d) | 0;
    state[3] = d + 1;
    state[0] = b ^ (b >>> 9);
    state[1] = c + (c << 3);
    state[2] = ((c << 21) | (c >>> 11)) + result;
    return result >>> 0;
  };
  for (let round = 0; round < 12; round++) next32();
  const hex = () => next32().toString(16).padStart(8, "0");
  return {
    next: () => next32() / 2 ** 32,
    uid() {
      const digits = hex() + hex() + hex() + hex();
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
  };
}
